//! Whose file this is, and the steps that bring ours up to date.

use rusqlite::Connection;
use rusqlite::types::FromSql;

use super::connection::{Patience, begin_immediate, commit, roll_back};

/// "FCLM": what the header of our files says (<https://www.sqlite.org/fileformat2.html#application_id>).
pub(crate) const APPLICATION_ID: i32 = 0x4643_4c4d;

/// The steps in order. A file's `user_version` is how many of them it has seen; a step that was released never changes.
pub(crate) const STEPS: [&str; 4] = [
    // WITHOUT ROWID: as fast as a table with a separate index on the key, and smaller.
    // The index is by status first: open claims are found without the ends, and rejected ones among millions of done ones.
    "CREATE TABLE firstclaim_claims (
    key TEXT NOT NULL PRIMARY KEY,       -- 64 hex characters: the job ID
    status TEXT NOT NULL,                -- processing, done, failed, rejected, waiting
    attempt INTEGER NOT NULL DEFAULT 0,  -- how often the key was won
    owner TEXT,                          -- who won it last, 32 hex characters
    revision TEXT,                       -- the write that left the row so
    claimed_at INTEGER NOT NULL,         -- Unix seconds
    lease_until INTEGER,                 -- Unix milliseconds
    waiting_until INTEGER,               -- Unix milliseconds
    finished_at INTEGER,                 -- Unix seconds
    expires_at INTEGER,                  -- Unix seconds
    object_provider TEXT,                -- s3, gcs, azure, file
    object_account TEXT,
    object_container TEXT,
    object_key TEXT,                     -- exact
    object_raw_key TEXT,                 -- as the event spelt it, where that differs
    token_kind TEXT,                     -- version-id, etag, generation, content
    token_value TEXT,
    pipeline_name TEXT NOT NULL DEFAULT '',
    pipeline_version TEXT NOT NULL DEFAULT '',
    scheme TEXT NOT NULL DEFAULT '',     -- strict, reference, ingest
    params_digest TEXT NOT NULL DEFAULT '',
    contract_digest TEXT NOT NULL DEFAULT '',
    redrives INTEGER NOT NULL DEFAULT 0,
    reason TEXT,                         -- why it stands so, one word
    error TEXT,                          -- why it stands so, for people
    result TEXT,                         -- JSON
    body BLOB,                           -- of an event that could not be read
    released_at INTEGER,                 -- Unix seconds
    released_from TEXT,                  -- the status before
    released_attempt INTEGER             -- the attempt before
) STRICT, WITHOUT ROWID;
CREATE INDEX firstclaim_claims_by_status ON firstclaim_claims (status, claimed_at, key);",
    // Rows without job_key are of another program, the published load task for example.
    "CREATE TABLE ingest_ledger (
    upload_key TEXT NOT NULL PRIMARY KEY,
    source_path TEXT NOT NULL,
    claimed_at INTEGER NOT NULL DEFAULT (unixepoch()),  -- Unix seconds
    completed_at INTEGER,                               -- Unix seconds
    job_key TEXT,                                       -- the claim under which it is loaded
    owner TEXT,                                         -- who holds that claim, 32 hex characters
    attempt INTEGER,                                    -- which attempt of the job it is
    full_digest TEXT,                                   -- SHA-256, 64 hex characters: upload_key is a part of it
    released_at INTEGER                                 -- Unix seconds
) STRICT, WITHOUT ROWID;
CREATE INDEX ingest_ledger_open ON ingest_ledger (claimed_at, upload_key)
    WHERE completed_at IS NULL AND job_key IS NOT NULL;
CREATE INDEX ingest_ledger_foreign ON ingest_ledger (claimed_at, upload_key)
    WHERE completed_at IS NULL AND job_key IS NULL;",
    // By it a purge finds the ends whose time is over. It holds those that are done, and of each the time and the key alone.
    "CREATE INDEX firstclaim_claims_over ON firstclaim_claims (expires_at) WHERE status = 'done' AND expires_at IS NOT NULL;",
    // How many attempts since the last release do not count; none is 0.
    "ALTER TABLE firstclaim_claims ADD COLUMN uncounted INTEGER;",
];

/// The version of the tables that this program knows.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "there are a handful of steps"
)]
pub(crate) const KNOWN: i32 = STEPS.len() as i32;

/// What an opened file turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Ours and up to date.
    Ready,
    /// Another application's.
    Foreign {
        application_id: i32,
        tables: Vec<String>,
    },
    /// Of a version that this program does not know.
    Newer { version: i32 },
    /// Ours, but SQLite keeps it in another journal mode.
    NotWal { mode: String },
}

/// Brings the file up to date, all steps or none, and to write-ahead logging. May be tried again after any error.
///
/// Where there is something to do the write lock comes first: of many processes that open a new file at once one sets it
/// up. Otherwise there is no lock, so that whoever only looks waits for nobody.
pub(crate) fn prepare(connection: &Connection, patience: &Patience) -> rusqlite::Result<Found> {
    if is_current(connection)? {
        return Ok(Found::Ready);
    }
    while let Err(error) = begin_immediate(connection) {
        if !patience.again(&error) {
            return Err(error);
        }
    }
    let found = migrate(connection)?;
    if found != Found::Ready {
        roll_back(connection)?;
        return Ok(found);
    }
    commit(connection)?;
    // Only now: it writes to the file, cannot be part of a transaction, and stays with the file.
    let mode: String = value(connection, "PRAGMA journal_mode = WAL")?;
    Ok(if mode == "wal" {
        Found::Ready
    } else {
        Found::NotWal { mode }
    })
}

/// Whether nothing is left to do, as far as can be told without the lock. What was done stays done.
fn is_current(connection: &Connection) -> rusqlite::Result<bool> {
    let application_id: i32 = value(connection, "PRAGMA application_id")?;
    let version: i32 = value(connection, "PRAGMA user_version")?;
    let mode: String = value(connection, "PRAGMA journal_mode")?;
    Ok(application_id == APPLICATION_ID && version == KNOWN && mode == "wal")
}

fn migrate(connection: &Connection) -> rusqlite::Result<Found> {
    let application_id: i32 = value(connection, "PRAGMA application_id")?;
    let version: i32 = value(connection, "PRAGMA user_version")?;
    if application_id != APPLICATION_ID {
        let tables: Vec<String> = connection
            .prepare("SELECT name FROM sqlite_schema ORDER BY rowid LIMIT 3")?
            .query_map([], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        if application_id != 0 || version != 0 || !tables.is_empty() {
            return Ok(Found::Foreign {
                application_id,
                tables,
            });
        }
    }
    let seen = match usize::try_from(version) {
        Ok(seen) if seen <= STEPS.len() => seen,
        _ => return Ok(Found::Newer { version }),
    };
    let missing = STEPS.get(seen..).unwrap_or_default();
    for step in missing {
        connection.execute_batch(step)?;
    }
    if !missing.is_empty() {
        connection.execute_batch(&format!(
            "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {KNOWN}"
        ))?;
        tracing::debug!(
            from = seen,
            to = KNOWN,
            "brought the claim tables up to date"
        );
    }
    Ok(Found::Ready)
}

/// The one value that a statement returns.
fn value<T: FromSql>(connection: &Connection, sql: &str) -> rusqlite::Result<T> {
    connection.query_row(sql, [], |row| row.get(0))
}
