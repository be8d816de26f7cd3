//! What the gate's tests are made of: a clock that follows the runtime's paused time, scripted jobs and objects.

use std::{
    collections::VecDeque,
    num::NonZeroU32,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use crate::{
    claim::{
        ClaimKey, ClaimStore, Claims, Lease, ListQuery, Owner, Page, Precondition, Record, Status,
        StoreError, Stored, Terms, UnixMillis, UnixSeconds, Version, memory::MemoryStore,
    },
    event::{Delivery, Item, read},
    gate::{AllowList, Gate, Parts, Settled},
    host::{Clock, Entropy},
    identity::{Contract, ObjectAddress, ObjectVersion, Provider, TokenKind, VersionToken},
    job::{Job, JobContext, JobError, Output},
    object::{Head, Listed, ObjectError, ObjectStore, ObjectStream},
};

pub(super) const LEASE: Duration = Duration::from_secs(120);
pub(super) const MAX_RUN: Duration = Duration::from_secs(3_600);

/// Simulated time: the runtime's, which is paused and jumps to the next timer when all is idle.
#[derive(Debug)]
pub(super) struct SimulatedClock(tokio::time::Instant);

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

#[derive(Debug, Default)]
pub(super) struct Counter(Mutex<u128>);

impl Entropy for Counter {
    fn owner(&self) -> std::io::Result<Owner> {
        let mut count = self.0.lock().unwrap();
        *count += 1;
        Ok(Owner(*count))
    }
}

/// What a scripted job does.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Succeed,
    /// With this result.
    Tell(serde_json::Value),
    Fail,
    Reject,
    Unread,
    Machine,
    Panic,
    SourceChanged,
    Last(Duration),
    /// Until it is told to stop, and then for so long.
    Linger(Duration),
}

/// Does one act a run, in order, and then succeeds; counts what runs.
#[derive(Debug, Default)]
pub(super) struct ScriptedJob {
    pub(super) acts: Mutex<VecDeque<Act>>,
    pub(super) runs: Mutex<Vec<(String, u32)>>,
    pub(super) running: Arc<AtomicUsize>,
    /// What it asks for once it is told to stop.
    pub(super) grace: Duration,
}

struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Job for ScriptedJob {
    fn reads_objects(&self) -> bool {
        true
    }
    fn grace(&self) -> Duration {
        self.grace
    }
    async fn run(&self, lease: &Lease, context: &JobContext) -> Result<Output, JobError> {
        self.running.fetch_add(1, Ordering::SeqCst);
        let _running = Running(self.running.clone());
        self.runs
            .lock()
            .unwrap()
            .push((context.object.token.to_string(), lease.attempt()));
        let act = self
            .acts
            .lock()
            .unwrap()
            .pop_front()
            .unwrap_or(Act::Succeed);
        match act {
            Act::Succeed => Ok(Output::default()),
            Act::Tell(result) => Ok(Output {
                result: Some(result),
            }),
            Act::Fail => Err(JobError::retryable("exit code 1")),
            Act::Reject => Err(JobError::permanent("exit code 65")),
            Act::Unread => Err(JobError::Unread {
                message: "403".into(),
                source: None,
            }),
            Act::Machine => Err(JobError::Machine {
                message: "no such program".into(),
                source: None,
            }),
            Act::Panic => panic!("out of luck"),
            Act::SourceChanged => Err(JobError::SourceChanged),
            Act::Linger(duration) => {
                context.stopping.cancelled().await;
                tokio::time::sleep(duration).await;
                Ok(Output::default())
            }
            Act::Last(duration) => {
                tokio::time::sleep(duration).await;
                Ok(Output::default())
            }
        }
    }
}

/// An object store that holds one version of every object, none, or does not answer.
#[derive(Debug, Clone)]
pub(super) enum Objects {
    Hold(&'static str),
    /// Another version each time that somebody looks, with this number the last time.
    Overwritten(u32),
    HoldWithoutEtag(&'static str),
    NotOurs,
    NotGiven,
    Generation(&'static str),
    Empty(&'static str),
    Nothing,
    Unavailable,
    Panics,
}

#[async_trait]
impl ObjectStore for Mutex<Objects> {
    fn reads(&self, provider: Provider) -> bool {
        provider != Provider::File && !matches!(*self.lock().unwrap(), Objects::NotOurs)
    }
    fn missing(&self, _: &ObjectAddress) -> Option<String> {
        matches!(*self.lock().unwrap(), Objects::NotGiven).then(|| "no such folder".into())
    }
    async fn head(&self, address: &ObjectAddress) -> Result<Option<Head>, ObjectError> {
        let objects = {
            let mut objects = self.lock().unwrap();
            if let Objects::Overwritten(number) = &mut *objects {
                *number += 1;
            }
            objects.clone()
        };
        match &objects {
            Objects::Overwritten(number) => {
                let token = VersionToken::new(TokenKind::ETag, format!("e{number}")).unwrap();
                Ok(Some(Head {
                    etag: Some(token.clone()),
                    token,
                    size: 1,
                }))
            }
            Objects::Hold(etag) | Objects::Empty(etag) => {
                let token = VersionToken::new(TokenKind::ETag, *etag).unwrap();
                Ok(Some(Head {
                    etag: Some(token.clone()),
                    token,
                    size: u64::from(!matches!(objects, Objects::Empty(_))),
                }))
            }
            Objects::HoldWithoutEtag(version) => {
                let token = VersionToken::new(TokenKind::VersionId, *version).unwrap();
                Ok(Some(Head {
                    token,
                    etag: None,
                    size: 1,
                }))
            }
            Objects::Panics => panic!("out of objects"),
            Objects::Nothing | Objects::NotOurs | Objects::NotGiven => Ok(None),
            Objects::Generation(generation) => Ok(Some(Head {
                token: VersionToken::new(TokenKind::Generation, *generation).unwrap(),
                etag: None,
                size: 1,
            })),
            Objects::Unavailable => Err(ObjectError::unavailable(address, "403")),
        }
    }
    async fn read(&self, _: &ObjectVersion) -> Result<ObjectStream, ObjectError> {
        Err(ObjectError::Changed)
    }
    async fn list(&self, _: &ObjectAddress, _: NonZeroU32) -> Result<Vec<Listed>, ObjectError> {
        panic!("the store was asked for a listing");
    }
}

/// A memory store that can be away.
#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) rows: MemoryStore,
    pub(super) away: Mutex<bool>,
}

impl Store {
    fn answer(&self) -> Result<(), StoreError> {
        if !*self.away.lock().unwrap() {
            return Ok(());
        }
        Err(StoreError::Unavailable {
            store: "test".into(),
            doing: "asking",
            source: "connection refused".into(),
        })
    }
}

impl std::fmt::Display for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("test")
    }
}

#[async_trait]
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
        self.answer()?;
        self.rows.put(key, record, when).await
    }
    async fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        self.answer()?;
        self.rows.list(query).await
    }
    async fn purge(&self, now: UnixSeconds, most: NonZeroU32) -> Result<u32, StoreError> {
        self.answer()?;
        self.rows.purge(now, most).await
    }
}

/// One store, one job, one object store; any number of gates over them, as of so many workers.
pub(super) struct Bench {
    pub(super) store: Arc<Store>,
    pub(super) job: Arc<ScriptedJob>,
    pub(super) objects: Arc<Mutex<Objects>>,
    pub(super) terms: Terms,
    /// The contract's first pause after a failure.
    pub(super) retry: Duration,
    pub(super) allow: AllowList,
    pub(super) contract: &'static str,
    /// Shared, for no two workers may have one owner.
    pub(super) entropy: Arc<Counter>,
}

pub(super) const STRICT: &str =
    "name = \"n\"\nversion = \"1\"\nscheme = \"strict\"\n[select]\ninclude = [\"**/*.shp\"]\n";

impl Bench {
    pub(super) fn new(acts: &[Act]) -> Self {
        let job = ScriptedJob {
            acts: Mutex::new(acts.iter().cloned().collect()),
            ..ScriptedJob::default()
        };
        Self {
            store: Arc::default(),
            job: Arc::new(job),
            objects: Arc::new(Mutex::new(Objects::Hold("e1"))),
            terms: Terms {
                lease: LEASE,
                max_attempts: 3,
                ..Terms::default()
            },
            retry: Duration::ZERO,
            allow: AllowList::Everything,
            contract: STRICT,
            entropy: Arc::default(),
        }
    }

    pub(super) fn gate(&self) -> Gate {
        let clock: Arc<dyn Clock> = Arc::new(SimulatedClock(tokio::time::Instant::now()));
        let claims = Claims::new(
            self.store.clone(),
            clock.clone(),
            self.entropy.clone(),
            self.terms,
        )
        .retrying_after(self.retry);
        Gate::new(Parts {
            contract: Contract::parse(self.contract).unwrap(),
            claims,
            clock,
            objects: self.objects.clone(),
            job: self.job.clone(),
            max_run: MAX_RUN,
            allow: self.allow.clone(),
        })
    }

    /// The claim of an object's job whose holder is gone.
    pub(super) async fn abandoned(&self, key: &'static str) {
        let gate = self.gate();
        let job = Arc::new(ScriptedJob {
            acts: Mutex::new([Act::Last(MAX_RUN)].into()),
            ..ScriptedJob::default()
        });
        let gone = gate.with_job(job.clone());
        let running = tokio::spawn(async move { gone.settle(&put(key, "e1")).await });
        while job.running.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        *self.store.away.lock().unwrap() = true;
        running.abort();
        while job.running.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        tokio::time::sleep(LEASE).await;
        *self.store.away.lock().unwrap() = false;
    }

    pub(super) fn runs(&self) -> Vec<(String, u32)> {
        self.job.runs.lock().unwrap().clone()
    }

    pub(super) fn running(&self) -> usize {
        self.job.running.load(Ordering::SeqCst)
    }

    pub(super) async fn record(&self, settled: &Settled) -> Record {
        self.store
            .rows
            .get(settled.key.as_ref().unwrap())
            .await
            .unwrap()
            .unwrap()
            .record
    }

    pub(super) async fn rows(&self) -> Vec<Record> {
        let query = ListQuery {
            statuses: Status::ALL.into(),
            limit: NonZeroU32::MAX,
            after: None,
        };
        let page = self.store.rows.list(&query).await.unwrap();
        page.claims
            .into_iter()
            .map(|(_, stored)| stored.record)
            .collect()
    }
}

/// An S3 record of a put, as text.
pub(super) fn record(bucket: &str, key: &str, etag: &str) -> String {
    format!(
        r#"{{"eventVersion":"2.1","eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{{"bucket":{{"name":"{bucket}"}},"object":{{"key":"{key}","eTag":"{etag}"}}}}}}"#
    )
}

/// The items of a delivery of these records.
pub(super) fn items(records: &[String]) -> Vec<Item> {
    read(&Delivery::from_body(
        format!(r#"{{"Records":[{}]}}"#, records.join(",")).as_bytes(),
    ))
}

/// The one item of a delivery of a put.
pub(super) fn put(key: &str, etag: &str) -> Item {
    items(&[record("geo", key, etag)]).remove(0)
}

/// The one item of these bytes.
pub(super) fn item(body: &str) -> Item {
    read(&Delivery::from_body(body.as_bytes())).remove(0)
}
