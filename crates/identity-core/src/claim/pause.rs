//! How long a failed job is left alone before it is tried again: longer each time, and never the same for two jobs.

use std::time::Duration;

use super::record::{Record, UnixMillis};

/// The longest pause. No longer than the longest lease that anybody may hold, so that no sweep takes it for another machine's
/// wrong clock.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Not before when the job of `record`, whose attempt failed at `now`, is worth another one, if the pause after its first
/// attempt is `first`: it doubles with each, counted from the last release, and is between a half and all of that, by the
/// random owner of the attempt. Of many jobs that failed together, not all come back at once.
///
/// `None` without pauses.
pub(super) fn worth_trying(
    record: &Record,
    first: Duration,
    now: UnixMillis,
) -> Option<UnixMillis> {
    if first.is_zero() {
        return None;
    }
    let released = record.released.map_or(0, |release| release.attempt);
    let before = record.attempt.saturating_sub(released).saturating_sub(1);
    let doubled = 2_u32.saturating_pow(before);
    let full = first
        .checked_mul(doubled)
        .map_or(LONGEST, |pause| pause.min(LONGEST));
    // 16 of the owner's 128 random bits.
    let share = record.owner.map_or(0, |owner| owner.0 & 0xffff);
    let share = u32::try_from(share).unwrap_or(0);
    Some(now.plus(full / 2 + full / 2 * share / 0xffff))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::claim::{Owner, Release, Status, UnixSeconds, testing::record};

    const NOW: UnixMillis = UnixMillis(1_000_000);

    fn pause(record: &Record, first: u64) -> Duration {
        NOW.until(worth_trying(record, Duration::from_secs(first), NOW).unwrap())
    }

    fn failed(attempt: u32, owner: u128) -> Record {
        Record {
            attempt,
            owner: Some(Owner(owner)),
            ..record()
        }
    }

    #[test]
    fn pauses_double_from_the_last_release_up_to_an_hour() {
        let longest = |attempt| pause(&failed(attempt, 0xffff), 10).as_secs();
        assert_eq!(
            [1, 2, 3, 4, 9, 10, 40, u32::MAX].map(longest),
            [10, 20, 40, 80, 2_560, 3_600, 3_600, 3_600]
        );
        let released = Record {
            released: Some(Release {
                at: UnixSeconds(1),
                from: Status::Rejected,
                attempt: 10,
            }),
            ..failed(11, 0xffff)
        };
        assert_eq!(pause(&released, 10).as_secs(), 10);
        assert_eq!(worth_trying(&released, Duration::ZERO, NOW), None);
    }

    #[test]
    fn a_pause_goes_by_the_last_bits_of_its_owner() {
        let share = |owner| pause(&failed(1, owner), 10).as_secs();
        assert_eq!([0, 0x1_0000, 0xffff, u128::MAX].map(share), [5, 5, 10, 10]);
    }

    proptest! {
        #[test]
        fn a_pause_is_between_a_half_and_all_of_it(
            attempt in 1_u32..12, owner in any::<u128>(), first in 1_u64..=3_600
        ) {
            let all = pause(&failed(attempt, 0xffff), first);
            let drawn = pause(&failed(attempt, owner), first);
            prop_assert!(drawn <= all && drawn + Duration::from_millis(1) >= all / 2, "{drawn:?} of {all:?}");
        }
    }
}
