//! The claim store on one SQLite file that many processes share.

mod connection;
mod error;
mod ledger;
mod migrate;
mod purge;
mod values;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use identity_core::claim::{
    ClaimKey, ClaimStore, ListQuery, Page, Precondition, Record, StoreError, Stored, UnixSeconds,
    Version,
};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteRow};
use sqlx::{ConnectOptions, Executor, Row, Sqlite, SqliteConnection};

use crate::columns::{ClaimRow, Misfit};
use crate::listing::Listing;
use crate::statements;
use connection::{Lent, Patience, Slot, begin_immediate, options};
use migrate::{APPLICATION_ID, Found, KNOWN, prepare};

pub use error::{LockHeld, OpenError};

/// Claims in a SQLite file, shared by any number of processes of one machine.
///
/// The file is in write-ahead mode: readers wait for nobody, writers queue. This process has one connection for each,
/// so that its own writers queue in order and only processes compete for the lock.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    /// Which file the path named when it was opened.
    #[cfg(unix)]
    identity: (u64, u64),
    #[cfg(not(unix))]
    identity: (),
    lock_wait: Duration,
    reader: Slot,
    writer: Slot,
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
            Found::Ready => Ok(Self {
                identity: identity_of(&path)
                    .map_err(|error| OpenError::sqlite(&path, lock_wait, error.into()))?,
                path,
                lock_wait,
                // A file that is gone later is an error, not a new and empty store.
                reader: Slot::new(options.clone(), None),
                writer: Slot::new(options, Some(connection)),
            }),
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
        for slot in [&self.reader, &self.writer] {
            slot.close()
                .await
                .map_err(|error| self.unavailable("closing the file", error))?;
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
                let rows = query().fetch_all(&mut *reader).await?;
                reader.give_back();
                Ok(rows)
            };
            match attempt.await {
                Ok(rows) => return Ok(rows),
                Err(error) if patience.again(&error).await => {}
                Err(error) => return Err(self.unavailable(doing, error)),
            }
        }
    }

    /// The writer, in a transaction that has the write lock.
    async fn begin(&self) -> Result<Lent<'_>, sqlx::Error> {
        if identity_of(&self.path).ok() != Some(self.identity) {
            return Err(sqlx::Error::Io(std::io::Error::other(
                "the file was deleted or replaced while it was in use: what is written to it now would be lost",
            )));
        }
        let patience = Patience::new(self.lock_wait);
        let mut writer = loop {
            match self.writer.lend().await {
                Ok(writer) => break writer,
                Err(error) if patience.again(&error).await => {}
                Err(error) => return Err(error),
            }
        };
        begin_immediate(&mut writer, &patience).await?;
        Ok(writer)
    }

    /// The rows that a writing statement returns.
    async fn change<'q>(
        &self,
        doing: &'static str,
        query: Query<'q, Sqlite, SqliteArguments>,
    ) -> Result<Vec<SqliteRow>, StoreError> {
        let attempt = async {
            let mut writer = self.begin().await?;
            let rows = query.fetch_all(&mut *writer).await?;
            writer.execute("COMMIT").await?;
            writer.give_back();
            Ok(rows)
        };
        attempt
            .await
            .map_err(|error| self.unavailable(doing, error))
    }

    /// Writes a row, or says which one stands in the way.
    async fn write<'q>(
        &self,
        key: &ClaimKey,
        query: Query<'q, Sqlite, SqliteArguments>,
    ) -> Result<Result<Version, Option<SqliteRow>>, sqlx::Error> {
        let mut writer = self.begin().await?;
        let outcome = match query.fetch_optional(&mut *writer).await? {
            Some(written) => {
                let version = written.try_get("version")?;
                writer.execute("COMMIT").await?;
                Ok(Version(version))
            }
            None => {
                let standing = get(key).fetch_optional(&mut *writer).await?;
                writer.execute("ROLLBACK").await?;
                Err(standing)
            }
        };
        writer.give_back();
        Ok(outcome)
    }

    fn stored(&self, row: &SqliteRow) -> Result<(ClaimKey, Stored), StoreError> {
        ClaimRow::read(row).map_err(|misfit| misfit.in_store(self))
    }

    fn unavailable(&self, doing: &'static str, error: sqlx::Error) -> StoreError {
        error::unavailable(self.to_string(), doing, self.lock_wait, error)
    }
}

impl fmt::Display for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sqlite:{}", self.path.display())
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
        let written = self.write(key, query).await;
        match written.map_err(|error| self.unavailable("writing a claim", error))? {
            Ok(version) => Ok(version),
            Err(row) => Err(StoreError::Conflict {
                standing: match row {
                    Some(row) => Some(Box::new(self.stored(&row)?.1)),
                    None => None,
                },
            }),
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

/// Which file is there under the path: device and number. SQLite goes on writing to a file that was deleted.
#[cfg(unix)]
fn identity_of(path: &Path) -> std::io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = std::fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Elsewhere a file that is in use cannot be deleted.
#[cfg(not(unix))]
fn identity_of(_: &Path) -> std::io::Result<()> {
    Ok(())
}

fn get<'q>(key: &ClaimKey) -> Query<'q, Sqlite, SqliteArguments> {
    sqlx::query(statements::GET.as_str()).bind(key.to_string())
}

/// Says in our words what SQLite would call "unable to open database file". Looks at the metadata only: opening and
/// closing the file here would drop the locks that this process's other connections hold on it
/// (<https://www.sqlite.org/howtocorrupt.html>, section 2.2).
fn check_path(path: &Path) -> Result<(), OpenError> {
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
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
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
