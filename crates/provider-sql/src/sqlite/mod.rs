//! The claim store on one SQLite file that many processes share.

mod connection;
mod error;
mod file;
mod ledger;
mod migrate;
mod purge;
mod values;
mod worker;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use std::fmt;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use async_trait::async_trait;
use identity_core::claim::{
    ClaimKey, ClaimStore, ListQuery, Page, Precondition, Record, StoreError, Stored, UnixSeconds,
    Version,
};
use rusqlite::{Connection, OptionalExtension as _};
use tokio::sync::oneshot;

use crate::columns::{ClaimRow, Misfit};
use crate::listing::Listing;
use crate::statements;
use connection::{Options, Patience};
use error::Failed;
use file::{FileIdentity, check_path, check_writable};
use migrate::{APPLICATION_ID, Found, KNOWN, prepare};
use values::{bind, numbered};
use worker::{InUse, Worker};

pub use error::{LockHeld, OpenError};

static GET: LazyLock<String> = LazyLock::new(|| numbered(&statements::GET));
static INSERT: LazyLock<String> = LazyLock::new(|| numbered(&statements::INSERT));
static UPDATE: LazyLock<String> = LazyLock::new(|| numbered(&statements::UPDATE));

/// Claims in a SQLite file, shared by any number of processes of one machine.
///
/// The file is in write-ahead mode: readers wait for nobody, writers queue. This process has one connection for each, in a
/// thread of its own: its own writers queue in order and are committed together, and only processes compete for the lock.
#[derive(Debug)]
pub struct SqliteStore {
    reader: Worker,
    writer: Worker,
}

impl SqliteStore {
    /// How long to wait for other processes' locks, unless there is a reason for another time: 30 s, well within a
    /// lease.
    pub const LOCK_WAIT: Duration = Duration::from_secs(30);

    /// Opens the store in this file; creates it, not its folder, if it does not exist. Waits at most about `lock_wait` for
    /// other processes, now and at each call.
    ///
    /// # Errors
    ///
    /// [`OpenError`], for each thing that can be wrong with a file a variant of its own.
    pub async fn open(path: impl AsRef<Path>, lock_wait: Duration) -> Result<Self, OpenError> {
        let path = path.as_ref();
        check_path(path)?;
        Self::open_with(path, lock_wait, Options::new(path)).await
    }

    /// It may wait for a lock, so it has a thread of its own, which ends by itself if nobody waits for it any more.
    async fn open_with(
        path: &Path,
        lock_wait: Duration,
        options: Options,
    ) -> Result<Self, OpenError> {
        let (answer, opened) = oneshot::channel();
        let opening = path.to_owned();
        let thread = std::thread::Builder::new().name("sqlite".to_owned());
        let started = thread.spawn(move || {
            // Whoever went away needs no store.
            let _ = answer.send(Self::open_here(&opening, lock_wait, options));
        });
        let no_thread = |source: Box<dyn std::error::Error + Send + Sync>| OpenError::Sqlite {
            path: path.to_owned(),
            source,
        };
        started.map_err(|error| no_thread(error.into()))?;
        opened.await.map_err(|error| no_thread(error.into()))?
    }

    fn open_here(path: &Path, lock_wait: Duration, options: Options) -> Result<Self, OpenError> {
        let patience = Patience::new(lock_wait);
        let (connection, found) = loop {
            match connect(&options, &patience) {
                Ok(ready) => break ready,
                Err(error) if patience.again(&error) => {}
                Err(error) => return Err(OpenError::sqlite(path, lock_wait, error)),
            }
        };
        let path = path.to_owned();
        match found {
            Found::Ready => {
                check_writable(&path)?;
                let failed = |source: std::io::Error| OpenError::Sqlite {
                    path: path.clone(),
                    source: source.into(),
                };
                let file = InUse {
                    identity: FileIdentity::of(&path).map_err(failed)?,
                    path: path.clone(),
                    options,
                    lock_wait,
                };
                Ok(Self {
                    reader: Worker::start(file.clone(), None).map_err(failed)?,
                    writer: Worker::start(file, Some(connection)).map_err(failed)?,
                })
            }
            Found::Foreign {
                application_id,
                tables,
            } => Err(OpenError::Foreign {
                path,
                expected: APPLICATION_ID.cast_unsigned(),
                got: application_id.cast_unsigned(),
                tables,
            }),
            Found::Newer { version } => Err(OpenError::Newer {
                path,
                got: version,
                known: KNOWN,
            }),
            Found::NotWal { mode } => Err(OpenError::NoWriteAheadLog { path, got: mode }),
        }
    }

    /// Closes the connections once they are idle; the last process to do so leaves one file, without its log beside it.
    ///
    /// What was acknowledged is on disk without it. A store that is used again opens its connections again.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn close(&self) -> Result<(), StoreError> {
        for worker in [&self.reader, &self.writer] {
            let closed = worker.close().await;
            closed.map_err(|failed| self.unavailable("closing the file", failed))?;
        }
        Ok(())
    }

    /// What a reading function finds.
    async fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        read: impl FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let found = self.reader.read(read).await;
        found.map_err(|failed| self.unavailable(doing, failed))
    }

    /// What a writing function returns, once it is committed.
    async fn change<T: Send + 'static>(
        &self,
        doing: &'static str,
        change: impl FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let written = self.writer.write(|_| Ok(None), change).await;
        written.map_err(|failed| self.unavailable(doing, failed))
    }

    fn unavailable(&self, doing: &'static str, failed: Failed) -> StoreError {
        failed.unavailable(self.to_string(), doing, self.writer.file().lock_wait)
    }
}

impl fmt::Display for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sqlite:{}", self.writer.file().path.display())
    }
}

#[async_trait]
impl ClaimStore for SqliteStore {
    async fn get(&self, key: &ClaimKey) -> Result<Option<Stored>, StoreError> {
        let key = key.clone();
        let found = self.read("reading a claim", move |connection| get(connection, &key));
        let found = found.await?.transpose();
        found.map_err(|misfit| misfit.in_store(self))
    }

    async fn put(
        &self,
        key: &ClaimKey,
        record: &Record,
        when: &Precondition,
    ) -> Result<Version, StoreError> {
        let invalid = |misfit: Misfit| misfit.in_store(self);
        let row = ClaimRow::encode(key, record).map_err(invalid)?;
        let expected = match when {
            Precondition::Absent => None,
            Precondition::Unchanged(Version(version)) => Some(version.clone()),
        };
        let absent = expected.is_none().then(|| key.clone());
        // A duplicate needs no lock: a row that stands now is in the way, whatever becomes of it.
        let look = move |connection: &Connection| match &absent {
            Some(key) => {
                let standing = get(connection, key)?;
                Ok(standing.map(|standing| Put::Stands(standing.map(Box::new))))
            }
            None => Ok(None),
        };
        let put = move |connection: &Connection| {
            let sql = if expected.is_none() { &INSERT } else { &UPDATE };
            let mut statement = connection.prepare_cached(sql)?;
            bind(&row, &mut statement)?;
            if let Some(version) = &expected {
                statement.raw_bind_parameter(ClaimRow::COLUMNS.len() + 1, version)?;
            }
            let mut written = statement.raw_query();
            Ok(match written.next()? {
                Some(row) => Put::Written(Version(row.get("version")?)),
                None => Put::Refused,
            })
        };
        let done = self.writer.write(look, put).await;
        let standing = match done.map_err(|failed| self.unavailable("writing a claim", failed))? {
            Put::Written(version) => return Ok(version),
            Put::Stands(standing) => Some(standing.map_err(invalid)?),
            Put::Refused => None,
        };
        Err(StoreError::Conflict { standing })
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        let listing = Listing::new(query).map_err(|misfit| misfit.in_store(self))?;
        if listing.statuses.is_empty() {
            return Ok(listing.page(Vec::new(), self));
        }
        let sql = numbered(&statements::list(listing.statuses.len()));
        let (after_time, after_key) = listing.after.clone();
        let rows = listing.rows();
        let statuses: Vec<_> = listing.statuses.iter().copied().collect();
        let rows = self.read("listing claims", move |connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            statement.raw_bind_parameter(1, after_time)?;
            statement.raw_bind_parameter(2, &after_key)?;
            statement.raw_bind_parameter(3, rows)?;
            for (index, status) in statuses.iter().enumerate() {
                statement.raw_bind_parameter(4 + index, status.as_str())?;
            }
            let listed = statement
                .raw_query()
                .mapped(|row| Ok(ClaimRow::listed(row)));
            listed.collect::<Result<Vec<_>, _>>()
        });
        let rows: Result<_, _> = rows.await?.into_iter().collect();
        let rows = rows.map_err(|misfit: Misfit| misfit.in_store(self))?;
        Ok(listing.page(rows, self))
    }

    async fn purge(&self, now: UnixSeconds, most: NonZeroU32) -> Result<u32, StoreError> {
        self.delete_ended(now, most).await
    }
}

/// What became of a write.
#[derive(Debug)]
enum Put {
    Written(Version),
    /// Another row is in the way: this one.
    Stands(Result<Box<Stored>, Misfit>),
    /// Another row is in the way, which was not looked at.
    Refused,
}

fn get(
    connection: &Connection,
    key: &ClaimKey,
) -> rusqlite::Result<Option<Result<Stored, Misfit>>> {
    let mut statement = connection.prepare_cached(&GET)?;
    let found = statement.query_row([key.as_str()], |row| Ok(ClaimRow::read(row)));
    let found = found.optional()?;
    Ok(found.map(|read| read.map(|(_, stored)| stored)))
}

fn connect(options: &Options, patience: &Patience) -> rusqlite::Result<(Connection, Found)> {
    let connection = options.open_or_create()?;
    let found = prepare(&connection, patience)?;
    Ok((connection, found))
}
