//! The properties: what was written, run, effected and answered, each checked at the moment it happens.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use identity_core::{
    claim::{ClaimKey, Owner, Reason, Record, Status},
    gate::{NoJob, Outcome, Settled},
};
use tokio::time::Instant;

use super::{
    plan::JobName,
    process::Process,
    world::{State, World},
};

/// All that was seen of every job.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    jobs: BTreeMap<ClaimKey, History>,
    /// Jobs that an event named: each must end.
    pub(super) expected: BTreeSet<JobName>,
    pub(super) lasted: Duration,
    runs: u64,
}

/// All that was seen of one job.
#[derive(Debug, Default)]
struct History {
    /// Who held it once and lost it. A claim call that lost an attempt before it knew of it may win a later one.
    losers: BTreeSet<(Owner, u32)>,
    /// Whose winning write got no answer.
    unanswered: BTreeSet<Owner>,
    ended: bool,
    done: bool,
    deletions: u32,
    running: Vec<Run>,
    /// Attempts that the sink has seen, since the row was made.
    effects: BTreeSet<u32>,
}

#[derive(Debug)]
struct Run {
    id: u64,
    process: Arc<Process>,
    attempt: u32,
    started: Instant,
}

impl Run {
    /// Whether it is known to have stopped, or may be behind because its process was frozen.
    fn is_excused(&self) -> bool {
        self.process.is_dead() || self.process.was_frozen_since(self.started)
    }
}

/// Who holds the row, as which attempt.
fn holder(record: &Record) -> Option<(Owner, u32)> {
    record.owner.map(|owner| (owner, record.attempt))
}

impl Ledger {
    fn job(&mut self, key: &ClaimKey) -> &mut History {
        self.jobs.entry(key.clone()).or_default()
    }

    pub(super) fn has_ended(&self, key: &ClaimKey) -> bool {
        self.jobs.get(key).is_some_and(|job| job.ended)
    }

    pub(super) fn is_idle(&self) -> bool {
        let at_work = |run: &Run| !run.process.is_dead();
        !self
            .jobs
            .values()
            .any(|job| job.running.iter().any(at_work))
    }

    pub(super) fn unanswered(&mut self, key: &ClaimKey, record: &Record) {
        if record.status == Status::Processing {
            self.job(key).unanswered.extend(record.owner);
        }
    }

    /// A foreign program set it to done.
    pub(super) fn flipped(&mut self, key: &ClaimKey) {
        let job = self.job(key);
        (job.ended, job.done) = (true, true);
    }

    /// Its row has expired and was deleted; a sink forgets it as well.
    pub(super) fn deleted(&mut self, key: &ClaimKey) {
        let job = self.job(key);
        job.deletions += 1;
        job.effects.clear();
    }
}

impl World {
    /// A write of ours was committed over `before`.
    pub(super) fn committed(
        &self,
        state: &mut State,
        key: &ClaimKey,
        before: Option<&Record>,
        after: &Record,
    ) {
        let checked = self.check_write(state, key, before, after);
        state.check(checked);
        let newest_end = self.now().0
            + i64::try_from((self.plan.skew + self.plan.lease).as_millis()).unwrap_or(0);
        if after.status == Status::Processing && after.lease_end().0 > newest_end {
            state.violated(format!(
                "a lease is longer than any term: it ends at {:?}",
                after.lease_until
            ));
        }
        let job = state.ledger.job(key);
        let holder = before.and_then(holder);
        job.losers
            .extend(holder.filter(|holder| self::holder(after) != Some(*holder)));
        if after.status.is_end() {
            job.ended = true;
            job.done |= after.status == Status::Done;
        }
    }

    fn check_write(
        &self,
        state: &mut State,
        key: &ClaimKey,
        before: Option<&Record>,
        after: &Record,
    ) -> Result<(), String> {
        let job = state.ledger.job(key);
        // A first claim that is later than the row's whole life makes it anew: that is why rows are kept for days.
        if let (true, None, Some(holder)) = (self.plan.short_memory, before, holder(after)) {
            job.losers.remove(&holder);
        }
        if holder(after).is_some_and(|holder| job.losers.contains(&holder)) {
            return Err(format!(
                "a zombie recorded {} as attempt {}",
                after.status, after.attempt
            ));
        }
        let Some(before) = before else {
            if after.attempt != 1 {
                return Err(format!("a new row has attempt {}", after.attempt));
            }
            return Ok(());
        };
        if before.status.is_end() {
            return Err(format!(
                "an end changed: {} became {}",
                before.status, after.status
            ));
        }
        let same_owner = holder(before).is_some() && holder(before) == holder(after);
        let grown = before.attempt + u32::from(after.status == Status::Processing && !same_owner);
        if after.attempt != grown {
            return Err(format!(
                "attempt {} became {}",
                before.attempt, after.attempt
            ));
        }
        let exhausted = after.reason == Some(Reason::Exhausted);
        match (before.status, after.status) {
            (Status::Processing, Status::Processing) if !same_owner => state.saw("takeover"),
            (Status::Failed, Status::Processing) => state.saw("retry after failure"),
            (_, Status::Rejected) if exhausted => state.saw("exhaustion"),
            (Status::Processing, _) if same_owner => {}
            _ => {
                return Err(format!(
                    "{} became {} by another hand",
                    before.status, after.status
                ));
            }
        }
        if after.status == Status::Done {
            self.check_done(state, key, after)?;
        }
        Ok(())
    }

    /// `done` must rest on an effect, on a newer version's job, or on the object's being gone.
    fn check_done(&self, state: &mut State, key: &ClaimKey, after: &Record) -> Result<(), String> {
        let Some(name) = self.catalogue.job(key) else {
            return Err(format!("there is no job {key}"));
        };
        match after.reason {
            None => {
                let last = state.ledger.job(key).effects.last().copied();
                if last != Some(after.attempt) && !self.plan.short_memory {
                    return Err(format!(
                        "attempt {} is done, and the sink holds {last:?}",
                        after.attempt
                    ));
                }
            }
            Some(Reason::Superseded) => {
                state.saw("superseded");
                let note = after.error.clone().unwrap_or_default();
                let versions =
                    (0..super::plan::MAX_VERSIONS).filter(|version| *version != name.version);
                let by = versions
                    .map(|version| self.catalogue.key(JobName { version, ..name }))
                    .find(|key| {
                        self.catalogue.job(key).is_some_and(|job| {
                            note == format!("superseded by {}", self.catalogue.version(job).token)
                        })
                    });
                if !by.is_some_and(|by| state.ledger.job(by).done) {
                    return Err(format!("{note}, whose job is not done"));
                }
            }
            Some(Reason::Gone) => {
                state.saw("gone");
                if !state.objects[name.object].was_gone {
                    return Err("done as gone, and the object was always there".to_owned());
                }
            }
            Some(reason) => return Err(format!("done because {}", reason.as_str())),
        }
        Ok(())
    }

    /// A write was refused.
    pub(super) fn refused(&self, state: &mut State, key: &ClaimKey, record: &Record) {
        let losers = &state.ledger.job(key).losers;
        let zombie = holder(record).is_some_and(|holder| losers.contains(&holder));
        if zombie {
            state.saw("zombie refused");
        }
    }

    /// A run starts. Returns its number.
    pub(super) fn run_started(
        &self,
        process: &Arc<Process>,
        key: &ClaimKey,
        owner: Owner,
        attempt: u32,
    ) -> u64 {
        self.with(|state| {
            state.ledger.runs += 1;
            let id = state.ledger.runs;
            let job = state.ledger.job(key);
            let recovered = job.unanswered.contains(&owner);
            let beside = job
                .running
                .iter()
                .find(|run| !run.is_excused())
                .map(|run| (run.attempt, run.process.name.clone()));
            job.running.push(Run {
                id,
                process: process.clone(),
                attempt,
                started: Instant::now(),
            });
            if recovered {
                state.saw("lost reply recovered");
            }
            if let Some((other, whose)) = beside {
                if self.plan.clocks_agree {
                    state.violated(format!(
                        "attempt {attempt} runs beside attempt {other} on {whose}"
                    ));
                } else {
                    state.saw("two runs at once by wrong clocks");
                }
            }
            id
        })
    }

    /// A run has stopped, its lease being confirmed for `left` more; `None` if it is over.
    pub(super) fn run_stopped(&self, key: &ClaimKey, id: u64, left: Option<Duration>) {
        self.with(|state| {
            let running = &mut state.ledger.job(key).running;
            let Some(at) = running.iter().position(|run| run.id == id) else {
                return;
            };
            let run = running.remove(at);
            if left.is_none() && !run.is_excused() {
                state.violated(format!("attempt {} ran on after its lease", run.attempt));
            }
        });
    }

    /// The job's effect reaches the sink, which refuses attempts older than the newest it has seen.
    pub(super) fn effect(&self, key: &ClaimKey, attempt: u32, who: &str) {
        self.with(|state| {
            let effects = &mut state.ledger.job(key).effects;
            let newest = effects.last().copied();
            if newest == Some(attempt) && !self.plan.short_memory {
                state.violated(format!("attempt {attempt} took effect twice"));
            } else if newest > Some(attempt) {
                state.saw("zombie refused by the sink");
                state.tell(who, "effect refused by the sink");
            } else {
                effects.insert(attempt);
                state.tell(who, format_args!("effect of attempt {attempt}"));
            }
        });
    }

    /// The gate answered.
    pub(super) fn answered(&self, state: &mut State, settled: &Settled, acknowledged: bool) {
        match &settled.outcome {
            Outcome::Duplicate => state.saw("duplicate skipped"),
            Outcome::Held { .. } => state.saw("held duplicate returned"),
            Outcome::LeaseLost { .. } => state.saw("lease lost"),
            _ => {}
        }
        let checked = self.check_answer(state, settled, acknowledged);
        state.check(
            checked.map_err(|what| format!("answered {}: {what}", settled.outcome.as_str())),
        );
    }

    fn check_answer(
        &self,
        state: &mut State,
        settled: &Settled,
        acknowledged: bool,
    ) -> Result<(), String> {
        let Some(key) = &settled.key else {
            let gone = settled.outcome == Outcome::Ignored(NoJob::Gone);
            let justified = gone && state.objects.iter().any(|object| object.was_gone);
            if acknowledged && !justified {
                return Err("acknowledged without a job".to_owned());
            }
            return Ok(());
        };
        let row = state.rows.get(key).map(|row| row.record.clone());
        let job = state.ledger.job(key);
        let was_deleted = job.deletions > 0;
        let recorded = row.as_ref().is_some_and(|row| {
            matches!(
                row.status,
                Status::Done | Status::Rejected | Status::Waiting
            )
        });
        if acknowledged && !recorded && !(was_deleted && job.done) {
            let stands = row.map_or("nothing", |row| row.status.as_str());
            return Err(format!("acknowledged, and what stands there is {stands}"));
        }
        let over = match &settled.outcome {
            Outcome::Failed { attempt, .. } | Outcome::LeaseLost { attempt } => *attempt,
            _ => return Ok(()),
        };
        let still = row.is_some_and(|row| row.status == Status::Processing && row.attempt == over);
        if still && !was_deleted {
            return Err(format!("attempt {over} is over and still holds its row"));
        }
        Ok(())
    }

    /// What has not ended although all is quiet.
    pub(super) fn unended(&self, state: &State) -> Vec<JobName> {
        let ended = |job: &JobName| state.ledger.has_ended(self.catalogue.key(*job));
        let expected = state.ledger.expected.iter().copied();
        expected.filter(|job| !ended(job)).collect()
    }
}
