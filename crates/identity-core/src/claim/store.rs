//! What a claim store must be able to do: read one row, compare-and-swap one row, list rows.

use std::fmt::{Debug, Display};

use async_trait::async_trait;

use super::record::{ClaimKey, Record, Status, UnixMillis};

/// A store's own name for one state of a row. Opaque: only the store that gave it can compare it.
///
/// It must change with every write, also with writes of programs that know nothing of it, and never come back: an
/// update time, an ETag, or a random revision together with owner, attempt and status. A counter will not do, for a row
/// deleted and made anew would count up to it again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version(pub String);

/// A row as it stood when it was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stored {
    /// What it holds.
    pub record: Record,
    /// Which state of the row this was.
    pub version: Version,
}

/// Under which condition a write takes place. Failing it is [`StoreError::Conflict`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Precondition {
    /// There is no row under the key. Otherwise: somebody has claimed it.
    Absent,
    /// The row is still the one that was read or written. Otherwise: somebody has written, or deleted it.
    Unchanged(Version),
}

/// Claims by key, with compare-and-swap. The suite in `claim::conformance` is what this trait means.
#[async_trait]
pub trait ClaimStore: Debug + Display + Send + Sync + 'static {
    /// Strongly consistent read; `None` if there is no row under the key.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] and [`StoreError::Invalid`].
    async fn get(&self, key: &ClaimKey) -> Result<Option<Stored>, StoreError>;

    /// Writes the whole record atomically iff `when` holds, and durably before it returns.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if `when` does not hold, with what stands there if the store tells;
    /// [`StoreError::Unavailable`] if it is not known whether the write took place; [`StoreError::Invalid`].
    async fn put(
        &self,
        key: &ClaimKey,
        record: &Record,
        when: &Precondition,
    ) -> Result<Version, StoreError>;

    /// Rows for people and sweepers, in pages: those with one of the statuses, oldest first where the store can sort.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] and [`StoreError::Invalid`].
    async fn list(&self, query: &ListQuery) -> Result<Page, StoreError>;
}

/// Which rows [`ClaimStore::list`] returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    /// Rows with one of these statuses.
    pub statuses: Vec<Status>,
    /// Only rows last won or recorded at or before this moment.
    pub claimed_until: Option<UnixMillis>,
    /// At most this many rows a page.
    pub limit: u32,
    /// Where the page before ended.
    pub after: Option<Cursor>,
}

/// Where a page ended. Opaque: only the store that gave it can go on from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(pub String);

/// One page of rows.
#[derive(Debug)]
pub struct Page {
    /// The rows.
    pub claims: Vec<(ClaimKey, Stored)>,
    /// Rows in this part of the list from which no claim can be read, each as [`StoreError::Invalid`]: one of them must
    /// not hide the others from a sweep.
    pub unreadable: Vec<StoreError>,
    /// Where the next page begins; `None` after the last one.
    pub next: Option<Cursor>,
}

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The precondition does not hold. Nothing was written.
    #[error("another row stands under the key")]
    Conflict {
        /// What stands there, where the store returns it with the refusal; `None` also if there is no row.
        standing: Option<Box<Stored>>,
    },
    /// The store did not answer, or not in a way that says whether a write took place: look, then decide.
    #[error("{store}: {doing} failed")]
    Unavailable {
        /// The store's own name for itself.
        store: String,
        /// What was being done, e.g. `reading a claim`.
        doing: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A row or an argument holds what no claim can hold. Nothing was written.
    #[error("{store}: {what}: expected {expected}, got {got:?}")]
    Invalid {
        /// The store's own name for itself.
        store: String,
        /// Which row and field.
        what: String,
        /// What it should be.
        expected: &'static str,
        /// What it is.
        got: String,
    },
}
