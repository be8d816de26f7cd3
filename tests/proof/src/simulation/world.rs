//! All state of one schedule, behind one lock that is never held across an await.

use std::{
    collections::BTreeMap,
    fmt::Display,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fastrand::Rng;
use identity_core::claim::{ClaimKey, Record, Stored, UnixMillis, Version};
use tokio::time::Instant;

use super::{
    Schedule,
    ledger::Ledger,
    plan::{Catalogue, JobName, Plan},
    process::START,
};

/// One schedule.
#[derive(Debug)]
pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) catalogue: Arc<Catalogue>,
    started: Instant,
    state: Mutex<State>,
}

/// An object as its store holds it.
#[derive(Debug)]
pub(super) struct Object {
    /// The version that stands there now.
    pub(super) current: Option<usize>,
    /// The newest that ever stood there.
    pub(super) newest: usize,
    pub(super) was_gone: bool,
}

/// Where a message of the queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Queued,
    Acknowledged,
    /// In the dead-letter queue.
    Dead,
}

/// A message of the queue: one notification.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) puts: Vec<(JobName, bool)>,
    pub(super) visible_at: Instant,
    pub(super) receives: u32,
    pub(super) place: Place,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) rng: Rng,
    log: Option<Vec<String>>,
    started: Instant,
    skew_millis: i64,
    events: u64,
    faults: BTreeMap<&'static str, u64>,
    pub(super) seen: BTreeMap<&'static str, u64>,
    pub(super) violation: Option<String>,
    /// Nothing goes wrong any more.
    pub(super) calm: bool,
    /// The schedule has ended: what is dropped now did not happen.
    pub(super) over: bool,
    pub(super) rows: BTreeMap<ClaimKey, Stored>,
    versions: u64,
    pub(super) objects: Vec<Object>,
    pub(super) messages: Vec<Message>,
    pub(super) ledger: Ledger,
}

impl World {
    pub(super) fn new(plan: Plan, catalogue: Arc<Catalogue>, logged: bool) -> Self {
        let started = Instant::now();
        let objects = (0..plan.objects).map(|_| Object {
            current: Some(0),
            newest: 0,
            was_gone: false,
        });
        let state = State {
            rng: plan.rng.clone(),
            log: logged.then(Vec::new),
            started,
            skew_millis: i64::try_from(plan.skew.as_millis()).unwrap_or(0),
            events: 0,
            faults: BTreeMap::new(),
            seen: BTreeMap::new(),
            violation: None,
            calm: false,
            over: false,
            rows: BTreeMap::new(),
            versions: 0,
            objects: objects.collect(),
            messages: Vec::new(),
            ledger: Ledger::default(),
        };
        Self {
            plan,
            catalogue,
            started,
            state: Mutex::new(state),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.lock())
    }

    /// Time since the schedule started.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The true time.
    pub(super) fn now(&self) -> UnixMillis {
        UnixMillis(START).plus(self.elapsed())
    }

    pub(super) fn report(&self, seed: u64) -> Schedule {
        let mut state = self.lock();
        Schedule {
            seed,
            events: state.events,
            simulated: state.ledger.lasted,
            faults: std::mem::take(&mut state.faults),
            seen: std::mem::take(&mut state.seen),
            violation: state.violation.take(),
            log: state.log.take().unwrap_or_default(),
        }
    }
}

impl State {
    /// Writes a line of the log: who, and what. The log ends where a property breaks.
    pub(super) fn tell(&mut self, who: impl Display, what: impl Display) {
        if self.violation.is_some() {
            return;
        }
        self.events += 1;
        if let Some(log) = &mut self.log {
            let at = self.started.elapsed().as_millis();
            log.push(format!("{at:>8} ms  {who:<8}  {what}"));
        }
    }

    /// Counts a fault.
    pub(super) fn fault(&mut self, kind: &'static str) {
        *self.faults.entry(kind).or_default() += 1;
    }

    /// Counts something that should happen sometimes.
    pub(super) fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// A property does not hold. The first one counts.
    pub(super) fn violated(&mut self, what: String) {
        if !self.over && self.violation.is_none() {
            self.tell("VIOLATED", &what);
            self.violation = Some(what);
        }
    }

    pub(super) fn check(&mut self, checked: Result<(), String>) {
        if let Err(what) = checked {
            self.violated(what);
        }
    }

    pub(super) fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(self.rng.u64(from..=to))
    }

    /// Up to this long, in whole milliseconds.
    pub(super) fn up_to(&mut self, longest: Duration) -> Duration {
        self.millis(0, u64::try_from(longest.as_millis()).unwrap_or(0))
    }

    /// So many in a hundred times.
    pub(super) fn chance(&mut self, percent: u32) -> bool {
        self.rng.u32(..100) < percent
    }

    /// How far some machine's wall clock is from the truth: never more than the plan says between two of them.
    pub(super) fn wall_offset(&mut self) -> i64 {
        self.rng.i64(0..=self.skew_millis)
    }

    /// Puts a row there, with a version that no row ever had, or that `version` names.
    pub(super) fn write(
        &mut self,
        key: &ClaimKey,
        record: Record,
        version: Option<Version>,
    ) -> Version {
        self.versions += 1;
        let version = version.unwrap_or_else(|| Version(format!("v{}", self.versions)));
        let stored = Stored {
            record,
            version: version.clone(),
        };
        self.rows.insert(key.clone(), stored);
        version
    }

    /// Sends a message of these puts.
    pub(super) fn send(&mut self, puts: Vec<(JobName, bool)>, delay: Duration) {
        for (job, told) in &puts {
            if *told {
                self.ledger.expected.insert(*job);
            }
        }
        self.messages.push(Message {
            puts,
            visible_at: Instant::now() + delay,
            receives: 0,
            place: Place::Queued,
        });
    }
}
