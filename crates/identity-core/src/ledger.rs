//! The ledger of uploads: which bundle of files was loaded, by its content.
//!
//! Two objects with the same bytes are two jobs and one upload. A job that is about to load a bundle claims its upload key
//! here, under the claim that it holds already, and completes it afterwards. There is no lease of its own: whether the job
//! that holds an upload still lives is for the job's claim to say, and its next attempt goes on where the last one stopped.
//!
//! # Rows of other programs
//!
//! The published load task works on the same table of SQL, `ingest_ledger`, with `INSERT … ON CONFLICT (upload_key) DO
//! NOTHING`, and never writes `completed_at`. A row without `job_key` is such a row: it is honoured as done, listed as
//! foreign, and loaded again only after a [release](Ledger::release_upload). A released row stays, so that the task itself
//! still finds its key taken: from then on the upload is this program's to load.

use async_trait::async_trait;

use crate::claim::{ClaimKey, Kept, Owner, StoreError, UnixSeconds};

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
    /// When the page's last upload was claimed, as the ledger writes it, to its last digit.
    pub position: String,
    /// The page's last upload.
    pub key: String,
}

/// A page of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerPage {
    /// The rows, those that were claimed first first.
    pub entries: Vec<LedgerEntry>,
    /// Where the next page begins; `None` after the last one.
    pub next: Option<LedgerCursor>,
}

/// The ledger of uploads.
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
