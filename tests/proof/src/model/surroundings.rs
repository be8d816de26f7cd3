//! What happens without a worker: time, the source, the sweeper, other programs, an operator.

use identity_core::claim::{
    Precondition,
    machine::{Answer, released},
};

use super::{
    Action, World,
    state::{Log, Nth, State, Write, Writer},
    store::{record_text, row_text},
};

impl World {
    pub(super) fn surround(&self, state: &mut State, action: Action, log: &mut Log) {
        match action {
            Action::Tick => {
                log.say(|| "the time of a lease passes".to_owned());
                let quiet = state.is_quiet();
                state.now += 1;
                for job in &mut state.jobs {
                    job.ready += std::mem::take(&mut job.waiting);
                }
                if quiet {
                    state.count_time_anew(self.slowest());
                }
            }
            Action::Lose(job) => {
                log.say(|| format!("a delivery of {} is lost", Nth("job", job)));
                state.jobs[job].ready -= 1;
                state.jobs[job].waiting += 1;
            }
            Action::GiveUp(job) => {
                log.say(|| format!("the source gives up a message of {}", Nth("job", job)));
                let job = &mut state.jobs[job];
                if job.waiting > 0 {
                    job.waiting -= 1;
                } else {
                    job.ready -= 1;
                }
            }
            Action::Sweep(job) => {
                log.say(|| format!("a sweeper sends an event of {}", Nth("job", job)));
                state.jobs[job].ready += 1;
            }
            Action::Land(index) => {
                let write = state.late.remove(index);
                let answer = self.perform(state, &write);
                log.say(|| format!("a delayed write of {} arrives", record_text(&write.record)));
                log.store(&answer);
            }
            Action::Flip(job) => {
                log.say(|| format!("another program sets {} to done", Nth("job", job)));
                self.flip(state, job);
            }
            Action::Delete(job) => {
                log.say(|| {
                    let row = row_text(state.jobs[job].row.as_deref());
                    format!(
                        "the store deletes the expired row of {}: {row}",
                        Nth("job", job)
                    )
                });
                Self::delete(state, job);
            }
            Action::Look(job) => {
                log.say(|| format!("an operator looks at {}", Nth("job", job)));
                let job = &mut state.jobs[job];
                job.operator = job.row.clone();
            }
            Action::Release(job) => self.release(state, job, log),
            _ => {}
        }
    }

    /// The operator writes what the shipped command would, and if the row has changed looks again. What is released is
    /// delivered again.
    fn release(&self, state: &mut State, job: usize, log: &mut Log) {
        let Some(row) = state.jobs[job].operator.take() else {
            return;
        };
        let owner = state.fresh_owner();
        let record = Box::new(released(&row.record, owner, state.clock(0)));
        let when = Some(Precondition::Unchanged(row.version.clone()));
        log.say(|| format!("the operator asks to write {}", record_text(&record)));
        let answer = self.perform(
            state,
            &Write {
                job,
                by: Writer::Operator,
                record,
                when,
            },
        );
        log.store(&answer);
        if matches!(answer, Answer::Written(_)) {
            state.jobs[job].ready += 1;
        } else {
            state.jobs[job].operator = state.jobs[job].row.clone();
        }
    }
}
