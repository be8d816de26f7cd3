//! What SQLite's locks, disk and file do to a write.

use std::sync::Arc;
use std::time::Duration;

use identity_core::claim::{
    ClaimKey, ClaimStore, Precondition, Record, Status, StoreError, Stored,
};

use crate::cases::{Testbed, chain};
use crate::sqlite::connection::Options;
use crate::sqlite::fixture::Fixture;
use crate::sqlite::{LockHeld, SqliteStore};
use identity_core::claim::conformance::samples::{bare, numbered_key};

const ABSENT: &Precondition = &Precondition::Absent;

async fn standing(store: &SqliteStore, key: &ClaimKey) -> Stored {
    store.get(key).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_text_that_is_none_is_named_by_row_and_column() {
    let fixture = Fixture::new().await;
    let (store, key) = (&fixture.store, numbered_key(1));
    store
        .put(&key, &bare(Status::Failed, 1), ABSENT)
        .await
        .unwrap();
    let set = "error = CAST(x'ff' AS TEXT)";
    let sql = format!("UPDATE firstclaim_claims SET {set} WHERE key = '{key}'");
    assert_eq!(fixture.execute(&sql).await, 1);
    let error = store.get(&key).await.unwrap_err();
    assert!(matches!(error, StoreError::Invalid { .. }), "{error:?}");
    let what = format!("{store}: claim {key}, column error: expected a value of the column's type");
    let text = error.to_string();
    assert!(text.starts_with(&what) && text.contains("utf-8"), "{text}");
}

#[tokio::test]
async fn every_write_is_synced_to_the_log() {
    let fixture = Fixture::new().await;
    let settings = fixture.store.writer.task(|slot| {
        let writer = slot.as_ref().unwrap();
        let value = |sql| writer.query_row(sql, [], |row| row.get::<_, String>(0));
        (
            value("PRAGMA journal_mode").unwrap(),
            value("SELECT CAST(synchronous AS TEXT) FROM pragma_synchronous").unwrap(),
        )
    });
    assert_eq!(settings.await.unwrap(), ("wal".into(), "2".into()));
}

#[tokio::test]
async fn a_writer_waits_for_the_lock_so_long_and_no_longer_while_readers_go_on() {
    let fixture = Fixture::new().await;
    let store = fixture.patient(Duration::from_millis(30)).await;
    let key = numbered_key(1);
    let foreign = fixture.foreign();
    foreign.execute_batch("BEGIN IMMEDIATE").unwrap();

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

    foreign.execute_batch("ROLLBACK").unwrap();
    store.put(&key, &record, ABSENT).await.unwrap();
}

#[tokio::test]
async fn a_write_whose_caller_went_away_leaves_neither_row_nor_lock() {
    let fixture = Fixture::new().await;
    let store = Arc::new(fixture.another().await);
    let foreign = fixture.foreign();
    foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
    let abandoned = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            let record = bare(Status::Processing, 1);
            store.put(&numbered_key(1), &record, ABSENT).await
        }
    });
    // It waits for the lock.
    while store.writer.waiting() == 0 {
        tokio::task::yield_now().await;
    }
    abandoned.abort();
    assert!(abandoned.await.unwrap_err().is_cancelled());
    foreign.execute_batch("ROLLBACK").unwrap();

    let record = bare(Status::Processing, 2);
    store.put(&numbered_key(2), &record, ABSENT).await.unwrap();
    assert_eq!(store.get(&numbered_key(1)).await.unwrap(), None);
}

#[tokio::test]
async fn a_full_disk_fails_the_write_that_does_not_fit_and_no_other() {
    let fixture = Fixture::new().await;
    let mut small = Options::new(&fixture.path());
    small.setup += "PRAGMA max_page_count = 40";
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
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
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
        format!(
            "{store}: writing a claim failed: the file was deleted or replaced while it was in use: \
             what is written to it now would be lost"
        )
    );
    assert!(!fixture.path().exists());
}

/// As when a backup is put back under a worker: what the old file knew is not known any more.
#[tokio::test]
async fn nothing_is_a_duplicate_by_a_file_that_was_replaced_while_it_was_in_use() {
    let fixture = Fixture::new().await;
    let (store, key) = (&fixture.store, numbered_key(1));
    let done = bare(Status::Done, 1);
    store.put(&key, &done, ABSENT).await.unwrap();
    assert!(store.get(&key).await.unwrap().is_some());
    std::fs::rename(fixture.path(), fixture.path().with_extension("old")).unwrap();
    std::fs::write(fixture.path(), "").unwrap();
    for error in [
        store.get(&key).await.unwrap_err(),
        store.put(&key, &done, ABSENT).await.unwrap_err(),
        store
            .put(&numbered_key(2), &done, ABSENT)
            .await
            .unwrap_err(),
    ] {
        assert!(chain(&error).contains("deleted or replaced"), "{error:?}");
    }
}
