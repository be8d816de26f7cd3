//! What can happen next.

use identity_core::claim::Status;

use super::{
    World,
    state::{Log, State, Worker},
    store::Fate,
    worker::Finish,
};

/// One thing that happens. Jobs and workers are counted from 0, and told to people from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A lease's length of time passes.
    Tick,
    /// The source delivers a message to a worker, which claims.
    Deliver(usize, usize),
    /// The source delivers a job's message once more, whatever became of it.
    Duplicate(usize, usize),
    /// A delivery of a job is lost.
    Lose(usize),
    /// The source gives up a message of a job.
    GiveUp(usize),
    /// A sweeper sends an event of a job that nobody redelivers.
    Sweep(usize),
    /// The store does what a worker asks.
    Store(usize, Fate),
    /// A worker hears what the store answered.
    Hear(usize),
    /// A holder's job comes to its end.
    Finish(usize, Finish),
    /// A holder renews its lease.
    Renew(usize),
    /// A worker answers the source.
    Reply(usize),
    /// A worker crashes.
    Crash(usize),
    /// A write arrives that was on its way.
    Land(usize),
    /// Another program sets a job's row to `done`.
    Flip(usize),
    /// The store deletes a job's expired row.
    Delete(usize),
    /// An operator who wants to release a job looks at its row.
    Look(usize),
    /// The operator releases it.
    Release(usize),
}

impl Action {
    /// Whether it happens sooner or later if nothing else does; the rest are the world's whims.
    pub(super) fn is_bound_to_happen(self) -> bool {
        match self {
            Self::Tick
            | Self::Deliver(..)
            | Self::Sweep(_)
            | Self::Hear(_)
            | Self::Reply(_)
            | Self::Land(_)
            | Self::Release(_)
            | Self::Store(_, Fate::Answered)
            | Self::Finish(_, Finish::Done | Finish::Expired) => true,
            Self::Duplicate(..)
            | Self::Lose(_)
            | Self::GiveUp(_)
            | Self::Store(..)
            | Self::Finish(..)
            | Self::Renew(_)
            | Self::Crash(_)
            | Self::Flip(_)
            | Self::Delete(_)
            | Self::Look(_) => false,
        }
    }
}

impl World {
    /// Everything that can happen next. Each of it changes the state.
    pub(super) fn possible(&self, state: &State, actions: &mut Vec<Action>) {
        if state.violation.is_some() {
            return;
        }
        (0..state.workers.len()).for_each(|worker| self.of_worker(state, worker, actions));
        (0..state.jobs.len()).for_each(|job| self.of_job(state, job, actions));
        actions.extend((0..state.late.len()).map(Action::Land));
        if self.time_matters(state) {
            actions.push(Action::Tick);
        }
    }

    fn of_worker(&self, state: &State, worker: usize, actions: &mut Vec<Action>) {
        let left = &state.left;
        let at = &*state.workers[worker];
        if let Some((_, write)) = self.question(state, worker) {
            actions.push(Action::Store(worker, Fate::Answered));
            if left.faults > 0 {
                actions.push(Action::Store(worker, Fate::FailedBefore));
            }
            let takes_place = write
                .as_ref()
                .is_some_and(|write| Self::holds(state, write));
            if left.faults > 0 && write.is_some() {
                actions.push(Action::Store(worker, Fate::Late));
            }
            if left.faults > 0 && takes_place {
                let fates = [Fate::ReplyLost, Fate::Resent, Fate::ResentLate];
                actions.extend(fates.map(|fate| Action::Store(worker, fate)));
            }
            if left.crashes > 0 && takes_place && !self.bounds.slow_replies {
                actions.push(Action::Store(worker, Fate::ThenCrash));
            }
        } else if matches!(at, Worker::Claiming(_) | Worker::Writing { .. }) {
            actions.push(Action::Hear(worker));
        }
        let holds = match at {
            Worker::Working(hold, _)
            | Worker::Writing {
                hold, end: None, ..
            } => Some(hold),
            _ => None,
        };
        if let Some(hold) = holds {
            let mut finish = |allowed: bool, how| {
                if allowed {
                    actions.push(Action::Finish(worker, how));
                }
            };
            let expired = state.now >= hold.until;
            finish(!expired, Finish::Done);
            finish(!expired && left.failures > 0, Finish::Failed);
            finish(!expired && left.rejections > 0, Finish::Rejected);
            finish(expired, Finish::Expired);
            finish(expired && left.zombies > 0, Finish::Zombie);
            if matches!(at, Worker::Working(..)) && !expired && left.renewals > 0 {
                actions.push(Action::Renew(worker));
            }
        }
        if matches!(at, Worker::Answering { .. }) {
            actions.push(Action::Reply(worker));
        }
        if left.crashes > 0 && *at != Worker::Idle {
            actions.push(Action::Crash(worker));
        }
    }

    fn of_job(&self, state: &State, number: usize, actions: &mut Vec<Action>) {
        let left = &state.left;
        let job = &state.jobs[number];
        for worker in self.idle(state) {
            if job.ready > 0 {
                actions.push(Action::Deliver(number, worker));
            }
            if left.duplicates > 0 {
                actions.push(Action::Duplicate(number, worker));
            }
        }
        let row = job.row.as_deref().map(|row| &row.record);
        let mut may = |allowed: bool, action| {
            if allowed {
                actions.push(action);
            }
        };
        may(left.losses > 0 && job.ready > 0, Action::Lose(number));
        let unfinished = row.is_some_and(|row| !row.status.is_end());
        may(
            left.given_up > 0 && unfinished && job.ready + job.waiting > 0,
            Action::GiveUp(number),
        );
        let silent = job.ready + job.waiting == 0
            && state
                .workers
                .iter()
                .all(|worker| worker.job() != Some(number));
        let stuck = row.is_some_and(|row| match row.status {
            Status::Failed => true,
            Status::Processing => row.lease_end() <= state.clock(0),
            _ => false,
        });
        may(silent && stuck, Action::Sweep(number));
        may(
            left.flips > 0 && row.is_some_and(|row| row.status != Status::Done),
            Action::Flip(number),
        );
        let expired = row
            .and_then(|row| row.expires_at)
            .is_some_and(|at| at <= state.clock(0).seconds());
        may(left.deletions > 0 && expired, Action::Delete(number));
        may(
            left.releases > 0 && row.is_some() && job.operator.is_none(),
            Action::Look(number),
        );
        may(job.operator.is_some(), Action::Release(number));
    }

    /// Workers that a message can be given to: of those with nothing to do and the same clock one is as good as another.
    fn idle<'a>(&'a self, state: &'a State) -> impl Iterator<Item = usize> + 'a {
        let clocks = self.bounds.clocks;
        let idle = move |worker: &usize| *state.workers[*worker] == Worker::Idle;
        let first = move |worker: &usize| {
            !(0..*worker).any(|other| idle(&other) && clocks[other] == clocks[*worker])
        };
        (0..clocks.len()).filter(idle).filter(first)
    }

    /// Whether the passing of time can change what somebody does, and may.
    fn time_matters(&self, state: &State) -> bool {
        let slowest = state.clock(self.slowest());
        let for_workers = state.workers.iter().any(|worker| match &**worker {
            Worker::Claiming(call) => call.began == state.now,
            Worker::Working(hold, _) => hold.until > state.now,
            Worker::Writing { hold, call, .. } => hold.until > state.now || call.began == state.now,
            Worker::Idle | Worker::Answering { .. } => false,
        });
        let for_jobs = state.jobs.iter().any(|job| {
            let row = job.row.as_deref().map(|row| &row.record);
            let held = row
                .is_some_and(|row| row.status == Status::Processing && row.lease_end() > slowest);
            let kept = row.and_then(|row| row.expires_at);
            job.waiting > 0
                || held
                || state.left.deletions > 0 && kept.is_some_and(|at| at > state.clock(0).seconds())
        });
        (for_workers || for_jobs) && (state.left.delays > 0 || state.is_quiet())
    }

    /// How far ahead the slowest clock is, the store's and the sweeper's among them.
    pub(super) fn slowest(&self) -> i64 {
        self.bounds.clocks.iter().copied().min().unwrap_or(0).min(0)
    }

    /// Lets it happen.
    pub(super) fn act(&self, state: &mut State, action: Action, log: &mut Log) {
        let quiet = state.is_quiet();
        let left = &mut state.left;
        let costs = match action {
            Action::Store(_, Fate::Answered) => None,
            Action::Tick if !quiet => Some(&mut left.delays),
            Action::Store(_, Fate::ThenCrash) | Action::Crash(_) => Some(&mut left.crashes),
            Action::Store(..) => Some(&mut left.faults),
            Action::Duplicate(..) => Some(&mut left.duplicates),
            Action::Lose(_) => Some(&mut left.losses),
            Action::GiveUp(_) => Some(&mut left.given_up),
            Action::Finish(_, Finish::Failed) => Some(&mut left.failures),
            Action::Finish(_, Finish::Rejected) => Some(&mut left.rejections),
            Action::Finish(_, Finish::Zombie) => Some(&mut left.zombies),
            Action::Renew(_) => Some(&mut left.renewals),
            Action::Flip(_) => Some(&mut left.flips),
            Action::Delete(_) => Some(&mut left.deletions),
            Action::Look(_) => Some(&mut left.releases),
            _ => None,
        };
        if let Some(budget) = costs {
            *budget -= 1;
        }
        match action {
            Action::Store(worker, fate) => self.ask(state, worker, fate, log),
            Action::Hear(worker) => {
                log.say(|| format!("{} hears the answer", super::state::Nth("worker", worker)));
                self.hear(state, worker, log);
            }
            Action::Deliver(job, worker) => {
                state.jobs[job].ready -= 1;
                self.deliver(state, job, worker, log);
            }
            Action::Duplicate(job, worker) => self.deliver(state, job, worker, log),
            Action::Finish(worker, how) => self.finish(state, worker, how, log),
            Action::Renew(worker) => self.renew(state, worker, log),
            Action::Reply(worker) => self.reply(state, worker, log),
            Action::Crash(worker) => self.crash(state, worker, log),
            other => self.surround(state, other, log),
        }
    }
}
