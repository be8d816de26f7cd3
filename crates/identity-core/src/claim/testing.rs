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
        attempt: 1,
        owner: Some(Owner(1)),
        revision: Some(Revision {
            owner: Owner(1),
            write: 1,
        }),
        lease_until: Some(UnixMillis(1_120_000)),
        object: Some(object("a.shp")),
        ..Record::new(Status::Processing, UnixSeconds(1_000), pipeline())
    }
}

/// A queue that keeps what it was sent, can be away, and takes no message with a certain text.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) messages: Mutex<Vec<Message>>,
    pub(crate) away: AtomicBool,
    pub(crate) refused: Mutex<Option<String>>,
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
            return Err(OutboxError::Unavailable { queue, source });
        }
        let refused = self.refused.lock().unwrap().clone();
        if refused.is_some_and(|text| message.body.contains(&text)) {
            let (queue, source) = (self.to_string(), "too long".into());
            return Err(OutboxError::Refused { queue, source });
        }
        self.messages.lock().unwrap().push(message.clone());
        Ok(())
    }
}
