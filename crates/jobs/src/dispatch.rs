//! The job that is handed on: a message to a queue, for workers that claim under a pipeline of their own.
//!
//! The message is this program's own envelope (`identity_core::event::own`) of exactly this object version, so that the worker
//! reads it like any event and need not ask the store which version is meant. A message can be sent twice (its reply lost, the
//! worker here gone before its end was recorded): the deduplication text is the same then, and the other worker's claim
//! decides anyway.

use std::sync::Arc;

use async_trait::async_trait;
use identity_core::{
    claim::Lease,
    event::{
        StorageEvent,
        own::{self, Sent},
    },
    identity::ObjectVersion,
    job::{Job, JobContext, JobError, Output},
    outbox::{Message, Outbox, OutboxError},
};
use serde_json::json;

/// Hands each job to one queue.
#[derive(Debug, Clone)]
pub struct Dispatch {
    outbox: Arc<dyn Outbox>,
}

impl Dispatch {
    /// Jobs go to this queue.
    pub fn new(outbox: Arc<dyn Outbox>) -> Self {
        Self { outbox }
    }
}

#[async_trait]
impl Job for Dispatch {
    fn reads_objects(&self) -> bool {
        false
    }

    /// # Errors
    ///
    /// [`JobError::Machine`] if the queue may not have the message, so that it is sent again; [`JobError::Permanent`] if it
    /// will never take it.
    async fn run(&self, lease: &Lease, context: &JobContext) -> Result<Output, JobError> {
        let redrives = lease.redrives();
        let ObjectVersion { address, token } = context.object.clone();
        let event = StorageEvent::of(address, Some(token));
        let sent = Sent::Event {
            event: &event,
            incomplete: false,
        };
        let message = Message::about(lease.key(), redrives, own::write(&sent, None, redrives));
        match self.outbox.send(&message).await {
            Ok(()) => Ok(Output {
                result: Some(json!({"dispatched": self.outbox.to_string()})),
            }),
            Err(error @ OutboxError::Refused { .. }) => Err(JobError::Permanent {
                message: "the job cannot be handed on".to_owned(),
                source: Some(Box::new(error)),
            }),
            Err(error) => Err(JobError::Machine {
                message: "the job could not be handed on".to_owned(),
                source: Some(Box::new(error)),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
