//! A thread that reads ahead of the hasher, in a few large buffers that go round: the memory is the same for any size.

use std::{
    io::{self, Read},
    sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel},
    thread,
};

use identity_core::identity::bundle::{Member, UploadKey, UploadKeyHasher, UploadKeyOptions};

use crate::error::KeyError;

/// How much is read at once, in bytes.
const CHUNK: usize = 1024 * 1024;

/// How many buffers there are: one to fill, one to hash, one on its way.
const BUFFERS: usize = 3;

/// The key of what `read` feeds.
///
/// # Errors
///
/// `read`'s own, and [`KeyError::Hash`].
pub(crate) fn key<'m>(
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
pub(crate) struct Feed<'m> {
    to_hasher: SyncSender<Piece<'m>>,
    spare: Receiver<Vec<u8>>,
}

/// Why a member was not fed.
#[derive(Debug)]
pub(crate) enum FeedError {
    /// Its content cannot be read.
    Read(io::Error),
    /// Its content is not as long as was told.
    Length,
    /// The hasher has stopped, and says why itself.
    HasherStopped,
}

impl<'m> Feed<'m> {
    /// Feeds a member, and its content of the length that is told.
    pub(crate) fn member(
        &mut self,
        member: &'m Member,
        length: u64,
        mut content: impl Read,
    ) -> Result<(), FeedError> {
        self.send(Piece::Member(member, length))?;
        // One byte more, so that a longer one is noticed.
        let mut rest = length.saturating_add(1);
        loop {
            let mut buffer = self.spare.recv().map_err(|_| FeedError::HasherStopped)?;
            let chunk = rest.min(CHUNK as u64);
            buffer.reserve_exact(usize::try_from(chunk).unwrap_or(CHUNK));
            let mut piece = content.by_ref().take(chunk);
            let read = piece.read_to_end(&mut buffer).map_err(FeedError::Read)? as u64;
            rest -= read;
            if rest == 0 {
                return Err(FeedError::Length);
            }
            self.send(Piece::Bytes(buffer))?;
            match rest {
                _ if read == chunk => {}
                1 => return Ok(()),
                _ => return Err(FeedError::Length),
            }
        }
    }

    fn send(&self, piece: Piece<'m>) -> Result<(), FeedError> {
        self.to_hasher
            .send(piece)
            .map_err(|_| FeedError::HasherStopped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(path: &str) -> Member {
        Member::at(path).unwrap()
    }

    /// Bytes of which no two chunks are the same, in pieces of odd sizes.
    struct Odd {
        next: usize,
        end: usize,
    }

    impl Read for Odd {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = (self.next % 70_001 + 1).min(self.end - self.next);
            let buffer = match buffer.len() {
                len if len > most => &mut buffer[..most],
                _ => buffer,
            };
            for byte in buffer.iter_mut() {
                *byte = u8::try_from(self.next % 251).unwrap();
                self.next += 1;
            }
            Ok(buffer.len())
        }
    }

    #[test]
    fn every_byte_reaches_the_hasher_in_its_order() {
        let options = UploadKeyOptions::default();
        let (dbf, shp) = (member("a.dbf"), member("a.shp"));
        for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 7 * CHUNK + 3] {
            let got = key(&options, |feed| {
                for member in [&dbf, &shp] {
                    let content = Odd {
                        next: 0,
                        end: length,
                    };
                    feed.member(member, length as u64, content).unwrap();
                }
                Ok(())
            });
            let mut content = Vec::new();
            Odd {
                next: 0,
                end: length,
            }
            .read_to_end(&mut content)
            .unwrap();
            let mut hasher = UploadKeyHasher::new(&options);
            for member in [&dbf, &shp] {
                hasher.member(member, length as u64).unwrap();
                hasher.update(&content).unwrap();
            }
            assert_eq!(got.unwrap(), hasher.finish().unwrap(), "{length}");
        }
    }

    #[test]
    fn a_content_of_another_length_is_told() {
        let shp = member("a.shp");
        for told in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
            for actual in [told.saturating_sub(1), told, told + 1, told + 5 * CHUNK] {
                let result = key(&UploadKeyOptions::default(), |feed| {
                    let content = io::repeat(7).take(actual as u64);
                    let fed = feed.member(&shp, told as u64, content);
                    assert_eq!(
                        matches!(fed, Err(FeedError::Length)),
                        told != actual,
                        "told {told}, got {actual}"
                    );
                    fed.map_err(|_| KeyError::Kind)
                });
                assert_eq!(result.is_ok(), told == actual);
            }
        }
    }

    #[test]
    fn a_reader_that_fails_gives_its_own_error() {
        struct Fails;
        impl Read for Fails {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::PermissionDenied.into())
            }
        }
        let shp = member("a.shp");
        let result = key(&UploadKeyOptions::default(), |feed| {
            let fed = feed.member(&shp, 10, Fails);
            assert!(matches!(fed, Err(FeedError::Read(_))));
            Err(KeyError::Kind)
        });
        assert!(matches!(result, Err(KeyError::Kind)));
    }

    #[test]
    fn a_hasher_that_refuses_stops_the_reader() {
        let (dbf, shp) = (member("a.dbf"), member("a.shp"));
        let mut stopped = false;
        let result = key(&UploadKeyOptions::default(), |feed| {
            feed.member(&shp, 0, io::empty()).unwrap();
            // Far more than the buffers hold: without a hasher it would wait for ever.
            let endless = io::repeat(7).take(u64::MAX);
            let fed = feed.member(&dbf, u64::MAX - 1, endless);
            stopped = matches!(fed, Err(FeedError::HasherStopped));
            Err(KeyError::HasherStopped)
        });
        assert!(stopped);
        assert!(matches!(result, Err(KeyError::Hash(_))), "{result:?}");
    }
}
