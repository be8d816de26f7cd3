//! Ten thousand schedules of the shipped gate hold; bugs beside it are found; a seed is a schedule, byte for byte.

use proof::simulation::{Control, Simulator};

#[test]
fn ten_thousand_schedules_hold() {
    let simulator = Simulator::new(None).unwrap();
    let summary = simulator.play_many(0, 10_000, None).unwrap();
    if let Some(failed) = &summary.failed {
        panic!(
            "seed {} fails: {}\n{}",
            failed.seed,
            failed
                .violation
                .as_deref()
                .unwrap_or("not when it was played again"),
            failed.log.join("\n")
        );
    }
    assert_eq!(summary.schedules, 10_000);
    assert_eq!(summary.missing(), Vec::<&str>::new(), "never happened");
}

#[test]
fn bugs_beside_the_gate_are_found() {
    for (control, name) in Control::ALL {
        let simulator = Simulator::new(Some(control)).unwrap();
        let summary = simulator.play_many(0, 500, None).unwrap();
        let failed = summary
            .failed
            .unwrap_or_else(|| panic!("{name} was not found"));
        let violation = failed.violation.unwrap();
        println!("{name}: seed {}: {violation}", failed.seed);
        let expected: &[&str] = match control {
            Control::AcknowledgeHeld => &["acknowledged, and what stands there is processing"],
            Control::LoseFailed => &["is over and still holds its row"],
            Control::IgnorePreconditions => {
                &["a zombie", "an end changed", "attempt", "by another hand"]
            }
            Control::CountedVersions => &["a zombie", "an end changed"],
        };
        assert!(
            expected.iter().any(|text| violation.contains(text)),
            "{name}: {violation}"
        );
        assert!(failed.log.last().unwrap().contains(&violation));
    }
}

#[test]
fn a_seed_is_a_schedule_byte_for_byte() {
    let simulator = Simulator::new(None).unwrap();
    for seed in 0..200 {
        let first = simulator.play(seed, true).unwrap();
        let again = simulator.play(seed, true).unwrap();
        assert_eq!(first.log.join("\n"), again.log.join("\n"), "seed {seed}");
        assert_eq!(first, again);
        let unlogged = simulator.play(seed, false).unwrap();
        assert_eq!(
            (unlogged.events, &unlogged.seen),
            (first.events, &first.seen)
        );
    }
}
