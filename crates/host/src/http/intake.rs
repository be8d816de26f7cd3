//! What requests bring is settled in tasks of their own: a caller that hangs up stops no job, and the process does not end
//! before they have.

use std::{sync::Arc, time::Duration};

use identity_core::{
    event::{Item, Reading, Reply},
    text::error_chain,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument as _;

use crate::{
    call::{Order, Settlement},
    http::request::Received,
    sweep::{self, NoRedriveQueue, Sweep},
    worker::Worker,
};

/// Takes requests to their end, any number at once. Cloning gives another handle to the same intake.
#[derive(Debug, Clone)]
pub struct Intake {
    worker: Arc<Worker>,
    /// How long a call may take, recording and answering included; `None`: as long as its jobs.
    call: Option<Duration>,
    tasks: TaskTracker,
    closed: CancellationToken,
}

/// What became of a request.
#[derive(Debug)]
pub enum Delivered {
    /// The source asked for this answer before it delivers.
    Reply(Reply),
    /// A delivery was settled.
    Settled(Settlement),
    /// A sweep was asked for.
    Swept(Result<Sweep, NoRedriveQueue>),
    /// Nothing is taken any more: the process ends. No delivery was looked at; a sweep was left off, and the next one goes on.
    Closed,
    /// Its task ended before its time; what it claimed is ended as `failed`, or by its lease.
    Died(String),
}

impl Intake {
    /// Whatever comes is settled by this worker, within `call` where that is a time.
    #[must_use]
    pub fn new(worker: Arc<Worker>, call: Option<Duration>) -> Self {
        Self {
            worker,
            call,
            tasks: TaskTracker::new(),
            closed: CancellationToken::new(),
        }
    }

    /// The worker.
    #[must_use]
    pub fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }

    /// Settles what a request brings. Dropping the returned future leaves the rest to the task that it runs in.
    pub async fn take(&self, received: Received) -> Delivered {
        // Before the look at `closed`, so that either this is refused or its end is waited for.
        let counted = self.tasks.token();
        if self.closed.is_cancelled() {
            return Delivered::Closed;
        }
        let (worker, call) = (self.worker.clone(), self.call);
        let closing = self.closing();
        let task = async move {
            let delivered = settle(&worker, &received, call, closing).await;
            drop(counted);
            delivered
        };
        match tokio::spawn(task.in_current_span()).await {
            Ok(delivered) => delivered,
            Err(error) => {
                let error = error_chain(&error);
                tracing::error!(error, "a request's task ended before its time");
                Delivered::Died(error)
            }
        }
    }

    /// The answer to a request that asks and delivers nothing, if there is one.
    #[must_use]
    pub fn question(&self, received: &Received) -> Option<Reply> {
        reply(&self.worker.read(&received.delivery()))
    }

    /// Whether nothing is taken any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Takes and claims nothing from now on; what was taken goes on.
    pub(crate) fn close(&self) {
        self.worker.drain();
        self.closed.cancel();
        self.tasks.close();
    }

    /// Returns once this was closed.
    pub(crate) fn closing(&self) -> impl Future<Output = ()> + Send + 'static {
        self.closed.clone().cancelled_owned()
    }

    /// Returns once it is closed and all that was taken has ended.
    pub(crate) async fn ended(&self) {
        self.tasks.wait().await;
    }
}

async fn settle(
    worker: &Worker,
    received: &Received,
    call: Option<Duration>,
    closing: impl Future<Output = ()>,
) -> Delivered {
    if sweep::is_wanted(received.body()) {
        // Only jobs are worth waiting for. What was marked and not sent is sent after its grace.
        return tokio::select! {
            swept = worker.sweep(call) => Delivered::Swept(swept),
            () = closing => Delivered::Closed,
        };
    }
    let items = worker.read(&received.delivery());
    match reply(&items) {
        Some(reply) => Delivered::Reply(reply),
        None => Delivered::Settled(worker.settle(&items, Order::Any, call).await),
    }
}

/// The answer to a request that is a handshake and nothing else, as every source sends it. One among events would hide what
/// became of these, and is passed over.
fn reply(items: &[Item]) -> Option<Reply> {
    match items {
        [item] => match &item.reading {
            Reading::Reply(reply) => Some(reply.clone()),
            _ => None,
        },
        _ => None,
    }
}
