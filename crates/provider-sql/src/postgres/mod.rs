//! The claim store on one PostgreSQL database that many machines share.

mod error;
mod ledger;
mod migrate;
mod pool;
mod purge;
mod url;
mod values;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use async_trait::async_trait;
use identity_core::claim::{
    ClaimKey, ClaimStore, ListQuery, Page, Precondition, Record, StoreError, Stored, UnixSeconds,
    Version,
};
use sqlx::Postgres;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;

use crate::columns::{ClaimRow, Columns as _, Misfit, TYPED};
use crate::listing::Listing;
use crate::statements;
use migrate::{Found, KNOWN, look, migrate};
use pool::Pool;
use values::{Seconds, Text, bind};

pub use error::ConnectError;
pub use url::{PostgresUrl, UrlError};

/// Claims in a PostgreSQL database, shared by any number of processes and machines.
///
/// Every write is one statement, committed and flushed before it returns. `Display` shows host and database, never a
/// password.
pub struct PostgresStore {
    url: PostgresUrl,
    pool: Pool,
}

impl PostgresStore {
    /// How long to wait for the server, unless there is a reason for another time: 10 s, well within a lease.
    pub const WAIT: Duration = Duration::from_secs(10);
    /// How many connections to open at most, unless there is a reason for another number: 2, which a claim occupies for
    /// one round trip. A server has 100 unless told otherwise, for all processes of all pipelines.
    pub const CONNECTIONS: usize = 2;

    /// Opens the store in this database; makes its tables if there are none. At most `connections` connections are made,
    /// when they are needed; a call waits for the server at most about `wait`, and this one, too, but for the time that it
    /// takes to change tables of an older version.
    ///
    /// The connections are for this program's own sessions: a pooler between it and the server must not share them
    /// between transactions.
    ///
    /// # Errors
    ///
    /// [`ConnectError`], every variant but `Missing`.
    pub async fn connect(
        url: &PostgresUrl,
        wait: Duration,
        connections: usize,
    ) -> Result<Self, ConnectError> {
        Self::open(url, wait, connections, true).await
    }

    /// As [`PostgresStore::connect`], for looking at a store that must be there already.
    ///
    /// # Errors
    ///
    /// [`ConnectError`], every variant.
    pub async fn connect_existing(
        url: &PostgresUrl,
        wait: Duration,
        connections: usize,
    ) -> Result<Self, ConnectError> {
        Self::open(url, wait, connections, false).await
    }

    async fn open(
        url: &PostgresUrl,
        wait: Duration,
        connections: usize,
        create: bool,
    ) -> Result<Self, ConnectError> {
        let pool = Pool::new(url.clone(), wait, connections);
        let failed = |error| ConnectError::postgres(url, error);
        let looked = pool.within(async {
            let mut connection = pool.lend().await?;
            let found = look(&mut connection).await?;
            Ok((connection, found))
        });
        let (mut connection, mut found) = looked.await.map_err(failed)?;
        if found == Found::Older || (create && found == Found::Empty) {
            found = migrate(&mut connection).await.map_err(failed)?;
        }
        let store = url.to_string();
        match found {
            Found::Ready => {}
            Found::Empty | Found::Older => return Err(ConnectError::Missing { store }),
            Found::NotUtf8 { encoding } => {
                return Err(ConnectError::Encoding {
                    store,
                    got: encoding,
                });
            }
            Found::ReadOnly => return Err(ConnectError::ReadOnly { store }),
            Found::Newer { version } => {
                return Err(ConnectError::Newer {
                    store,
                    got: version,
                    known: KNOWN,
                });
            }
        }
        connection.give_back();
        let url = url.clone();
        Ok(Self { url, pool })
    }

    /// The rows that a statement returns.
    async fn rows<'q>(
        &self,
        doing: &'static str,
        query: Query<'q, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, StoreError> {
        let asked = self.pool.within(async {
            let mut connection = self.pool.lend().await?;
            let rows = query.fetch_all(&mut *connection).await?;
            connection.give_back();
            Ok(rows)
        });
        asked
            .await
            .map_err(|error| error::failed(self.to_string(), doing, error))
    }

    fn stored(&self, row: &PgRow) -> Result<(ClaimKey, Stored), StoreError> {
        ClaimRow::read(row).map_err(|misfit| misfit.in_store(self))
    }
}

impl fmt::Display for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresStore({self})")
    }
}

#[async_trait]
impl ClaimStore for PostgresStore {
    async fn get(&self, key: &ClaimKey) -> Result<Option<Stored>, StoreError> {
        let query = sqlx::query(statements::GET.as_str()).bind(Text::from(key.as_str()));
        match self.rows("reading a claim", query).await?.first() {
            Some(row) => Ok(Some(self.stored(row)?.1)),
            None => Ok(None),
        }
    }

    /// One statement decides. At "read committed", `INSERT … ON CONFLICT` waits for another transaction that is about to
    /// insert the same key, and `UPDATE … WHERE` for one that is about to change the row, and then looks at what that one
    /// left: so of many writers one returns a row, and the others none.
    async fn put(
        &self,
        key: &ClaimKey,
        record: &Record,
        when: &Precondition,
    ) -> Result<Version, StoreError> {
        let invalid = |misfit: Misfit| misfit.in_store(self);
        let row = ClaimRow::encode(key, record).map_err(invalid)?;
        let query = match when {
            Precondition::Absent => bind(&row, key, sqlx::query(statements::INSERT.as_str())),
            Precondition::Unchanged(Version(version)) => {
                bind(&row, key, sqlx::query(statements::UPDATE.as_str()))
                    .map(|query| query.bind(Text::from(version.as_str())))
            }
        };
        let rows = self
            .rows("writing a claim", query.map_err(invalid)?)
            .await?;
        if let Some(row) = rows.first() {
            let version = row
                .text("version")
                .map_err(|got| invalid(Misfit::in_column(key.as_str(), "version", TYPED, &got)))?;
            return Ok(Version(version.unwrap_or_default()));
        }
        Err(StoreError::Conflict { standing: None })
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        let listing = Listing::new(query).map_err(|misfit| misfit.in_store(self))?;
        if listing.statuses.is_empty() {
            return Ok(listing.page(Vec::new(), self));
        }
        let sql = statements::list(listing.statuses.len());
        let (after_time, after_key) = &listing.after;
        let query = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(Seconds(*after_time).as_bound())
            .bind(Text::from(after_key.as_str()))
            .bind(listing.rows());
        let query = listing
            .statuses
            .iter()
            .fold(query, |query, status| query.bind(status.as_str()));
        let rows = self.rows("listing claims", query).await?;
        let rows: Result<_, _> = rows.iter().map(ClaimRow::listed).collect();
        let rows = rows.map_err(|misfit: Misfit| misfit.in_store(self))?;
        Ok(listing.page(rows, self))
    }

    async fn purge(&self, now: UnixSeconds, most: NonZeroU32) -> Result<u32, StoreError> {
        self.delete_ended(now, most).await
    }
}
