//! The path of a SQLite file, and which file it names.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::OpenError;

/// Which file is there under a path: device and number. SQLite goes on writing to a file that was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity(u64, u64);

impl FileIdentity {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        Ok(Self(metadata.dev(), metadata.ino()))
    }
}

/// Says in our words what SQLite would call "unable to open database file". Looks at the metadata only: opening and
/// closing the file here would drop the locks that this process's other connections hold on it
/// (<https://www.sqlite.org/howtocorrupt.html>, section 2.2).
pub(crate) fn check_path(path: &Path) -> Result<(), OpenError> {
    let bad = |why| OpenError::Path {
        path: path.to_owned(),
        why,
    };
    match path.to_str() {
        None => return Err(bad("it is not UTF-8")),
        Some("") => return Err(bad("it is empty")),
        Some(text) if text.contains('\0') => return Err(bad("it holds a NUL character")),
        Some(_) => {}
    }
    match std::fs::metadata(path) {
        // SQLite takes a file of one byte for an empty one, and would write over it.
        Ok(metadata) if metadata.is_file() && metadata.len() == 1 => {
            Err(bad("what is there has one byte and is no SQLite file"))
        }
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(_) => Err(OpenError::NotAFile {
            path: path.to_owned(),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            };
            if folder.is_dir() {
                return Ok(());
            }
            Err(OpenError::NoFolder {
                path: path.to_owned(),
                folder: folder.to_owned(),
            })
        }
        Err(source) => Err(OpenError::Unreachable {
            path: path.to_owned(),
            source,
        }),
    }
}

/// A file that can only be read is noticed now, and not at the first write. SQLite itself would open it, and says so only to
/// whoever takes the write lock.
pub(crate) fn check_writable(path: &Path) -> Result<(), OpenError> {
    accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).map_err(|error| {
        OpenError::NotWritable {
            path: path.to_owned(),
            source: io::Error::from(error).into(),
        }
    })
}
