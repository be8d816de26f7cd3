//! The machine step by step: the corners that a whole store reaches only by luck.

use super::*;
use crate::claim::testing::{object, pipeline, record};

const NOW: UnixMillis = UnixMillis(2_000_000);

fn claiming(owner: u128, terms: Terms) -> Claiming {
    Claiming::new(Owner(owner), object("a.shp"), pipeline(), terms)
}

fn stored(record: Record) -> Stored {
    Stored {
        record,
        version: Version("v1".into()),
    }
}

/// The record that a step asks to write.
#[track_caller]
fn written<T: std::fmt::Debug>(step: Step<T>) -> Record {
    match step {
        Step::Ask(Ask::Put { record, .. }) => *record,
        other => panic!("expected a write, got {other:?}"),
    }
}

#[test]
fn a_lease_of_no_time_is_a_lease_that_ends_at_once_and_not_none() {
    let terms = Terms {
        lease: Duration::ZERO,
        ..Terms::default()
    };
    let fresh = written(claiming(7, terms).start(NOW));
    assert_eq!(fresh.lease_until, Some(NOW));
    let mut other = claiming(8, terms);
    let _ = other.start(NOW);
    let taken = written(other.step(Answer::Conflict(Some(stored(fresh))), NOW));
    assert_eq!((taken.attempt, taken.lease_until), (2, Some(NOW)));
    let renewed = written(Holding::renew(&stored(taken), 2, Duration::ZERO, NOW).start());
    assert_eq!(renewed.lease_until, Some(NOW));
}

/// Whatever else stands is decided as for any other call.
#[test]
fn who_runs_beside_others_takes_over_from_nobody_that_went_away() {
    let terms = Terms {
        max_attempts: 3,
        ..Terms::default()
    };
    let row = |status, attempt, lease_until| Record {
        status,
        attempt,
        lease_until: Some(UnixMillis(lease_until)),
        ..record()
    };
    let gone = NOW.0 - 1;
    for (row, is_abandoned) in [
        (row(Status::Processing, 1, gone), true),
        (row(Status::Processing, 3, gone), false),
        (row(Status::Processing, 1, NOW.0 + 1), false),
        (row(Status::Failed, 1, gone), false),
        (row(Status::Done, 1, gone), false),
    ] {
        let answer = || Answer::Conflict(Some(stored(row.clone())));
        let mut alone = claiming(8, terms);
        let _ = alone.start(NOW);
        let mut beside = claiming(8, terms).beside_others();
        let _ = beside.start(NOW);
        let (alone, beside) = (alone.step(answer(), NOW), beside.step(answer(), NOW));
        if is_abandoned {
            assert_eq!(written(alone).attempt, 2);
            let record = Box::new(row);
            assert_eq!(beside, Step::Finished(ClaimOutcome::Abandoned { record }));
        } else {
            assert_eq!(alone, beside);
        }
    }
}

#[test]
fn a_row_of_the_same_owner_but_another_attempt_is_not_mine_to_end() {
    let held = stored(record());
    for end in [
        End::Failed {
            reason: None,
            error: "e".into(),
        },
        End::Rejected { error: "e".into() },
    ] {
        let mut ending = Holding::end(&held, 2, end, &Terms::default(), NOW);
        let mut later = written(ending.start());
        later.attempt += 1;
        for status in [Status::Processing, later.status] {
            let row = stored(Record {
                status,
                ..later.clone()
            });
            let step = ending.clone().step(Answer::Conflict(Some(row.clone())));
            assert_eq!(step, Step::Finished(HolderOutcome::Lost(Some(row))));
        }
    }
}

#[test]
fn a_lost_reply_to_a_claim_is_a_claim() {
    let mut call = claiming(7, Terms::default());
    let record = written(call.start(NOW));
    let row = stored(record);
    assert_eq!(call.step(Answer::Unclear, NOW), Step::Ask(Ask::Get));
    assert_eq!(
        call.step(Answer::Row(Some(row.clone())), NOW),
        Step::Finished(ClaimOutcome::Won(Box::new(row)))
    );
}

#[test]
fn a_lost_reply_to_an_end_is_an_end() {
    let held = stored(record());
    let end = End::Done {
        result: None,
        reason: None,
        note: None,
    };
    let mut ending = Holding::end(&held, 2, end, &Terms::default(), NOW);
    let row = stored(written(ending.start()));
    assert_eq!(ending.step(Answer::Unclear), Step::Ask(Ask::Get));
    assert_eq!(
        ending.step(Answer::Row(Some(row.clone()))),
        Step::Finished(HolderOutcome::Written(row))
    );
}

#[test]
fn a_renewal_finds_a_foreign_end_and_leaves_it() {
    let held = stored(record());
    let mut renewal = Holding::renew(&held, 2, Duration::from_secs(120), NOW);
    let _ = renewal.start();
    let row = stored(Record {
        status: Status::Done,
        ..record()
    });
    assert_eq!(
        renewal.step(Answer::Conflict(Some(row.clone()))),
        Step::Finished(HolderOutcome::Lost(Some(row)))
    );
}

#[test]
fn a_lease_end_that_nobody_should_have_is_told() {
    let mut call = claiming(7, Terms::default());
    let _ = call.start(NOW);
    let far = Record {
        lease_until: Some(NOW.plus(Duration::from_secs(100_000))),
        ..record()
    };
    match call.step(Answer::Conflict(Some(stored(far))), NOW) {
        Step::Finished(ClaimOutcome::Held {
            suspicious: true, ..
        }) => {}
        other => panic!("expected a suspicious lease, got {other:?}"),
    }
}

#[test]
fn only_done_expires_and_only_from_its_end() {
    let held = stored(record());
    let terms = Terms::default();
    let done = End::Done {
        result: None,
        reason: None,
        note: None,
    };
    let done = written(Holding::end(&held, 2, done, &terms, NOW).start());
    assert_eq!(done.expires_at, Some(NOW.plus(terms.done_ttl).seconds()));
    let failed = End::Failed {
        reason: None,
        error: "e".into(),
    };
    for end in [failed, End::Rejected { error: "e".into() }] {
        assert_eq!(
            written(Holding::end(&held, 2, end, &terms, NOW).start()).expires_at,
            None
        );
    }
    assert_eq!(written(claiming(7, terms).start(NOW)).expires_at, None);
}

#[test]
fn a_store_that_never_says_anything_is_not_asked_for_ever() {
    let mut call = claiming(7, Terms::default());
    let mut step = call.start(NOW);
    for _ in 0..100 {
        if matches!(step, Step::Finished(ClaimOutcome::Unclear)) {
            return;
        }
        step = call.step(Answer::Unclear, NOW);
    }
    panic!("still asking");
}

#[test]
fn a_waiting_row_is_claimed_like_an_absent_one() {
    let mut call = claiming(7, Terms::default());
    let _ = call.start(NOW);
    let waiting = Record {
        status: Status::Waiting,
        attempt: 0,
        owner: None,
        lease_until: None,
        ..record()
    };
    let taken = written(call.step(Answer::Conflict(Some(stored(waiting))), NOW));
    assert_eq!((taken.status, taken.attempt), (Status::Processing, 1));
}
