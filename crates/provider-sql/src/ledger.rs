//! The ledger of uploads in SQL, `ingest_ledger`: the statements, and what its rows say. The published load task works on
//! the same table.

use async_trait::async_trait;
use identity_core::{
    claim::{ClaimKey, Kept, Owner, StoreError, UnixSeconds},
    ledger::{
        Holder, LedgerCursor, LedgerEntry, LedgerPage, Uncompleted, Upload, UploadClaim,
        UploadState,
    },
};

use crate::columns::{Columns, Misfit, TYPED};

/// The most rows of a page.
const MAX_PAGE: u32 = 1_000;

/// In which words a database says what the ledger's statements need.
pub(crate) struct Dialect {
    /// Its clock.
    pub(crate) now: &'static str,
    /// A time, `{}`, in Unix seconds.
    pub(crate) seconds: &'static str,
    /// The type of a time.
    pub(crate) time: &'static str,
    /// A text that is cast to a time before all others.
    pub(crate) first: &'static str,
}

/// The ledger's statements in one database's words. Each returns whole rows.
#[derive(Debug)]
pub(crate) struct LedgerSql {
    claim: String,
    complete: String,
    release: String,
    get: String,
    ours: String,
    foreign: String,
    first: &'static str,
}

impl LedgerSql {
    pub(crate) fn new(dialect: &Dialect) -> Self {
        let Dialect {
            now, time, first, ..
        } = dialect;
        let seconds = |column| dialect.seconds.replace("{}", column);
        let columns = format!(
            "upload_key, source_path, {} AS claimed_at, {} AS completed_at, {} AS released_at, \
             job_key, owner, attempt, full_digest, CAST(claimed_at AS text) AS position",
            seconds("claimed_at"),
            seconds("completed_at"),
            seconds("released_at"),
        );
        let list = |which| {
            format!(
                "SELECT {columns} FROM ingest_ledger WHERE completed_at IS NULL AND job_key IS {which} \
                 AND (claimed_at, upload_key) > (CAST($1 AS {time}), $2) \
                 ORDER BY ingest_ledger.claimed_at, ingest_ledger.upload_key LIMIT $3"
            )
        };
        Self {
            // One statement decides, as for claims. Other bytes under the same key are never written over.
            claim: format!(
                "INSERT INTO ingest_ledger AS standing \
                 (upload_key, source_path, full_digest, job_key, owner, attempt) \
                 VALUES ($1, $2, $3, $4, $5, $6) \
                 ON CONFLICT (upload_key) DO UPDATE SET source_path = excluded.source_path, \
                 full_digest = excluded.full_digest, job_key = excluded.job_key, owner = excluded.owner, \
                 attempt = excluded.attempt, claimed_at = {now}, completed_at = NULL, released_at = NULL \
                 WHERE (standing.full_digest IS NULL OR standing.full_digest = excluded.full_digest) \
                 AND (standing.released_at IS NOT NULL OR (standing.completed_at IS NULL \
                 AND standing.job_key = excluded.job_key AND standing.attempt <= excluded.attempt)) \
                 RETURNING {columns}"
            ),
            complete: format!(
                "UPDATE ingest_ledger SET completed_at = {now} WHERE upload_key = $1 AND job_key = $2 \
                 AND owner = $3 AND attempt = $4 AND completed_at IS NULL AND released_at IS NULL \
                 RETURNING {columns}"
            ),
            release: format!(
                "UPDATE ingest_ledger SET released_at = {now}, completed_at = NULL WHERE upload_key = $1 \
                 RETURNING {columns}"
            ),
            get: format!("SELECT {columns} FROM ingest_ledger WHERE upload_key = $1"),
            ours: list("NOT NULL"),
            foreign: list("NULL"),
            first,
        }
    }
}

/// A parameter of the ledger's statements.
#[derive(Debug, Clone)]
pub(crate) enum Argument {
    Text(String),
    Number(i64),
}

impl From<&str> for Argument {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// A row as a database returns it.
#[derive(Debug)]
pub(crate) struct LedgerRow {
    entry: LedgerEntry,
    position: String,
}

impl LedgerRow {
    /// Reads a row that one of the ledger's statements returned.
    pub(crate) fn read(row: &impl Columns) -> Result<Self, Misfit> {
        let of_type =
            |key: &str, column, got: String| Misfit::in_row("upload", key, column, TYPED, &got);
        let key = row.text("upload_key");
        let key = key.map_err(|got| of_type("", "upload_key", got))?;
        let key = key.unwrap_or_default();
        let text = |column| row.text(column).map_err(|got| of_type(&key, column, got));
        let number = |column| row.number(column).map_err(|got| of_type(&key, column, got));
        let time = |column| Ok(number(column)?.map(UnixSeconds));
        let misfit =
            |column, expected, got: &str| Misfit::in_row("upload", &key, column, expected, got);
        let holder = match text("job_key")? {
            None => None,
            Some(job) => {
                let owner = text("owner")?.unwrap_or_default();
                let attempt = number("attempt")?.unwrap_or_default();
                Some(Holder {
                    job: ClaimKey::parse(&job)
                        .ok_or_else(|| misfit("job_key", "64 lower-case hex characters", &job))?,
                    owner: Owner::parse(&owner)
                        .ok_or_else(|| misfit("owner", "32 lower-case hex characters", &owner))?,
                    attempt: u32::try_from(attempt)
                        .map_err(|_| misfit("attempt", "0 to 4294967295", &attempt.to_string()))?,
                })
            }
        };
        let position = text("position")?.unwrap_or_default();
        let entry = LedgerEntry {
            source_path: text("source_path")?,
            claimed_at: time("claimed_at")?,
            completed_at: time("completed_at")?,
            released_at: time("released_at")?,
            full_digest: text("full_digest")?,
            holder,
            key: key.clone(),
        };
        Ok(Self { entry, position })
    }
}

/// A database with an `ingest_ledger`.
#[async_trait]
pub(crate) trait LedgerTable: Send + Sync {
    /// Its statements.
    fn sql(&self) -> &'static LedgerSql;

    /// Runs one of them, in a transaction of its own.
    async fn run(
        &self,
        doing: &'static str,
        writes: bool,
        sql: &'static str,
        arguments: Vec<Argument>,
    ) -> Result<Vec<LedgerRow>, StoreError>;

    /// What an error is told as.
    fn misfit(&self, misfit: Misfit) -> StoreError;
}

/// As [`Ledger::claim_upload`](identity_core::ledger::Ledger::claim_upload) says.
pub(crate) async fn claim_upload(
    table: &impl LedgerTable,
    upload: &Upload,
    holder: &Holder,
) -> Result<UploadClaim, StoreError> {
    let mut arguments = vec![
        Argument::from(upload.key.as_str()),
        upload.source_path.as_str().into(),
        upload.full_digest.as_str().into(),
    ];
    arguments.extend(identifying(holder));
    let claimed = table.run("claiming an upload", true, &table.sql().claim, arguments);
    if !claimed.await?.is_empty() {
        return Ok(UploadClaim::Won);
    }
    let Some(entry) = upload_of(table, &upload.key).await? else {
        return Err(StoreError::Conflict { standing: None });
    };
    let digest = entry.full_digest.as_ref();
    if digest.is_some_and(|digest| *digest != upload.full_digest) {
        return Ok(UploadClaim::Collision(entry));
    }
    Ok(match entry.state() {
        UploadState::Done | UploadState::Foreign => UploadClaim::Done(entry),
        // Released only since the statement looked: asked again, it is won.
        UploadState::Open | UploadState::Released => UploadClaim::Held(entry),
    })
}

/// As [`Ledger::complete_upload`](identity_core::ledger::Ledger::complete_upload) says.
pub(crate) async fn complete_upload(
    table: &impl LedgerTable,
    key: &str,
    holder: &Holder,
) -> Result<Kept, StoreError> {
    let mut arguments = vec![Argument::from(key)];
    arguments.extend(identifying(holder));
    let completed = table.run(
        "completing an upload",
        true,
        &table.sql().complete,
        arguments,
    );
    if !completed.await?.is_empty() {
        return Ok(Kept::Yes);
    }
    // An earlier call may have completed it, whose reply was lost.
    let own = |entry: LedgerEntry| {
        entry.state() == UploadState::Done && entry.holder.as_ref() == Some(holder)
    };
    Ok(if upload_of(table, key).await?.is_some_and(own) {
        Kept::Yes
    } else {
        Kept::LeaseLost
    })
}

/// As [`Ledger::release_upload`](identity_core::ledger::Ledger::release_upload) says.
pub(crate) async fn release_upload(
    table: &impl LedgerTable,
    key: &str,
) -> Result<Option<LedgerEntry>, StoreError> {
    let released = table.run(
        "releasing an upload",
        true,
        &table.sql().release,
        vec![key.into()],
    );
    Ok(released.await?.pop().map(|row| row.entry))
}

/// As [`Ledger::upload`](identity_core::ledger::Ledger::upload) says.
pub(crate) async fn upload_of(
    table: &impl LedgerTable,
    key: &str,
) -> Result<Option<LedgerEntry>, StoreError> {
    let found = table.run(
        "reading an upload",
        false,
        &table.sql().get,
        vec![key.into()],
    );
    Ok(found.await?.pop().map(|row| row.entry))
}

/// As [`Ledger::uploads`](identity_core::ledger::Ledger::uploads) says.
pub(crate) async fn uploads(
    table: &impl LedgerTable,
    which: Uncompleted,
    limit: u32,
    after: Option<&LedgerCursor>,
) -> Result<LedgerPage, StoreError> {
    if limit == 0 {
        return Err(table.misfit(Misfit {
            what: "limit of a page".to_owned(),
            expected: "1 or more",
            got: "0".to_owned(),
        }));
    }
    let limit = limit.min(MAX_PAGE);
    let sql = table.sql();
    let (position, key) = after.map_or((sql.first, ""), |cursor| {
        (cursor.position.as_str(), cursor.key.as_str())
    });
    let arguments = vec![
        Argument::from(position),
        key.into(),
        // One more than the page holds says that there is a next one.
        Argument::Number(i64::from(limit) + 1),
    ];
    let statement = match which {
        Uncompleted::Ours => &sql.ours,
        Uncompleted::Foreign => &sql.foreign,
    };
    let mut rows = table
        .run("listing uploads", false, statement, arguments)
        .await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|row| LedgerCursor {
        position: row.position.clone(),
        key: row.entry.key.clone(),
    });
    let entries = rows.into_iter().map(|row| row.entry).collect();
    Ok(LedgerPage { entries, next })
}

/// Makes a store's table its ledger. The trait is the core's, so it cannot be given to every [`LedgerTable`] at once.
macro_rules! keep_uploads {
    ($store:ty) => {
        #[async_trait::async_trait]
        impl identity_core::ledger::Ledger for $store {
            async fn claim_upload(
                &self,
                upload: &identity_core::ledger::Upload,
                holder: &identity_core::ledger::Holder,
            ) -> Result<identity_core::ledger::UploadClaim, identity_core::claim::StoreError> {
                $crate::ledger::claim_upload(self, upload, holder).await
            }
            async fn complete_upload(
                &self,
                key: &str,
                holder: &identity_core::ledger::Holder,
            ) -> Result<identity_core::claim::Kept, identity_core::claim::StoreError> {
                $crate::ledger::complete_upload(self, key, holder).await
            }
            async fn release_upload(&self, key: &str) -> Result<Option<identity_core::ledger::LedgerEntry>, identity_core::claim::StoreError> {
                $crate::ledger::release_upload(self, key).await
            }
            async fn upload(&self, key: &str) -> Result<Option<identity_core::ledger::LedgerEntry>, identity_core::claim::StoreError> {
                $crate::ledger::upload_of(self, key).await
            }
            async fn uploads(
                &self,
                which: identity_core::ledger::Uncompleted,
                limit: u32,
                after: Option<&identity_core::ledger::LedgerCursor>,
            ) -> Result<identity_core::ledger::LedgerPage, identity_core::claim::StoreError> {
                $crate::ledger::uploads(self, which, limit, after).await
            }
        }
    };
}
pub(crate) use keep_uploads;

/// The parameters that say who a holder is.
fn identifying(holder: &Holder) -> [Argument; 3] {
    [
        holder.job.as_str().into(),
        holder.owner.to_string().as_str().into(),
        Argument::Number(holder.attempt.into()),
    ]
}
