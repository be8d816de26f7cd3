//! The model's store: compare-and-swap rows with versions as the real stores form them, and what it does to writes.
//! Every write is judged here.

use std::sync::Arc;

use identity_core::claim::{
    Precondition, Record, Status, Stored, UnixSeconds, Version,
    machine::{Answer, Ask},
};

use super::{
    Control, World,
    state::{LEASE, Log, State, Violation, Write, Writer},
};

/// What becomes of a question on its way to the store and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It is answered.
    Answered,
    /// It takes place; the reply is lost.
    ReplyLost,
    /// It never takes place, and there is an error.
    FailedBefore,
    /// There is an error, and it takes place at some time later.
    Late,
    /// It is sent twice: the second send meets the first one's row, and that is the answer.
    Resent,
    /// It is sent twice: the first send is answered, the second arrives at some time later.
    ResentLate,
    /// It takes place, and the worker crashes before it hears so.
    ThenCrash,
}

impl World {
    /// How the store names a state of a row.
    fn version(&self, record: &Record, standing: Option<&Stored>) -> Version {
        if self.control == Some(Control::VersionIsACounter) {
            let before = standing.and_then(|row| row.version.0.parse::<u32>().ok());
            return Version((before.unwrap_or(0) + 1).to_string());
        }
        let revision = record
            .revision
            .map_or_else(String::new, |it| format!("{:x}.{}", it.owner.0, it.write));
        let owner = record.owner.map_or(0, |owner| owner.0);
        Version(format!(
            "{revision} {owner:x} {} {}",
            record.attempt, record.status
        ))
    }

    /// Whether the write would take place now.
    pub(super) fn holds(state: &State, write: &Write) -> bool {
        match (&write.when, &state.jobs[write.job].row) {
            (None, _) | (Some(Precondition::Absent), None) => true,
            (Some(Precondition::Unchanged(version)), Some(row)) => row.version == *version,
            _ => false,
        }
    }

    /// The store does what it is asked. The answer is what it says, if the reply arrives.
    pub(super) fn perform(&self, state: &mut State, write: &Write) -> Answer {
        if !Self::holds(state, write) {
            let standing = state.jobs[write.job].row.as_deref().cloned();
            return Answer::Conflict(standing.filter(|_| self.bounds.store_tells));
        }
        let mut record = (*write.record).clone();
        // No decision rests on them, and without them there are fewer states.
        (record.claimed_at, record.finished_at) = (UnixSeconds(0), None);
        if self.bounds.budget.deletions == 0 {
            record.expires_at = None;
        }
        if self.control == Some(Control::ExpiryIsSetAtClaim) && record.status == Status::Processing
        {
            record.expires_at = Some(state.clock(0).plus(LEASE).seconds());
        }
        self.judge(state, write, &record);
        let version = self.version(&record, state.jobs[write.job].row.as_deref());
        state.jobs[write.job].row = Some(Arc::new(Stored {
            record,
            version: version.clone(),
        }));
        Answer::Written(version)
    }

    /// Reads a row.
    pub(super) fn read(state: &State, job: usize) -> Answer {
        Answer::Row(state.jobs[job].row.as_deref().cloned())
    }

    /// Whether this write may be, given what it writes over.
    fn judge(&self, state: &mut State, write: &Write, record: &Record) {
        let job = &mut state.jobs[write.job];
        let old = job.row.as_deref().map(|row| &row.record);
        let over_end = old.is_some_and(|old| old.status.is_end());
        let mut found = None;
        let mut forbid = |broken: bool, violation| {
            if broken {
                found.get_or_insert(violation);
            }
        };
        match write.by {
            Writer::Claim => {
                forbid(over_end, Violation::EndChanged);
                let won = record.status == Status::Processing;
                // An exhausted claim is ended under the number of its last attempt.
                let number = if won { job.highest + 1 } else { job.highest };
                forbid(record.attempt < number, Violation::AttemptRepeated);
            }
            Writer::Holder => {
                forbid(over_end, Violation::EndChanged);
                let own = old.is_some_and(|old| {
                    old.status == Status::Processing
                        && old.owner == record.owner
                        && old.attempt == record.attempt
                });
                forbid(!own, Violation::ZombieWrote);
            }
            Writer::Operator => {
                let kept = old.is_some_and(|old| old.attempt == record.attempt);
                forbid(
                    record.status != Status::Failed || !kept,
                    Violation::ReleaseEnded,
                );
                job.ends = 0;
            }
        }
        job.ends += u8::from(record.status.is_end());
        forbid(job.ends > 1, Violation::TwoEnds);
        job.highest = job.highest.max(record.attempt);
        if let Some(violation) = found {
            state.violate(violation);
        }
    }

    /// Another program sets the status to `done` and touches nothing else: what the published handler does.
    pub(super) fn flip(&self, state: &mut State, job: usize) {
        let Some(row) = &state.jobs[job].row else {
            return;
        };
        let record = Record {
            status: Status::Done,
            ..row.record.clone()
        };
        // A counter is a column like the others, and stays as it is.
        let version = match self.control {
            Some(Control::VersionIsACounter) => row.version.clone(),
            _ => self.version(&record, Some(row)),
        };
        state.jobs[job].row = Some(Arc::new(Stored { record, version }));
    }

    /// The store deletes a row whose time has passed. What is known of its attempts ends with it only if it was done.
    pub(super) fn delete(state: &mut State, job: usize) {
        let job = &mut state.jobs[job];
        if job
            .row
            .take()
            .is_some_and(|row| row.record.status == Status::Done)
        {
            (job.highest, job.ends, job.forgotten) = (0, 0, true);
        }
    }
}

/// A row in a few words.
pub(super) fn row_text(row: Option<&Stored>) -> String {
    row.map_or_else(|| "no row".to_owned(), |row| record_text(&row.record))
}

/// A record in a few words.
pub(super) fn record_text(record: &Record) -> String {
    let owner = record.owner.map_or(0, |owner| owner.0);
    format!(
        "{} (attempt {}, owner {owner})",
        record.status, record.attempt
    )
}

/// A question in a few words.
pub(super) fn ask_text(ask: &Ask) -> String {
    match ask {
        Ask::Get => "read the row".to_owned(),
        Ask::Put {
            record,
            when: Precondition::Absent,
        } => format!("write {} if there is no row", record_text(record)),
        Ask::Put { record, .. } => format!("write {} if the row is unchanged", record_text(record)),
    }
}

/// An answer in a few words.
pub(super) fn answer_text(answer: &Answer) -> String {
    match answer {
        Answer::Row(row) => row_text(row.as_ref()),
        Answer::Written(_) => "written".to_owned(),
        Answer::Conflict(Some(row)) => format!("conflict: {}", record_text(&row.record)),
        Answer::Conflict(None) => "conflict".to_owned(),
        Answer::Unclear => "an error".to_owned(),
    }
}

impl Log {
    pub(super) fn store(&mut self, answer: &Answer) {
        self.say(|| format!("store: {}", answer_text(answer)));
    }
}
