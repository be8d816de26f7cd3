//! Which tables a database has, and the steps that bring ours up to date.

use std::time::Duration;

use sqlx::{Connection, Executor, PgConnection, Row};

use super::error::no_answer;

/// "FCLM": the lock under which one process at a time brings the tables of a database up to date.
const LOCK: i64 = 0x4643_4c4d;

/// How long the steps may take: one builds an index on a table that may have been in use for years.
const PATIENCE: Duration = Duration::from_secs(600);

/// The steps in order. `firstclaim_schema` holds how many of them a database has seen; a step that was released never
/// changes.
pub(crate) const STEPS: [&str; 4] = [
    // The index is by status first: open claims are found without the ends, and rejected ones among millions of done ones.
    // Keys sort by their bytes, which is faster than by any language's rules, and the same on every server.
    r#"CREATE TABLE firstclaim_claims (
    key text COLLATE "C" PRIMARY KEY,   -- 64 hex characters: the job ID
    status text COLLATE "C" NOT NULL,   -- processing, done, failed, rejected, waiting
    attempt bigint NOT NULL DEFAULT 0,  -- how often the key was won
    owner text,                         -- who won it last, 32 hex characters
    revision text,                      -- the write that left the row so
    claimed_at timestamptz(0) NOT NULL,
    lease_until timestamptz(3),
    waiting_until timestamptz(3),
    finished_at timestamptz(0),
    expires_at timestamptz(0),
    object_provider text,               -- s3, gcs, azure, file
    object_account text,
    object_container text,
    object_key text,                    -- exact, but for U+0000, which is ␛0 in all of these texts, and ␛, which is ␛␛
    object_raw_key text,                -- as the event spelt it, where that differs
    token_kind text,                    -- version-id, etag, generation, content
    token_value text,
    pipeline_name text NOT NULL DEFAULT '',
    pipeline_version text NOT NULL DEFAULT '',
    scheme text NOT NULL DEFAULT '',    -- strict, reference, ingest
    params_digest text NOT NULL DEFAULT '',
    contract_digest text NOT NULL DEFAULT '',
    redrives bigint NOT NULL DEFAULT 0,
    reason text,                        -- why it stands so, one word
    error text,                         -- why it stands so, for people
    result text,                        -- JSON
    body bytea,                         -- of an event that could not be read
    released_at timestamptz(0),
    released_from text,                 -- the status before
    released_attempt bigint             -- the attempt before
);
CREATE INDEX firstclaim_claims_by_status ON firstclaim_claims (status, claimed_at, key);"#,
    // The table may be there and have rows: it is the one that the published load task writes to. What it may not have is
    // ours. Rows without job_key are that task's.
    r#"CREATE TABLE IF NOT EXISTS ingest_ledger (
    upload_key text COLLATE "C" PRIMARY KEY,
    source_path text NOT NULL,
    claimed_at timestamptz NOT NULL DEFAULT now(),
    completed_at timestamptz
);
ALTER TABLE ingest_ledger
    ADD COLUMN IF NOT EXISTS completed_at timestamptz,
    ADD COLUMN IF NOT EXISTS job_key text,      -- the claim under which it is loaded
    ADD COLUMN IF NOT EXISTS owner text,        -- who holds that claim, 32 hex characters
    ADD COLUMN IF NOT EXISTS attempt bigint,    -- which attempt of the job it is
    ADD COLUMN IF NOT EXISTS full_digest text,  -- SHA-256, 64 hex characters: upload_key is a part of it
    ADD COLUMN IF NOT EXISTS released_at timestamptz;
CREATE INDEX IF NOT EXISTS ingest_ledger_open ON ingest_ledger (claimed_at, upload_key)
    WHERE completed_at IS NULL AND job_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS ingest_ledger_foreign ON ingest_ledger (claimed_at, upload_key)
    WHERE completed_at IS NULL AND job_key IS NULL;"#,
    // By it a purge finds the ends whose time is over.
    "CREATE INDEX firstclaim_claims_over ON firstclaim_claims (expires_at) WHERE status = 'done' AND expires_at IS NOT NULL;",
    // How many attempts since the last release do not count; none is 0.
    "ALTER TABLE firstclaim_claims ADD COLUMN uncounted bigint;",
];

/// The version of the tables that this program knows.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "there are a handful of steps"
)]
pub(crate) const KNOWN: i32 = STEPS.len() as i32;

/// What a database turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Ours and up to date.
    Ready,
    /// One without our tables.
    Empty,
    /// One whose tables lack steps that this program knows.
    Older,
    /// Of a version that this program does not know.
    Newer { version: i32 },
    /// One that cannot hold every text.
    NotUtf8 { encoding: String },
    /// One that takes no writes.
    ReadOnly,
}

/// Looks, and changes nothing.
pub(crate) async fn look(connection: &mut PgConnection) -> Result<Found, sqlx::Error> {
    let row = connection
        .fetch_one(
            "SELECT current_setting('server_encoding'), current_setting('transaction_read_only') = 'on'",
        )
        .await?;
    let encoding: String = row.try_get(0)?;
    if encoding != "UTF8" {
        return Ok(Found::NotUtf8 { encoding });
    }
    if row.try_get(1)? {
        return Ok(Found::ReadOnly);
    }
    Ok(match version(connection).await? {
        0 => Found::Empty,
        version if version == KNOWN => Found::Ready,
        version if (1..KNOWN).contains(&version) => Found::Older,
        version => Found::Newer { version },
    })
}

/// Brings the tables up to date, all steps or none. May be tried again after any error.
///
/// One process at a time: of many that find a new database at once one sets it up, and the others wait, for as long as the
/// session's `lock_timeout`.
pub(crate) async fn migrate(connection: &mut PgConnection) -> Result<Found, sqlx::Error> {
    tokio::time::timeout(PATIENCE, steps(connection))
        .await
        .unwrap_or_else(|_| Err(no_answer(PATIENCE)))
}

async fn steps(connection: &mut PgConnection) -> Result<Found, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(LOCK)
        .execute(&mut *transaction)
        .await?;
    // Each statement sees what was committed before it began: also what was while this one waited for the lock.
    let seen = version(&mut transaction).await?;
    let missing = usize::try_from(seen)
        .ok()
        .and_then(|seen| STEPS.get(seen..));
    if let Some(missing @ [_, ..]) = missing {
        take(&mut transaction, missing).await?;
        tracing::debug!(
            from = seen,
            to = KNOWN,
            "brings the claim tables up to date"
        );
    }
    // Also if nothing was done: a transaction that is merely dropped keeps the lock until its connection is used again.
    transaction.commit().await?;
    Ok(match missing {
        Some(_) => Found::Ready,
        None => Found::Newer { version: seen },
    })
}

async fn take(transaction: &mut PgConnection, missing: &[&'static str]) -> Result<(), sqlx::Error> {
    let patience = format!("SET LOCAL statement_timeout = {}", PATIENCE.as_millis());
    transaction
        .execute(sqlx::raw_sql(sqlx::AssertSqlSafe(patience)))
        .await?;
    for step in missing {
        transaction.execute(sqlx::raw_sql(*step)).await?;
    }
    transaction
        .execute(sqlx::raw_sql(
            "CREATE TABLE IF NOT EXISTS firstclaim_schema (version integer NOT NULL);
             DELETE FROM firstclaim_schema",
        ))
        .await?;
    sqlx::query("INSERT INTO firstclaim_schema (version) VALUES ($1)")
        .bind(KNOWN)
        .execute(transaction)
        .await?;
    Ok(())
}

/// How many steps the tables have seen: 0 without tables.
async fn version(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    // Not to_regclass(): a session that has once found no table goes on finding none until a statement of its own locks a
    // table, such as pg_class here.
    let exists: bool = connection
        .fetch_one(
            "SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'firstclaim_schema' AND pg_table_is_visible(oid))",
        )
        .await?
        .try_get(0)?;
    if !exists {
        return Ok(0);
    }
    let row = connection
        .fetch_one("SELECT coalesce(max(version), 0) FROM firstclaim_schema")
        .await?;
    row.try_get(0)
}
