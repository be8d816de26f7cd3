//! Connections to one SQLite file: how they are set up, lent, and made to wait for locks.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Executor, SqliteConnection};
use tokio::sync::{Mutex, MutexGuard};

use super::error::is_busy;

/// How long SQLite itself waits for a lock before it says that it is busy and we ask again.
///
/// Its own waiting backs off to a poll every 100 ms, so that whoever has waited longest asks least often. With 20
/// processes that do nothing but write, the slowest write took 4.1 s so, and 0.7 s when asked anew every 20 ms.
const POLL: Duration = Duration::from_millis(20);

/// How connections to this file are opened: without creating it.
pub(crate) fn options(path: &Path) -> SqliteConnectOptions {
    // "./" keeps SQLite from reading "file:x" as a URI and ":memory:" as no file at all.
    let path = if path.is_relative() {
        Path::new(".").join(path)
    } else {
        path.to_owned()
    };
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(POLL)
        // A write that was acknowledged outlives a power cut: in WAL mode, FULL syncs the log at each commit and NORMAL
        // does not. On macOS only a full fsync reaches the disk itself; elsewhere the pragma does nothing.
        .synchronous(SqliteSynchronous::Full)
        .pragma("fullfsync", "ON")
        .disable_statement_logging()
}

/// How long to go on trying while other connections hold the lock.
#[derive(Debug)]
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
    pub(crate) async fn again(&self, error: &sqlx::Error) -> bool {
        let again = is_busy(error) && self.lasts();
        if again {
            Self::pause().await;
        }
        again
    }

    /// Whether there is any left.
    pub(crate) fn lasts(&self) -> bool {
        self.started.elapsed() < self.limit
    }

    /// Some locks (the switch to WAL, its recovery) are refused without any wait of SQLite's own.
    pub(crate) async fn pause() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Starts a transaction with the write lock in hand. One that takes it only at its first write would have to give up
/// (`SQLITE_BUSY_SNAPSHOT`) whenever somebody else has written since it began.
pub(crate) async fn begin_immediate(
    connection: &mut SqliteConnection,
    patience: &Patience,
) -> Result<(), sqlx::Error> {
    loop {
        match connection.execute("BEGIN IMMEDIATE").await {
            Ok(_) => return Ok(()),
            Err(error) if patience.again(&error).await => {}
            Err(error) => return Err(error),
        }
    }
}

/// One connection, lent to one task at a time, in the order in which they ask.
#[derive(Debug)]
pub(crate) struct Slot {
    options: SqliteConnectOptions,
    pub(super) idle: Mutex<Option<SqliteConnection>>,
}

impl Slot {
    pub(crate) fn new(options: SqliteConnectOptions, idle: Option<SqliteConnection>) -> Self {
        Self {
            options,
            idle: Mutex::new(idle),
        }
    }

    /// The connection, opened if there is none.
    pub(crate) async fn lend(&self) -> Result<Lent<'_>, sqlx::Error> {
        let mut slot = self.idle.lock().await;
        let connection = match slot.take() {
            Some(connection) => connection,
            None => self.options.connect().await?,
        };
        Ok(Lent { connection, slot })
    }

    /// Closes the connection once it is not lent.
    pub(crate) async fn close(&self) -> Result<(), sqlx::Error> {
        match self.idle.lock().await.take() {
            Some(connection) => connection.close().await,
            None => Ok(()),
        }
    }
}

/// A connection on loan. Dropped without [`Lent::give_back`], on an error or with its task, it is closed, which rolls its
/// transaction back: SQLite ends a transaction by itself on some errors and not on others, and nobody has to know which.
#[derive(Debug)]
pub(crate) struct Lent<'a> {
    connection: SqliteConnection,
    slot: MutexGuard<'a, Option<SqliteConnection>>,
}

impl Lent<'_> {
    /// Leaves the connection, which is in no transaction, to the next task.
    pub(crate) fn give_back(mut self) {
        *self.slot = Some(self.connection);
    }
}

impl Deref for Lent<'_> {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.connection
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }
}
