//! One state of the model, and what it is made of.

use std::{fmt, sync::Arc, time::Duration};

use identity_core::{
    claim::{
        End, Owner, Record, RecordedObject, RecordedPipeline, Status, Stored, Terms, UnixMillis,
        UnixSeconds,
        machine::{Answer, Ask, Claiming, Holding},
    },
    gate::Outcome,
    identity::Provider,
};

use super::{
    World,
    bounds::{Bounds, Budget},
};

/// A lease, and the step of time.
pub(super) const LEASE: Duration = Duration::from_secs(1);
/// What the first step of time is called, in seconds: no clock is ever before 1970.
const FIRST: i64 = 10;

/// Everything that the model knows at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// How many leases have passed.
    pub(super) now: i64,
    pub(super) jobs: Vec<JobState>,
    pub(super) workers: Vec<Arc<Worker>>,
    /// Writes that are still on their way to the store.
    pub(super) late: Vec<Arc<Write>>,
    /// What may still happen.
    pub(super) left: Budget,
    /// What must never happen, once it has: nothing follows.
    pub(super) violation: Option<Violation>,
}

/// One job: its row, its deliveries, and what the properties need to know of its past.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct JobState {
    pub(super) row: Option<Arc<Stored>>,
    /// Messages that a worker may be given now.
    pub(super) ready: u8,
    /// Messages that the source holds back until the next step of time.
    pub(super) waiting: u8,
    /// The highest attempt that stood in the row.
    pub(super) highest: u32,
    /// How many ends our own attempts have recorded.
    pub(super) ends: u8,
    /// Whether a `done` row was deleted after its time.
    pub(super) forgotten: bool,
    /// The row as an operator has seen it, who is about to release it.
    pub(super) operator: Option<Arc<Stored>>,
}

/// What must never happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Violation {
    /// Two ends of our own attempts stood in one record.
    TwoEnds,
    /// An end was written over.
    EndChanged,
    /// A delivery was acknowledged though no end of its job was seen in the store.
    AcknowledgedUnrecorded,
    /// A failure was told though the row does not hold it, so that the retry does not win at once.
    FailureUnrecorded,
    /// An attempt's number was given twice, or a smaller one after it.
    AttemptRepeated,
    /// A holder wrote over a row that was not, or no longer, its own.
    ZombieWrote,
    /// A claim took what another call had written for its own win.
    WonAnothers,
    /// A release ended the job, or took its attempts from it.
    ReleaseEnded,
}

/// A worker: one delivery at a time.
#[expect(
    clippy::large_enum_variant,
    reason = "it lives behind one pointer, and is copied whole"
)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Worker {
    Idle,
    Claiming(Call<Claiming>),
    /// Its job runs.
    Working(Hold, Recovered),
    /// A renewal (`end` is `None`) or an end is being written. During a renewal the job runs on.
    Writing {
        hold: Hold,
        end: Option<End>,
        call: Call<Holding>,
    },
    /// It knows what became of the event, and the source does not yet.
    Answering {
        job: usize,
        outcome: Outcome,
        seen: Option<Status>,
        refused: bool,
    },
}

/// Whether a claim was won by looking, after its reply was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Recovered(pub(super) bool);

/// A call of the shipped machine, and where its conversation with the store stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Call<M> {
    pub(super) job: usize,
    pub(super) owner: Owner,
    /// When the call began.
    pub(super) began: i64,
    pub(super) machine: M,
    pub(super) pending: Pending,
    pub(super) errors: u8,
    /// The end of the job, or this call's own failure, that stood in the row when the store answered last.
    pub(super) seen: Option<Status>,
}

/// What a call waits for.
#[expect(
    clippy::large_enum_variant,
    reason = "it lives behind one pointer, and is copied whole"
)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Pending {
    /// For the store to do it.
    Ask(Ask),
    /// For the worker to hear it.
    Answer(Answer),
}

/// A claim that was won.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Hold {
    pub(super) job: usize,
    pub(super) owner: Owner,
    pub(super) stored: Stored,
    pub(super) writes: u32,
    /// When the job has to be gone, by the worker's monotonic clock.
    pub(super) until: i64,
}

/// A write to the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Write {
    pub(super) job: usize,
    pub(super) by: Writer,
    pub(super) record: Box<Record>,
    /// `None`: whatever stands there. Only a [`super::Control`] does that.
    pub(super) when: Option<identity_core::claim::Precondition>,
}

/// Which part of the protocol wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Writer {
    Claim,
    Holder,
    Operator,
}

impl State {
    /// The beginning: a message for each job, and nothing in the store.
    pub(super) fn new(bounds: &Bounds) -> Self {
        let job = JobState {
            ready: 1,
            ..JobState::default()
        };
        Self {
            now: 0,
            jobs: vec![job; bounds.jobs],
            workers: bounds
                .clocks
                .iter()
                .map(|_| Arc::new(Worker::Idle))
                .collect(),
            late: Vec::new(),
            left: bounds.budget,
            violation: None,
        }
    }

    /// A clock that is `ahead` leases ahead.
    pub(super) fn clock(&self, ahead: i64) -> UnixMillis {
        UnixMillis((FIRST + self.now + ahead) * 1000)
    }

    /// Whether nobody is at work and no message is ready.
    pub(super) fn is_quiet(&self) -> bool {
        self.workers.iter().all(|worker| **worker == Worker::Idle)
            && self.jobs.iter().all(|job| job.ready == 0)
    }

    /// Makes this moment the first one. Nobody is at work, so that every time there is stands in the store or is on its
    /// way there; what is over for everybody is over, whenever that was.
    pub(super) fn count_time_anew(&mut self, slowest: i64) {
        let passed = std::mem::take(&mut self.now);
        let (first, first_of_all) = (self.clock(0).seconds(), self.clock(slowest));
        let shift = |record: &mut Record| {
            record.lease_until = record
                .lease_until
                .map(|until| UnixMillis(until.0 - passed * 1000).max(first_of_all));
            record.expires_at = record
                .expires_at
                .map(|at| UnixSeconds(at.0 - passed).max(first));
        };
        for job in &mut self.jobs {
            job.row
                .as_mut()
                .into_iter()
                .for_each(|row| shift(&mut Arc::make_mut(row).record));
        }
        self.late
            .iter_mut()
            .for_each(|write| shift(&mut Arc::make_mut(write).record));
    }

    /// What the violation is, if there is one.
    pub fn violation(&self) -> Option<Violation> {
        self.violation
    }

    pub(super) fn violate(&mut self, violation: Violation) {
        self.violation.get_or_insert(violation);
    }

    /// The smallest owner that nothing in the world remembers: as good as a random one, and fewer states.
    pub(super) fn fresh_owner(&self) -> Owner {
        let mut known = Known(0);
        for job in &self.jobs {
            job.row
                .iter()
                .chain(&job.operator)
                .for_each(|row| known.row(row));
        }
        for write in &self.late {
            known.write(&write.record, write.when.as_ref());
        }
        for worker in &self.workers {
            match &**worker {
                Worker::Idle | Worker::Answering { .. } => {}
                Worker::Claiming(call) => {
                    known.owner(call.owner);
                    known.pending(&call.pending);
                }
                Worker::Working(hold, _) => known.hold(hold),
                Worker::Writing { hold, call, .. } => {
                    known.hold(hold);
                    known.pending(&call.pending);
                }
            }
        }
        Owner(
            (1..128)
                .find(|owner| known.0 & (1 << owner) == 0)
                .unwrap_or(0),
        )
    }
}

/// The owners that something remembers, a bit each.
struct Known(u128);

impl Known {
    fn owner(&mut self, owner: Owner) {
        self.0 |= 1 << (owner.0 % 128);
    }

    fn record(&mut self, record: &Record) {
        record.owner.into_iter().for_each(|owner| self.owner(owner));
        record
            .revision
            .into_iter()
            .for_each(|revision| self.owner(revision.owner));
    }

    fn row(&mut self, row: &Stored) {
        self.record(&row.record);
        self.version(&row.version);
    }

    /// A version begins with the owner of the write that it names.
    fn version(&mut self, version: &identity_core::claim::Version) {
        let owner = version
            .0
            .split_once('.')
            .and_then(|(owner, _)| u128::from_str_radix(owner, 16).ok());
        owner.into_iter().for_each(|owner| self.owner(Owner(owner)));
    }

    fn write(&mut self, record: &Record, when: Option<&identity_core::claim::Precondition>) {
        self.record(record);
        if let Some(identity_core::claim::Precondition::Unchanged(version)) = when {
            self.version(version);
        }
    }

    fn hold(&mut self, hold: &Hold) {
        self.owner(hold.owner);
        self.row(&hold.stored);
    }

    fn pending(&mut self, pending: &Pending) {
        match pending {
            Pending::Ask(Ask::Put { record, when }) => self.write(record, Some(when)),
            Pending::Answer(Answer::Written(version)) => self.version(version),
            Pending::Answer(Answer::Row(Some(row)) | Answer::Conflict(Some(row))) => self.row(row),
            Pending::Ask(Ask::Get) | Pending::Answer(_) => {}
        }
    }
}

impl World {
    pub(super) fn terms(&self) -> Terms {
        Terms {
            lease: LEASE,
            max_attempts: self.bounds.max_attempts,
            done_ttl: LEASE,
        }
    }
}

/// The object of a job, in as few bytes as will do.
pub(super) fn object(job: usize) -> RecordedObject {
    RecordedObject {
        provider: Provider::S3,
        account: None,
        container: String::new(),
        key: job.to_string(),
        raw_key: None,
        token: None,
    }
}

/// Every claim is made under the same pipeline; its texts would only make states larger.
pub(super) fn pipeline() -> RecordedPipeline {
    RecordedPipeline::default()
}

/// The story of one step, told only if somebody listens.
#[derive(Debug)]
pub(super) struct Log(Option<Vec<String>>);

impl Log {
    pub(super) fn silent() -> Self {
        Self(None)
    }

    pub(super) fn listening() -> Self {
        Self(Some(Vec::new()))
    }

    pub(super) fn say(&mut self, what: impl FnOnce() -> String) {
        if let Some(said) = &mut self.0 {
            said.push(what());
        }
    }

    pub(super) fn told(self) -> String {
        self.0.unwrap_or_default().join("; ")
    }
}

/// Counted from 1, for people.
pub(super) struct Nth(pub(super) &'static str, pub(super) usize);

impl fmt::Display for Nth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, self.1 + 1)
    }
}
