//! The engine of `run`: events side by side, held ones waited for, failed ones tried again, until each has ended.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::Arc,
    time::{Duration, Instant},
};

use host::{signals::Signals, worker::Worker};
use identity_core::{
    claim::ClaimKey,
    event::Item,
    gate::{Counts, Gate, Outcome, Part, Settled},
    host::Clock,
};
use tokio::{
    sync::mpsc::{self, error::TryRecvError},
    task::{JoinError, JoinSet},
    time::sleep_until,
};

use super::{
    report::Report,
    sources::{Found, Sources},
};
use crate::failure::{Ended, Failure};

/// How often an event is tried whose job fails.
const MAX_TRIES: u32 = 3;
/// How long to wait before an event is tried again that the store or the machine failed, times the tries so far.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// How long to wait at most before a job is tried again that failed once, unless its contract says how long; and twice as long
/// after each try more.
const FAILED_PAUSE: Duration = Duration::from_secs(1);
/// How many finds are read ahead.
const READ_AHEAD: usize = 64;
/// How soon to look again at a held event: its holder may end long before its lease does.
const FIRST_LOOK: Duration = Duration::from_millis(100);
/// … and how seldom at most.
const LAST_LOOK: Duration = Duration::from_secs(2);

/// One event on its way through a run.
#[derive(Debug, Clone)]
struct Work {
    item: Arc<Item>,
    label: Arc<str>,
    tries: u32,
    looks: u32,
}

/// Runs events through a gate.
#[derive(Debug)]
pub(crate) struct Engine {
    gate: Gate,
    clock: Arc<dyn Clock>,
    concurrency: usize,
    report: Report,
    running: JoinSet<(Work, Settled)>,
    delayed: BinaryHeap<Reverse<Delayed>>,
    delayed_so_far: u64,
    /// How many events in a row the claim store has failed: after a few it would fail all others, too.
    store_failures: u32,
    /// How many jobs in a row this machine could not do, tries included: the next ones it could not do, either.
    machine_failures: u32,
}

/// Work that is to be taken up later. Equal times go by the order in which they came.
#[derive(Debug)]
struct Delayed {
    at: Instant,
    order: u64,
    work: Work,
    /// What became of it last.
    settled: Settled,
}

impl Engine {
    /// An engine that settles as many events at a time as the worker has it.
    pub(crate) fn new(worker: &Worker, report: Report) -> Self {
        Self {
            gate: worker.gate().clone(),
            clock: worker.clock().clone(),
            concurrency: worker.concurrency(),
            report,
            running: JoinSet::new(),
            delayed: BinaryHeap::new(),
            delayed_so_far: 0,
            store_failures: 0,
            machine_failures: 0,
        }
    }

    /// Takes everything that the sources hold to its end.
    pub(crate) async fn run(mut self, sources: Sources) -> Result<Ended, Failure> {
        let signals = Signals::listen();
        let mut signals = signals
            .map_err(|error| Failure::failed("signals cannot be listened to").because(error))?;
        let mut sources = read_ahead(sources);
        let mut more = true;
        loop {
            if self.machine_failures >= MAX_TRIES {
                return self.give_up(&mut signals).await;
            }
            while self.running.len() < self.concurrency {
                // New events first: by the time they are through, whoever holds the others may be, too.
                match sources.try_recv() {
                    Ok(found) => self.take(found),
                    Err(empty) => {
                        more = empty == TryRecvError::Empty;
                        let Some(work) = self.due() else { break };
                        self.start(work);
                    }
                }
            }
            if let Some(error) = self.report.broken() {
                let _ = self.stop(&mut signals, "standard output is closed").await;
                return Err(error.into());
            }
            if self.store_failures >= MAX_TRIES {
                return self.stop(&mut signals, "the claim store fails").await;
            }
            if !more && self.running.is_empty() && self.delayed.is_empty() {
                return Ok(ended(self.report.finish()?));
            }
            let next = self.delayed.peek().map(|Reverse(delayed)| delayed.at);
            let idle = self.running.len() < self.concurrency;
            tokio::select! {
                Some(joined) = self.running.join_next() => match joined {
                    Ok((work, settled)) => self.settled(work, settled),
                    Err(error) => self.report.failed(&format!("an event's task ended: {error}")),
                },
                found = sources.recv(), if idle && more => match found {
                    Some(found) => self.take(found),
                    None => more = false,
                },
                () = sleep_until(next.unwrap_or_else(Instant::now).into()), if idle && next.is_some() => {}
                () = signals.next() => return self.stop(&mut signals, "a signal came").await,
            }
        }
    }

    fn take(&mut self, found: Found) {
        self.report.found(1);
        match found {
            Found::Item(item, label) => {
                self.start(Work {
                    item: Arc::new(item),
                    label: label.into(),
                    tries: 0,
                    looks: 0,
                });
            }
            Found::Ignored => self.report.ignored(),
            Found::Failed(what) => self.report.failed(&what),
        }
    }

    fn start(&mut self, work: Work) {
        let gate = self.gate.clone();
        self.running.spawn(async move {
            let settled = gate.settle(&work.item).await;
            (work, settled)
        });
    }

    fn due(&mut self) -> Option<Work> {
        let is_due = self
            .delayed
            .peek()
            .is_some_and(|Reverse(delayed)| delayed.at <= Instant::now());
        is_due
            .then(|| self.delayed.pop())
            .flatten()
            .map(|Reverse(delayed)| delayed.work)
    }

    fn settled(&mut self, mut work: Work, settled: Settled) {
        let failed = match &settled.outcome {
            Outcome::Unavailable { part, .. } => Some(*part),
            _ => None,
        };
        match (failed, work.tries) {
            (Some(Part::ClaimStore), 0) => self.store_failures += 1,
            (Some(Part::ClaimStore), _) => {} // the same event again says nothing new
            _ => self.store_failures = 0,
        }
        if failed == Some(Part::Machine) {
            self.machine_failures += 1;
        } else if settled.outcome.attempt().is_some() {
            // Only a job that ran tells that this machine can do them.
            self.machine_failures = 0;
        }
        let pause = match settled.outcome {
            Outcome::Held { .. } => {
                work.looks += 1;
                (FIRST_LOOK * 2u32.saturating_pow(work.looks.min(10) - 1)).min(LAST_LOOK)
            }
            Outcome::Failed { again, .. } if work.tries + 1 < MAX_TRIES => {
                work.tries += 1;
                again.map_or_else(
                    || failed_pause(work.tries, settled.key.as_ref()),
                    |again| self.clock.unix_millis().until(again),
                )
            }
            Outcome::LeaseLost { .. } | Outcome::Unavailable { .. }
                if work.tries + 1 < MAX_TRIES =>
            {
                work.tries += 1;
                RETRY_PAUSE * work.tries
            }
            _ => return self.report.settled(&settled, &work.label),
        };
        self.delayed_so_far += 1;
        let delayed = Delayed {
            at: Instant::now() + pause,
            order: self.delayed_so_far,
            work,
            settled,
        };
        self.delayed.push(Reverse(delayed));
    }

    /// Begins nothing more, for this machine cannot do it, lets what runs come to its end, and tells what is left.
    async fn give_up(mut self, signals: &mut Signals) -> Result<Ended, Failure> {
        self.gate.drain();
        if !self.running.is_empty() {
            self.report
                .complain("nothing more is begun; what runs goes on to its end");
        }
        loop {
            tokio::select! {
                joined = self.running.join_next() => match joined {
                    Some(joined) => self.tell(joined),
                    None => break,
                },
                () = signals.next() => return self.stop(signals, "a signal came").await,
            }
        }
        self.tell_delayed();
        self.report.finish()?;
        Err(Failure::usage(format!(
            "this machine could not do {MAX_TRIES} jobs in a row, so the run ends: mend what it lacks, and run again; no attempt \
             was used"
        )))
    }

    fn tell(&mut self, joined: Result<(Work, Settled), JoinError>) {
        match joined {
            Ok((work, settled)) => self.report.settled(&settled, &work.label),
            Err(error) => self
                .report
                .failed(&format!("an event's task ended: {error}")),
        }
    }

    fn tell_delayed(&mut self) {
        for Reverse(Delayed { work, settled, .. }) in self.delayed.drain() {
            self.report.settled(&settled, &work.label);
        }
    }

    /// Stops the jobs that run, lets their ends be recorded, and tells what is left. A second signal does not wait.
    async fn stop(mut self, signals: &mut Signals, why: &str) -> Result<Ended, Failure> {
        self.gate.stop();
        self.report.complain(&format!(
            "{why}: stopping, and running jobs are ended as failed"
        ));
        loop {
            tokio::select! {
                joined = self.running.join_next() => match joined {
                    Some(joined) => self.tell(joined),
                    None => break,
                },
                () = signals.next() => {
                    return Err(Failure::failed("a second signal came: the ends of running jobs may not be recorded"));
                }
            }
        }
        self.tell_delayed();
        self.report.finish()?;
        Err(Failure::failed(format!(
            "{why}: what is held or failed, and what was not looked at yet, is left for another run"
        )))
    }
}

/// Reads the sources in a thread of their own: a file may be a pipe that nobody writes to, and signals must be heard
/// meanwhile. The thread is left behind if the run is stopped.
fn read_ahead(sources: Sources) -> mpsc::Receiver<Found> {
    let (send, receive) = mpsc::channel(READ_AHEAD);
    std::thread::spawn(move || {
        for found in sources.find() {
            if send.blocking_send(found).is_err() {
                break;
            }
        }
    });
    receive
}

/// Between a half and all of the pause, by the job's ID, which is as good as random: of many jobs that failed together, not all
/// come back at once.
fn failed_pause(tries: u32, key: Option<&ClaimKey>) -> Duration {
    let full = FAILED_PAUSE * 2_u32.saturating_pow(tries.saturating_sub(1));
    let digit = key.and_then(|key| key.as_str().chars().next());
    let share = digit.and_then(|digit| digit.to_digit(16)).unwrap_or(15);
    full / 2 + full / 2 * share / 15
}

fn ended(counts: Counts) -> Ended {
    let Counts {
        held,
        failed,
        unavailable,
        rejected,
        collapsed,
        ..
    } = counts;
    if held + failed + unavailable + rejected + collapsed == 0 {
        Ended::Well
    } else {
        Ended::WithFailures
    }
}

impl PartialEq for Delayed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Delayed {}

impl PartialOrd for Delayed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Delayed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}
