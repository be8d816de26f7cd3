//! A local copy of exactly one version of an object.

use std::{
    error::Error,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

use identity_core::{
    identity::ObjectVersion,
    job::JobError,
    object::{ObjectError, ObjectStore, ObjectStream},
};
use tokio::io::{AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};

/// The longest file name of the usual file systems, in bytes.
const NAME_MAX: usize = 255;

/// How much is written at once, in bytes.
const CHUNK: usize = 1024 * 1024;

/// Reads exactly this version into a file below `folder`, which is the run's own. It lies in a folder by itself, for the
/// files that a program puts beside it.
pub(crate) async fn fetch(
    objects: &dyn ObjectStore,
    object: &ObjectVersion,
    folder: &Path,
) -> Result<PathBuf, JobError> {
    let stream = objects
        .read(object)
        .await
        .map_err(|error| unread(object, error))?;
    let io = |error| unwritten(object, error);
    let folder = folder.join("object");
    fs::create_dir(&folder).map_err(io)?;
    let path = folder.join(file_name(object.address.key.exact_bytes()));
    let mut file = tokio::fs::File::from_std(fs::File::create_new(&path).map_err(io)?);
    write(object, stream, &mut file).await?;
    Ok(path)
}

/// Writes what is read, and keeps apart which of the two fails.
async fn write(
    object: &ObjectVersion,
    stream: ObjectStream,
    file: &mut (impl AsyncWrite + Unpin),
) -> Result<(), JobError> {
    let mut stream = BufReader::with_capacity(CHUNK, stream);
    loop {
        let chunk = stream.fill_buf().await;
        let chunk = chunk.map_err(|error| unread(object, error))?;
        if chunk.is_empty() {
            break;
        }
        let (length, written) = (chunk.len(), file.write_all(chunk).await);
        written.map_err(|error| unwritten(object, error))?;
        stream.consume(length);
    }
    // A file of tokio's writes in the background: only a flush tells that all of it was written.
    file.flush().await.map_err(|error| unwritten(object, error))
}

/// The version is gone: the gate looks again. Otherwise its store is away, or refuses us.
fn unread<E: Error + Send + Sync + 'static>(object: &ObjectVersion, error: E) -> JobError {
    if is_changed(&error) {
        return JobError::SourceChanged;
    }
    JobError::Unread {
        message: format!("{} cannot be copied to this machine", object.address),
        source: Some(Box::new(error)),
    }
}

/// The disk is full, or nothing may be written there: other objects would fare no better. But a name that this file system
/// takes from nobody is the object's.
fn unwritten(object: &ObjectVersion, error: io::Error) -> JobError {
    let message = format!("{} cannot be copied to this machine", object.address);
    let is_of_name = error.kind() == io::ErrorKind::InvalidFilename;
    let source = Some(error.into());
    if is_of_name {
        JobError::Retryable { message, source }
    } else {
        JobError::Machine { message, source }
    }
}

/// Whether the error is, or carries, [`ObjectError::Changed`].
fn is_changed(error: &(dyn Error + 'static)) -> bool {
    if let Some(error) = error.downcast_ref::<ObjectError>() {
        return matches!(error, ObjectError::Changed);
    }
    // What an io::Error carries is not its source but the error itself.
    let inner = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
        .map(|inner| inner as &(dyn Error + 'static));
    inner.or(error.source()).is_some_and(is_changed)
}

/// The key's last segment where a file can be called so; else `object`, with the segment's extension if that is a plain
/// one.
fn file_name(key: &[u8]) -> OsString {
    let segment = key.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let usable = !matches!(segment, b"" | b"." | b"..")
        && segment.len() <= NAME_MAX
        && !segment.contains(&0);
    if usable {
        return OsString::from_vec(segment.to_vec());
    }
    let plain = |extension: &&OsStr| {
        extension.len() <= 16 && extension.as_bytes().iter().all(u8::is_ascii_alphanumeric)
    };
    let mut name = OsString::from("object");
    if let Some(extension) = Path::new(OsStr::from_bytes(segment))
        .extension()
        .filter(plain)
    {
        name.push(".");
        name.push(extension);
    }
    name
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroU32, path::Component, sync::Mutex};

    use async_trait::async_trait;
    use identity_core::{
        identity::{ObjectAddress, ObjectKey, Provider, TokenKind, VersionToken},
        object::{Head, Listed},
    };
    use proptest::prelude::*;
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::folder::RunFolder;

    type Read = Box<dyn FnOnce() -> Result<ObjectStream, ObjectError> + Send>;

    /// A store that answers one read, and remembers what was asked for.
    struct Once {
        answer: Mutex<Option<Read>>,
        asked: Mutex<Option<ObjectVersion>>,
    }

    impl Once {
        fn new(
            answer: impl FnOnce() -> Result<ObjectStream, ObjectError> + Send + 'static,
        ) -> Self {
            Self {
                answer: Mutex::new(Some(Box::new(answer))),
                asked: Mutex::new(None),
            }
        }
    }

    impl std::fmt::Debug for Once {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Once")
        }
    }

    #[async_trait]
    impl ObjectStore for Once {
        fn reads(&self, _: identity_core::identity::Provider) -> bool {
            true
        }

        async fn head(&self, _: &ObjectAddress) -> Result<Option<Head>, ObjectError> {
            Ok(None)
        }

        async fn read(&self, object: &ObjectVersion) -> Result<ObjectStream, ObjectError> {
            *self.asked.lock().unwrap() = Some(object.clone());
            self.answer.lock().unwrap().take().unwrap()()
        }

        async fn list(&self, _: &ObjectAddress, _: NonZeroU32) -> Result<Vec<Listed>, ObjectError> {
            panic!("the store was asked for a listing");
        }
    }

    fn object(key: &str) -> ObjectVersion {
        ObjectVersion {
            address: ObjectAddress {
                provider: Provider::S3,
                account: None,
                container: "tiles".into(),
                key: ObjectKey::verbatim(key),
            },
            token: VersionToken::new(TokenKind::VersionId, "v1").unwrap(),
        }
    }

    /// The bytes, and then this error.
    fn broken(bytes: &'static [u8], error: io::Error) -> ObjectStream {
        struct Fails(Option<io::Error>);
        impl tokio::io::AsyncRead for Fails {
            fn poll_read(
                mut self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
                _: &mut tokio::io::ReadBuf<'_>,
            ) -> std::task::Poll<io::Result<()>> {
                std::task::Poll::Ready(Err(self.0.take().unwrap()))
            }
        }
        Box::new(bytes.chain(Fails(Some(error))))
    }

    #[tokio::test]
    async fn a_copy_is_the_pinned_version_and_is_removed_with_its_folder() {
        let bytes: Vec<u8> = (0u8..=255).cycle().take(3 * CHUNK + 7).collect();
        let (store, object) = (
            {
                let bytes = bytes.clone();
                Once::new(move || Ok(Box::new(io::Cursor::new(bytes))))
            },
            object("a/b/scene 1.tif"),
        );
        let folder = RunFolder::new().unwrap();
        let copy = fetch(&store, &object, folder.path()).await.unwrap();
        assert_eq!(*store.asked.lock().unwrap(), Some(object));
        assert_eq!(fs::read(&copy).unwrap(), bytes);
        assert_eq!(copy, folder.path().join("object/scene 1.tif"));
        assert!(copy.is_absolute());
        fs::write(copy.with_extension("left by the job"), "x").unwrap();
        drop(folder);
        assert!(!copy.parent().unwrap().parent().unwrap().exists());
    }

    #[tokio::test]
    async fn an_object_that_changed_is_told_apart_before_and_while_reading() {
        for store in [
            Once::new(|| Err(ObjectError::Changed)),
            Once::new(|| Ok(broken(b"some", io::Error::other(ObjectError::Changed)))),
            Once::new(|| {
                let inner = io::Error::other(ObjectError::Changed);
                Ok(broken(b"", io::Error::other(inner)))
            }),
        ] {
            let folder = RunFolder::new().unwrap();
            let fetched = fetch(&store, &object("k"), folder.path()).await;
            let error = fetched.unwrap_err();
            assert!(matches!(error, JobError::SourceChanged), "{error:?}");
        }
    }

    #[tokio::test]
    async fn a_store_that_cannot_be_read_may_be_tried_again() {
        let unavailable = || ObjectError::Unavailable {
            address: "s3://tiles/k".into(),
            source: "HTTP 503".into(),
        };
        for store in [
            Once::new(move || Err(unavailable())),
            Once::new(move || Ok(broken(b"some", io::Error::other(unavailable())))),
            Once::new(|| Ok(broken(b"some", io::ErrorKind::StorageFull.into()))),
        ] {
            let folder = RunFolder::new().unwrap();
            let fetched = fetch(&store, &object("k"), folder.path()).await;
            let error = fetched.unwrap_err();
            assert!(
                matches!(
                    error,
                    JobError::Unread {
                        source: Some(_),
                        ..
                    }
                ),
                "{error:?}"
            );
            assert_eq!(
                error.to_string(),
                "s3://tiles/k cannot be copied to this machine"
            );
        }
    }

    /// A file that takes the first bytes, and then fails.
    struct Full {
        room: usize,
        error: io::ErrorKind,
    }

    impl AsyncWrite for Full {
        fn poll_write(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            bytes: &[u8],
        ) -> std::task::Poll<io::Result<usize>> {
            let written = self.room.min(bytes.len());
            self.room -= written;
            std::task::Poll::Ready(match written {
                0 => Err(self.error.into()),
                _ => Ok(written),
            })
        }
        fn poll_flush(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<io::Result<()>> {
            std::task::Poll::Ready(Ok(()))
        }
        fn poll_shutdown(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<io::Result<()>> {
            std::task::Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_full_disk_is_this_machines_fault_and_a_name_is_the_objects() {
        for (kind, is_machines) in [
            (io::ErrorKind::StorageFull, true),
            (io::ErrorKind::QuotaExceeded, true),
            (io::ErrorKind::ReadOnlyFilesystem, true),
            (io::ErrorKind::InvalidFilename, false),
        ] {
            let mut full = Full {
                room: 3,
                error: kind,
            };
            let stream = Box::new(&b"seven b"[..]);
            let error = write(&object("k"), stream, &mut full).await.unwrap_err();
            assert_eq!(
                matches!(error, JobError::Machine { .. }),
                is_machines,
                "{error:?}"
            );
        }
        let mut room = Full {
            room: 7,
            error: io::ErrorKind::StorageFull,
        };
        let stream = Box::new(&b"seven b"[..]);
        assert!(write(&object("k"), stream, &mut room).await.is_ok());
    }

    #[test]
    fn a_file_is_named_by_the_last_segment_where_a_file_can_be() {
        let long = "x".repeat(256) + ".tif";
        for (key, name) in [
            ("scene.tif", "scene.tif"),
            ("a/b/scene.tar.gz", "scene.tar.gz"),
            ("a/.hidden", ".hidden"),
            ("a/", "object"),
            ("", "object"),
            ("a/..", "object"),
            ("a/.", "object"),
            ("a\0b/c\0.shp", "object.shp"),
            ("a.\0", "object"),
            (&long, "object.tif"),
        ] {
            assert_eq!(file_name(key.as_bytes()), name, "{key:?}");
        }
    }

    proptest! {
        #[test]
        fn no_key_names_a_file_outside_of_its_folder(
            key in prop::collection::vec(
                prop_oneof![Just(b'/'), Just(b'.'), Just(0), any::<u8>()], 0..600)
        ) {
            let name = file_name(&key);
            prop_assert!((1..=NAME_MAX).contains(&name.len()));
            prop_assert!(!name.as_bytes().contains(&0));
            let path = Path::new("folder").join(&name);
            let parts: Vec<_> = path.components().collect();
            prop_assert_eq!(
                parts, [Component::Normal(OsStr::new("folder")), Component::Normal(&name)]);
        }
    }
}
