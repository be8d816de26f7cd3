//! What queues are told; and, with the feature `emulators`, queues on an emulator.

use super::*;

#[test]
fn what_a_queue_refuses_is_escaped_and_means_the_same() {
    assert_eq!(
        acceptable("{\"key\":\"a\u{ffff}b\u{fffe} é\"}"),
        "{\"key\":\"a\\uffffb\\ufffe é\"}"
    );
}

#[test]
fn a_part_of_a_second_is_a_second_and_eleven_hours_are_the_most() {
    for (hidden, seconds) in [
        (Duration::ZERO, 0),
        (Duration::from_nanos(1), 1),
        (Duration::from_secs(90), 90),
        (Duration::from_millis(90_001), 91),
        (Duration::from_secs(39_600), 39_600),
        (Duration::from_millis(39_600_001), 39_600),
        (Duration::MAX, 39_600),
    ] {
        assert_eq!(whole_seconds(hidden), seconds, "{hidden:?}");
    }
}

#[cfg(feature = "emulators")]
mod emulated;
