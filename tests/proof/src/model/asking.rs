//! A worker's question on its way to the store, and the answer on its way back.

use std::sync::Arc;

use identity_core::claim::{
    Status,
    machine::{Answer, Ask},
};

use super::{
    Control, World,
    state::{Log, Nth, Pending, State, Worker, Write, Writer},
    store::Fate,
};

impl World {
    /// The store does what the worker asks, or not, and the worker hears of it, or not.
    pub(super) fn ask(&self, state: &mut State, worker: usize, fate: Fate, log: &mut Log) {
        let who = Nth("worker", worker);
        log.say(|| match fate {
            Fate::Answered => format!("{who} is answered"),
            Fate::ReplyLost => format!("the store does what {who} asks, and the reply is lost"),
            Fate::FailedBefore => format!("what {who} asks fails before it takes place"),
            Fate::Late => format!("what {who} asks is delayed on its way"),
            Fate::Resent => format!("what {who} asks is sent twice"),
            Fate::ResentLate => format!("what {who} asks is sent twice, once with a delay"),
            Fate::ThenCrash => {
                format!("the store does what {who} asks, and the worker crashes")
            }
        });
        let Some((job, write)) = self.question(state, worker) else {
            return;
        };
        let Some(write) = write else {
            let answer = if fate == Fate::Answered {
                Self::read(state, job)
            } else {
                Answer::Unclear
            };
            return self.answered(state, worker, job, answer, log);
        };
        let answer = match fate {
            Fate::Answered | Fate::ThenCrash => self.perform(state, &write),
            Fate::Resent => {
                self.perform(state, &write);
                self.perform(state, &write)
            }
            Fate::ResentLate => {
                state.late.push(Arc::new(write.clone()));
                self.perform(state, &write)
            }
            Fate::ReplyLost => {
                self.perform(state, &write);
                Answer::Unclear
            }
            Fate::FailedBefore => Answer::Unclear,
            Fate::Late => {
                state.late.push(Arc::new(write));
                Answer::Unclear
            }
        };
        if fate == Fate::ThenCrash {
            return self.crash(state, worker, log);
        }
        self.answered(state, worker, job, answer, log);
    }

    /// The job, and the write if it is one, that a worker waits for the store to do.
    pub(super) fn question(&self, state: &State, worker: usize) -> Option<(usize, Option<Write>)> {
        let (job, by, pending) = match &*state.workers[worker] {
            Worker::Claiming(call) => (call.job, Writer::Claim, &call.pending),
            Worker::Writing { call, .. } => (call.job, Writer::Holder, &call.pending),
            _ => return None,
        };
        let Pending::Ask(ask) = pending else {
            return None;
        };
        let Ask::Put { record, when } = ask else {
            return Some((job, None));
        };
        let mut when = Some(when.clone());
        if let Worker::Writing {
            hold, end: Some(_), ..
        } = &*state.workers[worker]
        {
            let lasts = hold.stored.record.lease_end() > self.wall(state, worker);
            match self.control {
                Some(Control::EndWithoutCondition) => when = None,
                Some(Control::WallClockDecidesEnds) if lasts => when = None,
                _ => {}
            }
        }
        Some((
            job,
            Some(Write {
                job,
                by,
                record: record.clone(),
                when,
            }),
        ))
    }

    fn answered(
        &self,
        state: &mut State,
        worker: usize,
        job: usize,
        answer: Answer,
        log: &mut Log,
    ) {
        log.store(&answer);
        let row = state.jobs[job].row.clone();
        let told = answer != Answer::Unclear;
        let seen = |owner| {
            let record = &row.as_ref().filter(|_| told)?.record;
            let own_failure = record.status == Status::Failed && record.owner == Some(owner);
            (record.status.is_end() || own_failure).then_some(record.status)
        };
        match Arc::make_mut(&mut state.workers[worker]) {
            Worker::Claiming(call) => {
                call.seen = seen(call.owner).or(call.seen);
                call.pending = Pending::Answer(answer);
            }
            Worker::Writing { call, .. } => {
                call.seen = seen(call.owner).or(call.seen);
                call.pending = Pending::Answer(answer);
            }
            _ => return,
        }
        if !self.bounds.slow_replies {
            self.hear(state, worker, log);
        }
    }
}
