//! The claim store on one SQLite file that many processes share.

mod connection;
mod error;
mod file;
mod ledger;
mod migrate;
mod purge;
mod values;
mod writer;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use std::fmt;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use identity_core::claim::{
    ClaimKey, ClaimStore, ListQuery, Page, Precondition, Record, StoreError, Stored, UnixSeconds,
    Version,
};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteRow};
use sqlx::{ConnectOptions, Row, Sqlite, SqliteConnection};

use crate::columns::{ClaimRow, Misfit};
use crate::listing::Listing;
use crate::statements;
use connection::{Patience, Slot, options};
use error::Failed;
use file::{FileIdentity, check_path, check_writable};
use migrate::{APPLICATION_ID, Found, KNOWN, prepare};
use writer::Writer;

pub use error::{LockHeld, OpenError};

/// Claims in a SQLite file, shared by any number of processes of one machine.
///
/// The file is in write-ahead mode: readers wait for nobody, writers queue. This process has one connection for each: its
/// own writers queue in order and are committed together, and only processes compete for the lock.
#[derive(Debug)]
pub struct SqliteStore {
    lock_wait: Duration,
    reader: Slot,
    writer: Arc<Writer>,
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
        Self::open_with(path, lock_wait, options(path)).await
    }

    async fn open_with(
        path: &Path,
        lock_wait: Duration,
        options: SqliteConnectOptions,
    ) -> Result<Self, OpenError> {
        let patience = Patience::new(lock_wait);
        let creating = options.clone().create_if_missing(true);
        let (connection, found) = loop {
            match connect(&creating, &patience).await {
                Ok(ready) => break ready,
                Err(error) if patience.again(&error).await => {}
                Err(error) => return Err(OpenError::sqlite(path, lock_wait, error)),
            }
        };
        let path = path.to_owned();
        match found {
            Found::Ready => {
                check_writable(&path)?;
                let identity = FileIdentity::of(&path)
                    .map_err(|error| OpenError::sqlite(&path, lock_wait, error.into()))?;
                // A file that is gone later is an error, not a new and empty store.
                let reader = Slot::new(options.clone(), None);
                let writer = Slot::new(options, Some(connection));
                Ok(Self {
                    lock_wait,
                    reader,
                    writer: Arc::new(Writer::new(path, identity, lock_wait, writer)),
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
        for slot in [&self.reader, &self.writer.slot] {
            slot.close()
                .await
                .map_err(|error| self.unavailable("closing the file", error.into()))?;
        }
        Ok(())
    }

    /// The rows of one query, all of one snapshot.
    async fn read<'q>(
        &self,
        doing: &'static str,
        query: impl Fn() -> Query<'q, Sqlite, SqliteArguments> + Send,
    ) -> Result<Vec<SqliteRow>, StoreError> {
        let patience = Patience::new(self.lock_wait);
        loop {
            let attempt = async {
                let mut reader = self.reader.lend().await?;
                if let Err(error) = self.writer.check_identity() {
                    // Kept, for the next one to be told the same, and not what is wrong with another file.
                    reader.give_back();
                    return Err(error);
                }
                let rows = query().fetch_all(&mut *reader).await?;
                reader.give_back();
                Ok(rows)
            };
            match attempt.await {
                Ok(rows) => return Ok(rows),
                Err(error) if patience.again(&error).await => {}
                Err(error) => return Err(self.unavailable(doing, error.into())),
            }
        }
    }

    /// The rows that a writing statement returns, once it is committed.
    async fn change(
        &self,
        doing: &'static str,
        query: Query<'_, Sqlite, SqliteArguments>,
    ) -> Result<Vec<SqliteRow>, StoreError> {
        let written = self.writer.write(query).await;
        written.map_err(|failed| self.unavailable(doing, failed))
    }

    fn stored(&self, row: &SqliteRow) -> Result<(ClaimKey, Stored), StoreError> {
        ClaimRow::read(row).map_err(|misfit| misfit.in_store(self))
    }

    fn unavailable(&self, doing: &'static str, failed: Failed) -> StoreError {
        failed.unavailable(self.to_string(), doing, self.lock_wait)
    }
}

impl fmt::Display for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sqlite:{}", self.writer.path().display())
    }
}

#[async_trait]
impl ClaimStore for SqliteStore {
    async fn get(&self, key: &ClaimKey) -> Result<Option<Stored>, StoreError> {
        let rows = self.read("reading a claim", || get(key)).await?;
        match rows.first() {
            Some(row) => Ok(Some(self.stored(row)?.1)),
            None => Ok(None),
        }
    }

    async fn put(
        &self,
        key: &ClaimKey,
        record: &Record,
        when: &Precondition,
    ) -> Result<Version, StoreError> {
        let invalid = |misfit: Misfit| misfit.in_store(self);
        let row = ClaimRow::encode(key, record).map_err(invalid)?;
        let query = match when {
            Precondition::Absent => row.bind(sqlx::query(statements::INSERT.as_str())),
            Precondition::Unchanged(Version(version)) => row
                .bind(sqlx::query(statements::UPDATE.as_str()))
                .map(|query| query.bind(version.clone())),
        };
        let query = query.map_err(invalid)?;
        // A duplicate needs no lock: a row that stands now is in the way, whatever becomes of it.
        if *when == Precondition::Absent
            && let Some(standing) = self.get(key).await?
        {
            let standing = Some(Box::new(standing));
            return Err(StoreError::Conflict { standing });
        }
        let doing = "writing a claim";
        match self.change(doing, query).await?.first() {
            Some(written) => match written.try_get("version") {
                Ok(version) => Ok(Version(version)),
                Err(error) => Err(self.unavailable(doing, error.into())),
            },
            None => Err(StoreError::Conflict { standing: None }),
        }
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        let listing = Listing::new(query).map_err(|misfit| misfit.in_store(self))?;
        if listing.statuses.is_empty() {
            return Ok(listing.page(Vec::new(), self));
        }
        let sql = statements::list(listing.statuses.len());
        let (after_time, after_key) = &listing.after;
        let bound = || {
            let query = sqlx::query(sqlx::AssertSqlSafe(sql.clone()))
                .bind(*after_time)
                .bind(after_key.clone())
                .bind(listing.rows());
            listing
                .statuses
                .iter()
                .fold(query, |query, status| query.bind(status.as_str()))
        };
        let rows = self.read("listing claims", bound).await?;
        let rows: Result<_, _> = rows.iter().map(ClaimRow::listed).collect();
        let rows = rows.map_err(|misfit: Misfit| misfit.in_store(self))?;
        Ok(listing.page(rows, self))
    }

    async fn purge(&self, now: UnixSeconds, most: NonZeroU32) -> Result<u32, StoreError> {
        self.delete_ended(now, most).await
    }
}

async fn connect(
    options: &SqliteConnectOptions,
    patience: &Patience,
) -> Result<(SqliteConnection, Found), sqlx::Error> {
    let mut connection = options.connect().await?;
    let found = prepare(&mut connection, patience).await?;
    Ok((connection, found))
}

fn get<'q>(key: &ClaimKey) -> Query<'q, Sqlite, SqliteArguments> {
    sqlx::query(statements::GET.as_str()).bind(key.to_string())
}
