//! The machine step by step: the corners that a whole store reaches only by luck.

use super::*;
use crate::claim::{
    record::UnixSeconds,
    testing::{object, pipeline, record},
};

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

/// A row with something in every field that a later write could take away, or keep.
fn been_through(status: Status) -> Record {
    Record {
        status,
        attempt: 3,
        owner: Some(Owner(9)),
        revision: Some(Revision {
            owner: Owner(9),
            write: 5,
        }),
        waiting_until: Some(UnixMillis(1_500_000)),
        finished_at: Some(UnixSeconds(1_400)),
        expires_at: Some(UnixSeconds(9_000)),
        redrives: 2,
        reason: Some(Reason::Unavailable),
        error: Some("403".into()),
        result: Some("{}".into()),
        released: Some(Release {
            at: UnixSeconds(1_300),
            from: Status::Rejected,
            attempt: 1,
        }),
        uncounted: 1,
        ..record()
    }
}

/// What `owner`, who has met `row`, asks to write under these terms.
fn over(row: &Record, owner: u128, terms: Terms) -> (Record, Claiming) {
    let mut call = claiming(owner, terms);
    let _ = call.start(NOW);
    let record = written(call.step(Answer::Conflict(Some(stored(row.clone()))), NOW));
    (record, call)
}

#[test]
fn who_takes_a_claim_keeps_what_it_has_been_through_and_nothing_of_its_last_end() {
    let terms = Terms::default();
    let row = been_through(Status::Failed);
    let (taken, call) = over(&row, 7, terms);
    let expected = Record {
        status: Status::Processing,
        attempt: 4,
        owner: Some(Owner(7)),
        revision: Some(Revision {
            owner: Owner(7),
            write: 2,
        }),
        claimed_at: NOW.seconds(),
        lease_until: Some(NOW.plus(terms.lease)),
        waiting_until: None,
        finished_at: None,
        expires_at: None,
        reason: None,
        result: None,
        ..row
    };
    assert_eq!(taken, expected);
    assert_eq!(call.writes(), 2, "its holder's writes are counted on");
}

#[test]
fn a_claim_whose_attempts_are_used_up_is_rejected_by_who_finds_it() {
    let terms = Terms {
        max_attempts: 1,
        ..Terms::default()
    };
    let row = been_through(Status::Failed);
    let expected = Record {
        status: Status::Rejected,
        owner: Some(Owner(7)),
        revision: Some(Revision {
            owner: Owner(7),
            write: 2,
        }),
        lease_until: None,
        finished_at: Some(NOW.seconds()),
        reason: Some(Reason::Exhausted),
        error: Some("all 1 attempts are used up; the last one: 403".into()),
        ..row.clone()
    };
    assert_eq!(over(&row, 7, terms).0, expected);

    let (rejected, mut call) = over(&record(), 7, terms);
    let told = rejected.error.as_deref().unwrap_or_default();
    assert!(told.contains("without a word"), "{told}");
    // The reply is lost: the row that is found is this call's own, and an end.
    assert_eq!(call.step(Answer::Unclear, NOW), Step::Ask(Ask::Get));
    match call.step(Answer::Row(Some(stored(rejected.clone()))), NOW) {
        Step::Finished(ClaimOutcome::Ended { record, .. }) => assert_eq!(*record, rejected),
        other => panic!("expected an end, got {other:?}"),
    }
}

#[test]
fn a_released_row_has_all_its_attempts_again_and_no_owner_that_still_runs() {
    let row = been_through(Status::Done);
    let expected = Record {
        status: Status::Failed,
        owner: Some(Owner(8)),
        revision: Some(Revision {
            owner: Owner(8),
            write: 1,
        }),
        lease_until: None,
        waiting_until: None,
        finished_at: Some(NOW.seconds()),
        expires_at: None,
        reason: Some(Reason::Released),
        result: None,
        released: Some(Release {
            at: NOW.seconds(),
            from: Status::Done,
            attempt: 3,
        }),
        uncounted: 0,
        ..row.clone()
    };
    assert_eq!(released(&row, Owner(8), NOW), expected);
}

#[test]
fn the_longest_lease_is_nobodys_wrong_clock_and_a_longer_one_is() {
    let longest = NOW.plus(Terms::default().longest_lease());
    for (until, wrong) in [(longest, false), (UnixMillis(longest.0 + 1), true)] {
        let mut call = claiming(7, Terms::default());
        let _ = call.start(NOW);
        let row = Record {
            lease_until: Some(until),
            ..record()
        };
        match call.step(Answer::Conflict(Some(stored(row))), NOW) {
            Step::Finished(ClaimOutcome::Held { suspicious, .. }) => assert_eq!(suspicious, wrong),
            other => panic!("expected a held claim, got {other:?}"),
        }
    }
}

/// What a holder makes of a row that it meets.
#[derive(Debug, PartialEq, Eq)]
enum Met {
    /// Its write took place.
    Written,
    /// It writes again, over that row.
    Again,
    /// The claim is not its own any more.
    Lost,
}

#[test]
fn a_holder_tells_its_own_write_its_own_claim_and_everything_else_apart() {
    let held = stored(record());
    let end = End::Failed {
        reason: None,
        error: "e".into(),
    };
    let renewal = Holding::renew(&held, 3, Duration::from_secs(120), NOW);
    let ending = Holding::end(&held, 3, end, &Terms::default(), NOW);
    let earlier = Some(Revision {
        owner: Owner(1),
        write: 2,
    });
    let sweeps = Some(Revision {
        owner: Owner(5),
        write: 1,
    });
    let (processing, failed) = (Status::Processing, Status::Failed);
    for (call, own_status, cases) in [
        (
            renewal,
            processing,
            [
                (processing, earlier, Met::Again),
                (processing, sweeps, Met::Again),
                (failed, earlier, Met::Lost),
                (Status::Done, earlier, Met::Lost),
            ],
        ),
        (
            ending,
            failed,
            [
                // An end that was sent twice, with two revisions: it is an end all the same.
                (failed, earlier, Met::Written),
                (processing, earlier, Met::Again),
                (processing, sweeps, Met::Again),
                (Status::Done, earlier, Met::Lost),
            ],
        ),
    ] {
        let mut started = call.clone();
        let own = written(started.start());
        assert_eq!(own.status, own_status);
        let meets = |row: &Record| match started.clone().step(Answer::Row(Some(Stored {
            record: row.clone(),
            version: Version("v2".into()),
        }))) {
            Step::Finished(HolderOutcome::Written(found)) => {
                assert_eq!(found.record, *row);
                Met::Written
            }
            Step::Finished(HolderOutcome::Lost(_)) => Met::Lost,
            Step::Ask(Ask::Put { record, when }) => {
                assert_eq!(when, Precondition::Unchanged(Version("v2".into())));
                assert_eq!(record.revision, own.revision);
                Met::Again
            }
            other => panic!("unexpected {other:?}"),
        };
        assert_eq!(meets(&own), Met::Written);
        // Another program changes the status alone.
        let flipped = Record {
            status: Status::Done,
            ..own.clone()
        };
        assert_eq!(meets(&flipped), Met::Lost);
        for (status, revision, met) in cases {
            let row = Record {
                status,
                revision,
                ..own.clone()
            };
            assert_eq!(meets(&row), met, "{own_status} meets {row:?}");
            for other in [
                Record {
                    owner: Some(Owner(2)),
                    ..row.clone()
                },
                Record { attempt: 2, ..row },
            ] {
                assert_eq!(meets(&other), Met::Lost, "{own_status} meets {other:?}");
            }
        }
    }
}

#[test]
fn a_recording_stands_or_meets_an_end_or_is_written_over_what_came_again() {
    let own = Record {
        attempt: 0,
        owner: Some(Owner(7)),
        revision: Some(Revision {
            owner: Owner(7),
            write: 1,
        }),
        ..Record::new(Status::Waiting, NOW.seconds(), pipeline())
    };
    let meets = |row: &Record| {
        let mut call = Recording::new(own.clone());
        assert_eq!(written(call.start()), own);
        assert_eq!(call.step(Answer::Unclear), Step::Ask(Ask::Get));
        call.step(Answer::Row(Some(stored(row.clone()))))
    };
    // Its own write, whose reply was lost; and what somebody else has ended.
    for row in [own.clone(), been_through(Status::Rejected)] {
        let recorded = RecordingOutcome::Recorded(Box::new(row.clone()));
        assert_eq!(meets(&row), Step::Finished(recorded));
    }
    for status in [Status::Waiting, Status::Failed] {
        let row = been_through(status);
        let expected = Record {
            attempt: row.attempt,
            redrives: row.redrives,
            released: row.released,
            uncounted: row.uncounted,
            ..own.clone()
        };
        assert_eq!(written(meets(&row)), expected);
    }
}

#[test]
fn no_call_asks_more_than_it_may_and_none_gives_up_before() {
    /// How often a call asks a store that never says anything.
    fn asks<T>(mut step: Step<T>, mut next: impl FnMut() -> Step<T>) -> u32 {
        let mut asked = 0;
        while let Step::Ask(_) = step {
            asked += 1;
            assert!(asked < 100, "still asking");
            step = next();
        }
        asked
    }
    let held = stored(record());
    let mut claim = claiming(7, Terms::default());
    let mut renewal = Holding::renew(&held, 2, Duration::from_secs(120), NOW);
    let mut recording = Recording::new(record());
    let asked = [
        asks(claim.start(NOW), || claim.step(Answer::Unclear, NOW)),
        asks(renewal.start(), || renewal.step(Answer::Unclear)),
        asks(recording.start(), || recording.step(Answer::Unclear)),
    ];
    assert_eq!(asked, [MAX_ASKS; 3]);
}
