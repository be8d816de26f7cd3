//! Sweeps side by side, sweeps that stop half-way, and what they do to a holder that was only slow.
#![cfg(feature = "conformance")]

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::{
    claim::{
        ClaimStore, Claimed, End, Kept, Lease, Page, Precondition, RecordedObject,
        RecordedPipeline, Terms, UnixSeconds, Version,
        conformance::{
            host::{CountedEntropy, ManualClock},
            samples,
        },
        memory::MemoryStore,
        testing::{Queue, object},
    },
    host::Clock as _,
    identity::ObjectVersion,
};

struct Bench {
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
    queue: Arc<Queue>,
    contract: Contract,
}

impl Bench {
    fn new() -> Self {
        let contract = "name = 'scenes'\nversion = '1.0.0'\nscheme = 'strict'\n";
        Self {
            clock: Arc::new(ManualClock::at(UnixMillis(1_767_323_045_000))),
            store: Arc::default(),
            queue: Arc::default(),
            contract: Contract::parse(contract).unwrap(),
        }
    }

    fn claims(&self) -> Claims {
        let (store, clock) = (self.store.clone(), self.clock.clone());
        Claims::new(store, clock, Arc::new(CountedEntropy), Terms::default())
    }

    fn resender(&self) -> Resender {
        Resender {
            claims: self.claims(),
            contract: self.contract.clone(),
            outbox: self.queue.clone(),
            grace: Resender::GRACE,
        }
    }

    async fn sweep(&self) -> Swept {
        self.resender()
            .sweep(false, &mut |_, _, _| ())
            .await
            .unwrap()
    }

    /// Claims the job of an object with this key, under a pipeline of this version.
    async fn claim(&self, key: &str, version: &str) -> Lease {
        let object: RecordedObject = object(key);
        let event = redrive::event_of(&object).unwrap();
        let job = ObjectVersion {
            address: event.address,
            token: event.token.unwrap(),
        };
        let id = self.contract.deriver().job_id(&job).unwrap();
        let pipeline = RecordedPipeline {
            name: "scenes".into(),
            version: version.into(),
            scheme: "strict".into(),
            ..RecordedPipeline::default()
        };
        match self
            .claims()
            .claim(&id.into(), &object, &pipeline)
            .await
            .unwrap()
        {
            Claimed::Won(lease) => lease,
            other => panic!("not won: {other:?}"),
        }
    }

    /// How many rows are done.
    async fn ends(&self) -> u64 {
        let query = ListQuery {
            statuses: [Status::Done].into(),
            limit: NonZeroU32::MAX,
            after: None,
        };
        u64::try_from(self.store.list(&query).await.unwrap().rows()).unwrap()
    }

    async fn row(&self, key: &ClaimKey) -> Record {
        self.store.get(key).await.unwrap().unwrap().record
    }

    /// The deduplication IDs of what was sent, sorted.
    fn sent(&self) -> Vec<String> {
        let messages = self.queue.messages.lock().unwrap();
        let mut ids: Vec<_> = messages
            .iter()
            .map(|message| message.deduplication.clone())
            .collect();
        ids.sort();
        ids
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_sweeps_one_sends_each_event_and_once_a_grace() {
    const ROWS: u32 = 600; // more than a page
    let bench = Bench::new();
    let mut keys = Vec::new();
    for row in 0..ROWS {
        keys.push(
            bench
                .claim(&format!("{row}.shp"), "1.0.0")
                .await
                .key()
                .to_string(),
        );
    }
    keys.sort();
    bench
        .clock
        .advance(Terms::default().lease + Resender::GRACE);
    for redrives in 1..3 {
        let sweeps: Vec<_> = (0..16)
            .map(|_| {
                let resender = bench.resender();
                tokio::spawn(async move { resender.sweep(false, &mut |_, _, _| ()).await.unwrap() })
            })
            .collect();
        let mut sent = 0;
        for sweep in sweeps {
            sent += sweep.await.unwrap().sent;
        }
        assert_eq!(sent, u64::from(ROWS));
        let expected: Vec<_> = keys.iter().map(|key| format!("{key}-{redrives}")).collect();
        assert_eq!(bench.sent(), expected);
        bench.queue.messages.lock().unwrap().clear();
        assert_eq!(bench.sweep().await.sent, 0, "not before another grace");
        bench.clock.advance(Resender::GRACE);
    }
}

#[tokio::test]
async fn what_is_held_or_young_is_left_to_its_source() {
    let bench = Bench::new();
    let _held = bench.claim("a.shp", "1.0.0").await;
    let failed = bench.claim("b.shp", "1.0.0").await;
    let end = End::Failed {
        reason: None,
        error: "e".into(),
    };
    assert_eq!(bench.claims().end(failed, end).await.unwrap(), Kept::Yes);
    let left = Swept {
        left: 2,
        ..Swept::default()
    };
    assert_eq!(bench.sweep().await, left);
    bench.clock.advance(Resender::GRACE);
    assert_eq!(
        bench.sweep().await,
        Swept {
            sent: 1,
            left: 1,
            ..Swept::default()
        }
    );
}

#[tokio::test]
async fn an_event_that_was_not_sent_is_sent_after_the_grace() {
    let bench = Bench::new();
    let key = bench.claim("a.shp", "1.0.0").await.key().clone();
    bench
        .clock
        .advance(Terms::default().lease + Resender::GRACE);
    bench.queue.away.store(true, Ordering::SeqCst);
    let now = bench.clock.unix_millis().seconds();
    ended(&bench, 1, UnixSeconds(now.0 - 1)).await;
    let stopped = bench.resender().sweep(false, &mut |_, _, _| ()).await;
    assert_eq!(bench.ends().await, 0, "old ends go all the same");
    assert!(
        matches!(stopped, Err(ResendError::Outbox { .. })),
        "{stopped:?}"
    );
    bench.queue.away.store(false, Ordering::SeqCst);
    assert_eq!(bench.sweep().await.sent, 0);
    bench.clock.advance(Resender::GRACE);
    assert_eq!(bench.sweep().await.sent, 1);
    assert_eq!(bench.sent(), [format!("{key}-2")]);
}

#[tokio::test]
async fn a_row_of_another_version_is_told_and_left_as_it_is() {
    let bench = Bench::new();
    let key = bench.claim("a.shp", "0.9").await.key().clone();
    bench
        .clock
        .advance(Terms::default().lease + Resender::GRACE);
    let before = bench.row(&key).await;
    let mut told = Vec::new();
    let swept = bench
        .resender()
        .sweep(false, &mut |key, _, resent| {
            told.push((key.clone(), resent.clone()))
        })
        .await
        .unwrap();
    assert_eq!(
        swept,
        Swept {
            reported: 1,
            ..Swept::default()
        }
    );
    let (name, version) = ("scenes".to_owned(), "0.9".to_owned());
    let obstacle = Resent::Obstacle(Obstacle::OtherPipeline { name, version });
    assert_eq!(told, [(key.clone(), obstacle)]);
    assert_eq!(bench.row(&key).await, before);
    assert!(bench.sent().is_empty());
}

#[tokio::test]
async fn a_dry_run_writes_and_sends_nothing() {
    let bench = Bench::new();
    let key = bench.claim("a.shp", "1.0.0").await.key().clone();
    bench
        .clock
        .advance(Terms::default().lease + Resender::GRACE);
    let before = bench.row(&key).await;
    let swept = bench
        .resender()
        .sweep(true, &mut |_, _, _| ())
        .await
        .unwrap();
    assert_eq!((swept.sent, bench.sent().len()), (1, 0));
    assert_eq!(bench.row(&key).await, before);
}

#[tokio::test]
async fn a_holder_that_was_only_slow_records_its_end_and_the_count_stays() {
    let bench = Bench::new();
    let lease = bench.claim("a.shp", "1.0.0").await;
    let key = lease.key().clone();
    bench
        .clock
        .advance(Terms::default().lease + Resender::GRACE);
    assert_eq!(bench.sweep().await.sent, 1);
    assert_eq!(bench.claims().renew(&lease).await.unwrap(), Kept::Yes);
    assert_eq!(bench.row(&key).await.redrives, 1);
    let end = End::Done {
        result: None,
        reason: None,
        note: None,
    };
    assert_eq!(bench.claims().end(lease, end).await.unwrap(), Kept::Yes);
    let row = bench.row(&key).await;
    assert_eq!(
        (row.status, row.redrives, row.attempt),
        (Status::Done, 1, 1)
    );
    bench.clock.advance(Resender::GRACE * 2);
    assert_eq!(bench.sweep().await, Swept::default());
}

#[tokio::test]
async fn a_redrive_gives_the_claim_back_before_its_event_goes_out() {
    let bench = Bench::new();
    let lease = bench.claim("a.shp", "1.0.0").await;
    let key = lease.key().clone();
    let redrive = async |again| bench.resender().redrive(&key, again).await.unwrap();
    assert_eq!(redrive(true).await, Resent::Obstacle(Obstacle::Held));
    let end = End::Done {
        result: None,
        reason: None,
        note: None,
    };
    bench.claims().end(lease, end).await.unwrap();
    assert_eq!(redrive(false).await, Resent::Obstacle(Obstacle::Done));
    assert_eq!(redrive(true).await, Resent::Sent { redrives: 1 });
    let row = bench.row(&key).await;
    assert_eq!((row.status, row.attempt), (Status::Failed, 1));
    assert_eq!(bench.claim("a.shp", "1.0.0").await.attempt(), 2);
    let unknown = bench
        .resender()
        .redrive(&ClaimKey::from_digest([9; 32]), true)
        .await;
    assert!(matches!(
        unknown,
        Err(ResendError::Claim {
            source: ClaimError::Unknown(_),
            ..
        })
    ));
}

/// A `done` row whose time is over at this second.
async fn ended(bench: &Bench, number: u64, expires_at: UnixSeconds) -> ClaimKey {
    let key = samples::numbered_key(number);
    let record = Record {
        expires_at: Some(expires_at),
        ..samples::bare(Status::Done, 1)
    };
    let put = bench.store.put(&key, &record, &Precondition::Absent);
    put.await.unwrap();
    key
}

#[tokio::test]
async fn a_sweep_ends_with_a_purge_of_all_that_is_over_and_a_dry_run_does_not() {
    const OVER: u64 = 1_100; // more than two pages
    let bench = Bench::new();
    let now = bench.clock.unix_millis().seconds();
    for number in 0..OVER {
        ended(&bench, number, UnixSeconds(now.0 - 1)).await;
    }
    let kept = ended(&bench, OVER, now).await;
    let held = bench.claim("a.shp", "1.0.0").await;
    let dry = bench.resender().sweep(true, &mut |_, _, _| ()).await;
    assert_eq!((dry.unwrap().purged, bench.ends().await), (0, OVER + 1));
    let swept = bench.sweep().await;
    assert_eq!((swept.left, swept.purged), (1, OVER));
    assert_eq!(bench.ends().await, 1);
    assert_eq!(bench.row(&kept).await.status, Status::Done);
    assert_eq!(bench.row(held.key()).await.status, Status::Processing);
}

/// A store that counts how often it was asked to delete, and refuses that or a write if it is told to.
#[derive(Debug)]
struct Counting {
    rows: Arc<MemoryStore>,
    purges: AtomicU32,
    deletes: bool,
    /// Under these keys somebody else always writes first.
    contended: Vec<ClaimKey>,
}

impl std::fmt::Display for Counting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("counting")
    }
}

#[async_trait::async_trait]
impl ClaimStore for Counting {
    async fn get(&self, key: &ClaimKey) -> Result<Option<Stored>, StoreError> {
        self.rows.get(key).await
    }
    async fn put(
        &self,
        key: &ClaimKey,
        record: &Record,
        when: &Precondition,
    ) -> Result<Version, StoreError> {
        if self.contended.contains(key) {
            return Err(StoreError::Conflict { standing: None });
        }
        self.rows.put(key, record, when).await
    }
    async fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        self.rows.list(query).await
    }
    async fn purge(&self, now: UnixSeconds, most: NonZeroU32) -> Result<u32, StoreError> {
        self.purges.fetch_add(1, Ordering::SeqCst);
        if self.deletes {
            return self.rows.purge(now, most).await;
        }
        Err(StoreError::Unavailable {
            store: self.to_string(),
            doing: "deleting old ends",
            source: "permission denied".into(),
        })
    }
}

impl Bench {
    fn counting(&self, deletes: bool, contended: Vec<ClaimKey>) -> (Arc<Counting>, Resender) {
        let store = Arc::new(Counting {
            rows: self.store.clone(),
            purges: AtomicU32::new(0),
            deletes,
            contended,
        });
        let (clock, entropy) = (self.clock.clone(), Arc::new(CountedEntropy));
        let resender = Resender {
            claims: Claims::new(store.clone(), clock, entropy, Terms::default()),
            ..self.resender()
        };
        (store, resender)
    }
}

#[tokio::test]
async fn a_purge_ends_with_the_first_part_that_is_not_full() {
    let bench = Bench::new();
    let (store, resender) = bench.counting(true, Vec::new());
    let now = bench.clock.unix_millis().seconds();
    for (over, purges) in [(0, 1), (501, 2)] {
        for number in 0..over {
            ended(&bench, number, UnixSeconds(now.0 - 1)).await;
        }
        assert_eq!(resender.purge().await, over);
        assert_eq!(store.purges.swap(0, Ordering::SeqCst), purges);
    }
}

#[tokio::test]
async fn rows_that_cannot_be_read_or_marked_are_counted_and_hide_no_other() {
    let bench = Bench::new();
    let mut keys = Vec::new();
    for row in 0..5 {
        let lease = bench.claim(&format!("{row}.shp"), "1.0.0").await;
        keys.push(lease.key().clone());
    }
    bench
        .clock
        .advance(Terms::default().lease + Resender::GRACE);
    bench.store.spoil(&keys[0]);
    bench.store.spoil(&keys[1]);
    let (_, resender) = bench.counting(true, keys[2..4].to_vec());
    let swept = resender.sweep(false, &mut |_, _, _| ()).await.unwrap();
    let expected = Swept {
        sent: 1,
        failed: 4,
        ..Swept::default()
    };
    assert_eq!(swept, expected);
    assert_eq!(bench.sent(), [format!("{}-1", keys[4])]);
}

#[tokio::test]
async fn a_lease_as_long_as_the_terms_say_is_no_wrong_clock() {
    let bench = Bench::new();
    let terms = Terms {
        lease: Duration::from_hours(2),
        ..Terms::default()
    };
    let (store, clock) = (bench.store.clone(), bench.clock.clone());
    let resender = Resender {
        claims: Claims::new(store, clock, Arc::new(CountedEntropy), terms),
        ..bench.resender()
    };
    let row = Record {
        lease_until: Some(bench.clock.unix_millis().plus(terms.lease)),
        ..samples::bare(Status::Processing, 1)
    };
    let key = samples::numbered_key(1);
    let put = bench.store.put(&key, &row, &Precondition::Absent);
    put.await.unwrap();
    let swept = resender.sweep(false, &mut |_, _, _| ()).await.unwrap();
    assert_eq!((swept.left, swept.reported), (1, 0));
    assert_eq!(bench.sweep().await.reported, 1, "by terms of two minutes");
}

#[tokio::test]
async fn a_purge_that_fails_takes_nothing_from_the_sweep() {
    let bench = Bench::new();
    drop(bench.claim("a.shp", "1.0.0").await);
    bench
        .clock
        .advance(Terms::default().lease + Resender::GRACE);
    let (_, resender) = bench.counting(false, Vec::new());
    let swept = resender.sweep(false, &mut |_, _, _| ()).await.unwrap();
    assert_eq!((swept.sent, swept.purged), (1, 0));
}

#[tokio::test]
async fn an_event_that_the_queue_never_takes_is_told_once_a_grace_and_stops_no_other() {
    let bench = Bench::new();
    for key in ["a.shp", "long.shp", "z.shp"] {
        drop(bench.claim(key, "1.0.0").await);
    }
    *bench.queue.refused.lock().unwrap() = Some("long.shp".to_owned());
    for round in 1..3 {
        bench
            .clock
            .advance(Terms::default().lease + Resender::GRACE);
        let mut told = Vec::new();
        let swept = bench
            .resender()
            .sweep(false, &mut |_, record, resent| {
                told.push((record.object.clone().unwrap().key, resent.clone()));
            })
            .await
            .unwrap();
        assert_eq!((swept.sent, swept.reported), (2, 1), "{round}");
        let why = "queue: the message is refused: too long".to_owned();
        let refused = Resent::Obstacle(Obstacle::Refused { why });
        assert!(told.contains(&("long.shp".to_owned(), refused)), "{told:?}");
        let again = bench.sweep().await;
        assert_eq!((again.left, again.reported), (3, 0), "{round}");
    }
}
