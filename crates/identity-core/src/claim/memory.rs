//! Claims in this process's memory: for tests, dry runs and `memory:` on the command line.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    num::NonZeroU32,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use super::{
    fields,
    open_index::{self, Place},
    record::{ClaimKey, Record, Status, UnixSeconds},
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
    /// Rows that another program has spoilt.
    spoilt: BTreeSet<ClaimKey>,
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

    /// The row as it is read.
    fn readable(&self, key: &ClaimKey, stored: &Stored) -> Result<Stored, StoreError> {
        if self.spoilt.contains(key) {
            let what = format!("claim {key}");
            return Err(StoreError::invalid(&NAME, what, "a claim", "none"));
        }
        Ok(stored.clone())
    }
}

const NAME: &str = "memory:";

impl MemoryStore {
    fn rows(&self) -> MutexGuard<'_, Rows> {
        // A panic elsewhere cannot leave a row half-written: rows are replaced whole.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a program does that knows nothing of claims. For tests.
#[cfg(any(test, feature = "conformance"))]
impl MemoryStore {
    /// Deletes a row.
    pub fn delete(&self, key: &ClaimKey) {
        self.rows().by_key.remove(key);
    }

    /// Sets a row's status: nothing else changes.
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

    /// Makes a row one that no claim can be read from.
    pub fn spoil(&self, key: &ClaimKey) {
        self.rows().spoilt.insert(key.clone());
    }
}

impl fmt::Display for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

#[async_trait]
impl ClaimStore for MemoryStore {
    async fn get(&self, key: &ClaimKey) -> Result<Option<Stored>, StoreError> {
        let rows = self.rows();
        let stored = rows.by_key.get(key);
        stored.map(|stored| rows.readable(key, stored)).transpose()
    }

    async fn put(
        &self,
        key: &ClaimKey,
        record: &Record,
        when: &Precondition,
    ) -> Result<Version, StoreError> {
        // Nothing is kept as a row here, but what no other store keeps is not kept either.
        fields::check(key, record).map_err(|misfit| {
            let what = format!("claim {key}, field {}", misfit.field.name());
            StoreError::invalid(self, what, misfit.expected, &misfit.got)
        })?;
        let mut rows = self.rows();
        let standing = rows.by_key.get(key);
        let holds = match (when, standing) {
            (Precondition::Absent, None) => true,
            (Precondition::Unchanged(version), Some(stored)) => stored.version == *version,
            _ => false,
        };
        if !holds {
            let standing = standing.map(|stored| rows.readable(key, stored));
            return Err(StoreError::Conflict {
                standing: standing.transpose()?.map(Box::new),
            });
        }
        Ok(rows.write(key, record.clone()))
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        let after = match &query.after {
            None => None,
            Some(Cursor(text)) => Some(open_index::parse_since(text).ok_or_else(|| {
                let what = "cursor".to_owned();
                StoreError::invalid(self, what, "one that a page ended with", text)
            })?),
        };
        let rows = self.rows();
        let matching = rows
            .by_key
            .iter()
            .filter(|(_, stored)| query.statuses.contains(&stored.record.status))
            .map(|(key, stored)| Place {
                since: open_index::since(stored.record.claimed_at, key),
                key: key.to_string(),
            })
            .filter(|place| after.as_ref().is_none_or(|after| place.since > *after))
            .collect();
        let limit = usize::try_from(query.limit.get()).unwrap_or(usize::MAX);
        let (places, next) = open_index::page(vec![matching], limit);
        let mut page = Page {
            next,
            ..Page::default()
        };
        for place in places {
            let Some((key, stored)) =
                ClaimKey::parse(&place.key).and_then(|key| rows.by_key.get_key_value(&key))
            else {
                continue;
            };
            match rows.readable(key, stored) {
                Ok(stored) => page.claims.push((key.clone(), stored)),
                Err(error) => page.unreadable.push(error),
            }
        }
        Ok(page)
    }

    async fn purge(&self, now: UnixSeconds, most: NonZeroU32) -> Result<u32, StoreError> {
        let mut rows = self.rows();
        let most = usize::try_from(most.get()).unwrap_or(usize::MAX);
        let over: Vec<_> = rows
            .by_key
            .iter()
            .filter(|(_, Stored { record, .. })| {
                record.status == Status::Done
                    && record.expires_at.is_some_and(|expires| expires < now)
            })
            .map(|(key, _)| key.clone())
            .take(most)
            .collect();
        for key in &over {
            rows.by_key.remove(key);
        }
        Ok(u32::try_from(over.len()).unwrap_or(u32::MAX)) // at most `most`
    }
}
