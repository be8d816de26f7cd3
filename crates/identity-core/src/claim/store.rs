//! What a claim store must be able to do: read one row, compare-and-swap one row, list rows.

use std::{
    collections::BTreeSet,
    fmt::{Debug, Display},
    num::NonZeroU32,
};

use async_trait::async_trait;

use super::{
    fields::beginning,
    record::{ClaimKey, Record, Status, UnixSeconds},
};

/// A store's own name for one state of a row. Opaque: only the store that gave it can compare it.
///
/// It must change with every write, also with writes of programs that know nothing of it, and never come back: an
/// update time, an ETag, or a random revision together with owner, attempt and status. A counter will not do, for a row
/// deleted and made anew would count up to it again. Our own writes always change [`Record::revision`], so that a store whose
/// service passes over a write that changes nothing (Firestore keeps the update time then) has a new version all the same.
///
/// It may carry what the store needs for its next write of the row, e.g. where the row's entry in an index is that this write
/// has to take away.
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

    /// Rows for people and sweepers, in pages: those with one of the statuses, the one first that was won or recorded first.
    /// Where `done` is asked for, the order is the store's own.
    ///
    /// A row that stays as it is while pages are asked for is in one of them.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`], and [`StoreError::Invalid`] for a cursor that no page of this query ended with.
    async fn list(&self, query: &ListQuery) -> Result<Page, StoreError>;

    /// Deletes rows that are `done` and whose [`Record::expires_at`] lies before `now`, at most `most`, each only as it was
    /// when it was looked at. Returns how many; fewer than `most`: there are no more now. 0 from a store whose service deletes
    /// them by itself.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`]: some of them may be deleted.
    async fn purge(&self, now: UnixSeconds, most: NonZeroU32) -> Result<u32, StoreError>;
}

/// Which rows [`ClaimStore::list`] returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    /// Rows with one of these statuses.
    pub statuses: BTreeSet<Status>,
    /// At most this many rows a page. A store may have a smaller limit of its own.
    pub limit: NonZeroU32,
    /// Where the page before ended.
    pub after: Option<Cursor>,
}

/// Where a page ended. Opaque: only the store that gave it can go on from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(pub String);

/// One page of rows: readable and unreadable ones together are at most as many as were asked for. It may have fewer, even
/// none, and a next one all the same.
#[derive(Debug, Default)]
pub struct Page {
    /// The rows.
    pub claims: Vec<(ClaimKey, Stored)>,
    /// Rows in this part of the list from which no claim can be read, each as [`StoreError::Invalid`]: one of them must
    /// not hide the others from a sweep.
    pub unreadable: Vec<StoreError>,
    /// Where the next page begins; `None` after the last one.
    pub next: Option<Cursor>,
}

impl Page {
    /// How many rows it has, readable or not.
    pub fn rows(&self) -> usize {
        self.claims.len() + self.unreadable.len()
    }
}

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The precondition does not hold. Nothing was written.
    #[error("another row stands under the key")]
    Conflict {
        /// What stands there, where the refusal itself tells; `None` also if there is no row. A store never reads in order to
        /// fill it: whoever has to know reads, and most need not. (One that is in the row's transaction anyway may look.)
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

impl StoreError {
    /// What is in a row, or what was asked, cannot be: `what` says which of it.
    pub fn invalid(store: &impl Display, what: String, expected: &'static str, got: &str) -> Self {
        Self::Invalid {
            store: store.to_string(),
            what,
            expected,
            got: beginning(got),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::testing::record;

    #[test]
    fn a_row_that_cannot_be_read_is_a_row_of_its_page() {
        let stored = Stored {
            record: record(),
            version: Version("v1".into()),
        };
        let unreadable = || StoreError::invalid(&"test", "row".into(), "a claim", "none");
        let page = Page {
            claims: vec![(ClaimKey::from_digest([1; 32]), stored)],
            unreadable: vec![unreadable(), unreadable()],
            next: None,
        };
        assert_eq!(page.rows(), 3);
    }
}
