//! What [`ClaimStore`] means, as a suite: [`run`] is the one entry point that every store must pass.
//!
//! A [`Subject`] is a store, and a program beside it that writes the same rows without knowing the protocol (it deletes
//! a row, it flips a status). The suite asks the store alone about one row (`store_cases`), about many (`listing_cases`) and
//! about old ends (`purge_cases`), and drives the protocol over it, plain and through each [fault](faults::Fault)
//! (`protocol_cases`). Time is the suite's own, so nothing waits. [`run_protocol`] is the
//! same protocol over a store whose faults are real ones, on the wire.

mod asking;
pub mod faults;
pub mod host;
mod listing_cases;
mod protocol_cases;
mod purge_cases;
pub mod samples;
mod store_cases;

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use sha2::{Digest, Sha256};

use self::faults::{Fault, FaultyStore};
use super::{
    lease::{ClaimError, Claims},
    machine::Terms,
    record::{
        ClaimKey, Owner, Record, RecordedObject, RecordedPipeline, Revision, Status, UnixMillis,
        UnixSeconds,
    },
    store::{ClaimStore, StoreError},
};
use crate::identity::{Provider, TokenKind};

/// A store to be examined, and what a foreign program does to its rows.
#[async_trait]
pub trait Subject: Send + Sync {
    /// The store. Every call may give another handle to the same rows, e.g. a second connection.
    fn store(&self) -> Arc<dyn ClaimStore>;
    /// Deletes the row, as an operator or an expiry would, past the protocol.
    async fn delete(&self, key: &ClaimKey);
    /// Sets the row's status and nothing else, as the published Python handler's unconditional update does.
    async fn flip_status(&self, key: &ClaimKey, status: Status);
    /// Takes owner, revision and lease from the row, so that it looks like one which a program without leases wrote.
    async fn forget_lease(&self, key: &ClaimKey);
    /// Changes the row so that no claim can be read from it (a negative attempt, say), and leaves its key, its status and its
    /// place in lists as they were.
    async fn put_unreadable(&self, key: &ClaimKey);
    /// Whether the store purges: `false` where the service deletes old ends by itself, some time.
    fn purges(&self) -> bool {
        true
    }
}

/// A case that a store did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The case's name, with the fault it ran under.
    pub case: String,
    /// What was expected, and what happened.
    pub what: String,
}

impl Failure {
    /// Those cases that failed.
    fn of<'a>(cases: impl IntoIterator<Item = (&'a str, CaseResult)>) -> Vec<Self> {
        let failed = |(case, result): (&str, CaseResult)| {
            result.err().map(|what| Self {
                case: case.into(),
                what,
            })
        };
        cases.into_iter().filter_map(failed).collect()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.case, self.what)
    }
}

/// Runs every case on `subject` and returns those that failed. `seed` makes the keys: a store that keeps rows must get
/// another one each time.
pub async fn run(subject: &dyn Subject, seed: u64) -> Vec<Failure> {
    // Lists first: they are short as long as the other cases' rows are not in them.
    let mut failures = listing_cases::run(subject, seed).await;
    failures.extend(purge_cases::run(subject, seed).await);
    failures.extend(store_cases::run(subject, seed).await);
    for fault in Fault::ALL {
        failures.extend(protocol_cases::run(subject, seed, fault).await);
    }
    failures
}

/// Runs the protocol's cases alone, through no fault but what befalls the subject's own store: one behind a wire that loses
/// the replies to writes, say. The cases that ask the store alone want its very answer, which a lost reply is not, so
/// [`run`] is for a store that answers. Reads have to be left alone: they change nothing, and are not asked again for ever.
pub async fn run_protocol(subject: &dyn Subject, seed: u64) -> Vec<Failure> {
    protocol_cases::run(subject, seed, Fault::None).await
}

/// Why a case stopped.
type CaseResult = Result<(), String>;

/// Returns the message unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+));
        }
    };
}
use ensure;

/// The key of one case.
fn key(seed: u64, case: &str) -> ClaimKey {
    let mut hasher = Sha256::new();
    hasher.update(seed.to_be_bytes());
    hasher.update(case.as_bytes());
    ClaimKey::from_digest(hasher.finalize().into())
}

fn object() -> RecordedObject {
    RecordedObject {
        provider: Provider::S3,
        account: None,
        container: "geo-in".into(),
        key: "uploads/東京 roads+v2 (é)/roads.shp".into(),
        raw_key: Some("uploads/%E6%9D%B1%E4%BA%AC+roads%2Bv2+%28%C3%A9%29/roads.shp".into()),
        token: Some((TokenKind::ETag, "6f1ed002ab5595859014ebf0951522d9".into())),
    }
}

fn pipeline() -> RecordedPipeline {
    RecordedPipeline {
        name: "scenes".into(),
        version: "3.2.0".into(),
        scheme: "strict".into(),
        params_digest: "0".repeat(64),
        contract_digest: "1".repeat(64),
    }
}

/// The record of a claim that `owner` has won just now for the first time.
fn won(owner: Owner) -> Record {
    Record {
        owner: Some(owner),
        revision: Some(Revision { owner, write: 1 }),
        claimed_at: UnixSeconds(1_767_323_045),
        lease_until: Some(UnixMillis(1_767_323_165_000)),
        object: Some(object()),
        pipeline: pipeline(),
        ..samples::bare(Status::Processing, 1)
    }
}

/// One worker's view of the store: its own handle, through the fault, with its own clock.
struct Worker {
    claims: Claims,
    clock: Arc<host::ManualClock>,
}

impl Worker {
    fn new(
        subject: &dyn Subject,
        fault: Fault,
        clock: &Arc<host::ManualClock>,
        terms: Terms,
    ) -> Self {
        let store: Arc<dyn ClaimStore> = Arc::new(FaultyStore::new(subject.store(), fault));
        let entropy = Arc::new(host::CountedEntropy);
        Self {
            claims: Claims::new(store, clock.clone(), entropy, terms),
            clock: clock.clone(),
        }
    }
}

fn told(error: &StoreError) -> String {
    let source = std::error::Error::source(error)
        .map(|source| format!(": {source}"))
        .unwrap_or_default();
    format!("{error}{source}")
}

fn failed(error: &ClaimError) -> String {
    let source = std::error::Error::source(error)
        .map(|source| format!(": {source}"))
        .unwrap_or_default();
    format!("{error}{source}")
}
