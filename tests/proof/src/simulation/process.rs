//! A worker's process: alive, frozen (SIGSTOP) or dead. Whatever it waits for comes only while it is alive.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use identity_core::{
    claim::{Owner, UnixMillis},
    host::{Clock, Entropy},
};
use tokio::{sync::Notify, time::Instant};

use super::world::World;

/// The true time at which every schedule starts, in Unix milliseconds.
pub(super) const START: i64 = 1_767_323_045_000;

#[derive(Debug)]
struct State {
    dead: bool,
    frozen_until: Option<Instant>,
    /// How far its wall clock is from the truth, in milliseconds.
    wall_offset: i64,
}

/// One life of one worker.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) world: Arc<World>,
    /// For the log: `w2.1` is the second life of worker 2.
    pub(super) name: String,
    booted: Duration,
    died: Notify,
    state: Mutex<State>,
}

impl Process {
    pub(super) fn new(world: &Arc<World>, name: String) -> Arc<Self> {
        let (wall_offset, booted) =
            world.with(|state| (state.wall_offset(), state.millis(0, 1_000_000)));
        Arc::new(Self {
            world: world.clone(),
            name,
            booted,
            died: Notify::new(),
            state: Mutex::new(State {
                dead: false,
                frozen_until: None,
                wall_offset,
            }),
        })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on nothing of it happens any more.
    pub(super) fn kill(&self) {
        self.state().dead = true;
        self.died.notify_one();
    }

    /// Nothing of it happens before `until`; its clocks go on.
    pub(super) fn freeze(&self, until: Instant) {
        self.state().frozen_until = Some(until);
    }

    pub(super) fn jump(&self, wall_offset: i64) {
        self.state().wall_offset = wall_offset;
    }

    pub(super) fn is_dead(&self) -> bool {
        self.state().dead
    }

    pub(super) fn is_running(&self) -> bool {
        let state = self.state();
        !state.dead
            && state
                .frozen_until
                .is_none_or(|until| until <= Instant::now())
    }

    /// Whether it was frozen at some time since `start`, or shortly before: what it waited for comes late.
    pub(super) fn was_frozen_since(&self, start: Instant) -> bool {
        let slack = Duration::from_millis(10);
        let frozen_until = self.state().frozen_until;
        frozen_until.is_some_and(|until| until + slack >= start)
    }

    pub(super) async fn died(&self) {
        self.died.notified().await;
    }

    /// Returns while the process is alive and not frozen. After a freeze, what it waited for comes in any order.
    pub(super) async fn pass(&self) {
        loop {
            let (dead, frozen_until) = {
                let state = self.state();
                (state.dead, state.frozen_until)
            };
            if dead {
                std::future::pending::<()>().await;
            }
            match frozen_until {
                Some(until) if until > Instant::now() => {
                    let later = self.world.with(|state| state.millis(0, 3));
                    tokio::time::sleep_until(until + later).await;
                }
                _ => return,
            }
        }
    }
}

#[async_trait]
impl Clock for Process {
    fn unix_millis(&self) -> UnixMillis {
        UnixMillis(START + self.state().wall_offset).plus(self.world.elapsed())
    }
    fn monotonic(&self) -> Duration {
        self.booted + self.world.elapsed()
    }
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
        self.pass().await;
    }
}

impl Entropy for Process {
    fn owner(&self) -> io::Result<Owner> {
        Ok(Owner(self.world.with(|state| state.rng.u128(..))))
    }
}
