//! Whether a file is still what it was: what moves when it is written to or replaced.

use std::{fs::Metadata, os::unix::fs::MetadataExt as _};

/// A file's identity, size and times. The time of its last change (ctime) cannot be set back, as that of its last write
/// (mtime) can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    file: (u64, u64),
    len: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// What moves of the file that has this metadata.
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            file: (metadata.dev(), metadata.ino()),
            len: metadata.len(),
            written: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// The file's length in bytes.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a file's length is a number, and it is no collection"
    )]
    pub const fn len(&self) -> u64 {
        self.len
    }
}
