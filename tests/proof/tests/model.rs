//! The small configurations of the model keep the promise, and every broken one is caught.

use proof::model::{Control, SMALL, SOMETIMES, check, counterexample};

#[test]
fn every_small_world_keeps_the_promise_and_is_as_large_as_it_was() {
    let mut seen = Vec::new();
    for bounds in SMALL {
        let report = check(bounds);
        if let Some(found) = report.found {
            panic!("{}: {found}", bounds.name);
        }
        assert_eq!(report.states, bounds.states, "states of {:?}", bounds.name);
        seen.extend(report.seen);
    }
    for (name, _) in SOMETIMES {
        assert!(seen.contains(&name), "never seen: {name}");
    }
}

/// What a mistake breaks, and what its shortest story must tell of, in this order.
fn expected(control: Control) -> (&'static str, &'static [&'static str]) {
    match control {
        Control::EndWithoutCondition => (
            "a zombie records nothing",
            &[
                "its job is done",
                "has won processing (attempt 2",
                "store: written; finds: done",
            ],
        ),
        Control::VersionIsACounter => (
            "a zombie records nothing",
            &[
                "the store deletes the expired row",
                "has won processing (attempt 1",
                "store: written",
            ],
        ),
        Control::HeldIsAcknowledged => (
            "acknowledged means recorded",
            &["has won", "finds: held", "held: acknowledged"],
        ),
        Control::OwnWriteIsADuplicate => (
            "acknowledged means recorded",
            &[
                "asks to write processing (attempt 1",
                "duplicate: acknowledged",
            ],
        ),
        Control::FailureIsNotRecorded => (
            "a failure that is told is recorded",
            &["has won", "failed: deliver again"],
        ),
        Control::ExpiryIsSetAtClaim => (
            "attempts only grow",
            &[
                "has won",
                "the store deletes the expired row of job 1: processing",
                "store: written",
            ],
        ),
        Control::WallClockDecidesEnds => (
            "a zombie records nothing",
            &["has won", "has won processing (attempt 2", "store: written"],
        ),
    }
}

#[test]
fn every_mistake_is_found_and_told_as_a_story() {
    for control in Control::ALL {
        let (property, essentials) = expected(control);
        let report = counterexample(control.bounds(), control);
        let found = report
            .found
            .unwrap_or_else(|| panic!("{control:?} is not found"));
        assert_eq!(found.property, property, "{control:?}: {found}");
        let mut steps = found.steps.iter();
        for essential in essentials {
            assert!(
                steps.any(|step| step.contains(essential)),
                "{control:?} tells nothing of {essential:?}:\n{found}"
            );
        }
    }
}

#[test]
fn a_wall_clock_decides_well_as_long_as_the_clocks_agree() {
    let mut bounds = Control::WallClockDecidesEnds.bounds().clone();
    bounds.clocks = &[0, 0];
    let report = counterexample(&bounds, Control::WallClockDecidesEnds);
    assert!(report.found.is_none(), "{:?}", report.found);
}
