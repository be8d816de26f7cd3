//! The ledger of uploads, `ingest_ledger`: which bundle of files was loaded, by its content.
//!
//! Two objects with the same bytes are two jobs and one upload. A job that is about to load a bundle claims its upload key
//! here, under the claim that it holds already, and completes it afterwards. There is no lease of its own: whether the job
//! that holds an upload still lives is for the job's claim to say, and its next attempt goes on where the last one stopped.
//!
//! # Rows of other programs
//!
//! The published load task works on the same table with `INSERT … ON CONFLICT (upload_key) DO NOTHING`, and never writes
//! `completed_at`. A row without `job_key` is such a row: it is honoured as done, listed as foreign, and loaded again only
//! after a [release](Ledger::release_upload). A released row stays, so that the task itself still finds its key taken:
//! from then on the upload is this program's to load.

use async_trait::async_trait;
use identity_core::claim::{ClaimKey, Kept, Owner, StoreError, UnixSeconds};
use sqlx::{ColumnIndex, Decode, Row, Type};

use crate::columns::Misfit;
use crate::values::Text;

/// A bundle that is about to be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// Its key, in whichever form: a digest of its names and bytes, cut short.
    pub key: String,
    /// The whole digest: SHA-256, 64 lower-case hex characters.
    pub full_digest: String,
    /// Where it lies, for people.
    pub source_path: String,
}

/// Who loads an upload: one attempt of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The job's claim.
    pub job: ClaimKey,
    /// Who won it.
    pub owner: Owner,
    /// As which attempt.
    pub attempt: u32,
}

/// A row of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The upload's key.
    pub key: String,
    /// Where it lay.
    pub source_path: Option<String>,
    /// When it was claimed last, in Unix seconds of the database's clock.
    pub claimed_at: Option<UnixSeconds>,
    /// When it was loaded, in Unix seconds of the database's clock.
    pub completed_at: Option<UnixSeconds>,
    /// Who claimed it; `None` on rows of other programs.
    pub holder: Option<Holder>,
    /// The whole digest; `None` on rows of other programs.
    pub full_digest: Option<String>,
    /// When an operator gave it back, unless it was claimed since, in Unix seconds of the database's clock.
    pub released_at: Option<UnixSeconds>,
}

/// Where an upload stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadState {
    /// Loaded.
    Done,
    /// Claimed by another program, which does not tell whether it loaded it: honoured as done.
    Foreign,
    /// Claimed by a job that has not completed it: it is at it, or it is stuck.
    Open,
    /// Given back by an operator: the next job that asks gets it.
    Released,
}

impl LedgerEntry {
    /// Where the upload stands.
    pub fn state(&self) -> UploadState {
        if self.released_at.is_some() {
            UploadState::Released
        } else if self.completed_at.is_some() {
            UploadState::Done
        } else if self.holder.is_none() {
            UploadState::Foreign
        } else {
            UploadState::Open
        }
    }
}

/// What became of a wish to load an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UploadClaim {
    /// It is the asker's: load it, then complete it.
    Won,
    /// It is loaded, or honoured as loaded: skip it.
    Done(LedgerEntry),
    /// Another job, or a later attempt of the same one, is at it: ask again later.
    Held(LedgerEntry),
    /// The key stands for other bytes: two uploads whose digests begin alike. Never to be skipped; a longer key tells them
    /// apart.
    Collision(LedgerEntry),
}

/// Which rows [`Ledger::uploads`] lists: those without `completed_at`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uncompleted {
    /// Claimed by a job of this program: at work, or stuck, or given back.
    Ours,
    /// Claimed by another program.
    Foreign,
}

/// Where a page of the ledger ended. Opaque: only the ledger that gave it can go on from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerCursor {
    /// The time as the database writes it, to its last digit.
    position: String,
    key: String,
}

/// A page of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerPage {
    /// The rows, those that were claimed first first.
    pub entries: Vec<LedgerEntry>,
    /// Where the next page begins; `None` after the last one.
    pub next: Option<LedgerCursor>,
}

/// The ledger of uploads. Every store of this crate keeps one.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Claims an upload for `holder`. The holder's own earlier claim, or one of an earlier attempt at the same job, is no
    /// hindrance; so the call may be repeated if its reply is lost.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if somebody deleted the row meanwhile: ask again. [`StoreError::Unavailable`] and
    /// [`StoreError::Invalid`].
    async fn claim_upload(
        &self,
        upload: &Upload,
        holder: &Holder,
    ) -> Result<UploadClaim, StoreError>;

    /// Records that `holder` has loaded the upload: `Kept::LeaseLost`, and nothing is written, if it is not the holder's any
    /// more. May be repeated if its reply is lost.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] and [`StoreError::Invalid`].
    async fn complete_upload(&self, key: &str, holder: &Holder) -> Result<Kept, StoreError>;

    /// Gives an upload back by an operator's command, whoever holds or has loaded it: the next job that claims it loads it.
    /// Returns what stands then, `None` if there is no such upload.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] and [`StoreError::Invalid`].
    async fn release_upload(&self, key: &str) -> Result<Option<LedgerEntry>, StoreError>;

    /// What stands under a key.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] and [`StoreError::Invalid`].
    async fn upload(&self, key: &str) -> Result<Option<LedgerEntry>, StoreError>;

    /// Uploads that were claimed and not completed, in pages of at most `limit` rows, 1 to 1,000.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`], and [`StoreError::Invalid`] also for a limit of 0.
    async fn uploads(
        &self,
        which: Uncompleted,
        limit: u32,
        after: Option<&LedgerCursor>,
    ) -> Result<LedgerPage, StoreError>;
}

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
    Text(Text),
    Number(i64),
}

impl From<&str> for Argument {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
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
    pub(crate) fn read<R: Row>(row: &R) -> Result<Self, Misfit>
    where
        &'static str: ColumnIndex<R>,
        for<'r> Text: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
    {
        let text = |column: &'static str| row.try_get::<Option<Text>, _>(column);
        let number = |column: &'static str| row.try_get::<Option<i64>, _>(column);
        let key = row
            .try_get::<Text, _>("upload_key")
            .map_err(|error| Misfit::unreadable("upload", "", &error))?
            .0;
        let unreadable = |error| Misfit::unreadable("upload", &key, &error);
        let text = |column| Ok(text(column).map_err(unreadable)?.map(|text| text.0));
        let time = |column| Ok(number(column).map_err(unreadable)?.map(UnixSeconds));
        let misfit =
            |column, expected, got: &str| Misfit::in_row("upload", &key, column, expected, got);
        let holder = match text("job_key")? {
            None => None,
            Some(job) => {
                let (owner, attempt) = (text("owner")?.unwrap_or_default(), number("attempt"));
                let attempt = attempt.map_err(unreadable)?.unwrap_or_default();
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

#[async_trait]
impl<T: LedgerTable> Ledger for T {
    async fn claim_upload(
        &self,
        upload: &Upload,
        holder: &Holder,
    ) -> Result<UploadClaim, StoreError> {
        let mut arguments = vec![
            Argument::from(upload.key.as_str()),
            upload.source_path.as_str().into(),
            upload.full_digest.as_str().into(),
        ];
        arguments.extend(identifying(holder));
        let claimed = self.run("claiming an upload", true, &self.sql().claim, arguments);
        if !claimed.await?.is_empty() {
            return Ok(UploadClaim::Won);
        }
        let Some(entry) = self.upload(&upload.key).await? else {
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

    async fn complete_upload(&self, key: &str, holder: &Holder) -> Result<Kept, StoreError> {
        let mut arguments = vec![Argument::from(key)];
        arguments.extend(identifying(holder));
        let completed = self.run(
            "completing an upload",
            true,
            &self.sql().complete,
            arguments,
        );
        if !completed.await?.is_empty() {
            return Ok(Kept::Yes);
        }
        // An earlier call may have completed it, whose reply was lost.
        let own = |entry: LedgerEntry| {
            entry.state() == UploadState::Done && entry.holder.as_ref() == Some(holder)
        };
        Ok(if self.upload(key).await?.is_some_and(own) {
            Kept::Yes
        } else {
            Kept::LeaseLost
        })
    }

    async fn release_upload(&self, key: &str) -> Result<Option<LedgerEntry>, StoreError> {
        let released = self.run(
            "releasing an upload",
            true,
            &self.sql().release,
            vec![key.into()],
        );
        Ok(released.await?.pop().map(|row| row.entry))
    }

    async fn upload(&self, key: &str) -> Result<Option<LedgerEntry>, StoreError> {
        let found = self.run(
            "reading an upload",
            false,
            &self.sql().get,
            vec![key.into()],
        );
        Ok(found.await?.pop().map(|row| row.entry))
    }

    async fn uploads(
        &self,
        which: Uncompleted,
        limit: u32,
        after: Option<&LedgerCursor>,
    ) -> Result<LedgerPage, StoreError> {
        if limit == 0 {
            return Err(self.misfit(Misfit {
                what: "limit of a page".to_owned(),
                expected: "1 or more",
                got: "0".to_owned(),
            }));
        }
        let limit = limit.min(MAX_PAGE);
        let sql = self.sql();
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
        let mut rows = self
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
}

/// The parameters that say who a holder is.
fn identifying(holder: &Holder) -> [Argument; 3] {
    [
        holder.job.as_str().into(),
        holder.owner.to_string().as_str().into(),
        Argument::Number(holder.attempt.into()),
    ]
}
