//! One invocation: its bytes are read into items, these are settled, and the source is told which must come again.

use std::time::Duration;

use host::{
    call::{Again, Order, Settlement, for_answer},
    sweep::{self, Sweep, SweepError},
    worker::Worker,
};
use identity_core::{
    event::{Carrier, Delivery, Item},
    gate::ItemAnswer,
    text::error_chain,
};
use lambda_runtime::{Context, Diagnostic};
use provider_aws::SqsClient;
use serde_json::{Map, Value, json, value::RawValue};
use tracing::Instrument as _;

use crate::{
    deadline,
    emf::{self, Metrics},
    visibility,
};

/// What handles invocations, one after the other: made once, while Lambda initialises the function.
#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) worker: Worker,
    pub(crate) sqs: SqsClient,
    pub(crate) metrics: Metrics,
}

/// How the source of a delivery is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// A queue: message by message.
    Queue,
    /// A queue that keeps an order within groups.
    OrderedQueue,
    /// Anything else: all or nothing.
    Other,
}

impl Source {
    fn of(items: &[Item]) -> Self {
        let from_queue = |item: &Item| item.carriers.outermost() == Some(Carrier::Sqs);
        // The name of a FIFO queue, and of no other, ends so.
        let ordered = |item: &Item| {
            let arn = item.origin.queue_arn.as_deref();
            arn.is_some_and(|arn| arn.ends_with(".fifo"))
        };
        if !items.iter().any(from_queue) {
            Self::Other
        } else if items.iter().any(ordered) {
            Self::OrderedQueue
        } else {
            Self::Queue
        }
    }

    fn order(self) -> Order {
        match self {
            Self::OrderedQueue => Order::Groups,
            Self::Queue | Self::Other => Order::Any,
        }
    }
}

impl Handler {
    /// Handles one invocation.
    ///
    /// # Errors
    ///
    /// A [`Diagnostic`] if something must come again and the source takes one answer for all: Lambda then invokes again, or
    /// hands the event to the function's on-failure destination.
    pub(crate) async fn handle(
        &self,
        payload: &RawValue,
        context: &Context,
    ) -> Result<Value, Diagnostic> {
        let request_id = context.request_id.as_str();
        // At the level of errors, so that no filter takes the ID from the lines that it lets through.
        let span = tracing::error_span!("invocation", request_id);
        let left = deadline::left(context.deadline, self.worker.clock().unix_millis());
        let payload = payload.get().as_bytes();
        async {
            if sweep::is_wanted(payload) {
                return self.sweep(request_id, left).await;
            }
            let items = self.worker.read(&Delivery::from_body(payload));
            let source = Source::of(&items);
            let settlement = self.worker.settle(&items, source.order(), left).await;
            if source != Source::Other {
                self.hide_held(&settlement.answers, context.deadline).await;
            }
            let now = self.worker.clock().unix_millis();
            for line in self.metrics.invocation(request_id, now, &settlement) {
                emf::emit(&line);
            }
            reply(source, &settlement)
        }
        .instrument(span)
        .await
    }

    /// Hides what others hold, but for no longer than the answer can wait: without it, all of the batch comes again.
    async fn hide_held(&self, answers: &[ItemAnswer], deadline: u64) {
        let clock = self.worker.clock();
        let now = clock.unix_millis();
        let hide = visibility::hide_held(&self.sqs, answers, now, self.worker.concurrency());
        match deadline::left(deadline, now).map(for_answer) {
            None => hide.await,
            Some(time) => tokio::select! {
                () = hide => {}
                () = clock.sleep(time) => {
                    tracing::warn!("the invocation's time is over: held messages keep their visibility");
                }
            },
        }
    }

    /// Sends again what nobody delivers again, and counts it.
    async fn sweep(&self, request_id: &str, left: Option<Duration>) -> Result<Value, Diagnostic> {
        let failed = |error_message| Diagnostic {
            error_type: "firstclaim.Sweep".to_owned(),
            error_message,
        };
        let sweep = self.worker.sweep(left).await;
        let Sweep { stuck, ended } = sweep.map_err(|error| failed(error.to_string()))?;
        let now = self.worker.clock().unix_millis();
        emf::emit(&self.metrics.sweep(request_id, now, stuck));
        let ended = ended.map(|swept| json!(swept));
        ended.map_err(|error: SweepError| failed(error_chain(&error)))
    }
}

/// What the source is told.
fn reply(source: Source, settlement: &Settlement) -> Result<Value, Diagnostic> {
    let again = settlement.again();
    if source == Source::Other {
        return match again {
            Some(again) => Err(must_come_again(&again)),
            None => {
                let counts = settlement.counted();
                let counts = counts.map(|(name, count)| (name.to_owned(), count.into()));
                Ok(Value::Object(counts.collect::<Map<_, _>>()))
            }
        };
    }
    let again = match again {
        Some(again) => again,
        None => return Ok(json!({"batchItemFailures": []})),
    };
    let failures: Option<Vec<Value>> = again
        .answers()
        .iter()
        .map(|answer| answer.origin.message_id.as_deref())
        .map(|id| id.map(|id| json!({"itemIdentifier": id})))
        .collect();
    match failures {
        Some(failures) => Ok(json!({"batchItemFailures": failures})),
        // A failure that cannot be named would be deleted with the rest: all of the batch comes again.
        None => Err(must_come_again(&again)),
    }
}

fn must_come_again(again: &Again<'_>) -> Diagnostic {
    Diagnostic {
        error_type: "firstclaim.Retry".to_owned(),
        error_message: again.to_string(),
    }
}

#[cfg(test)]
mod tests;
