//! A clock that only the test moves, and randomness that only counts.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        OnceLock,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use crate::{
    claim::{Owner, UnixMillis},
    host::{Clock, Entropy},
};

/// A clock that stands still until it is moved. Sleeping moves it, so nothing ever waits.
#[derive(Debug)]
pub struct ManualClock {
    wall: AtomicI64,
    monotonic: AtomicU64,
}

impl ManualClock {
    /// A clock whose wall says `now`.
    pub fn at(now: UnixMillis) -> Self {
        Self {
            wall: AtomicI64::new(now.0),
            monotonic: AtomicU64::new(0),
        }
    }

    /// Lets this much time pass.
    pub fn advance(&self, duration: Duration) {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.monotonic.fetch_add(millis, Ordering::SeqCst);
        self.wall
            .fetch_add(i64::try_from(millis).unwrap_or(i64::MAX), Ordering::SeqCst);
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn unix_millis(&self) -> UnixMillis {
        UnixMillis(self.wall.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.monotonic.load(Ordering::SeqCst))
    }

    async fn sleep(&self, duration: Duration) {
        self.advance(duration);
        tokio::task::yield_now().await;
    }
}

/// Owners that no other value of any test process has had: a random prefix for the process, and a count.
#[derive(Debug)]
pub struct CountedEntropy;

static COUNT: AtomicU64 = AtomicU64::new(0);
static PROCESS: OnceLock<u64> = OnceLock::new();

impl Entropy for CountedEntropy {
    fn owner(&self) -> std::io::Result<Owner> {
        let process = *PROCESS.get_or_init(|| RandomState::new().hash_one(std::process::id()));
        Ok(Owner(
            (u128::from(process) << 64) | u128::from(COUNT.fetch_add(1, Ordering::SeqCst)),
        ))
    }
}
