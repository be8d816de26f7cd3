//! A gate that hands jobs on, and a gate behind the queue, on one store.

use std::num::NonZeroU32;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use host::{clock::SystemClock, entropy::OsEntropy};
use identity_core::{
    claim::{ClaimStore as _, Claims, Status, Terms, memory::MemoryStore},
    event::{Delivery, Item, read},
    gate::{AllowList, Gate, Outcome, Parts, Settled},
    identity::{Contract, ObjectAddress, Provider},
    object::{Head, Listed, ObjectError, ObjectStore, ObjectStream},
    outbox::OutboxError,
};

use super::*;

/// A queue that keeps what it is sent; the first `lost` replies are lost on the way back. One that refuses takes nothing.
#[derive(Debug, Default)]
struct Queue {
    messages: Mutex<Vec<Message>>,
    lost: AtomicUsize,
    refuses: AtomicBool,
}

impl std::fmt::Display for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("queue:tests")
    }
}

#[async_trait]
impl Outbox for Queue {
    async fn send(&self, message: &Message) -> Result<(), OutboxError> {
        if self.refuses.load(Ordering::SeqCst) {
            return Err(OutboxError::Refused {
                queue: self.to_string(),
                source: "too long".into(),
            });
        }
        self.messages.lock().unwrap().push(message.clone());
        let lost = |left: usize| left.checked_sub(1);
        match self
            .lost
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, lost)
        {
            Err(_) => Ok(()),
            Ok(_) => Err(OutboxError::Unavailable {
                queue: self.to_string(),
                source: "no reply".into(),
            }),
        }
    }
}

/// The worker's job: it notes which version it was run for.
#[derive(Debug, Default)]
struct Noted(Mutex<Vec<String>>);

#[async_trait]
impl Job for Noted {
    fn reads_objects(&self) -> bool {
        false
    }
    async fn run(&self, _: &Lease, context: &JobContext) -> Result<Output, JobError> {
        let ObjectVersion { address, token } = &context.object;
        self.0.lock().unwrap().push(format!("{address} {token}"));
        Ok(Output::default())
    }
}

/// Nothing here may ask: the message says the version.
#[derive(Debug)]
struct NoObjects;

#[async_trait]
impl ObjectStore for NoObjects {
    fn reads(&self, _: Provider) -> bool {
        false
    }
    async fn head(&self, _: &ObjectAddress) -> Result<Option<Head>, ObjectError> {
        panic!("the store was asked");
    }
    async fn read(&self, _: &ObjectVersion) -> Result<ObjectStream, ObjectError> {
        Err(ObjectError::Changed)
    }
    async fn list(&self, _: &ObjectAddress, _: NonZeroU32) -> Result<Vec<Listed>, ObjectError> {
        panic!("the store was asked for a listing");
    }
}

fn gate(name: &str, store: &Arc<MemoryStore>, job: Arc<dyn Job>) -> Gate {
    let clock = Arc::new(SystemClock::new());
    let entropy = Arc::new(OsEntropy::new());
    let contract = format!("name = '{name}'\nversion = '1'\nscheme = 'strict'\n");
    Gate::new(Parts {
        contract: Contract::parse(&contract).unwrap(),
        claims: Claims::new(store.clone(), clock.clone(), entropy, Terms::default()),
        clock,
        objects: Arc::new(NoObjects),
        job,
        max_run: Duration::from_secs(60),
        allow: AllowList::Everything,
    })
}

struct Line {
    store: Arc<MemoryStore>,
    queue: Arc<Queue>,
    noted: Arc<Noted>,
    dispatcher: Gate,
    worker: Gate,
}

impl Line {
    fn new() -> Self {
        let (store, queue, noted) = (
            Arc::default(),
            Arc::<Queue>::default(),
            Arc::<Noted>::default(),
        );
        let dispatch = Arc::new(Dispatch::new(queue.clone()));
        Self {
            dispatcher: gate("scenes-in", &store, dispatch),
            worker: gate("scenes", &store, noted.clone()),
            store,
            queue,
            noted,
        }
    }

    fn messages(&self) -> Vec<Message> {
        self.queue.messages.lock().unwrap().clone()
    }

    fn runs(&self) -> Vec<String> {
        self.noted.0.lock().unwrap().clone()
    }

    async fn record(&self, settled: &Settled) -> identity_core::claim::Record {
        let key = settled.key.as_ref().unwrap();
        self.store.get(key).await.unwrap().unwrap().record
    }
}

fn item(body: &str) -> Item {
    let mut items = read(&Delivery::from_body(body.as_bytes()));
    assert_eq!(items.len(), 1, "{body}");
    items.remove(0)
}

/// An S3 notification of a key that is encoded there.
fn put() -> Item {
    item(
        r#"{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"geo"},
        "object":{"key":"a+b%2B%E6%9D%B1.shp","eTag":"9b2c","versionId":"v1"}}}]}"#,
    )
}

#[tokio::test]
async fn a_job_is_handed_on_once_and_done_once() {
    let line = Line::new();
    let handed_on = line.dispatcher.settle(&put()).await;
    assert!(
        matches!(handed_on.outcome, Outcome::Done { .. }),
        "{handed_on:?}"
    );
    let record = line.record(&handed_on).await;
    assert_eq!(
        record.result.as_deref(),
        Some(r#"{"dispatched":"queue:tests"}"#)
    );
    assert_eq!(
        line.dispatcher.settle(&put()).await.outcome,
        Outcome::Duplicate
    );

    let messages = line.messages();
    assert_eq!(messages.len(), 1);
    let key = handed_on.key.unwrap();
    assert_eq!(messages[0].deduplication, format!("{key}-0"));
    assert_eq!(messages[0].group, key.to_string());
    let legal = |text: &str| {
        text.len() <= 128
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    assert!(legal(&messages[0].deduplication) && legal(&messages[0].group));

    for outcome in ["done", "duplicate"] {
        let done = line.worker.settle(&item(&messages[0].body)).await;
        assert_eq!(done.outcome.as_str(), outcome, "{done:?}");
        assert_ne!(done.key.unwrap(), key, "two pipelines, two claims");
    }
    assert_eq!(line.runs(), ["s3://geo/a b+東.shp version-id:v1"]);
}

#[tokio::test]
async fn a_message_without_a_reply_is_sent_again_under_the_same_text() {
    let line = Line::new();
    line.queue.lost.store(1, Ordering::SeqCst);
    let failed = line.dispatcher.settle(&put()).await;
    assert!(
        matches!(failed.outcome, Outcome::Unavailable { .. }),
        "{failed:?}"
    );
    let record = line.record(&failed).await;
    assert_eq!((record.status, record.counted()), (Status::Failed, 0));
    let again = line.dispatcher.settle(&put()).await;
    assert!(
        matches!(again.outcome, Outcome::Done { attempt: 2, .. }),
        "{again:?}"
    );
    let messages = line.messages();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0], messages[1]);
    for message in messages {
        line.worker.settle(&item(&message.body)).await;
    }
    assert_eq!(line.runs().len(), 1);
}

#[tokio::test]
async fn a_job_that_the_queue_never_takes_is_rejected_with_the_reason() {
    let line = Line::new();
    line.queue.refuses.store(true, Ordering::SeqCst);
    let rejected = line.dispatcher.settle(&put()).await;
    assert!(
        matches!(rejected.outcome, Outcome::Rejected { .. }),
        "{rejected:?}"
    );
    let record = line.record(&rejected).await;
    assert_eq!(
        (record.status, record.error.as_deref()),
        (
            Status::Rejected,
            Some("the job cannot be handed on: queue:tests: the message is refused: too long")
        )
    );
}

#[tokio::test]
async fn what_is_redriven_is_another_message() {
    let line = Line::new();
    let settled = line.dispatcher.settle(&put()).await;
    let key = settled.key.clone().unwrap();
    let row = line.store.get(&key).await.unwrap().unwrap();
    let mut record = row.record;
    (record.status, record.redrives) = (Status::Failed, 3);
    let when = identity_core::claim::Precondition::Unchanged(row.version);
    line.store.put(&key, &record, &when).await.unwrap();
    line.dispatcher.settle(&put()).await;
    let texts: Vec<_> = line
        .messages()
        .into_iter()
        .map(|message| message.deduplication)
        .collect();
    assert_eq!(texts, [format!("{key}-0"), format!("{key}-3")]);
}
