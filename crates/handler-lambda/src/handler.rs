//! What invocations are handled with: made once, while Lambda initialises the function.

use std::sync::Arc;

use identity_core::{claim::Resender, gate::Gate, host::Clock};
use provider_aws::SqsClient;

use crate::metrics::{Metrics, TimedJob};

/// What handles invocations, one after the other.
#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) gate: Gate,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) job: Arc<TimedJob>,
    pub(crate) sqs: SqsClient,
    pub(crate) metrics: Metrics,
    /// Sends events again, if there is a queue for them.
    pub(crate) resender: Option<Resender>,
    /// How many events are handled side by side.
    pub(crate) concurrency: usize,
    /// The storage account of blobs whose event names none.
    pub(crate) azure_account: Option<String>,
}

impl Handler {
    /// Stops what runs: each job is ended as `failed`, so that the next delivery wins at once.
    pub(crate) fn stop(&self) {
        self.gate.stop();
    }
}
