//! Reading a claim, and compare-and-swap on it.

use std::sync::Arc;

use identity_core::claim::{ClaimKey, ClaimStore, Precondition, Status, StoreError, Stored};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tokio::runtime::Handle;

use super::Testbed;
use identity_core::claim::conformance::samples::{self, bare, numbered_key};

const ABSENT: &Precondition = &Precondition::Absent;

async fn standing(store: &Arc<impl ClaimStore>, key: &ClaimKey) -> Stored {
    store.get(key).await.unwrap().unwrap()
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
        ("object_container", "object_key = 'k'", "Some(\\\"k\\\")"),
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
        let error = store.get(&key).await.unwrap_err();
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
        bed.delete(&key).await;
    }
}
