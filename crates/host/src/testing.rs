//! For tests: a worker over a store in memory that can be away, with a job that does as it is told.

use std::{
    fmt,
    num::NonZeroU32,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use identity_core::{
    claim::{
        ClaimKey, ClaimStore, Lease, ListQuery, Page, Precondition, Record, Status, StoreError,
        Stored, UnixMillis, UnixSeconds, Version, memory::MemoryStore,
    },
    host::Clock,
    identity::{Contract, ObjectAddress, ObjectVersion, Provider},
    job::{Job, JobContext, JobError, Output},
    object::{Head, Listed, ObjectError, ObjectStore, ObjectStream},
    outbox::{Message, Outbox, OutboxError},
};
use tokio::sync::{Semaphore, watch};

use crate::{
    settings::Settings,
    worker::{Providers, Worker},
};

/// Longer than any test takes; only one that fails waits for it.
pub(crate) const LONG: Duration = Duration::from_secs(3_600);

/// How long a test waits for what must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Simulated time: the runtime's, which is paused and jumps to the next timer when all is idle.
#[derive(Debug)]
pub(crate) struct SimulatedClock(tokio::time::Instant);

impl SimulatedClock {
    pub(crate) fn new() -> Self {
        Self(tokio::time::Instant::now())
    }
}

#[async_trait]
impl Clock for SimulatedClock {
    fn unix_millis(&self) -> UnixMillis {
        UnixMillis(1_767_323_045_000).plus(self.monotonic())
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// A memory store that can be away, and notes what it is asked for.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) rows: MemoryStore,
    pub(crate) away: AtomicBool,
    pub(crate) silent: AtomicBool,
    pub(crate) read: Mutex<Vec<ClaimKey>>,
    /// How many times it was asked for something.
    pub(crate) asked: watch::Sender<u32>,
}

impl Store {
    async fn answer(&self) -> Result<(), StoreError> {
        self.asked.send_modify(|asked| *asked += 1);
        if self.silent.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        if self.away.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable {
                store: self.to_string(),
                doing: "asking",
                source: "connection refused".into(),
            });
        }
        Ok(())
    }

    /// Every record.
    pub(crate) async fn records(&self) -> Vec<Record> {
        let query = ListQuery {
            statuses: Status::ALL.into(),
            limit: NonZeroU32::MAX,
            after: None,
        };
        let page = self.rows.list(&query).await.unwrap();
        let records = page.claims.into_iter().map(|(_, stored)| stored.record);
        records.collect()
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("test")
    }
}

#[async_trait]
impl ClaimStore for Store {
    async fn get(&self, key: &ClaimKey) -> Result<Option<Stored>, StoreError> {
        self.read.lock().unwrap().push(key.clone());
        self.answer().await?;
        self.rows.get(key).await
    }

    async fn put(
        &self,
        key: &ClaimKey,
        record: &Record,
        when: &Precondition,
    ) -> Result<Version, StoreError> {
        self.answer().await?;
        self.rows.put(key, record, when).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        self.answer().await?;
        self.rows.list(query).await
    }

    async fn purge(&self, now: UnixSeconds, most: NonZeroU32) -> Result<u32, StoreError> {
        self.answer().await?;
        self.rows.purge(now, most).await
    }
}

/// A job that waits to be let go, and fails if it is to; each run is counted when it starts and when it ends by itself.
#[derive(Debug)]
pub(crate) struct ScriptedJob {
    pub(crate) waits: AtomicBool,
    pub(crate) fails: AtomicBool,
    pub(crate) reads: AtomicBool,
    pub(crate) go: Semaphore,
    pub(crate) started: watch::Sender<u32>,
    pub(crate) ended: watch::Sender<u32>,
}

impl ScriptedJob {
    /// Returns once so many runs have started.
    pub(crate) async fn starts(&self, runs: u32) {
        let mut started = self.started.subscribe();
        let enough = started.wait_for(|started| *started >= runs);
        let _started = tokio::time::timeout(PATIENCE, enough).await.unwrap();
    }

    /// How many runs have started, and ended by themselves.
    pub(crate) fn runs(&self) -> (u32, u32) {
        (*self.started.borrow(), *self.ended.borrow())
    }
}

#[async_trait]
impl Job for ScriptedJob {
    fn reads_objects(&self) -> bool {
        self.reads.load(Ordering::SeqCst)
    }

    async fn run(&self, _: &Lease, _: &JobContext) -> Result<Output, JobError> {
        self.started.send_modify(|started| *started += 1);
        if self.waits.load(Ordering::SeqCst) {
            self.go.acquire().await.unwrap().forget();
        }
        self.ended.send_modify(|ended| *ended += 1);
        if self.fails.load(Ordering::SeqCst) {
            return Err(JobError::retryable("exit code 1"));
        }
        Ok(Output::default())
    }
}

/// Objects that nobody has; notes what is read.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    pub(crate) read: Mutex<Vec<String>>,
}

#[async_trait]
impl ObjectStore for Objects {
    fn reads(&self, provider: Provider) -> bool {
        provider != Provider::File
    }

    async fn head(&self, _: &ObjectAddress) -> Result<Option<Head>, ObjectError> {
        Ok(None)
    }

    async fn read(&self, object: &ObjectVersion) -> Result<ObjectStream, ObjectError> {
        let read = format!("{} {}", object.address, object.token);
        self.read.lock().unwrap().push(read);
        Err(ObjectError::Changed)
    }

    async fn list(&self, _: &ObjectAddress, _: NonZeroU32) -> Result<Vec<Listed>, ObjectError> {
        panic!("the store was asked for a listing");
    }
}

/// A queue that is never sent anything.
#[derive(Debug)]
pub(crate) struct NoQueue;

impl fmt::Display for NoQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no queue")
    }
}

#[async_trait]
impl Outbox for NoQueue {
    async fn send(&self, message: &Message) -> Result<(), OutboxError> {
        panic!("{message:?} was sent");
    }
}

/// What a worker is made of.
pub(crate) struct Bench {
    pub(crate) store: Arc<Store>,
    pub(crate) job: Arc<ScriptedJob>,
    pub(crate) objects: Arc<Objects>,
    pub(crate) redrives: Option<Arc<dyn Outbox>>,
    pub(crate) variables: Vec<(&'static str, &'static str)>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self {
            store: Arc::default(),
            job: Arc::new(ScriptedJob {
                waits: false.into(),
                fails: false.into(),
                reads: true.into(),
                go: Semaphore::new(0),
                started: watch::Sender::new(0),
                ended: watch::Sender::new(0),
            }),
            objects: Arc::default(),
            redrives: None,
            variables: vec![("FIRSTCLAIM_CONCURRENCY", "4")],
        }
    }

    /// One whose jobs wait until they are let go.
    pub(crate) fn waiting() -> Self {
        let bench = Self::new();
        bench.job.waits.store(true, Ordering::SeqCst);
        bench
    }

    /// The worker, in the machine's time.
    pub(crate) fn worker(&self) -> Worker {
        let (contract, settings, providers) = self.parts();
        Worker::new(contract, settings, providers)
    }

    /// The worker, in the runtime's time.
    pub(crate) fn simulated(&self) -> Worker {
        let (contract, settings, providers) = self.parts();
        let clock = Arc::new(SimulatedClock::new());
        Worker::with_clock(contract, settings, providers, clock)
    }

    fn parts(&self) -> (Contract, Settings, Providers) {
        let contract = "name = 'n'\nversion = '1'\nscheme = 'strict'";
        let variables = self.variables.iter();
        let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let providers = Providers {
            claims: self.store.clone(),
            objects: self.objects.clone(),
            job: self.job.clone(),
            max_run: LONG,
            redrives: self.redrives.clone(),
        };
        let settings = Settings::from_vars(variables, Duration::ZERO).unwrap();
        (Contract::parse(contract).unwrap(), settings, providers)
    }
}

/// A notification of puts to the bucket `geo`, as S3 sends it.
pub(crate) fn notification(keys: &[&str]) -> String {
    let record = |key: &&str| {
        format!(
            r#"{{"eventVersion":"2.1","eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{{"bucket":{{"name":"geo"}},"object":{{"key":"{key}","eTag":"e1"}}}}}}"#
        )
    };
    let records: Vec<String> = keys.iter().map(record).collect();
    format!(r#"{{"Records":[{}]}}"#, records.join(","))
}
