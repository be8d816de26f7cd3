//! SQLite's result codes, and what each means for whoever opens a store or uses one.
//!
//! The codes: <https://www.sqlite.org/rescode.html>. This is the only place that knows them.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use identity_core::claim::StoreError;

const PERM: i32 = 3;
const BUSY: i32 = 5;
const READONLY: i32 = 8;
const CORRUPT: i32 = 11;
const FULL: i32 = 13;
const CANTOPEN: i32 = 14;
/// The race for the locks of the write-ahead log was lost many times in a row: busy by another name.
const PROTOCOL: i32 = 15;
const AUTH: i32 = 23;
const NOTADB: i32 = 26;

/// SQLite's own words for what failed, and its extended result code.
#[derive(Debug, thiserror::Error)]
#[error("(code: {code}) {words}")]
struct ResultCode {
    code: i32,
    words: String,
}

/// The primary result code: the low byte of the extended one.
fn primary_code(error: &rusqlite::Error) -> Option<i32> {
    Some(error.sqlite_error()?.extended_code & 0xff)
}

/// Whether another connection's lock was in the way, so that nothing was done and the same can be tried again.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(primary_code(error), Some(BUSY | PROTOCOL))
}

/// The cause: SQLite's own words, if it is SQLite that failed.
fn cause(error: rusqlite::Error) -> Box<dyn Error + Send + Sync> {
    match error {
        rusqlite::Error::SqliteFailure(failure, words) => Box::new(ResultCode {
            code: failure.extended_code,
            words: words.unwrap_or_else(|| failure.to_string()),
        }),
        error => error.into(),
    }
}

/// Other connections held the file's lock for as long as we were willing to wait.
#[derive(Debug, thiserror::Error)]
#[error("the file stayed locked for {} s: another process is writing to it", waited.as_secs_f32())]
pub struct LockHeld {
    /// How long we were willing to wait.
    pub waited: Duration,
    /// SQLite's own words.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

/// A failed statement, told to everybody who waited for it.
#[derive(Debug, Clone)]
pub(crate) struct Failed {
    /// Another connection's lock was in the way.
    pub(crate) busy: bool,
    cause: Arc<dyn Error + Send + Sync>,
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self {
            busy: is_busy(&error),
            cause: cause(error).into(),
        }
    }
}

impl Failed {
    /// What is no failure of SQLite's.
    pub(crate) fn other(what: &'static str) -> Self {
        Self {
            busy: false,
            cause: Arc::from(Box::<dyn Error + Send + Sync>::from(what)),
        }
    }

    /// What it means for the user of a store: whether a write took place is not known.
    pub(crate) fn unavailable(
        self,
        store: String,
        doing: &'static str,
        waited: Duration,
    ) -> StoreError {
        let source = Box::new(self.cause);
        StoreError::Unavailable {
            store,
            doing,
            source: if self.busy {
                Box::new(LockHeld { waited, source })
            } else {
                source
            },
        }
    }
}

/// Why a SQLite file cannot be used as a claim store. Nothing was written to a file that is not ours.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// SQLite cannot be given this path.
    #[error("{path:?} cannot be the path of a SQLite file: {why}")]
    Path {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The file would be a new one, and its folder does not exist.
    #[error("cannot create {path:?}: there is no folder {folder:?}")]
    NoFolder {
        /// The file's path.
        path: PathBuf,
        /// The folder that it would be in.
        folder: PathBuf,
    },
    /// The path names a folder, a device or another thing that is no file.
    #[error("{path:?} is not a file")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file's metadata cannot be read.
    #[error("{path:?} cannot be reached")]
    Unreachable {
        /// The file's path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file, or the folder for the log beside it, cannot be opened for writing.
    #[error("{path:?} cannot be opened for writing, in a folder that can be written to")]
    NotWritable {
        /// The file's path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The file is no SQLite file, or a damaged one.
    #[error("{path:?} is not a SQLite file, or is damaged")]
    Corrupt {
        /// The file's path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The file is a SQLite file of another application, a GeoPackage for example.
    #[error(
        "{path:?} belongs to another application: expected a new file or application_id {expected:#010x}, \
         got application_id {got:#010x} and the tables {tables:?}"
    )]
    Foreign {
        /// The file's path.
        path: PathBuf,
        /// The `application_id` of our files.
        expected: u32,
        /// Its `application_id`; 0 is what SQLite gives a file whose application has none.
        got: u32,
        /// The names of its first few tables.
        tables: Vec<String>,
    },
    /// The file was written by a newer version of this program.
    #[error(
        "{path:?} was written by a newer version: its tables are of version {got}, known are those up to {known}"
    )]
    Newer {
        /// The file's path.
        path: PathBuf,
        /// Its version.
        got: i32,
        /// The highest version that this program knows.
        known: i32,
    },
    /// The file's place (a network share, for example) has no shared memory, which many processes on one file need.
    #[error("{path:?} cannot have a write-ahead log: expected journal mode \"wal\", got {got:?}")]
    NoWriteAheadLog {
        /// The file's path.
        path: PathBuf,
        /// The journal mode that SQLite kept.
        got: String,
    },
    /// Another process holds the file's lock.
    #[error("{path:?} cannot be opened")]
    Busy {
        /// The file's path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: LockHeld,
    },
    /// The disk, or the quota, is full.
    #[error("{path:?} cannot be set up: there is no space left")]
    Full {
        /// The file's path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// Anything else that SQLite reports, e.g. an input/output error.
    #[error("{path:?} cannot be opened")]
    Sqlite {
        /// The file's path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl OpenError {
    /// What a failed statement means for whoever opens a store.
    pub(crate) fn sqlite(path: &Path, waited: Duration, error: rusqlite::Error) -> Self {
        let (path, code) = (path.to_owned(), primary_code(&error));
        let source = cause(error);
        match code {
            Some(BUSY | PROTOCOL) => Self::Busy {
                path,
                source: LockHeld { waited, source },
            },
            Some(PERM | READONLY | CANTOPEN | AUTH) => Self::NotWritable { path, source },
            Some(CORRUPT | NOTADB) => Self::Corrupt { path, source },
            Some(FULL) => Self::Full { path, source },
            _ => Self::Sqlite { path, source },
        }
    }
}
