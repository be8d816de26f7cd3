//! The claim protocol, pure: given what a store answered, what to ask next or what the answer is.
//!
//! Three calls, each a value that is stepped: [`Claiming`] (who may run the job), [`Holding`] (a holder's write: a
//! renewal or an end) and [`Recording`] (a rejection without an attempt). They hold no store, no clock and no
//! randomness: the driver in [`lease`](super::lease) and the model checker step the same code.
//!
//! The rule that carries the protocol: **a lost reply is not a duplicate**. After a conflict or an unclear answer the
//! row is looked at; if its owner is this call's own, the write took place. (SDKs send writes again by themselves and
//! then meet their own.)

use std::time::Duration;

use super::{
    duplicate::{Likeness, compare},
    record::{
        Owner, Reason, Record, RecordedObject, RecordedPipeline, Release, Revision, Status,
        UnixMillis,
    },
    store::{Precondition, Stored, Version},
};

/// How long leases are and how often a job is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Terms {
    /// How long a claim is its holder's alone unless it is renewed. Zero is a lease that ends at once, not none.
    pub lease: Duration,
    /// Attempts beyond this many become `rejected(exhausted)`.
    pub max_attempts: u32,
    /// How long a `done` row is kept at least: not shorter than the longest redelivery of the source.
    pub done_ttl: Duration,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(120),
            max_attempts: 10,
            done_ttl: Duration::from_secs(14 * 24 * 60 * 60),
        }
    }
}

impl Terms {
    /// The longest lease that anybody should hold from now: ours, or that of a row whose writer knows none. A lease
    /// end beyond it is another machine's wrong clock, and is reported.
    pub(crate) fn longest_lease(&self) -> Duration {
        self.lease.max(Duration::from_secs(
            Record::FOREIGN_LEASE_SECONDS.unsigned_abs(),
        ))
    }
}

/// What a call asks of the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Ask {
    /// Read the row.
    Get,
    /// Write the row under a condition.
    Put {
        /// What to write.
        record: Box<Record>,
        /// Only if this holds.
        when: Precondition,
    },
}

/// What the store answered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Answer {
    /// To a read.
    Row(Option<Stored>),
    /// The write took place.
    Written(Version),
    /// The condition did not hold; the row, if the store told it.
    Conflict(Option<Stored>),
    /// An error that does not say whether the write took place, or what stands there.
    Unclear,
}

/// What to do after an answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Step<T> {
    /// Ask the store, and step again with its answer.
    Ask(Ask),
    /// The call is over.
    Finished(T),
}

/// How many questions one call asks before it gives up as [`ClaimOutcome::Unclear`]. Each conflict means that somebody
/// else got on, so only a store in trouble, or a very hot row, comes near it.
const MAX_ASKS: u32 = 16;

/// How a claim call ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ClaimOutcome {
    /// The job is this call's to run.
    Won(Box<Stored>),
    /// The job has ended: `done` or `rejected`.
    Ended {
        /// What stands under the key.
        record: Box<Record>,
        /// How it compares with this event; never [`Likeness::Different`].
        likeness: Likeness,
    },
    /// Somebody else is at it.
    Held {
        /// What stands under the key.
        record: Box<Record>,
        /// When the lease ends if it is not renewed.
        until: UnixMillis,
        /// The lease ends later than any lease should: somebody's clock is wrong.
        suspicious: bool,
    },
    /// Another job stands under this job's ID.
    Collapsed {
        /// The other job.
        record: Box<Record>,
        /// What differs.
        differing: Vec<&'static str>,
    },
    /// Its holder went away without a word, and this call is of one that runs other jobs, too ([`Claiming::beside_others`]).
    /// Nothing was written.
    Abandoned {
        /// What stands under the key.
        record: Box<Record>,
    },
    /// The store did not say, or the row changed too often.
    Unclear,
}

/// One call to claim a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claiming {
    owner: Owner,
    object: RecordedObject,
    pipeline: RecordedPipeline,
    terms: Terms,
    beside_others: bool,
    writes: u32,
    asks: u32,
    /// The record of the last write that was asked for.
    pending: Option<Box<Record>>,
}

impl Claiming {
    /// A call by `owner`, who has never called before, for the job that `object` and `pipeline` describe.
    pub fn new(
        owner: Owner,
        object: RecordedObject,
        pipeline: RecordedPipeline,
        terms: Terms,
    ) -> Self {
        Self {
            owner,
            object,
            pipeline,
            terms,
            beside_others: false,
            writes: 0,
            asks: 0,
            pending: None,
        }
    }

    /// The same call by one that runs other jobs beside this one: it does not take over from a holder that went away, for
    /// the job may have ended its process, and would end the others with it.
    #[must_use]
    pub fn beside_others(self) -> Self {
        Self {
            beside_others: true,
            ..self
        }
    }

    /// How many writes it has asked for: a holder's revisions are counted on from here.
    pub fn writes(&self) -> u32 {
        self.writes
    }

    /// The first question: a fresh claim is one conditional write, with no read before it.
    pub fn start(&mut self, now: UnixMillis) -> Step<ClaimOutcome> {
        let record = self.claimed(None, now);
        self.put(record, Precondition::Absent)
    }

    /// The next question, or the end, after `answer` came in at `now`.
    pub fn step(&mut self, answer: Answer, now: UnixMillis) -> Step<ClaimOutcome> {
        match answer {
            Answer::Written(version) => match self.pending.take() {
                Some(record) if record.status == Status::Processing => {
                    Step::Finished(ClaimOutcome::Won(Box::new(Stored {
                        record: *record,
                        version,
                    })))
                }
                Some(record) => Step::Finished(ClaimOutcome::Ended {
                    record,
                    likeness: Likeness::Same {
                        contract_changed: false,
                    },
                }),
                None => Step::Finished(ClaimOutcome::Unclear),
            },
            Answer::Conflict(Some(row)) | Answer::Row(Some(row)) => self.decide(row, now),
            Answer::Conflict(None) | Answer::Unclear => self.ask(Ask::Get),
            // Never written, or deleted since. If an own earlier write is still on its way, this one meets it and the
            // owner tells.
            Answer::Row(None) => {
                let record = self.claimed(None, now);
                self.put(record, Precondition::Absent)
            }
        }
    }

    fn decide(&mut self, row: Stored, now: UnixMillis) -> Step<ClaimOutcome> {
        let record = &row.record;
        if record.owner == Some(self.owner) && record.status == Status::Processing {
            return Step::Finished(ClaimOutcome::Won(Box::new(row)));
        }
        let likeness = compare(record, &self.object, &self.pipeline);
        if let Likeness::Different(differing) = likeness {
            return Step::Finished(ClaimOutcome::Collapsed {
                record: Box::new(row.record),
                differing,
            });
        }
        match record.status {
            Status::Done | Status::Rejected => Step::Finished(ClaimOutcome::Ended {
                record: Box::new(row.record),
                likeness,
            }),
            Status::Processing if record.lease_end() > now => {
                let until = record.lease_end();
                let suspicious = until > now.plus(self.terms.longest_lease());
                Step::Finished(ClaimOutcome::Held {
                    record: Box::new(row.record),
                    until,
                    suspicious,
                })
            }
            Status::Processing | Status::Failed if record.is_exhausted(self.terms.max_attempts) => {
                let rejected = self.exhausted(record, now);
                self.put(rejected, Precondition::Unchanged(row.version))
            }
            Status::Processing if self.beside_others => Step::Finished(ClaimOutcome::Abandoned {
                record: Box::new(row.record),
            }),
            Status::Processing | Status::Failed | Status::Waiting => {
                let taken = self.claimed(Some(record), now);
                self.put(taken, Precondition::Unchanged(row.version))
            }
        }
    }

    /// The row once this call holds it. What a row has been through stays with it: attempts only grow, some do not count,
    /// and redrives, releases and the last error are for people.
    fn claimed(&mut self, row: Option<&Record>, now: UnixMillis) -> Record {
        Record {
            attempt: row.map_or(0, |row| row.attempt).saturating_add(1),
            owner: Some(self.owner),
            revision: Some(self.next_revision()),
            lease_until: Some(now.plus(self.terms.lease)),
            object: Some(self.object.clone()),
            redrives: row.map_or(0, |row| row.redrives),
            error: row.and_then(|row| row.error.clone()),
            released: row.and_then(|row| row.released),
            uncounted: row.map_or(0, |row| row.uncounted),
            ..Record::new(Status::Processing, now.seconds(), self.pipeline.clone())
        }
    }

    fn exhausted(&mut self, row: &Record, now: UnixMillis) -> Record {
        let last = row
            .error
            .as_deref()
            .unwrap_or("the holder went away without a word (crash, kill or lost machine)");
        Record {
            status: Status::Rejected,
            owner: Some(self.owner),
            revision: Some(self.next_revision()),
            lease_until: None,
            finished_at: Some(now.seconds()),
            reason: Some(Reason::Exhausted),
            error: Some(format!(
                "all {} attempts are used up; the last one: {last}",
                self.terms.max_attempts
            )),
            ..row.clone()
        }
    }

    fn next_revision(&mut self) -> Revision {
        self.writes += 1;
        Revision {
            owner: self.owner,
            write: self.writes,
        }
    }

    fn put(&mut self, record: Record, when: Precondition) -> Step<ClaimOutcome> {
        let record = Box::new(record);
        self.pending = Some(record.clone());
        self.ask(Ask::Put { record, when })
    }

    fn ask(&mut self, ask: Ask) -> Step<ClaimOutcome> {
        self.asks += 1;
        if self.asks > MAX_ASKS {
            Step::Finished(ClaimOutcome::Unclear)
        } else {
            Step::Ask(ask)
        }
    }
}

/// How an attempt ends, or a claim is given back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum End {
    /// The job is done.
    Done {
        /// JSON text for the record.
        result: Option<String>,
        /// [`Reason::Gone`] or [`Reason::Superseded`] where there was nothing left to do.
        reason: Option<Reason>,
        /// What is meant by it, for people.
        note: Option<String>,
    },
    /// Another attempt may do better: the next delivery wins at once.
    Failed {
        /// [`Reason::Interrupted`] if the worker was stopped; [`Reason::Unavailable`] if the attempt does not count.
        reason: Option<Reason>,
        /// What happened.
        error: String,
    },
    /// No attempt can do better.
    Rejected {
        /// What happened.
        error: String,
    },
}

/// How a holder's write ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HolderOutcome {
    /// The row holds what was to be written.
    Written(Stored),
    /// The claim is no longer this holder's: taken over, released, ended by another program, or deleted. Nothing was
    /// written.
    Lost(Option<Stored>),
    /// The store did not say.
    Unclear,
}

/// One write of a holder: a renewal or an end. It holds only for the attempt and owner that won.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Holding {
    record: Box<Record>,
    version: Version,
    asks: u32,
}

impl Holding {
    /// A write that moves the lease of `held` to `now` + `lease`. `write` counts this holder's writes.
    pub fn renew(held: &Stored, write: u32, lease: Duration, now: UnixMillis) -> Self {
        Self::write(held, write, |record| {
            record.lease_until = Some(now.plus(lease))
        })
    }

    /// A write that ends the attempt of `held` at `now`.
    pub fn end(held: &Stored, write: u32, end: End, terms: &Terms, now: UnixMillis) -> Self {
        Self::write(held, write, |record| {
            record.lease_until = None;
            record.finished_at = Some(now.seconds());
            (record.reason, record.error) = (None, None);
            match end {
                End::Done {
                    result,
                    reason,
                    note,
                } => {
                    record.status = Status::Done;
                    // Only `done` expires, and only counted from its end: undone work is never forgotten.
                    record.expires_at = Some(now.plus(terms.done_ttl).seconds());
                    (record.result, record.reason, record.error) = (result, reason, note);
                }
                End::Failed { reason, error } => {
                    record.status = Status::Failed;
                    let counts = reason != Some(Reason::Unavailable);
                    record.uncounted = record.uncounted.saturating_add(u32::from(!counts));
                    (record.reason, record.error) = (reason, Some(error));
                }
                End::Rejected { error } => {
                    record.status = Status::Rejected;
                    (record.reason, record.error) = (Some(Reason::Permanent), Some(error));
                }
            }
        })
    }

    /// The same write, where it leaves a failed job alone until this moment.
    #[must_use]
    pub fn again_at(mut self, moment: UnixMillis) -> Self {
        self.record.waiting_until = Some(moment);
        self
    }

    fn write(held: &Stored, write: u32, change: impl FnOnce(&mut Record)) -> Self {
        let mut record = Box::new(held.record.clone());
        record.revision = record.owner.map(|owner| Revision { owner, write });
        change(&mut record);
        Self {
            record,
            version: held.version.clone(),
            asks: 0,
        }
    }

    /// The first question: one conditional write.
    pub fn start(&mut self) -> Step<HolderOutcome> {
        self.put()
    }

    /// The next question, or the end, after `answer`.
    pub fn step(&mut self, answer: Answer) -> Step<HolderOutcome> {
        match answer {
            Answer::Written(version) => Step::Finished(HolderOutcome::Written(Stored {
                record: (*self.record).clone(),
                version,
            })),
            Answer::Conflict(Some(row)) | Answer::Row(Some(row)) => self.decide(row),
            Answer::Conflict(None) | Answer::Unclear => self.ask(Ask::Get),
            Answer::Row(None) => Step::Finished(HolderOutcome::Lost(None)),
        }
    }

    fn decide(&mut self, row: Stored) -> Step<HolderOutcome> {
        let mine =
            row.record.owner == self.record.owner && row.record.attempt == self.record.attempt;
        let written =
            row.record.revision == self.record.revision && row.record.status == self.record.status;
        let ended_alike =
            self.record.status != Status::Processing && row.record.status == self.record.status;
        if mine && (written || ended_alike) {
            Step::Finished(HolderOutcome::Written(row))
        } else if mine && row.record.status == Status::Processing {
            // The row is still held by this attempt but in a newer state: an earlier renewal whose reply was lost, or a
            // sweep that took its holder for dead. What the sweep counted stays counted.
            self.version = row.version;
            self.record.redrives = self.record.redrives.max(row.record.redrives);
            self.put()
        } else {
            Step::Finished(HolderOutcome::Lost(Some(row)))
        }
    }

    fn put(&mut self) -> Step<HolderOutcome> {
        let when = Precondition::Unchanged(self.version.clone());
        self.ask(Ask::Put {
            record: self.record.clone(),
            when,
        })
    }

    fn ask(&mut self, ask: Ask) -> Step<HolderOutcome> {
        self.asks += 1;
        if self.asks > MAX_ASKS {
            Step::Finished(HolderOutcome::Unclear)
        } else {
            Step::Ask(ask)
        }
    }
}

/// How a recording ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RecordingOutcome {
    /// The record stands, by this call or an earlier one.
    Recorded(Box<Record>),
    /// The store did not say.
    Unclear,
}

/// One call that records something that never became an attempt: an unreadable delivery, a refused event, a collapsed
/// pair, an object that is not whole yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Recording {
    record: Box<Record>,
    asks: u32,
}

impl Recording {
    /// A call that records `record` unless an end stands under the key already.
    pub fn new(record: Record) -> Self {
        Self {
            record: Box::new(record),
            asks: 0,
        }
    }

    /// The first question.
    pub fn start(&mut self) -> Step<RecordingOutcome> {
        self.ask(Ask::Put {
            record: self.record.clone(),
            when: Precondition::Absent,
        })
    }

    /// The next question, or the end, after `answer`.
    pub fn step(&mut self, answer: Answer) -> Step<RecordingOutcome> {
        match answer {
            Answer::Written(_) => Step::Finished(RecordingOutcome::Recorded(self.record.clone())),
            Answer::Conflict(Some(row)) | Answer::Row(Some(row))
                if row.record.is_end() || row.record.revision == self.record.revision =>
            {
                Step::Finished(RecordingOutcome::Recorded(Box::new(row.record)))
            }
            // It was released or sent again, and came again as it was.
            Answer::Conflict(Some(row)) | Answer::Row(Some(row)) => {
                let Record {
                    attempt,
                    redrives,
                    released,
                    uncounted,
                    ..
                } = row.record;
                let record = Box::new(Record {
                    attempt,
                    redrives,
                    released,
                    uncounted,
                    ..(*self.record).clone()
                });
                self.ask(Ask::Put {
                    record,
                    when: Precondition::Unchanged(row.version),
                })
            }
            Answer::Conflict(None) | Answer::Unclear => self.ask(Ask::Get),
            Answer::Row(None) => self.start(),
        }
    }

    fn ask(&mut self, ask: Ask) -> Step<RecordingOutcome> {
        self.asks += 1;
        if self.asks > MAX_ASKS {
            Step::Finished(RecordingOutcome::Unclear)
        } else {
            Step::Ask(ask)
        }
    }
}

/// The row once an operator has released it: `failed`, so that the next delivery wins at once, with the attempt kept
/// and the command recorded. The owner is the command's own, so a holder that still runs finds its claim lost.
pub fn released(row: &Record, owner: Owner, now: UnixMillis) -> Record {
    let release = Release {
        at: now.seconds(),
        from: row.status,
        attempt: row.attempt,
    };
    Record {
        status: Status::Failed,
        owner: Some(owner),
        revision: Some(Revision { owner, write: 1 }),
        lease_until: None,
        waiting_until: None,
        finished_at: Some(now.seconds()),
        expires_at: None,
        reason: Some(Reason::Released),
        result: None,
        released: Some(release),
        uncounted: 0,
        ..row.clone()
    }
}

#[cfg(test)]
mod tests;
