//! Small records, and a queue, for this crate's own unit tests.

use std::{
    fmt,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;

use super::record::{
    Owner, Record, RecordedObject, RecordedPipeline, Revision, Status, UnixMillis, UnixSeconds,
};
use crate::{
    identity::{Provider, TokenKind},
    outbox::{Message, Outbox, OutboxError},
};

pub(crate) fn object(key: &str) -> RecordedObject {
    RecordedObject {
        provider: Provider::S3,
        account: None,
        container: "geo".into(),
        key: key.into(),
        raw_key: None,
        token: Some((TokenKind::ETag, "abc".into())),
    }
}

pub(crate) fn pipeline() -> RecordedPipeline {
    RecordedPipeline {
        name: "scenes".into(),
        version: "1.0.0".into(),
        scheme: "strict".into(),
        params_digest: "p".into(),
        contract_digest: "c".into(),
    }
}

/// A claim that owner 1 holds from second 1,000 for 120 seconds.
pub(crate) fn record() -> Record {
    Record {
        status: Status::Processing,
        attempt: 1,
        owner: Some(Owner(1)),
        revision: Some(Revision {
            owner: Owner(1),
            write: 1,
        }),
        claimed_at: UnixSeconds(1_000),
        lease_until: Some(UnixMillis(1_120_000)),
        waiting_until: None,
        finished_at: None,
        expires_at: None,
        object: Some(object("a.shp")),
        pipeline: pipeline(),
        redrives: 0,
        reason: None,
        error: None,
        result: None,
        body: None,
        released: None,
    }
}

/// A queue that keeps what it was sent, and can be away.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) messages: Mutex<Vec<Message>>,
    pub(crate) away: AtomicBool,
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("queue")
    }
}

#[async_trait]
impl Outbox for Queue {
    async fn send(&self, message: &Message) -> Result<(), OutboxError> {
        tokio::task::yield_now().await;
        if self.away.load(Ordering::SeqCst) {
            let (queue, source) = (self.to_string(), "connection refused".into());
            return Err(OutboxError { queue, source });
        }
        self.messages.lock().unwrap().push(message.clone());
        Ok(())
    }
}
