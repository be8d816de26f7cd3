//! Local folders as an object store: a file's key is its path within the folder, its version the SHA-256 of its bytes.
//!
//! What is an object of a folder:
//!
//! | entry | object? |
//! |---|---|
//! | a file, at any depth | yes |
//! | a symbolic link to a file | yes, with the bytes it points to |
//! | a symbolic link to a folder | no: it may lead in circles, or out of the folder |
//! | a pipe, socket or device | no |
//!
//! A listing tells the objects. A [`walk`] leaves out what is hidden, too; it tells of each entry that is no object, and of
//! each that cannot be read.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, File, Metadata},
    io::{self, Read as _},
    num::NonZeroU32,
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::MetadataExt as _,
    },
    path::{Path, PathBuf},
    pin::Pin,
    task::{Context, Poll, ready},
};

use async_trait::async_trait;
use identity_core::{
    claim::UnixMillis,
    identity::{
        ObjectAddress, ObjectKey, ObjectVersion, Provider, TokenKind, VersionToken, hex::to_hex,
    },
    object::{Head, Listed, ObjectError, ObjectStore, ObjectStream},
};
use sha2::{Digest as _, Sha256};
use shapefile::Stamp;
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

pub(crate) mod walk;

use walk::Walk;

/// How much is read at once, in bytes.
const CHUNK: usize = 1024 * 1024;

/// How often a file is hashed anew because it changed meanwhile.
const TRIES: u32 = 3;

/// A folder on this machine, under the name that its objects' URIs give it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Folder {
    name: String,
    root: PathBuf,
}

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    /// Nothing is there, it is no folder, or it may not be entered.
    #[error("{} cannot be used as a folder", path.display())]
    Unusable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The name cannot stand in a URI.
    #[error("{} needs a name that is UTF-8, not empty and without a slash, got {name:?}", path.display())]
    Name { path: PathBuf, name: String },
    /// Two folders have one name.
    #[error(
        "{} and {} are both called {name:?}: their objects could not be told apart",
        first.display(), second.display()
    )]
    SameName {
        name: String,
        first: PathBuf,
        second: PathBuf,
    },
}

/// An object's key, and its file's metadata.
type Found = (Vec<u8>, Metadata);

impl Folder {
    /// The folder at this path, under this name or else its own.
    ///
    /// # Errors
    ///
    /// [`FolderError::Unusable`] and [`FolderError::Name`].
    pub(crate) fn open(path: &Path, name: Option<&str>) -> Result<Self, FolderError> {
        let unusable = |source| FolderError::Unusable {
            path: path.to_owned(),
            source,
        };
        // Absolute, so that it stays the same folder; `.` gets its name.
        let root = fs::canonicalize(path).map_err(unusable)?;
        if !root.is_dir() {
            return Err(unusable(io::ErrorKind::NotADirectory.into()));
        }
        let own = root.file_name().unwrap_or_default();
        match name.or(own.to_str()) {
            Some(name) if !name.is_empty() && !name.contains('/') => Ok(Self {
                name: name.to_owned(),
                root,
            }),
            refused => Err(FolderError::Name {
                path: path.to_owned(),
                name: refused.map_or_else(|| own.to_string_lossy().into_owned(), str::to_owned),
            }),
        }
    }

    /// The address of the object with this key.
    pub(crate) fn address(&self, key: &str) -> ObjectAddress {
        ObjectAddress {
            provider: Provider::File,
            account: None,
            container: self.name.clone(),
            key: ObjectKey::verbatim(key),
        }
    }

    /// What is in the folder now.
    pub(crate) fn walk(&self) -> Walk {
        Walk::new(&self.root)
    }

    /// Opens the object with this key; `None` if there is none.
    fn open_object(&self, key: &[u8]) -> io::Result<Option<(File, Metadata)>> {
        // A folder that is not there (a disk that is not mounted, say) tells nothing about its objects.
        fs::read_dir(&self.root)?;
        let Some(path) = self.path(key)? else {
            return Ok(None);
        };
        // Asked before it is opened: opening a pipe waits for its writer.
        let Some(metadata) = present(fs::metadata(&path))? else {
            return Ok(None);
        };
        if !metadata.is_file() {
            return Ok(None);
        }
        let Some(file) = present(File::open(&path))? else {
            return Ok(None);
        };
        let metadata = file.metadata()?;
        Ok(Some((file, metadata)))
    }

    /// Where the object with this key would be; `None` if no object of the folder can have it: it leaves the folder, by
    /// itself or by a link.
    fn path(&self, key: &[u8]) -> io::Result<Option<PathBuf>> {
        let mut path = self.root.clone();
        let mut segments = key.split(|&byte| byte == b'/').peekable();
        while let Some(segment) = segments.next() {
            if matches!(segment, b"" | b"." | b"..") || segment.contains(&0) {
                return Ok(None);
            }
            path.push(OsStr::from_bytes(segment));
            if segments.peek().is_some() {
                match present(fs::symlink_metadata(&path))? {
                    Some(metadata) if metadata.is_dir() => {}
                    _ => return Ok(None),
                }
            }
        }
        Ok(Some(path))
    }

    /// The objects whose keys begin with `prefix` and have no `/` after it, with the files' metadata, as the folder tells
    /// them; `None` if there are more than `most`.
    fn list(
        &self,
        prefix: &[u8],
        most: NonZeroU32,
        cancelled: &CancellationToken,
    ) -> io::Result<Option<Vec<Found>>> {
        fs::read_dir(&self.root)?;
        let name_at = prefix.iter().rposition(|&byte| byte == b'/');
        let (above, begin) = prefix.split_at(name_at.map_or(0, |slash| slash + 1));
        let folder = match above {
            b"" => Some(self.root.clone()),
            // What is above a file must be folders, and no links: `path` sees to it.
            _ => self
                .path(&[above, b"x"].concat())?
                .and_then(|path| Some(path.parent()?.to_owned())),
        };
        let mut listed = Vec::new();
        let Some(entries) = folder.map(fs::read_dir).map(present).transpose()?.flatten() else {
            return Ok(Some(listed));
        };
        for entry in entries {
            if cancelled.is_cancelled() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let entry = entry?;
            let name = entry.file_name().into_vec();
            if !name.starts_with(begin) {
                continue;
            }
            // What went away meanwhile is no object any more.
            let Some(metadata) = present(fs::metadata(entry.path()))?.filter(Metadata::is_file)
            else {
                continue;
            };
            if listed.len() == usize::try_from(most.get()).unwrap_or(usize::MAX) {
                return Ok(None);
            }
            listed.push(([above, &name].concat(), metadata));
        }
        listed.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(Some(listed))
    }

    /// The object's digest and size; `None` if there is none.
    fn digest(
        &self,
        key: &[u8],
        cancelled: &CancellationToken,
    ) -> io::Result<Option<(String, u64)>> {
        for _ in 0..TRIES {
            let Some((file, metadata)) = self.open_object(key)? else {
                return Ok(None);
            };
            if let Some(digest) = settled_digest(file, &metadata, cancelled)? {
                return Ok(Some((digest, metadata.len())));
            }
        }
        Err(io::Error::other(format!(
            "it changed each of the {TRIES} times that it was read: is it still being written?"
        )))
    }
}

/// The digest of an opened file; `None` if the file is not, at its end, what it was when it was opened.
fn settled_digest(
    mut file: File,
    opened: &Metadata,
    cancelled: &CancellationToken,
) -> io::Result<Option<String>> {
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    let mut size = 0;
    loop {
        if cancelled.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => {
                hasher.update(&chunk[..read]);
                size += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let settled = Stamp::of(opened) == Stamp::of(&file.metadata()?) && size == opened.len();
    Ok(settled.then(|| to_hex(&hasher.finalize().into())))
}

/// `None` for what is not there, or cannot be: a name too long, a path through a file.
fn present<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory | InvalidFilename) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The object store of these folders, and of nothing else.
#[derive(Debug, Default)]
pub(crate) struct LocalObjects {
    folders: BTreeMap<String, Folder>,
}

impl LocalObjects {
    /// The store of these folders.
    ///
    /// # Errors
    ///
    /// [`FolderError::SameName`].
    pub(crate) fn new(folders: impl IntoIterator<Item = Folder>) -> Result<Self, FolderError> {
        let mut store = Self::default();
        for folder in folders {
            let (name, second) = (folder.name.clone(), folder.root.clone());
            match store.folders.insert(name.clone(), folder) {
                Some(Folder { root: first, .. }) if first != second => {
                    return Err(FolderError::SameName {
                        name,
                        first,
                        second,
                    });
                }
                _ => {}
            }
        }
        Ok(store)
    }

    fn folder(&self, address: &ObjectAddress) -> Result<Folder, ObjectError> {
        if address.provider != Provider::File {
            return Err(ObjectError::unavailable(
                address,
                "this build reads only files on this machine",
            ));
        }
        self.folders
            .get(&address.container)
            .cloned()
            .ok_or_else(|| ObjectError::unavailable(address, self.not_given(address)))
    }

    /// What to say of an object in a folder that is not one of these.
    fn not_given(&self, ObjectAddress { container, .. }: &ObjectAddress) -> String {
        let known: Vec<_> = self.folders.keys().collect();
        let given = match known[..] {
            [] => "no folder was given".to_owned(),
            _ => format!("the folders that were given are {known:?}"),
        };
        format!(
            "it lies in a folder called {container:?}, and {given}: name the folder beside the events, as in `firstclaim run - \
             {container}=DIR`"
        )
    }
}

/// Runs `work` where it may block. A caller that goes away cancels it.
async fn blocking<T: Send + 'static>(
    address: &ObjectAddress,
    work: impl FnOnce(&[u8], &CancellationToken) -> io::Result<T> + Send + 'static,
) -> Result<T, ObjectError> {
    let key = address.key.exact_bytes().to_owned();
    let cancelled = CancellationToken::new();
    let _cancels = cancelled.clone().drop_guard();
    tokio::task::spawn_blocking(move || work(&key, &cancelled))
        .await
        .map_err(|error| ObjectError::unavailable(address, error))?
        .map_err(|error| ObjectError::unavailable(address, error))
}

#[async_trait]
impl ObjectStore for LocalObjects {
    fn reads(&self, provider: Provider) -> bool {
        provider == Provider::File
    }

    fn missing(&self, address: &ObjectAddress) -> Option<String> {
        let is_known = self.folders.contains_key(&address.container);
        (self.reads(address.provider) && !is_known)
            .then(|| format!("{address} cannot be read: {}", self.not_given(address)))
    }

    /// Reads the whole file, for its digest. A key that no object of the folder can have (`../x`) is not there.
    async fn head(&self, address: &ObjectAddress) -> Result<Option<Head>, ObjectError> {
        let folder = self.folder(address)?;
        let found = blocking(address, move |key, cancelled| folder.digest(key, cancelled)).await?;
        found
            .map(|(digest, size)| {
                let token = VersionToken::new(TokenKind::Content, digest)
                    .map_err(|refusal| ObjectError::unavailable(address, refusal))?;
                Ok(Head {
                    token,
                    etag: None,
                    size,
                })
            })
            .transpose()
    }

    /// Hashes while it reads: the stream ends with [`ObjectError::Changed`] where the bytes are not the version's, so what
    /// was read is worth something only once it has ended well.
    async fn read(&self, object: &ObjectVersion) -> Result<ObjectStream, ObjectError> {
        let folder = self.folder(&object.address)?;
        if object.token.kind() != TokenKind::Content {
            return Err(ObjectError::Changed);
        }
        let opened = blocking(&object.address, move |key, _| folder.open_object(key)).await?;
        let (file, _) = opened.ok_or(ObjectError::Changed)?;
        Ok(Box::new(Verified {
            file: tokio::fs::File::from_std(file),
            hasher: Sha256::new(),
            expected: object.token.value().to_owned(),
        }))
    }

    /// Reads no file, so it tells no token. What is hidden is listed, as `head` finds it.
    async fn list(
        &self,
        prefix: &ObjectAddress,
        most: NonZeroU32,
    ) -> Result<Vec<Listed>, ObjectError> {
        let folder = self.folder(prefix)?;
        let listed = blocking(prefix, move |key, cancelled| {
            folder.list(key, most, cancelled)
        });
        let listed = listed.await?;
        let listed = listed.ok_or_else(|| ObjectError::too_many(prefix, most))?;
        Ok(listed
            .into_iter()
            .map(|(key, metadata)| Listed {
                address: prefix.beside(ObjectKey::from_bytes(key)),
                size: metadata.len(),
                modified: Some(written(&metadata)),
                token: None,
            })
            .collect())
    }
}

/// When a file was written last.
fn written(metadata: &Metadata) -> UnixMillis {
    let millis = metadata.mtime().saturating_mul(1_000);
    UnixMillis(millis.saturating_add(metadata.mtime_nsec() / 1_000_000))
}

/// A file that must have this digest by the time it ends.
#[derive(Debug)]
struct Verified {
    file: tokio::fs::File,
    hasher: Sha256,
    expected: String,
}

impl AsyncRead for Verified {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.file).poll_read(cx, buf))?;
        let read = &buf.filled()[before..];
        this.hasher.update(read);
        let at_end = read.is_empty() && buf.remaining() > 0;
        if at_end && to_hex(&this.hasher.clone().finalize().into()) != this.expected {
            return Poll::Ready(Err(io::Error::other(ObjectError::Changed)));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;
