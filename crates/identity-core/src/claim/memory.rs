//! Claims in this process's memory: for tests, dry runs and `memory:` on the command line.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use super::{
    record::{ClaimKey, Record, Status},
    store::{ClaimStore, Cursor, ListQuery, Page, Precondition, StoreError, Stored, Version},
};

/// A claim store that lasts as long as its value.
#[derive(Debug, Default)]
pub struct MemoryStore {
    rows: Mutex<Rows>,
}

#[derive(Debug, Default)]
struct Rows {
    by_key: BTreeMap<ClaimKey, Stored>,
    /// Counts the writes of the whole store, so that no row ever has a version again, not even after a deletion.
    writes: u64,
}

impl Rows {
    fn write(&mut self, key: &ClaimKey, record: Record) -> Version {
        self.writes += 1;
        let version = Version(self.writes.to_string());
        self.by_key.insert(
            key.clone(),
            Stored {
                record,
                version: version.clone(),
            },
        );
        version
    }
}

impl MemoryStore {
    fn rows(&self) -> MutexGuard<'_, Rows> {
        // A panic elsewhere cannot leave a row half-written: rows are replaced whole.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes a row as a program that knows nothing of claims would. For tests.
    pub fn delete(&self, key: &ClaimKey) {
        self.rows().by_key.remove(key);
    }

    /// Sets a row's status as a program that knows nothing of claims would: nothing else changes. For tests.
    pub fn flip_status(&self, key: &ClaimKey, status: Status) {
        let mut rows = self.rows();
        if let Some(stored) = rows.by_key.get(key) {
            let record = Record {
                status,
                ..stored.record.clone()
            };
            rows.write(key, record);
        }
    }
}

impl fmt::Display for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("memory:")
    }
}

#[async_trait]
impl ClaimStore for MemoryStore {
    async fn get(&self, key: &ClaimKey) -> Result<Option<Stored>, StoreError> {
        Ok(self.rows().by_key.get(key).cloned())
    }

    async fn put(
        &self,
        key: &ClaimKey,
        record: &Record,
        when: &Precondition,
    ) -> Result<Version, StoreError> {
        let mut rows = self.rows();
        let standing = rows.by_key.get(key);
        let holds = match (when, standing) {
            (Precondition::Absent, None) => true,
            (Precondition::Unchanged(version), Some(stored)) => stored.version == *version,
            _ => false,
        };
        if !holds {
            return Err(StoreError::Conflict {
                standing: standing.cloned().map(Box::new),
            });
        }
        Ok(rows.write(key, record.clone()))
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        let rows = self.rows();
        let mut matching: Vec<_> = rows
            .by_key
            .iter()
            .filter(|(_, stored)| query.statuses.contains(&stored.record.status))
            .filter(|(_, stored)| {
                query
                    .claimed_until
                    .is_none_or(|until| stored.record.claimed_at.millis() <= until)
            })
            .map(|(key, stored)| (position(key, &stored.record), key, stored))
            .filter(|(position, ..)| query.after.as_ref().is_none_or(|after| *position > after.0))
            .collect();
        matching.sort_by(|a, b| a.0.cmp(&b.0));
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let next = (matching.len() > limit)
            .then(|| limit.checked_sub(1).and_then(|last| matching.get(last)))
            .flatten();
        let next = next.map(|(position, ..)| Cursor(position.clone()));
        let claims = matching
            .into_iter()
            .take(limit)
            .map(|(_, key, stored)| (key.clone(), stored.clone()))
            .collect();
        Ok(Page {
            claims,
            unreadable: Vec::new(),
            next,
        })
    }
}

/// Sorts as (claimed_at, key) does. Times before 1970 sort first, all alike.
fn position(key: &ClaimKey, record: &Record) -> String {
    format!("{:020}.{key}", record.claimed_at.0.max(0))
}
