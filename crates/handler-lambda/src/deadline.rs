//! How long an invocation may take, by the deadline that Lambda tells.

use std::time::Duration;

use identity_core::claim::UnixMillis;

/// The longest time that can be left, generously: Lambda's own limit is 15 minutes, and clocks differ. What is further
/// away than this, ahead or behind, is no deadline but a mistake (an emulator's says 1970).
const SENSIBLE: Duration = Duration::from_secs(24 * 60 * 60);

/// What is left until `deadline`, in Unix milliseconds; nothing left is zero. `None` if that is no deadline.
pub(crate) fn left(deadline: u64, now: UnixMillis) -> Option<Duration> {
    let left = i128::from(deadline) - i128::from(now.0);
    let distance = u64::try_from(left.unsigned_abs()).unwrap_or(u64::MAX);
    if Duration::from_millis(distance) > SENSIBLE {
        return None;
    }
    Some(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(1_767_323_045_000);

    fn left_at(offset: i64) -> Option<Duration> {
        left(u64::try_from(NOW.0 + offset).unwrap(), NOW)
    }

    #[test]
    fn what_is_left_is_counted_from_now() {
        assert_eq!(left_at(30_000), Some(Duration::from_secs(30)));
        assert_eq!(left_at(0), Some(Duration::ZERO));
        assert_eq!(left_at(-5_000), Some(Duration::ZERO));
    }

    #[test]
    fn a_time_that_no_invocation_has_is_no_deadline() {
        for nonsense in [0, 600_000, u64::MAX] {
            assert_eq!(left(nonsense, NOW), None);
        }
        for clock in [i64::MIN, 0, i64::MAX] {
            assert_eq!(left(NOW.0.unsigned_abs(), UnixMillis(clock)), None);
        }
    }
}
