//! The machine's clocks, as the core asks for them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use identity_core::{claim::UnixMillis, host::Clock};

/// How long a sleep goes without a look at the clock: tokio's timer stands still while the machine is suspended.
const LOOK: Duration = Duration::from_secs(1);

/// The machine's own clocks.
///
/// On Linux the monotonic clock is `CLOCK_BOOTTIME`, which also counts the time that the machine was suspended: other
/// machines count it against our lease. Elsewhere it is [`std::time::Instant`].
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock(());

impl SystemClock {
    /// The machine's clocks.
    pub fn new() -> Self {
        Self(())
    }
}

#[async_trait]
impl Clock for SystemClock {
    fn unix_millis(&self) -> UnixMillis {
        unix_millis(SystemTime::now())
    }

    fn monotonic(&self) -> Duration {
        monotonic()
    }

    async fn sleep(&self, duration: Duration) {
        let end = monotonic().saturating_add(duration);
        loop {
            let left = end.saturating_sub(monotonic());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(LOOK)).await;
        }
    }
}

/// Whole milliseconds since the epoch, rounded down; negative before it.
fn unix_millis(time: SystemTime) -> UnixMillis {
    let millis = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos().div_ceil(1_000_000))
            .map_or(i64::MIN, |millis| -millis),
    };
    UnixMillis(millis)
}

#[cfg(target_os = "linux")]
fn monotonic() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    // Time since boot is never negative.
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

#[cfg(not(target_os = "linux"))]
fn monotonic() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_rounded_down_on_both_sides_of_the_epoch() {
        let at = |nanos| UNIX_EPOCH + Duration::from_nanos(nanos);
        assert_eq!(unix_millis(UNIX_EPOCH), UnixMillis(0));
        assert_eq!(unix_millis(at(1_999_999)), UnixMillis(1));
        assert_eq!(
            unix_millis(UNIX_EPOCH - Duration::from_nanos(1)),
            UnixMillis(-1)
        );
        assert_eq!(
            unix_millis(UNIX_EPOCH - Duration::from_millis(2)),
            UnixMillis(-2)
        );
    }

    #[tokio::test]
    async fn a_sleep_ends_when_its_time_has_passed_on_the_monotonic_clock() {
        let clock = SystemClock::new();
        let before = clock.monotonic();
        clock.sleep(Duration::from_millis(5)).await;
        assert!(clock.monotonic() >= before + Duration::from_millis(5));
    }
}
