//! What the core asks of the machine it runs on: the time, and randomness. The crate `host` has the real ones.

use std::{fmt::Debug, time::Duration};

use async_trait::async_trait;

use crate::claim::{Owner, UnixMillis};

/// Time, passed in: the core reads no clock of its own.
#[async_trait]
pub trait Clock: Debug + Send + Sync + 'static {
    /// The wall clock, in Unix milliseconds. It goes into records and is compared with other machines' times, so it may
    /// be wrong; a wrong one may cost a repeated run, never a second end.
    fn unix_millis(&self) -> UnixMillis;

    /// Time since some fixed moment, which never goes backward and goes on while the process is stopped.
    fn monotonic(&self) -> Duration;

    /// Returns after this time on the [`Clock::monotonic`] scale.
    async fn sleep(&self, duration: Duration);
}

/// Randomness, passed in.
pub trait Entropy: Debug + Send + Sync + 'static {
    /// 128 random bits that no other call in any process has had.
    ///
    /// # Errors
    ///
    /// Whatever the machine's generator failed with: without it nothing may be claimed, so the event is retried.
    fn owner(&self) -> std::io::Result<Owner>;
}
