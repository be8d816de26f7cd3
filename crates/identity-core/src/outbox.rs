//! Sending on: where redriven events and dispatched jobs go, a queue or a stream of lines.

use std::fmt::{Debug, Display};

use async_trait::async_trait;

use crate::claim::ClaimKey;

/// One message for a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// UTF-8 text that this crate's reader understands (`event::read`).
    pub body: String,
    /// Two messages with the same text here are one, to queues that can tell: the job ID, and what counts how often it
    /// was sent on purpose. At most 128 characters out of `A-Z a-z 0-9 -`, which every queue accepts.
    pub deduplication: String,
    /// Messages that must not overtake each other share this text, in queues that keep an order: the object's claim key.
    /// At most 128 characters out of `A-Z a-z 0-9 -`.
    pub group: String,
}

impl Message {
    /// A message about the job, or the record, under `key`, sent on purpose for the `redrives`th time.
    pub fn about(key: &ClaimKey, redrives: u32, body: String) -> Self {
        Self {
            body,
            deduplication: format!("{key}-{redrives}"),
            group: key.to_string(),
        }
    }
}

/// A queue that messages are sent to, at least once each.
#[async_trait]
pub trait Outbox: Debug + Display + Send + Sync + 'static {
    /// Sends one message; it is accepted durably when this returns.
    ///
    /// # Errors
    ///
    /// [`OutboxError::Unavailable`] if it is not known whether the message was accepted, and [`OutboxError::Refused`] if this
    /// queue takes no such message.
    async fn send(&self, message: &Message) -> Result<(), OutboxError>;
}

/// A message that may not have been sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutboxError {
    /// It is not known whether it was accepted. Sending it again does no harm.
    #[error("{queue}: a message could not be sent")]
    Unavailable {
        /// The queue's own name for itself.
        queue: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// This queue will never take this message, e.g. since it is too long. Nothing was sent; the next message may be taken.
    #[error("{queue}: the message is refused")]
    Refused {
        /// The queue's own name for itself.
        queue: String,
        /// What the queue says.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
