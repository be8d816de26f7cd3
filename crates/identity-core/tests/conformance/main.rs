//! The conformance suite passes the in-memory store, and fails stores that are broken in the usual ways: here those whose
//! compare-and-swap is, in `defects` those whose lists and purges are.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod defects;

use std::{
    collections::BTreeMap,
    fmt,
    num::NonZeroU32,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use identity_core::claim::{
    ClaimKey, ClaimStore, ListQuery, Page, Precondition, Record, Status, StoreError, Stored,
    UnixSeconds, Version,
    conformance::{self, Failure, Subject},
    memory::MemoryStore,
};

#[derive(Debug)]
struct Memory(Arc<MemoryStore>);

#[async_trait]
impl Subject for Memory {
    fn store(&self) -> Arc<dyn ClaimStore> {
        self.0.clone()
    }
    async fn delete(&self, key: &ClaimKey) {
        self.0.delete(key);
    }
    async fn flip_status(&self, key: &ClaimKey, status: Status) {
        self.0.flip_status(key, status);
    }
    async fn forget_lease(&self, key: &ClaimKey) {
        let stored = self.0.get(key).await.unwrap().unwrap();
        let bare = Record {
            owner: None,
            revision: None,
            lease_until: None,
            ..stored.record
        };
        self.0
            .put(key, &bare, &Precondition::Unchanged(stored.version))
            .await
            .unwrap();
    }
    async fn put_unreadable(&self, key: &ClaimKey) {
        self.0.spoil(key);
    }
}

/// How a store is broken.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// Conditions are not looked at: the last write wins.
    LastWriteWins,
    /// The version counts the writes of a row, and starts again when the row is made anew.
    CounterVersion,
    /// The version is the revision alone, which a foreign program does not touch.
    RevisionOnly,
    /// The version is what is written but for the revision: an equal write leaves it as it is.
    NoRevision,
}

#[derive(Debug)]
struct Broken {
    fault: Fault,
    rows: Mutex<BTreeMap<ClaimKey, (Record, u64)>>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.fault)
    }
}

impl Broken {
    fn stored(&self, record: &Record, writes: u64) -> Stored {
        let version = match (self.fault, record.revision) {
            (Fault::RevisionOnly, Some(revision)) => revision.to_string(),
            (Fault::NoRevision, _) => {
                let revision = None;
                let record = record.clone();
                format!("{:?}", Record { revision, ..record })
            }
            _ => writes.to_string(),
        };
        Stored {
            record: record.clone(),
            version: Version(version),
        }
    }
}

#[async_trait]
impl ClaimStore for Broken {
    async fn get(&self, key: &ClaimKey) -> Result<Option<Stored>, StoreError> {
        Ok(self
            .rows
            .lock()
            .unwrap()
            .get(key)
            .map(|(record, writes)| self.stored(record, *writes)))
    }
    async fn put(
        &self,
        key: &ClaimKey,
        record: &Record,
        when: &Precondition,
    ) -> Result<Version, StoreError> {
        let mut rows = self.rows.lock().unwrap();
        let standing = rows
            .get(key)
            .map(|(record, writes)| (self.stored(record, *writes), *writes));
        let holds = match (when, &standing) {
            _ if self.fault == Fault::LastWriteWins => true,
            (Precondition::Absent, None) => true,
            (Precondition::Unchanged(version), Some((stored, _))) => stored.version == *version,
            _ => false,
        };
        if !holds {
            return Err(StoreError::Conflict {
                standing: standing.map(|(stored, _)| Box::new(stored)),
            });
        }
        let writes = standing.map_or(1, |(_, writes)| writes + 1);
        rows.insert(key.clone(), (record.clone(), writes));
        Ok(self.stored(record, writes).version)
    }
    async fn list(&self, _: &ListQuery) -> Result<Page, StoreError> {
        Ok(Page::default())
    }
    async fn purge(&self, _: UnixSeconds, _: NonZeroU32) -> Result<u32, StoreError> {
        Ok(0)
    }
}

struct BrokenSubject(Arc<Broken>);

impl BrokenSubject {
    /// Changes a row behind the store's back, as another program does.
    fn change(&self, key: &ClaimKey, change: impl FnOnce(&mut Record)) {
        if let Some((record, writes)) = self.0.rows.lock().unwrap().get_mut(key) {
            change(record);
            *writes += 1;
        }
    }
}

#[async_trait]
impl Subject for BrokenSubject {
    fn store(&self) -> Arc<dyn ClaimStore> {
        self.0.clone()
    }
    async fn delete(&self, key: &ClaimKey) {
        self.0.rows.lock().unwrap().remove(key);
    }
    async fn flip_status(&self, key: &ClaimKey, status: Status) {
        self.change(key, |record| record.status = status);
    }
    async fn forget_lease(&self, key: &ClaimKey) {
        self.change(key, |record| {
            (record.owner, record.revision, record.lease_until) = (None, None, None)
        });
    }
    async fn put_unreadable(&self, _: &ClaimKey) {}
}

async fn failures_of(fault: Fault) -> Vec<Failure> {
    conformance::run(
        &BrokenSubject(Arc::new(Broken {
            fault,
            rows: Mutex::default(),
        })),
        1,
    )
    .await
}

#[track_caller]
fn assert_failed(failures: &[Failure], case: &str) {
    assert!(
        failures.iter().any(|failure| failure.case.contains(case)),
        "{case:?} passed; failed were {failures:#?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_memory_store_conforms() {
    let failures = conformance::run(&Memory(Arc::default()), 1).await;
    assert!(failures.is_empty(), "{failures:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_last_write_wins_store_fails() {
    let failures = failures_of(Fault::LastWriteWins).await;
    assert_failed(&failures, "an absent key is written once");
    assert_failed(&failures, "of many first writers one wins");
    assert_failed(&failures, "the zombie records nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_counter_version_store_fails() {
    let failures = failures_of(Fault::CounterVersion).await;
    assert_failed(&failures, "a row deleted and made anew is another row");
    assert_failed(
        &failures,
        "a holder whose row was made anew records nothing",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_that_compares_only_its_own_revision_fails() {
    let failures = failures_of(Fault::RevisionOnly).await;
    assert_failed(&failures, "a foreign flip changes the version");
    assert_failed(&failures, "a foreign flip to done stands");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_whose_version_stays_with_an_equal_write_fails() {
    let failures = failures_of(Fault::NoRevision).await;
    assert_failed(&failures, "one record written twice has two versions");
}
