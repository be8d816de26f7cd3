//! What a worker does between its questions, as the shipped driver (`claim/lease.rs`) and gate do it.

use std::sync::Arc;

use identity_core::{
    claim::{
        End, Kept, Status,
        machine::{Answer, Ask, ClaimOutcome, Claiming, HolderOutcome, Holding, Step},
    },
    gate::{Disposition, Outcome, Part},
};

use super::{
    Control, World,
    state::{Call, Hold, Log, Nth, Pending, Recovered, State, Violation, Worker, object, pipeline},
    store::{ask_text, record_text},
};

/// How an attempt comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Finish {
    /// The job is done.
    Done,
    /// The job failed.
    Failed,
    /// The job said that no attempt can succeed.
    Rejected,
    /// The lease could not be renewed in time, so the job was stopped.
    Expired,
    /// The worker was frozen past the end of its lease, and now ends its attempt as if it had not been.
    Zombie,
}

impl Finish {
    fn end(self) -> End {
        match self {
            Self::Done | Self::Zombie => End::Done {
                result: None,
                reason: None,
                note: None,
            },
            Self::Failed | Self::Expired => End::Failed {
                reason: None,
                error: String::new(),
            },
            Self::Rejected => End::Rejected {
                error: String::new(),
            },
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Done => "its job is done",
            Self::Failed => "its job fails",
            Self::Rejected => "its job says that no attempt can succeed",
            Self::Expired => "its lease was not renewed in time, so its job is stopped",
            Self::Zombie => "wakes up after its lease has ended, its job done",
        }
    }
}

impl World {
    /// A delivery reaches an idle worker, which claims.
    pub(super) fn deliver(&self, state: &mut State, job: usize, worker: usize, log: &mut Log) {
        let owner = state.fresh_owner();
        log.say(|| {
            format!(
                "{} gets {}, and claims as owner {}",
                Nth("worker", worker),
                Nth("job", job),
                owner.0
            )
        });
        let mut machine = Claiming::new(owner, object(job), pipeline(), self.terms());
        let step = machine.start(self.wall(state, worker));
        let call = Call {
            job,
            owner,
            began: state.now,
            machine,
            pending: Pending::Ask(Ask::Get),
            errors: 0,
            seen: None,
        };
        self.claim(state, worker, call, step, false, log);
    }

    /// The job of a holder comes to its end; a renewal on its way is dropped.
    pub(super) fn finish(&self, state: &mut State, worker: usize, how: Finish, log: &mut Log) {
        log.say(|| format!("{}: {}", Nth("worker", worker), how.as_str()));
        let hold = match &*state.workers[worker] {
            Worker::Working(hold, _) | Worker::Writing { hold, .. } => hold.clone(),
            _ => return,
        };
        let end = how.end();
        if self.control == Some(Control::FailureIsNotRecorded) && matches!(end, End::Failed { .. })
        {
            let outcome = Outcome::of_run(&end, hold.stored.record.attempt, Kept::Yes);
            return answering(state, worker, hold.job, outcome, None, false);
        }
        self.end(state, worker, hold, end, None, log);
    }

    fn end(
        &self,
        state: &mut State,
        worker: usize,
        mut hold: Hold,
        end: End,
        seen: Option<Status>,
        log: &mut Log,
    ) {
        hold.writes += 1;
        let mut machine = Holding::end(
            &hold.stored,
            hold.writes,
            end.clone(),
            &self.terms(),
            self.wall(state, worker),
        );
        let step = machine.start();
        let call = holding(state, &hold, machine, seen);
        self.hold(state, worker, hold, Some(end), call, step, log);
    }

    /// A holder sends a renewal.
    pub(super) fn renew(&self, state: &mut State, worker: usize, log: &mut Log) {
        let Worker::Working(hold, _) = &*state.workers[worker] else {
            return;
        };
        let mut hold = hold.clone();
        log.say(|| format!("{} renews its lease", Nth("worker", worker)));
        hold.writes += 1;
        let mut machine = Holding::renew(
            &hold.stored,
            hold.writes,
            self.terms().lease,
            self.wall(state, worker),
        );
        let step = machine.start();
        let call = holding(state, &hold, machine, None);
        self.hold(state, worker, hold, None, call, step, log);
    }

    /// A worker hears the store's answer.
    pub(super) fn hear(&self, state: &mut State, worker: usize, log: &mut Log) {
        let now = self.wall(state, worker);
        match (*state.workers[worker]).clone() {
            Worker::Claiming(mut call) => {
                let Pending::Answer(answer) = call.pending.clone() else {
                    return;
                };
                let own = match &answer {
                    Answer::Row(Some(row)) | Answer::Conflict(Some(row)) => {
                        row.record.owner == Some(call.owner)
                    }
                    _ => false,
                };
                if own && self.control == Some(Control::OwnWriteIsADuplicate) {
                    return answering(
                        state,
                        worker,
                        call.job,
                        Outcome::Duplicate,
                        call.seen,
                        false,
                    );
                }
                if self.gives_up(&mut call, &answer) {
                    return answering(state, worker, call.job, unavailable(), call.seen, false);
                }
                let step = call.machine.step(answer, now);
                self.claim(state, worker, call, step, own, log);
            }
            Worker::Writing {
                hold,
                end,
                mut call,
            } => {
                let Pending::Answer(answer) = call.pending.clone() else {
                    return;
                };
                let step = if self.gives_up(&mut call, &answer) {
                    Step::Finished(HolderOutcome::Unclear)
                } else {
                    call.machine.step(answer)
                };
                self.hold(state, worker, hold, end, call, step, log);
            }
            _ => {}
        }
    }

    fn gives_up<M>(&self, call: &mut Call<M>, answer: &Answer) -> bool {
        call.errors += u8::from(*answer == Answer::Unclear);
        call.errors >= self.bounds.patience
    }

    fn claim(
        &self,
        state: &mut State,
        worker: usize,
        mut call: Call<Claiming>,
        step: Step<ClaimOutcome>,
        own: bool,
        log: &mut Log,
    ) {
        let outcome = match step {
            Step::Ask(ask) => {
                log.say(|| format!("asks to {}", ask_text(&ask)));
                call.pending = Pending::Ask(ask);
                state.workers[worker] = Arc::new(Worker::Claiming(call));
                return;
            }
            Step::Finished(ClaimOutcome::Won(stored)) => {
                log.say(|| format!("has won {}", record_text(&stored.record)));
                if stored.record.owner != Some(call.owner) {
                    state.violate(Violation::WonAnothers);
                }
                let hold = Hold {
                    job: call.job,
                    owner: call.owner,
                    stored: *stored,
                    writes: call.machine.writes(),
                    until: call.began + 1,
                };
                state.workers[worker] = Arc::new(Worker::Working(hold, Recovered(own)));
                return;
            }
            Step::Finished(ClaimOutcome::Ended { record, .. }) => Outcome::of_ended(&record),
            Step::Finished(ClaimOutcome::Held { until, .. }) => Outcome::Held { until },
            // Nothing is abandoned to these workers: each runs one job at a time, and takes over.
            Step::Finished(
                ClaimOutcome::Collapsed { .. }
                | ClaimOutcome::Abandoned { .. }
                | ClaimOutcome::Unclear,
            ) => unavailable(),
        };
        log.say(|| format!("finds: {}", outcome.as_str()));
        answering(state, worker, call.job, outcome, call.seen, false);
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one worker's state, which is put together here"
    )]
    fn hold(
        &self,
        state: &mut State,
        worker: usize,
        mut hold: Hold,
        end: Option<End>,
        mut call: Call<Holding>,
        step: Step<HolderOutcome>,
        log: &mut Log,
    ) {
        let outcome = match step {
            Step::Ask(ask) => {
                log.say(|| format!("asks to {}", ask_text(&ask)));
                call.pending = Pending::Ask(ask);
                state.workers[worker] = Arc::new(Worker::Writing { hold, end, call });
                return;
            }
            Step::Finished(outcome) => outcome,
        };
        let attempt = hold.stored.record.attempt;
        let (kept, refused) = match (outcome, &end) {
            (HolderOutcome::Written(_), Some(_)) => (Kept::Yes, false),
            (HolderOutcome::Lost(_), _) => (Kept::LeaseLost, true),
            (HolderOutcome::Written(stored), None) => {
                (hold.stored, hold.until) = (stored, call.began + 1);
                state.workers[worker] = Arc::new(Worker::Working(hold, Recovered(false)));
                return;
            }
            (HolderOutcome::Unclear, None) => {
                state.workers[worker] = Arc::new(Worker::Working(hold, Recovered(false)));
                return;
            }
            (HolderOutcome::Unclear, Some(_)) if state.now < hold.until => {
                let end = end.unwrap_or_else(|| Finish::Expired.end());
                return self.end(state, worker, hold, end, call.seen, log);
            }
            (HolderOutcome::Unclear, Some(_)) => {
                return answering(state, worker, hold.job, unavailable(), call.seen, false);
            }
        };
        // Without an end it was a renewal, which can only have been refused.
        let end = end.unwrap_or_else(|| Finish::Expired.end());
        let outcome = Outcome::of_run(&end, attempt, kept);
        log.say(|| format!("finds: {}", outcome.as_str()));
        answering(state, worker, hold.job, outcome, call.seen, refused);
    }

    /// A worker tells the source, which delivers again, or not.
    pub(super) fn reply(&self, state: &mut State, worker: usize, log: &mut Log) {
        let Worker::Answering {
            job, outcome, seen, ..
        } = &*state.workers[worker]
        else {
            return;
        };
        let (job, outcome, seen) = (*job, outcome.clone(), *seen);
        state.workers[worker] = Arc::new(Worker::Idle);
        let held = matches!(outcome, Outcome::Held { .. });
        let disposition = if held && self.control == Some(Control::HeldIsAcknowledged) {
            Disposition::Ack
        } else {
            outcome.disposition()
        };
        if matches!(outcome, Outcome::Failed { .. }) && seen != Some(Status::Failed) {
            state.violate(Violation::FailureUnrecorded);
        }
        let told = match disposition {
            Disposition::Ack => {
                if !seen.is_some_and(Status::is_end) {
                    state.violate(Violation::AcknowledgedUnrecorded);
                }
                "acknowledged"
            }
            Disposition::Retry {
                not_before: Some(_),
            } => {
                state.jobs[job].waiting += 1;
                "deliver again, later"
            }
            Disposition::Retry { not_before: None } => {
                state.jobs[job].ready += 1;
                "deliver again"
            }
        };
        log.say(|| {
            format!(
                "{} answers the source: {}: {told}",
                Nth("worker", worker),
                outcome.as_str()
            )
        });
    }

    /// A worker is gone, and another stands in its place; its delivery was not acknowledged.
    pub(super) fn crash(&self, state: &mut State, worker: usize, log: &mut Log) {
        log.say(|| format!("{} crashes", Nth("worker", worker)));
        if let Some(job) = state.workers[worker].job() {
            state.jobs[job].ready += 1;
        }
        state.workers[worker] = Arc::new(Worker::Idle);
    }

    pub(super) fn wall(&self, state: &State, worker: usize) -> identity_core::claim::UnixMillis {
        state.clock(self.bounds.clocks[worker])
    }
}

impl Worker {
    /// The job whose delivery this worker has.
    pub(super) fn job(&self) -> Option<usize> {
        match self {
            Self::Idle => None,
            Self::Claiming(call) => Some(call.job),
            Self::Working(hold, _) | Self::Writing { hold, .. } => Some(hold.job),
            Self::Answering { job, .. } => Some(*job),
        }
    }
}

fn holding(state: &State, hold: &Hold, machine: Holding, seen: Option<Status>) -> Call<Holding> {
    Call {
        job: hold.job,
        owner: hold.owner,
        began: state.now,
        machine,
        pending: Pending::Ask(Ask::Get),
        errors: 0,
        seen,
    }
}

fn answering(
    state: &mut State,
    worker: usize,
    job: usize,
    outcome: Outcome,
    seen: Option<Status>,
    refused: bool,
) {
    state.workers[worker] = Arc::new(Worker::Answering {
        job,
        outcome,
        seen,
        refused,
    });
}

fn unavailable() -> Outcome {
    Outcome::Unavailable {
        part: Part::ClaimStore,
        error: String::new(),
    }
}
