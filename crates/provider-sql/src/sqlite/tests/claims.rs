//! Reading a claim, and compare-and-swap on it.

use std::sync::Arc;
use std::time::Duration;

use identity_core::claim::{
    ClaimKey, ClaimStore, Precondition, Record, Status, StoreError, Stored, Version,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use sqlx::Executor;

use super::chain;
use crate::samples::{self, bare, numbered_key};
use crate::sqlite::connection::options;
use crate::sqlite::fixture::Fixture;
use crate::sqlite::{LockHeld, SqliteStore};

const ABSENT: &Precondition = &Precondition::Absent;

async fn standing(store: &SqliteStore, key: &ClaimKey) -> Stored {
    store.get(key).await.unwrap().unwrap()
}

fn conflict(result: Result<Version, StoreError>) -> Option<Stored> {
    match result {
        Err(StoreError::Conflict { standing }) => standing.map(|standing| *standing),
        other => panic!("expected a conflict, got {other:?}"),
    }
}

#[test]
fn every_record_comes_back_as_it_was_written() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let fixture = runtime.block_on(Fixture::new());
    let store = &fixture.store;
    // Every case is written to the disk, twice: fewer cases than for a codec in memory, which `columns` has.
    let config = ProptestConfig::with_cases(64);
    let records = (samples::key(), samples::record(), samples::record());
    TestRunner::new(config)
        .run(&records, |(key, first, second)| {
            runtime.block_on(async {
                let version = store.put(&key, &first, ABSENT).await.unwrap();
                let read = standing(store, &key).await;
                prop_assert_eq!((&read.record, &read.version), (&first, &version));

                let when = Precondition::Unchanged(version);
                let version = store.put(&key, &second, &when).await.unwrap();
                let read = standing(store, &key).await;
                prop_assert_eq!((&read.record, &read.version), (&second, &version));
                Ok(())
            })
        })
        .unwrap();
}

#[tokio::test]
async fn a_claimed_key_is_refused_with_what_stands_there() {
    let fixture = Fixture::new().await;
    let (store, key) = (&fixture.store, numbered_key(1));
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

#[tokio::test]
async fn a_version_holds_for_one_write() {
    let fixture = Fixture::new().await;
    let (store, key) = (&fixture.store, numbered_key(1));
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

#[tokio::test]
async fn a_version_that_no_row_ever_had_is_a_conflict() {
    let fixture = Fixture::new().await;
    let key = numbered_key(1);
    for text in ["", "-", "1", "'; DROP TABLE firstclaim_claims; --"] {
        let when = Precondition::Unchanged(Version(text.to_owned()));
        let refused = fixture.store.put(&key, &bare(Status::Done, 1), &when).await;
        assert_eq!(conflict(refused), None);
    }
}

#[tokio::test]
async fn a_foreign_flip_to_done_stops_the_holder() {
    let fixture = Fixture::new().await;
    let (store, key) = (&fixture.store, numbered_key(1));
    let held = store
        .put(&key, &bare(Status::Processing, 1), ABSENT)
        .await
        .unwrap();
    fixture.flip_status(&key, Status::Done).await;
    let when = Precondition::Unchanged(held);
    let refused = conflict(store.put(&key, &bare(Status::Failed, 2), &when).await);
    assert_eq!(refused.unwrap().record, bare(Status::Done, 1));
    assert_eq!(standing(store, &key).await.record, bare(Status::Done, 1));
}

#[tokio::test]
async fn a_row_deleted_and_made_anew_is_not_the_one_that_was_read() {
    let fixture = Fixture::new().await;
    let (store, key) = (&fixture.store, numbered_key(1));
    let held = store
        .put(&key, &bare(Status::Processing, 1), ABSENT)
        .await
        .unwrap();
    let when = Precondition::Unchanged(held);
    fixture.delete(&key).await;
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

#[tokio::test]
async fn a_row_of_another_program_is_read_and_can_be_replaced() {
    let fixture = Fixture::new().await;
    let (store, key) = (&fixture.store, numbered_key(1));
    let sql = format!(
        "INSERT INTO firstclaim_claims (key, status, claimed_at) VALUES ('{key}', 'processing', 5)"
    );
    fixture.execute(sql).await;
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

#[tokio::test]
async fn what_no_claim_can_hold_is_named_by_row_and_column() {
    let fixture = Fixture::new().await;
    let (store, key) = (&fixture.store, numbered_key(1));
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
        ("released_at", "released_at = 3", "Some(3)"),
        (
            "released_from",
            "released_at = 3, released_from = 'x', released_attempt = 1",
            "\"x\"",
        ),
        (
            "released_attempt",
            "released_at = 3, released_from = 'done', released_attempt = -1",
            "\"-1\"",
        ),
        ("error", "error = CAST(x'ff' AS TEXT)", "utf-8"),
    ];
    for (column, set, got) in cases {
        store
            .put(&key, &bare(Status::Failed, 1), ABSENT)
            .await
            .unwrap();
        let sql = format!("UPDATE firstclaim_claims SET {set} WHERE key = '{key}'");
        assert_eq!(fixture.execute(sql).await, 1);
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
        fixture.delete(&key).await;
    }
}

#[tokio::test]
async fn an_over_long_result_or_body_is_not_written() {
    let fixture = Fixture::new().await;
    let (store, key) = (&fixture.store, numbered_key(1));
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

#[tokio::test]
async fn every_write_is_synced_to_the_log() {
    let fixture = Fixture::new().await;
    let mut writer = fixture.store.writer.lend().await.unwrap();
    let mut value = async |sql: &'static str| -> String {
        use sqlx::Row;
        let row = writer.fetch_one(sql).await.unwrap();
        row.try_get_unchecked(0).unwrap()
    };
    assert_eq!(value("PRAGMA journal_mode").await, "wal");
    assert_eq!(
        value("SELECT CAST(synchronous AS TEXT) FROM pragma_synchronous").await,
        "2"
    );
}

#[tokio::test]
async fn a_writer_waits_for_the_lock_so_long_and_no_longer_while_readers_go_on() {
    let fixture = Fixture::new().await;
    let store = fixture.another(Duration::from_millis(30)).await;
    let key = numbered_key(1);
    let mut foreign = fixture.foreign().await;
    foreign.execute("BEGIN IMMEDIATE").await.unwrap();

    let record = bare(Status::Processing, 1);
    let error = store.put(&key, &record, ABSENT).await.unwrap_err();
    let StoreError::Unavailable { source, .. } = &error else {
        panic!("expected that the store is unavailable, got {error:?}");
    };
    assert!(source.is::<LockHeld>(), "{source:?}");
    assert_eq!(
        chain(&error),
        format!(
            "{store}: writing a claim failed: the file stayed locked for 0.03 s: another process is \
             writing to it: (code: 5) database is locked"
        )
    );
    assert_eq!(store.get(&key).await.unwrap(), None);

    foreign.execute("ROLLBACK").await.unwrap();
    store.put(&key, &record, ABSENT).await.unwrap();
}

#[tokio::test]
async fn a_write_whose_caller_went_away_leaves_neither_row_nor_lock() {
    let fixture = Fixture::new().await;
    let store = Arc::new(fixture.another(SqliteStore::LOCK_WAIT).await);
    let mut foreign = fixture.foreign().await;
    foreign.execute("BEGIN IMMEDIATE").await.unwrap();
    let abandoned = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            let record = bare(Status::Processing, 1);
            store.put(&numbered_key(1), &record, ABSENT).await
        }
    });
    // It holds the writer, and waits for the lock.
    while store.writer.idle.try_lock().is_ok() {
        tokio::task::yield_now().await;
    }
    abandoned.abort();
    assert!(abandoned.await.unwrap_err().is_cancelled());
    foreign.execute("ROLLBACK").await.unwrap();

    let record = bare(Status::Processing, 2);
    store.put(&numbered_key(2), &record, ABSENT).await.unwrap();
    assert_eq!(store.get(&numbered_key(1)).await.unwrap(), None);
}

#[tokio::test]
async fn a_full_disk_fails_the_write_that_does_not_fit_and_no_other() {
    let fixture = Fixture::new().await;
    let small = options(&fixture.path()).pragma("max_page_count", "40");
    let store = SqliteStore::open_with(&fixture.path(), SqliteStore::LOCK_WAIT, small)
        .await
        .unwrap();
    let large = Record {
        body: Some(vec![1; Record::MAX_BODY_BYTES]),
        ..bare(Status::Rejected, 1)
    };
    let mut written = Vec::new();
    let error = loop {
        let key = numbered_key(u64::try_from(written.len()).unwrap());
        match store.put(&key, &large, ABSENT).await {
            Ok(version) => written.push((key, version)),
            Err(error) => break error,
        }
    };
    assert!(!written.is_empty());
    let cause = std::error::Error::source(&error).unwrap();
    assert!(cause.is::<sqlx::sqlite::SqliteError>(), "{cause:?}");
    assert_eq!(
        chain(&error),
        format!("{store}: writing a claim failed: (code: 13) database or disk is full")
    );
    for (key, version) in &written {
        assert_eq!(standing(&store, key).await.record, large);
        let when = Precondition::Unchanged(version.clone());
        store
            .put(key, &bare(Status::Failed, 2), &when)
            .await
            .unwrap();
    }
    let key = numbered_key(u64::try_from(written.len()).unwrap());
    store.put(&key, &large, ABSENT).await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_gone_is_not_replaced_by_an_empty_one() {
    let fixture = Fixture::new().await;
    let (store, key) = (&fixture.store, numbered_key(1));
    store
        .put(&key, &bare(Status::Done, 1), ABSENT)
        .await
        .unwrap();
    store.close().await.unwrap();
    std::fs::remove_file(fixture.path()).unwrap();
    let error = store.put(&key, &bare(Status::Done, 2), ABSENT).await;
    assert_eq!(
        chain(&error.unwrap_err()),
        format!("{store}: reading a claim failed: (code: 14) unable to open database file")
    );
    assert!(!fixture.path().exists());
}
