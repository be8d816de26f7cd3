//! Checking one configuration, and telling what was found.

use std::{
    fmt,
    time::{Duration, Instant},
};

use stateright::{Checker as _, HasDiscoveries, Model as _};

use super::{Action, Bounds, Control, NEVER, SMALL, SOMETIMES, State, World, state::Log};

/// What checking a configuration told.
#[derive(Debug)]
pub struct Report {
    /// How many different states there are.
    pub states: usize,
    /// How many steps the longest of the shortest ways has, more or less: two threads do not search in strict order.
    pub depth: usize,
    /// How long it took.
    pub took: Duration,
    /// Which of [`SOMETIMES`] were seen.
    pub seen: Vec<&'static str>,
    /// What must never be and was.
    pub found: Option<Found>,
}

/// A way to what must never be.
#[derive(Debug)]
pub struct Found {
    /// Which of [`NEVER`] does not hold.
    pub property: &'static str,
    /// What happened, a line each.
    pub steps: Vec<String>,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it does not hold that {}:", self.property)?;
        for (number, step) in self.steps.iter().enumerate() {
            write!(f, "\n{:3}. {step}", number + 1)?;
        }
        Ok(())
    }
}

/// Checks every state of a configuration, on two threads.
pub fn check(bounds: &Bounds) -> Report {
    let world = World {
        bounds: bounds.clone(),
        control: None,
    };
    search(&world, 2, usize::MAX)
}

/// Checks a broken configuration until something is found, and tells the shortest way to it: the checker tells of any
/// that it met, so it is asked for a shorter one until there is none.
pub fn counterexample(bounds: &Bounds, control: Control) -> Report {
    let world = World {
        bounds: bounds.clone(),
        control: Some(control),
    };
    let mut report = search(&world, 1, usize::MAX);
    while let Some(found) = &report.found {
        let shorter = search(&world, 1, found.steps.len());
        if shorter.found.is_none() {
            break;
        }
        report = shorter;
    }
    report
}

/// Looks for ways of fewer than `steps` steps.
fn search(world: &World, threads: usize, steps: usize) -> Report {
    let started = Instant::now();
    let checker = world
        .clone()
        .checker()
        .threads(threads)
        // The checker counts states, which are one more.
        .target_max_depth(steps.saturating_add(1))
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let took = started.elapsed();
    let mut discoveries = checker.discoveries();
    let found = NEVER.iter().find_map(|(name, _)| {
        let path = discoveries.remove(name)?;
        Some(Found {
            property: name,
            steps: world.story(path.into_actions()),
        })
    });
    let names = SOMETIMES.iter().map(|(name, _)| *name);
    let seen = names
        .filter(|name| discoveries.contains_key(name))
        .collect();
    Report {
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        took,
        seen,
        found,
    }
}

impl World {
    /// What happens at each step of a way from the beginning.
    fn story(&self, actions: Vec<Action>) -> Vec<String> {
        let mut state = State::new(&self.bounds);
        let mut story = Vec::new();
        for action in actions {
            let mut log = Log::listening();
            self.act(&mut state, action, &mut log);
            story.push(log.told());
        }
        story
    }
}

impl Control {
    /// Which configuration of [`SMALL`] has what this mistake needs to show.
    pub fn bounds(self) -> &'static Bounds {
        let name = match self {
            Self::VersionIsACounter | Self::ExpiryIsSetAtClaim => "deletion of what has expired",
            Self::EndWithoutCondition | Self::HeldIsAcknowledged => "three workers",
            Self::OwnWriteIsADuplicate => "a store in trouble",
            Self::FailureIsNotRecorded => "jobs that fail, and a source that gives up",
            Self::WallClockDecidesEnds => "clocks two leases apart",
        };
        SMALL
            .iter()
            .find(|bounds| bounds.name == name)
            .unwrap_or(&SMALL[0])
    }
}
