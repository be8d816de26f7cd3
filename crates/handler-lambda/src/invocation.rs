//! One invocation: its bytes are read into items, these are settled, and the source is told which must come again.

use std::{convert::Infallible, time::Duration};

use identity_core::{
    event::{Carrier, Delivery, Item, ReadContext, read_in},
    gate::{Disposition, Gate, ItemAnswer},
};
use lambda_runtime::{Context, Diagnostic};
use serde_json::{Map, Value, json, value::RawValue};
use tracing::Instrument as _;

use crate::{
    deadline,
    handler::Handler,
    metrics::{self, Counts},
    sweep, visibility,
};

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
        let left = deadline::left(context.deadline, self.clock.unix_millis());
        let payload = payload.get();
        async {
            if sweep::is_wanted(payload) {
                return self.sweep(request_id, left).await;
            }
            let items = read_in(
                &Delivery::from_body(payload.as_bytes()),
                &self.read_context(),
            );
            let source = Source::of(&items);
            let answers = self.settle(&items, source, left).await;
            if source != Source::Other {
                self.hide_held(&answers, context.deadline).await;
            }
            let runs = self.job.take();
            let counts = Counts::of(&answers, &runs);
            let now = self.clock.unix_millis();
            for line in self.metrics.invocation(request_id, now, &counts, &runs) {
                metrics::emit(&line);
            }
            reply(source, &answers, &counts)
        }
        .instrument(span)
        .await
    }

    fn read_context(&self) -> ReadContext<'_> {
        ReadContext {
            azure_account: self.azure_account.as_deref(),
        }
    }

    /// Settles what was delivered, in the time that there is. Jobs that need longer are stopped, and recorded as failed,
    /// before the platform kills the process in the middle of them.
    async fn settle(
        &self,
        items: &[Item],
        source: Source,
        left: Option<Duration>,
    ) -> Vec<ItemAnswer> {
        let gate = self
            .gate
            .for_call(left.map(|left| self.clock.monotonic() + left));
        let settle = async {
            match source {
                Source::OrderedQueue => gate.settle_groups(items, self.concurrency).await,
                Source::Queue | Source::Other => gate.settle_all(items, self.concurrency).await,
            }
        };
        tokio::select! {
            biased;
            never = self.stop_in_time(&gate, left.map(deadline::for_jobs)) => match never {},
            answers = settle => answers,
        }
    }

    /// Hides what others hold, but for no longer than the answer can wait: without it, all of the batch comes again.
    async fn hide_held(&self, answers: &[ItemAnswer], deadline: u64) {
        let now = self.clock.unix_millis();
        let hide = visibility::hide_held(&self.sqs, answers, now, self.concurrency);
        match deadline::left(deadline, now).map(deadline::for_answer) {
            None => hide.await,
            Some(time) => tokio::select! {
                () = hide => {}
                () = self.clock.sleep(time) => {
                    tracing::warn!("the invocation's time is over: held messages keep their visibility");
                }
            },
        }
    }

    /// Stops a gate after this time; never returns, for what it runs has ends to record.
    async fn stop_in_time(&self, gate: &Gate, time: Option<Duration>) -> Infallible {
        if let Some(time) = time {
            self.clock.sleep(time).await;
            tracing::warn!("the invocation's time is over: what runs is stopped");
            gate.stop();
        }
        std::future::pending().await
    }
}

/// What the source is told.
fn reply(source: Source, answers: &[ItemAnswer], counts: &Counts) -> Result<Value, Diagnostic> {
    let again: Vec<&ItemAnswer> = answers
        .iter()
        .filter(|answer| answer.disposition != Disposition::Ack)
        .collect();
    if source == Source::Other {
        if again.is_empty() {
            let counts = counts.named().into_iter();
            let counts = counts.map(|(name, count)| (name.to_owned(), count.into()));
            return Ok(Value::Object(counts.collect::<Map<_, _>>()));
        }
        return Err(must_come_again(&again, answers.len()));
    }
    let failures: Option<Vec<Value>> = again
        .iter()
        .map(|answer| answer.origin.message_id.as_deref())
        .map(|id| id.map(|id| json!({"itemIdentifier": id})))
        .collect();
    match failures {
        Some(failures) => Ok(json!({"batchItemFailures": failures})),
        // A failure that cannot be named would be deleted with the rest: all of the batch comes again.
        None => Err(must_come_again(&again, answers.len())),
    }
}

fn must_come_again(again: &[&ItemAnswer], of: usize) -> Diagnostic {
    let settled = again.iter().flat_map(|answer| &answer.settled);
    let first = settled
        .filter(|settled| settled.outcome.disposition() != Disposition::Ack)
        .map(|settled| {
            let uri = settled.uri.as_deref().unwrap_or("an event");
            let error = settled.outcome.error().unwrap_or("no error");
            format!("{uri} is {} ({error})", settled.outcome.as_str())
        })
        .next();
    Diagnostic {
        error_type: "firstclaim.Retry".to_owned(),
        error_message: format!(
            "{} of {of} must come again; the first: {}",
            again.len(),
            first.unwrap_or_else(|| "not looked at".to_owned())
        ),
    }
}

#[cfg(test)]
mod tests;
