//! Reading a claim, and compare-and-swap on it.

use std::sync::Arc;

use identity_core::claim::{
    ClaimKey, ClaimStore, Precondition, Record, Status, StoreError, Stored, Version,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tokio::runtime::Handle;

use super::Testbed;
use identity_core::claim::conformance::samples::{self, bare, numbered_key};

const ABSENT: &Precondition = &Precondition::Absent;

async fn standing(store: &Arc<impl ClaimStore>, key: &ClaimKey) -> Stored {
    store.get(key).await.unwrap().unwrap()
}

fn conflict(result: Result<Version, StoreError>) -> Option<Stored> {
    match result {
        Err(StoreError::Conflict { standing }) => standing.map(|standing| *standing),
        other => panic!("expected a conflict, got {other:?}"),
    }
}

pub(crate) async fn every_record_comes_back_as_it_was_written(bed: &impl Testbed) {
    let (store, runtime) = (bed.store(), Handle::current());
    // Every case is written to the disk, twice: fewer cases than for a codec in memory, which `columns` has.
    let config = ProptestConfig::with_cases(64);
    let record = || samples::record_within(bed.times());
    let mut runner = TestRunner::new(config);
    let all = runner.run(
        &(samples::key(), record(), record()),
        |(key, first, second)| {
            let round_trips = async {
                let version = store.put(&key, &first, ABSENT).await.unwrap();
                let read = standing(store, &key).await;
                prop_assert_eq!((&read.record, &read.version), (&first, &version));

                let when = Precondition::Unchanged(version);
                let version = store.put(&key, &second, &when).await.unwrap();
                let read = standing(store, &key).await;
                prop_assert_eq!((&read.record, &read.version), (&second, &version));
                Ok(())
            };
            tokio::task::block_in_place(|| runtime.block_on(round_trips))
        },
    );
    all.unwrap();
}

pub(crate) async fn a_claimed_key_is_refused_with_what_stands_there(bed: &impl Testbed) {
    let (store, key) = (bed.store(), numbered_key(1));
    assert_eq!(store.get(&key).await.unwrap(), None);
    let version = store
        .put(&key, &bare(Status::Processing, 1), ABSENT)
        .await
        .unwrap();
    let refused = store.put(&key, &bare(Status::Processing, 2), ABSENT).await;
    let expected = Stored {
        record: bare(Status::Processing, 1),
        version,
    };
    assert_eq!(conflict(refused), Some(expected.clone()));
    assert_eq!(standing(store, &key).await, expected);
}

pub(crate) async fn a_version_holds_for_one_write(bed: &impl Testbed) {
    let (store, key) = (bed.store(), numbered_key(1));
    let first = store
        .put(&key, &bare(Status::Processing, 1), ABSENT)
        .await
        .unwrap();
    let first = Precondition::Unchanged(first);
    store
        .put(&key, &bare(Status::Processing, 2), &first)
        .await
        .unwrap();
    let refused = store.put(&key, &bare(Status::Failed, 3), &first).await;
    assert_eq!(
        conflict(refused).unwrap().record,
        bare(Status::Processing, 2)
    );
}

pub(crate) async fn a_version_that_no_row_ever_had_is_a_conflict(bed: &impl Testbed) {
    let key = numbered_key(1);
    for text in ["", "-", "1", "'; DROP TABLE firstclaim_claims; --"] {
        let when = Precondition::Unchanged(Version(text.to_owned()));
        let refused = bed.store().put(&key, &bare(Status::Done, 1), &when).await;
        assert_eq!(conflict(refused), None);
    }
}

pub(crate) async fn a_foreign_flip_to_done_stops_the_holder(bed: &impl Testbed) {
    let (store, key) = (bed.store(), numbered_key(1));
    let held = store
        .put(&key, &bare(Status::Processing, 1), ABSENT)
        .await
        .unwrap();
    bed.flip_status(&key, Status::Done).await;
    let when = Precondition::Unchanged(held);
    let refused = conflict(store.put(&key, &bare(Status::Failed, 2), &when).await);
    assert_eq!(refused.unwrap().record, bare(Status::Done, 1));
    assert_eq!(standing(store, &key).await.record, bare(Status::Done, 1));
}

pub(crate) async fn a_row_deleted_and_made_anew_is_not_the_one_that_was_read(bed: &impl Testbed) {
    let (store, key) = (bed.store(), numbered_key(1));
    let held = store
        .put(&key, &bare(Status::Processing, 1), ABSENT)
        .await
        .unwrap();
    let when = Precondition::Unchanged(held);
    bed.delete(&key).await;
    let refused = store.put(&key, &bare(Status::Done, 2), &when).await;
    assert_eq!(conflict(refused), None);
    assert_eq!(store.get(&key).await.unwrap(), None);

    store
        .put(&key, &bare(Status::Processing, 3), ABSENT)
        .await
        .unwrap();
    let refused = store.put(&key, &bare(Status::Done, 2), &when).await;
    assert_eq!(
        conflict(refused).unwrap().record,
        bare(Status::Processing, 3)
    );
}

pub(crate) async fn a_row_of_another_program_is_read_and_can_be_replaced(bed: &impl Testbed) {
    let (store, key) = (bed.store(), numbered_key(1));
    let (columns, time) = ("key, status, claimed_at", bed.time(5));
    let values = format!("'{key}', 'processing', {time}");
    bed.execute(&format!(
        "INSERT INTO firstclaim_claims ({columns}) VALUES ({values})"
    ))
    .await;
    let read = standing(store, &key).await;
    assert_eq!(
        (read.record.claimed_at.0, read.record.revision),
        (5, None),
        "{read:?}"
    );
    let when = Precondition::Unchanged(read.version);
    store
        .put(&key, &bare(Status::Processing, 1), &when)
        .await
        .unwrap();
    assert_eq!(
        standing(store, &key).await.record,
        bare(Status::Processing, 1)
    );
}

pub(crate) async fn what_no_claim_can_hold_is_named_by_row_and_column(bed: &impl Testbed) {
    let (store, key) = (bed.store(), numbered_key(1));
    let cases = [
        ("status", "status = 'finished'", "\"finished\""),
        ("attempt", "attempt = -1", "\"-1\""),
        ("redrives", "redrives = 4294967296", "\"4294967296\""),
        ("owner", "owner = 'me'", "\"me\""),
        ("revision", "revision = '7'", "\"7\""),
        ("reason", "reason = 'because'", "\"because\""),
        ("object_provider", "object_key = 'k'", "Some(\\\"k\\\")"),
        (
            "object_provider",
            "object_provider = 'ftp', object_container = 'c', object_key = 'k'",
            "\"ftp\"",
        ),
        ("token_kind", "token_value = 't'", "Some(\\\"t\\\")"),
        (
            "token_kind",
            "token_kind = 'md5', token_value = 't'",
            "\"md5\"",
        ),
        ("released_at", "released_at = {3}", "Some(3)"),
        (
            "released_from",
            "released_at = {3}, released_from = 'x', released_attempt = 1",
            "\"x\"",
        ),
        (
            "released_attempt",
            "released_at = {3}, released_from = 'done', released_attempt = -1",
            "\"-1\"",
        ),
    ];
    for (column, set, got) in cases {
        store
            .put(&key, &bare(Status::Failed, 1), ABSENT)
            .await
            .unwrap();
        let set = set.replace("{3}", &bed.time(3));
        let sql = format!("UPDATE firstclaim_claims SET {set} WHERE key = '{key}'");
        assert_eq!(bed.execute(&sql).await, 1);
        // Reading it and running into it say the same.
        let read = store.get(&key).await.map(|_| ());
        let written = store.put(&key, &bare(Status::Failed, 2), ABSENT).await;
        for error in [read.unwrap_err(), written.unwrap_err()] {
            assert!(
                matches!(error, StoreError::Invalid { .. }),
                "{set}: {error:?}"
            );
            let text = error.to_string();
            let what = format!("{}: claim {key}, column {column}: expected ", store);
            assert!(
                text.starts_with(&what) && text.contains(got),
                "{set}: {text}"
            );
        }
        bed.delete(&key).await;
    }
}

pub(crate) async fn an_over_long_result_or_body_is_not_written(bed: &impl Testbed) {
    let (store, key) = (bed.store(), numbered_key(1));
    let result = Record {
        result: Some("x".repeat(Record::MAX_RESULT_BYTES + 1)),
        ..bare(Status::Done, 1)
    };
    let body = Record {
        body: Some(vec![0; Record::MAX_BODY_BYTES + 1]),
        ..bare(Status::Rejected, 1)
    };
    for (record, column, expected, got) in [
        (result, "result", "at most 16384 bytes", "16385 bytes"),
        (body, "body", "at most 32768 bytes", "32769 bytes"),
    ] {
        let error = store.put(&key, &record, ABSENT).await.unwrap_err();
        let text =
            format!("{store}: claim {key}, column {column}: expected {expected}, got {got:?}");
        assert_eq!(error.to_string(), text);
    }
    assert_eq!(store.get(&key).await.unwrap(), None);
}
