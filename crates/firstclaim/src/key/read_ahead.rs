//! A thread that reads ahead of the hasher, in a few large buffers that go round: the memory is the same for any size.

use std::{
    io::{self, Read},
    sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel},
    thread,
};

use identity_core::identity::bundle::{Member, UploadKey, UploadKeyHasher, UploadKeyOptions};

use super::KeyError;

/// How much is read at once, in bytes.
const CHUNK: usize = 1024 * 1024;

/// How many buffers there are: one to fill, one to hash, one on its way.
const BUFFERS: usize = 3;

/// The key of what `read` feeds.
///
/// # Errors
///
/// `read`'s own, and [`KeyError::Hash`].
pub(super) fn key<'m>(
    options: &UploadKeyOptions,
    read: impl FnOnce(&mut Feed<'m>) -> Result<(), KeyError> + Send,
) -> Result<UploadKey, KeyError> {
    let (to_hasher, filled) = sync_channel(BUFFERS);
    let (emptied, spare) = channel();
    for _ in 0..BUFFERS {
        // Nothing is there yet to refuse them: `spare` is two lines up.
        let _ = emptied.send(Vec::new());
    }
    let mut feed = Feed { to_hasher, spare };
    thread::scope(|scope| {
        let reader = scope.spawn(move || read(&mut feed));
        let hashed = hash(UploadKeyHasher::new(options), filled, &emptied);
        let read = reader
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match read {
            // Then it is the hasher that knows why.
            Ok(()) | Err(KeyError::HasherStopped) => Ok(hashed?.finish()?),
            Err(error) => Err(error),
        }
    })
}

/// Hashes until the reader is done. Drops what it receives from when it fails, so that the reader stops.
fn hash(
    mut hasher: UploadKeyHasher,
    filled: Receiver<Piece<'_>>,
    emptied: &Sender<Vec<u8>>,
) -> Result<UploadKeyHasher, KeyError> {
    for piece in filled {
        match piece {
            Piece::Member(member, length) => hasher.member(member, length)?,
            Piece::Bytes(mut buffer) => {
                hasher.update(&buffer)?;
                buffer.clear();
                // A reader that is done needs no buffers.
                let _ = emptied.send(buffer);
            }
        }
    }
    Ok(hasher)
}

/// What goes from the reader to the hasher.
#[derive(Debug)]
enum Piece<'m> {
    /// A member begins, of this length.
    Member(&'m Member, u64),
    /// The next bytes of its content.
    Bytes(Vec<u8>),
}

/// The reader's side.
#[derive(Debug)]
pub(super) struct Feed<'m> {
    to_hasher: SyncSender<Piece<'m>>,
    spare: Receiver<Vec<u8>>,
}

impl<'m> Feed<'m> {
    /// Feeds a member whose content is as long as was told. Returns whether it was.
    ///
    /// # Errors
    ///
    /// [`KeyError::HasherStopped`], and `failed` of what reading fails with.
    pub(super) fn member(
        &mut self,
        member: &'m Member,
        length: u64,
        mut content: impl Read,
        failed: impl FnOnce(io::Error) -> KeyError,
    ) -> Result<bool, KeyError> {
        self.send(Piece::Member(member, length))?;
        // One byte more, so that a longer one is noticed.
        let mut rest = length.saturating_add(1);
        loop {
            let mut buffer = self.spare.recv().map_err(|_| KeyError::HasherStopped)?;
            buffer.reserve_exact(CHUNK.min(usize::try_from(rest).unwrap_or(CHUNK)));
            let chunk = rest.min(CHUNK as u64);
            let read = match (&mut content).take(chunk).read_to_end(&mut buffer) {
                Ok(read) => read as u64,
                Err(error) => return Err(failed(error)),
            };
            rest -= read;
            if rest == 0 {
                return Ok(false);
            }
            let ended = read < chunk;
            self.send(Piece::Bytes(buffer))?;
            if ended {
                return Ok(rest == 1);
            }
        }
    }

    fn send(&self, piece: Piece<'m>) -> Result<(), KeyError> {
        self.to_hasher
            .send(piece)
            .map_err(|_| KeyError::HasherStopped)
    }
}
