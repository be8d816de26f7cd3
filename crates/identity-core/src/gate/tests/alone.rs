//! Jobs that end their process: what runs beside them does not pay for it.

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::Notify;

use super::bench::{Bench, Counter, LEASE, MAX_RUN, Objects, STRICT, put};
use crate::{
    claim::{
        ClaimStore as _, Claims, Lease, ListQuery, Reason, Status, Terms, UnixMillis,
        memory::MemoryStore,
    },
    gate::{AllowList, Disposition, Gate, ItemAnswer, Parts},
    host::Clock,
    identity::Contract,
    job::{Job, JobContext, JobError, Output},
};

const POISON: &str = "3.shp";

/// The time of a process that began so long after the first one.
#[derive(Debug)]
struct LaterClock(Duration, tokio::time::Instant);

#[async_trait]
impl Clock for LaterClock {
    fn unix_millis(&self) -> UnixMillis {
        UnixMillis(1_767_323_045_000).plus(self.monotonic())
    }
    fn monotonic(&self) -> Duration {
        self.0 + self.1.elapsed()
    }
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// Takes a second, but for the poison, which takes its process along.
#[derive(Debug, Default)]
struct Deadly {
    kills: Notify,
    /// How often each object's job began.
    begun: Mutex<BTreeMap<String, usize>>,
    running: AtomicUsize,
    beside_a_second_try: AtomicUsize,
}

#[async_trait]
impl Job for Deadly {
    fn reads_objects(&self) -> bool {
        false
    }
    async fn run(&self, lease: &Lease, context: &JobContext) -> Result<Output, JobError> {
        let key = context.object.address.key.display().into_owned();
        let beside = self.running.fetch_add(1, Ordering::SeqCst);
        if lease.attempt() > 1 {
            self.beside_a_second_try.fetch_add(beside, Ordering::SeqCst);
        }
        let is_poison = key == POISON;
        *self.begun.lock().unwrap().entry(key).or_default() += 1;
        if is_poison {
            self.kills.notify_one();
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.running.fetch_sub(1, Ordering::SeqCst);
        Ok(Output::default())
    }
}

/// What one process answers; nothing if it is killed. Whatever it was at is gone with its runtime.
fn process(
    (store, entropy): (&Arc<MemoryStore>, &Arc<Counter>),
    (job, terms): (&Arc<Deadly>, Terms),
    began: Duration,
    numbers: &[usize],
    concurrency: usize,
) -> Option<Vec<ItemAnswer>> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    job.running.store(0, Ordering::SeqCst);
    runtime.block_on(async {
        let clock: Arc<dyn Clock> = Arc::new(LaterClock(began, tokio::time::Instant::now()));
        let gate = Gate::new(Parts {
            contract: Contract::parse(STRICT).unwrap(),
            claims: Claims::new(store.clone(), clock.clone(), entropy.clone(), terms),
            clock,
            objects: Arc::new(Mutex::new(Objects::Hold("e1"))),
            job: job.clone(),
            max_run: MAX_RUN,
            allow: AllowList::Everything,
        });
        let items: Vec<_> = numbers
            .iter()
            .map(|at| put(&format!("{at}.shp"), "e1"))
            .collect();
        tokio::select! {
            answers = gate.settle_all(&items, concurrency) => Some(answers),
            () = job.kills.notified() => None,
        }
    })
}

#[test]
fn of_ten_messages_one_of_which_kills_the_process_nine_are_done_and_only_that_one_is_rejected() {
    for (batch, concurrency) in [(1, 1), (2, 2), (3, 8), (10, 1), (10, 2), (10, 8)] {
        let terms = Terms {
            lease: LEASE,
            max_attempts: 4,
            ..Terms::default()
        };
        let (store, entropy, job) = (Arc::default(), Arc::default(), Arc::default());
        let mut queue: Vec<usize> = (0..10).collect();
        let mut began = Duration::ZERO;
        for _ in 0..200 {
            let taken: Vec<_> = queue.drain(..batch.min(queue.len())).collect();
            let answers = process(
                (&store, &entropy),
                (&job, terms),
                began,
                &taken,
                concurrency,
            );
            began += 2 * LEASE;
            // What was not answered comes again, behind all others.
            match answers {
                None => queue.extend(taken),
                Some(answers) => {
                    let again = |at: &usize| answers[*at].disposition != Disposition::Ack;
                    queue.extend((0..taken.len()).filter(again).map(|at| taken[at]));
                }
            }
            if queue.is_empty() {
                break;
            }
        }
        assert!(queue.is_empty(), "{batch} {concurrency}: {}", queue.len());

        let query = ListQuery {
            statuses: Status::ALL.into(),
            limit: NonZeroU32::MAX,
            after: None,
        };
        let page = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(store.list(&query))
            .unwrap();
        assert_eq!(page.claims.len(), 10);
        for (_, stored) in page.claims {
            let record = stored.record;
            let key = &record.object.as_ref().unwrap().key;
            let expected = if key == POISON {
                (Status::Rejected, Some(Reason::Exhausted), 4)
            } else {
                // Whoever ran beside it at first is done at the second try.
                assert!(record.attempt <= 2, "{batch} {concurrency}: {record:?}");
                (Status::Done, None, record.attempt)
            };
            assert_eq!((record.status, record.reason, record.attempt), expected);
        }
        assert_eq!(job.beside_a_second_try.load(Ordering::SeqCst), 0);
    }
}

/// It takes its turn, and what comes after it does not overtake it for ever.
#[tokio::test(start_paused = true)]
async fn a_job_that_is_to_run_alone_waits_for_those_that_run_and_the_next_ones_wait_for_it() {
    let bench = Bench::new(&[]);
    let gate = bench.gate();
    let began = |key: &'static str| {
        let gate = gate.clone();
        tokio::spawn(async move { gate.settle(&put(key, "e1")).await })
    };
    bench.job.acts.lock().unwrap().extend([
        super::bench::Act::Last(2 * LEASE),
        super::bench::Act::Last(LEASE),
        super::bench::Act::Last(LEASE),
    ]);
    // Somebody else's claim, who never comes back.
    bench.abandoned("left.shp").await;
    tokio::time::sleep(2 * LEASE).await;
    let first = began("first.shp");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let left = began("left.shp");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let last = began("last.shp");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((bench.running(), bench.runs().len()), (1, 1));
    first.await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((bench.running(), bench.runs().len()), (1, 2));
    assert_eq!(bench.runs()[1].1, 2, "the second attempt at what was left");
    left.await.unwrap();
    last.await.unwrap();
    assert_eq!(bench.runs().len(), 3);
}
