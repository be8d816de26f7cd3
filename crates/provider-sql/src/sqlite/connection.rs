//! How a connection to a SQLite file is set up, and made to wait for locks.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use super::error::is_busy;

/// How long SQLite itself waits for a lock before it says that it is busy and we ask again.
///
/// Its own waiting backs off to a poll every 100 ms, so that whoever has waited longest asks least often. With 20
/// processes that do nothing but write, the slowest write took 4.1 s so, and 0.7 s when asked anew every 20 ms.
const POLL: Duration = Duration::from_millis(20);

/// How connections to a file are opened.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    path: PathBuf,
    /// What each connection is told first.
    pub(super) setup: String,
}

impl Options {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            // "./" keeps SQLite from reading ":memory:" as no file at all.
            path: if path.is_relative() {
                Path::new(".").join(path)
            } else {
                path.to_owned()
            },
            // A write that was acknowledged outlives a power cut: in WAL mode, FULL syncs the log at each commit and NORMAL
            // does not. On macOS only a full fsync reaches the disk itself; elsewhere the pragma does nothing.
            setup: "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON;".to_owned(),
        }
    }

    /// The path as SQLite is given it.
    #[cfg(test)]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file, which must be there already.
    pub(crate) fn open(&self) -> rusqlite::Result<Connection> {
        self.open_with(OpenFlags::empty())
    }

    /// Opens the file; creates an empty one if there is none.
    pub(crate) fn open_or_create(&self) -> rusqlite::Result<Connection> {
        self.open_with(OpenFlags::SQLITE_OPEN_CREATE)
    }

    fn open_with(&self, flags: OpenFlags) -> rusqlite::Result<Connection> {
        // One thread uses it, and its path is never a URI.
        let flags = flags | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(POLL)?;
        connection.execute_batch(&self.setup)?;
        Ok(connection)
    }
}

/// How long to go on trying while other connections hold the lock.
#[derive(Debug, Clone)]
pub(crate) struct Patience {
    started: Instant,
    limit: Duration,
}

impl Patience {
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            started: Instant::now(),
            limit,
        }
    }

    /// Whether to try again after this error; waits a little if so.
    pub(crate) fn again(&self, error: &rusqlite::Error) -> bool {
        let again = is_busy(error) && self.lasts();
        if again {
            Self::pause();
        }
        again
    }

    /// Whether there is any left.
    pub(crate) fn lasts(&self) -> bool {
        self.started.elapsed() < self.limit
    }

    /// Some locks (the switch to WAL, its recovery) are refused without any wait of SQLite's own.
    pub(crate) fn pause() {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Starts a transaction with the write lock in hand. One that takes it only at its first write would have to give up
/// (`SQLITE_BUSY_SNAPSHOT`) whenever somebody else has written since it began.
pub(crate) fn begin_immediate(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    Ok(())
}

/// Ends it with all that was written in it. An error says that none of it may be there.
pub(crate) fn commit(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}

/// Ends it with nothing. An error says that SQLite had ended it already.
pub(crate) fn roll_back(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached("ROLLBACK")?.execute([])?;
    Ok(())
}
