//! One call into this process: a delivery is read and settled in the time that the caller leaves it, and it is known what
//! must come again.

use std::{
    collections::HashSet, convert::Infallible, fmt, future::pending, sync::Arc, time::Duration,
};

use identity_core::{
    claim::UnixMillis,
    event::{Delivery, Item, read_in},
    gate::{Counts, Disposition, Gate, ItemAnswer},
};

pub use crate::timed::Run;
use crate::{timed::TimedJob, worker::Worker};

/// How much of a call's time is kept for stopping jobs, recording their ends and answering: an eighth, within these bounds.
const LEAST_MARGIN: Duration = Duration::from_millis(500);
const MOST_MARGIN: Duration = Duration::from_secs(5);

/// Of the time that a call has left, how much jobs may use.
#[must_use]
pub fn for_jobs(left: Duration) -> Duration {
    left.saturating_sub((left / 8).clamp(LEAST_MARGIN, MOST_MARGIN))
}

/// Of the time that a call has left, how much may pass before the answer is given.
#[must_use]
pub fn for_answer(left: Duration) -> Duration {
    left.saturating_sub(LEAST_MARGIN)
}

/// Whether a delivery's messages have an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// They have none: all side by side.
    Any,
    /// Within their groups: see [`Gate::settle_groups`].
    Groups,
}

/// What became of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// What each of its messages is told, in their order.
    pub answers: Vec<ItemAnswer>,
    /// The runs that it led to.
    pub runs: Vec<Run>,
    /// How its events ended.
    pub counts: Counts,
    /// How many attempts were won.
    pub claimed: u64,
}

impl Worker {
    /// Reads a delivery into its items, never none.
    #[must_use]
    pub fn read(&self, delivery: &Delivery<'_>) -> Vec<Item> {
        read_in(delivery, &self.read_context())
    }

    /// Settles what was delivered, in the time that is left. Jobs that need longer are stopped, and recorded as failed, before
    /// the caller goes away; leases end with the call.
    pub async fn settle(&self, items: &[Item], order: Order, left: Option<Duration>) -> Settlement {
        let job = Arc::new(TimedJob::new(self.job().clone(), self.clock().clone()));
        let until = left.map(|left| self.clock().monotonic() + left);
        let gate = self.gate().for_call(until).with_job(job.clone());
        let settle = async {
            match order {
                Order::Groups => gate.settle_groups(items, self.concurrency()).await,
                Order::Any => gate.settle_all(items, self.concurrency()).await,
            }
        };
        let answers = tokio::select! {
            biased;
            never = self.stop_in_time(&gate, left.map(for_jobs)) => match never {},
            answers = settle => answers,
        };
        Settlement::new(answers, job.take())
    }

    /// Stops a gate after this time; never returns, for what it runs has ends to record.
    async fn stop_in_time(&self, gate: &Gate, time: Option<Duration>) -> Infallible {
        if let Some(time) = time {
            self.clock().sleep(time).await;
            tracing::warn!("the call's time is over: what runs is stopped");
            gate.stop();
        }
        pending().await
    }
}

impl Settlement {
    /// Of these answers, for which these jobs ran.
    #[must_use]
    pub fn new(answers: Vec<ItemAnswer>, runs: Vec<Run>) -> Self {
        let mut counts = Counts::default();
        // Equal events of one delivery share an attempt, and not every attempt comes to a run.
        let mut won: HashSet<_> = runs.iter().map(|run| (&run.key, run.attempt)).collect();
        for settled in answers.iter().flat_map(|answer| &answer.settled) {
            counts.count(&settled.outcome);
            if let (Some(key), Some(attempt)) = (&settled.key, settled.outcome.attempt()) {
                won.insert((key, attempt));
            }
        }
        Self {
            counts,
            claimed: u64::try_from(won.len()).unwrap_or(u64::MAX),
            answers,
            runs,
        }
    }

    /// Everything that was counted, by its name.
    pub fn counted(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let claimed = [("claimed", self.claimed)];
        self.counts.named().into_iter().chain(claimed)
    }

    /// What must come again, if anything must.
    #[must_use]
    pub fn again(&self) -> Option<Again<'_>> {
        let again = |answer: &&ItemAnswer| answer.disposition != Disposition::Ack;
        let again: Vec<_> = self.answers.iter().filter(again).collect();
        let of = self.answers.len();
        (!again.is_empty()).then_some(Again { again, of })
    }
}

/// What must come again of a delivery. Shown as a sentence for people.
#[derive(Debug, Clone)]
pub struct Again<'a> {
    again: Vec<&'a ItemAnswer>,
    of: usize,
}

impl<'a> Again<'a> {
    /// The answers to what must come again.
    #[must_use]
    pub fn answers(&self) -> &[&'a ItemAnswer] {
        &self.again
    }

    /// When the first of it is worth another delivery, in Unix milliseconds, if that is known of all.
    #[must_use]
    pub fn not_before(&self) -> Option<UnixMillis> {
        let when = |answer: &&ItemAnswer| match answer.disposition {
            Disposition::Retry { not_before } => not_before,
            Disposition::Ack => None,
        };
        let all: Option<Vec<UnixMillis>> = self.again.iter().map(when).collect();
        all?.into_iter().min()
    }
}

impl fmt::Display for Again<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { again, of } = self;
        write!(f, "{} of {of} must come again; the first: ", again.len())?;
        let mut settled = again.iter().flat_map(|answer| &answer.settled);
        match settled.find(|settled| settled.outcome.disposition() != Disposition::Ack) {
            Some(first) => {
                let uri = first.uri.as_deref().unwrap_or("an event");
                let error = first.outcome.error().unwrap_or("no error");
                write!(f, "{uri} is {} ({error})", first.outcome.as_str())
            }
            None => f.write_str("not looked at"),
        }
    }
}

#[cfg(test)]
mod tests {
    use identity_core::{
        claim::{Reason, Status},
        event::Origin,
        gate::{Outcome, Settled},
    };

    use super::*;
    use crate::testing::{Bench, notification};

    #[test]
    fn jobs_leave_time_to_record_their_ends() {
        let seconds = Duration::from_secs;
        assert_eq!(for_jobs(seconds(900)), seconds(895));
        assert_eq!(for_jobs(seconds(16)), seconds(14));
        assert_eq!(for_jobs(seconds(1)), Duration::from_millis(500));
        assert_eq!(for_jobs(Duration::from_millis(400)), Duration::ZERO);
        assert_eq!(for_jobs(Duration::ZERO), Duration::ZERO);
    }

    fn items(worker: &Worker, keys: &[&str]) -> Vec<Item> {
        worker.read(&Delivery::from_body(notification(keys).as_bytes()))
    }

    #[tokio::test(start_paused = true)]
    async fn calls_at_the_same_time_are_told_their_own_runs() {
        let bench = Bench::waiting();
        let worker = bench.simulated();
        let (one, two) = (items(&worker, &["a"]), items(&worker, &["b", "c", "c"]));
        let both = async {
            tokio::join!(
                worker.settle(&one, Order::Any, None),
                worker.settle(&two, Order::Groups, None)
            )
        };
        let let_go = async {
            // The second call's events are of one message, and so of one group.
            bench.job.starts(2).await;
            bench.job.go.add_permits(3);
        };
        let ((one, two), ()) = tokio::join!(both, let_go);
        assert_eq!((one.runs.len(), one.claimed, one.counts.done), (1, 1, 1));
        assert_eq!((two.runs.len(), two.claimed, two.counts.done), (2, 2, 2));
        assert_eq!(two.counts.duplicate, 1);
        assert!(one.again().is_none() && two.again().is_none());
        assert_eq!(
            Some(&one.runs[0].key),
            one.answers[0].settled[0].key.as_ref()
        );
        let counted: Vec<_> = one.counted().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [("done", 1), ("claimed", 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_that_needs_longer_than_its_call_is_stopped_and_recorded() {
        let bench = Bench::waiting();
        let worker = bench.simulated();
        let left = Duration::from_secs(16);
        let items = items(&worker, &["a"]);
        let settlement = worker.settle(&items, Order::Any, Some(left)).await;
        assert_eq!(settlement.runs[0].took, for_jobs(left));
        assert_eq!(bench.job.runs(), (1, 0));
        let record = &bench.store.records().await[0];
        assert_eq!(
            (record.status, record.reason),
            (Status::Failed, Some(Reason::Interrupted))
        );
        let again = settlement.again().unwrap();
        assert_eq!(
            again.to_string(),
            "1 of 1 must come again; the first: s3://geo/a is failed (the worker was stopped before the job was done)"
        );
        // Another call is not stopped with it.
        bench.job.go.add_permits(1);
        let next = worker.settle(&items, Order::Any, Some(left)).await;
        assert_eq!(next.counts.done, 1);
    }

    fn answer(outcome: Option<Outcome>) -> ItemAnswer {
        let none = Disposition::Retry { not_before: None };
        ItemAnswer {
            origin: Arc::new(Origin::default()),
            disposition: outcome.as_ref().map_or(none, Outcome::disposition),
            settled: outcome
                .map(|outcome| Settled {
                    key: None,
                    uri: None,
                    outcome,
                })
                .into_iter()
                .collect(),
        }
    }

    #[test]
    fn when_another_delivery_is_worth_it_is_known_only_if_it_is_known_of_all() {
        let held = |at| {
            answer(Some(Outcome::Held {
                until: UnixMillis(at),
            }))
        };
        let done = || answer(Some(Outcome::Duplicate));
        let not_before = |answers| {
            let settlement = Settlement::new(answers, Vec::new());
            settlement.again().unwrap().not_before()
        };
        assert_eq!(
            not_before(vec![held(7), done(), held(5)]),
            Some(UnixMillis(5))
        );
        assert_eq!(not_before(vec![held(7), answer(None)]), None);
        let untouched = Settlement::new(vec![answer(None), done()], Vec::new());
        assert_eq!(
            untouched.again().unwrap().to_string(),
            "1 of 2 must come again; the first: not looked at"
        );
        assert!(Settlement::new(vec![done()], Vec::new()).again().is_none());
    }
}
