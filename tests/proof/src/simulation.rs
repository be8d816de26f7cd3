//! Deterministic simulation of the shipped gate: one seed is one schedule of workers, faults and deliveries.
//!
//! The gate, its supervision and the claim protocol run as they are. What they run on is simulated: time (the runtime's,
//! paused), the claim store, the object store, jobs, the queue. Whatever is random comes from the seed, so a schedule
//! that breaks a property can be played again, line by line.
//!
//! The reader's way: `plan` (what one schedule may do) → `world` (all state) → `process` (a worker that may die or
//! freeze) → `store`, `work` (what its gate runs on) → `worker`, `events` (who delivers, and what goes wrong) →
//! `ledger` (the properties).

mod events;
mod ledger;
mod plan;
mod process;
mod store;
mod work;
mod worker;
mod world;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

pub use plan::Control;
use plan::{Catalogue, Plan};
use world::World;

/// What one schedule did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The seed that it is made of.
    pub seed: u64,
    /// Requests, deliveries, runs and faults.
    pub events: u64,
    /// How long it lasted in simulated time.
    pub simulated: Duration,
    /// Faults by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// What should happen sometimes, and how often it did.
    pub seen: BTreeMap<&'static str, u64>,
    /// The property that does not hold, and where it broke.
    pub violation: Option<String>,
    /// What happened, line by line, if it was asked for.
    pub log: Vec<String>,
}

/// What many schedules did.
#[derive(Debug, Default)]
pub struct Summary {
    /// How many ran.
    pub schedules: u64,
    /// Requests, deliveries, runs and faults.
    pub events: u64,
    /// Simulated time of all of them.
    pub simulated: Duration,
    /// Faults by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// What should happen sometimes, and how often it did.
    pub seen: BTreeMap<&'static str, u64>,
    /// The schedule with the lowest seed that broke a property, played again with its log.
    pub failed: Option<Schedule>,
}

/// What every large enough number of schedules must show, or they prove little.
pub const SOMETIMES: [&str; 12] = [
    "takeover",
    "lost reply recovered",
    "zombie refused",
    "duplicate skipped",
    "held duplicate returned",
    "retry after failure",
    "exhaustion",
    "superseded",
    "gone",
    "lease lost",
    "interrupted",
    "swept",
];

/// Everything that schedules have in common; made once.
#[derive(Debug, Clone)]
pub struct Simulator {
    catalogue: Arc<Catalogue>,
    control: Option<Control>,
}

impl Simulator {
    /// A simulator of the gate as it is, or with one bug put beside it.
    ///
    /// # Errors
    ///
    /// A text, if the contract or the objects of the simulation cannot be made: a mistake in the simulation.
    pub fn new(control: Option<Control>) -> Result<Self, String> {
        let catalogue = Arc::new(Catalogue::new()?);
        Ok(Self { catalogue, control })
    }

    /// Plays the schedule of `seed`, keeping its log if `logged`.
    ///
    /// # Errors
    ///
    /// If the runtime cannot be made.
    pub fn play(&self, seed: u64, logged: bool) -> std::io::Result<Schedule> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()?;
        let plan = Plan::new(seed, self.control);
        // What becomes of a batch is no `Send` future as far as the compiler can tell.
        let workers = tokio::task::LocalSet::new();
        let world = workers.block_on(&runtime, async {
            let world = Arc::new(World::new(plan, self.catalogue.clone(), logged));
            events::play(&world).await;
            world
        });
        // Dropping the runtime drops what crashed workers still hold.
        drop(workers);
        drop(runtime);
        Ok(world.report(seed))
    }

    /// Plays `schedules` schedules from `first` on, on all processors, until one fails or `limit` is over. Which one is
    /// reported does not depend on the number of processors.
    ///
    /// # Errors
    ///
    /// If a runtime cannot be made.
    pub fn play_many(
        &self,
        first: u64,
        schedules: u64,
        limit: Option<Duration>,
    ) -> std::io::Result<Summary> {
        let next = AtomicU64::new(0);
        let lowest_failed = AtomicU64::new(u64::MAX);
        let started = Instant::now();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let play_some = || -> std::io::Result<Summary> {
            let mut summary = Summary::default();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let over = limit.is_some_and(|limit| started.elapsed() >= limit);
                if at >= schedules || over || at > lowest_failed.load(Ordering::Relaxed) {
                    return Ok(summary);
                }
                let schedule = self.play(first.wrapping_add(at), false)?;
                if schedule.violation.is_some() {
                    lowest_failed.fetch_min(at, Ordering::Relaxed);
                }
                summary.add(&schedule);
            }
        };
        let parts: Vec<std::io::Result<Summary>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(play_some)).collect();
            threads
                .into_iter()
                .map(|thread| {
                    thread
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect()
        });
        let mut summary = Summary::default();
        for part in parts {
            summary.merge(part?);
        }
        let at = lowest_failed.load(Ordering::Relaxed);
        if at != u64::MAX {
            summary.failed = Some(self.play(first.wrapping_add(at), true)?);
        }
        Ok(summary)
    }
}

impl Summary {
    fn add(&mut self, schedule: &Schedule) {
        self.schedules += 1;
        self.events += schedule.events;
        self.simulated += schedule.simulated;
        add_counts(&mut self.faults, &schedule.faults);
        add_counts(&mut self.seen, &schedule.seen);
    }

    fn merge(&mut self, other: Self) {
        self.schedules += other.schedules;
        self.events += other.events;
        self.simulated += other.simulated;
        add_counts(&mut self.faults, &other.faults);
        add_counts(&mut self.seen, &other.seen);
    }

    /// Which of [`SOMETIMES`] never happened.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let missing = |name: &&str| !self.seen.contains_key(*name);
        SOMETIMES.into_iter().filter(missing).collect()
    }
}

fn add_counts(to: &mut BTreeMap<&'static str, u64>, from: &BTreeMap<&'static str, u64>) {
    for (name, count) in from {
        *to.entry(name).or_default() += count;
    }
}
