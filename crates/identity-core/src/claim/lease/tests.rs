//! Claims over stores that are slow, that are away, and that cannot be read.

use std::num::NonZeroU32;

use super::*;
use crate::claim::{
    ListQuery, Page, Status, UnixSeconds, Version,
    conformance::host::{CountedEntropy, ManualClock},
    memory::MemoryStore,
    testing::{object, pipeline, record},
};

/// A store whose every write takes its time, and which can be in trouble.
#[derive(Debug)]
struct Store {
    rows: MemoryStore,
    clock: Arc<ManualClock>,
    write: Duration,
    trouble: Mutex<Trouble>,
    /// How often it was asked since it was in trouble.
    asked: Mutex<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Trouble {
    None,
    Away,
    Unreadable,
}

impl Store {
    fn answer(&self) -> Result<(), StoreError> {
        let trouble = *self.trouble.lock().unwrap();
        if trouble != Trouble::None {
            *self.asked.lock().unwrap() += 1;
        }
        match trouble {
            Trouble::None => Ok(()),
            Trouble::Away => Err(StoreError::Unavailable {
                store: self.to_string(),
                doing: "asking",
                source: "connection refused".into(),
            }),
            Trouble::Unreadable => {
                let what = "the row".to_owned();
                Err(StoreError::invalid(self, what, "a claim", "none"))
            }
        }
    }
}

impl std::fmt::Display for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("test")
    }
}

#[async_trait::async_trait]
impl ClaimStore for Store {
    async fn get(&self, key: &ClaimKey) -> Result<Option<Stored>, StoreError> {
        self.answer()?;
        self.rows.get(key).await
    }
    async fn put(
        &self,
        key: &ClaimKey,
        record: &Record,
        when: &Precondition,
    ) -> Result<Version, StoreError> {
        self.clock.advance(self.write);
        self.answer()?;
        self.rows.put(key, record, when).await
    }
    async fn list(&self, _: &ListQuery) -> Result<Page, StoreError> {
        panic!("the store was asked for a listing");
    }
    async fn purge(&self, _: UnixSeconds, _: NonZeroU32) -> Result<u32, StoreError> {
        panic!("the store was asked to delete");
    }
}

struct Bench {
    clock: Arc<ManualClock>,
    store: Arc<Store>,
    claims: Claims,
    key: ClaimKey,
}

impl Bench {
    /// Leases of this length, in a store whose writes take so long.
    fn new(lease: Duration, write: Duration) -> Self {
        let clock = Arc::new(ManualClock::at(UnixMillis(1_000)));
        let store = Arc::new(Store {
            rows: MemoryStore::default(),
            clock: clock.clone(),
            write,
            trouble: Mutex::new(Trouble::None),
            asked: Mutex::default(),
        });
        let terms = Terms {
            lease,
            ..Terms::default()
        };
        let entropy = Arc::new(CountedEntropy);
        Self {
            claims: Claims::new(store.clone(), clock.clone(), entropy, terms),
            clock,
            store,
            key: ClaimKey::from_digest([1; 32]),
        }
    }

    async fn won(&self) -> Lease {
        let (object, pipeline) = (object("a.shp"), pipeline());
        let claimed = self.claims.claim(&self.key, &object, &pipeline).await;
        match claimed.unwrap() {
            Claimed::Won(lease) => lease,
            other => panic!("not won: {other:?}"),
        }
    }

    async fn row(&self) -> Record {
        self.store
            .rows
            .get(&self.key)
            .await
            .unwrap()
            .unwrap()
            .record
    }
}

fn done() -> End {
    End::Done {
        result: None,
        reason: None,
        note: None,
    }
}

#[tokio::test]
async fn a_lease_is_counted_from_before_its_write_was_sent() {
    let (lasts, write) = (Duration::from_secs(120), Duration::from_secs(30));
    let bench = Bench::new(lasts, write);
    let lease = bench.won().await;
    let clock = &bench.clock;
    assert_eq!((clock.monotonic(), lease.confirmed_until()), (write, lasts));
    assert_eq!(bench.claims.renew(&lease).await.unwrap(), Kept::Yes);
    assert_eq!(
        (clock.monotonic(), lease.confirmed_until()),
        (write * 2, write + lasts)
    );
}

#[tokio::test]
async fn every_write_of_a_holder_has_a_revision_of_its_own() {
    let bench = Bench::new(Duration::from_secs(120), Duration::ZERO);
    let lease = bench.won().await;
    let owner = lease.owner();
    for write in 1..4 {
        assert_eq!(bench.row().await.revision, Some(Revision { owner, write }));
        assert_eq!(bench.claims.renew(&lease).await.unwrap(), Kept::Yes);
    }
    assert_eq!(bench.claims.end(lease, done()).await.unwrap(), Kept::Yes);
    let last = Some(Revision { owner, write: 5 });
    assert_eq!(bench.row().await.revision, last);
}

#[tokio::test]
async fn a_recording_is_its_calls_own_and_a_holder_knows_how_often_its_event_was_sent() {
    let bench = Bench::new(Duration::from_secs(120), Duration::ZERO);
    let waiting = Record {
        status: Status::Waiting,
        attempt: 0,
        redrives: 3,
        ..record()
    };
    bench.claims.record(&bench.key, waiting).await.unwrap();
    let row = bench.row().await;
    let owner = row.owner.unwrap();
    assert_ne!(Some(owner), record().owner);
    assert_eq!(row.revision, Some(Revision { owner, write: 1 }));
    assert_eq!(bench.won().await.redrives(), 3);
}

/// Five questions, with pauses of 40, 80, 160 and 320 ms between them.
const ONE_CALL: u64 = 600;

#[tokio::test]
async fn an_end_waits_for_its_store_only_while_the_lease_would_still_last() {
    for (lease, waits) in [(ONE_CALL + 1_000, 0), (ONE_CALL + 1_001, 1)] {
        let bench = Bench::new(Duration::from_millis(lease), Duration::ZERO);
        let held = bench.won().await;
        *bench.store.trouble.lock().unwrap() = Trouble::Away;
        let ended = bench.claims.end(held, done()).await;
        assert!(matches!(ended, Err(ClaimError::Store(_))), "{ended:?}");
        let took = ONE_CALL + waits * (1_000 + ONE_CALL);
        assert_eq!(bench.clock.monotonic(), Duration::from_millis(took));
        let calls = u32::try_from(waits).unwrap() + 1;
        assert_eq!(*bench.store.asked.lock().unwrap(), calls * MAX_ERRORS);
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_not_asked_for_again() {
    let bench = Bench::new(Duration::from_secs(120), Duration::ZERO);
    *bench.store.trouble.lock().unwrap() = Trouble::Unreadable;
    let claimed = bench
        .claims
        .claim(&bench.key, &object("a.shp"), &pipeline())
        .await;
    assert!(
        matches!(claimed, Err(ClaimError::Store(StoreError::Invalid { .. }))),
        "{claimed:?}"
    );
    let asked = *bench.store.asked.lock().unwrap();
    assert_eq!((asked, bench.clock.monotonic()), (1, Duration::ZERO));
}
