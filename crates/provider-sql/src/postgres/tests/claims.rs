//! What other sessions, the server's end, and a table that was changed do to a call.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use identity_core::claim::{
    ClaimStore, ListQuery, Precondition, Record, Status, StoreError, UnixMillis, UnixSeconds,
};
use sqlx::{Executor, Row};

use super::proxy::Proxy;
use crate::cases::{Testbed, chain};
use crate::postgres::fixture::{Fixture, connect};
use crate::postgres::purge::DELETE;
use crate::postgres::{PostgresStore, PostgresUrl};
use crate::statements;
use identity_core::claim::conformance::samples::{bare, numbered_key};

const ABSENT: &Precondition = &Precondition::Absent;

/// A store that waits no longer than this.
async fn impatient(url: &str, wait: Duration) -> PostgresStore {
    let url = PostgresUrl::parse(url).unwrap();
    PostgresStore::connect(&url, wait, 2).await.unwrap()
}

#[tokio::test]
async fn whoever_comes_second_waits_for_the_first_transaction_and_sees_what_it_left() {
    let fixture = Fixture::new().await;
    let url = format!("{}&application_name=second", fixture.url);
    let store = Arc::new(impatient(&url, PostgresStore::WAIT).await);
    let key = numbered_key(1);
    let sql = format!(
        "INSERT INTO firstclaim_claims (key, status, claimed_at) VALUES ('{key}', 'processing', to_timestamp(5))"
    );
    for end in ["COMMIT", "ROLLBACK"] {
        let mut foreign = connect(&fixture.url).await;
        foreign
            .execute("DELETE FROM firstclaim_claims")
            .await
            .unwrap();
        foreign.execute("BEGIN").await.unwrap();
        foreign
            .execute(sqlx::raw_sql(sqlx::AssertSqlSafe(sql.clone())))
            .await
            .unwrap();
        let second = tokio::spawn({
            let (store, key) = (Arc::clone(&store), key.clone());
            async move { store.put(&key, &bare(Status::Processing, 1), ABSENT).await }
        });
        // The server says who waits.
        let mut observer = connect(&fixture.url).await;
        let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity \
             WHERE application_name = 'second' AND wait_event_type = 'Lock')";
        while !observer.fetch_one(waits).await.unwrap().get::<bool, _>(0) {
            assert!(!second.is_finished(), "it did not wait");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        foreign.execute(end).await.unwrap();
        match second.await.unwrap() {
            Ok(_) => assert_eq!(end, "ROLLBACK"),
            Err(StoreError::Conflict { .. }) => {
                assert_eq!(end, "COMMIT");
                let stands = store.get(&key).await.unwrap().unwrap();
                assert_eq!(stands.record.claimed_at, UnixSeconds(5));
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[tokio::test]
async fn a_lock_is_waited_for_so_long_and_no_longer() {
    let fixture = Fixture::new().await;
    let store = impatient(&fixture.url, Duration::from_millis(500)).await;
    let (key, record) = (numbered_key(1), bare(Status::Processing, 1));
    let version = store.put(&key, &record, ABSENT).await.unwrap();
    let mut foreign = connect(&fixture.url).await;
    foreign.execute("BEGIN").await.unwrap();
    foreign
        .execute("SELECT key FROM firstclaim_claims FOR UPDATE")
        .await
        .unwrap();
    let when = Precondition::Unchanged(version);
    let error = store
        .put(&key, &bare(Status::Done, 2), &when)
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert_eq!(
        chain(&error),
        format!(
            "{store}: writing a claim failed: canceling statement due to lock timeout (SQLSTATE 55P03)"
        )
    );
    // Readers wait for nobody.
    assert_eq!(store.get(&key).await.unwrap().unwrap().record, record);
    foreign.execute("ROLLBACK").await.unwrap();
    store
        .put(&key, &bare(Status::Done, 2), &when)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_server_that_falls_silent_is_unavailable_and_used_again_when_it_is_back() {
    let fixture = Fixture::new().await;
    let proxy = Proxy::start(&fixture.url).await;
    let store = impatient(&proxy.url, Duration::from_millis(400)).await;
    let (key, record) = (numbered_key(1), bare(Status::Processing, 1));
    store.put(&key, &record, ABSENT).await.unwrap();
    proxy.silence(true);
    // The first on the connection that was idle, the second on a new one.
    for _ in 0..2 {
        let error = store.get(&key).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        assert_eq!(
            chain(&error),
            format!("{store}: reading a claim failed: no answer within 0.4 s")
        );
    }
    proxy.silence(false);
    assert_eq!(store.get(&key).await.unwrap().unwrap().record, record);
}

#[tokio::test]
async fn a_restart_of_the_server_fails_one_call_and_no_other() {
    let fixture = Fixture::new().await;
    let url = format!("{}&application_name=restarted", fixture.url);
    let store = impatient(&url, PostgresStore::WAIT).await;
    let key = numbered_key(1);
    // Two at once are on two connections, unless the first is answered before the second is asked.
    let (one, other) = tokio::join!(store.get(&key), store.get(&key));
    assert_eq!((one.unwrap(), other.unwrap()), (None, None));
    let ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'restarted'";
    let row = connect(&fixture.url).await.fetch_one(ended).await.unwrap();
    assert!((1..=2).contains(&row.get::<i64, _>(0)));
    let error = store.get(&key).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert_eq!(store.get(&key).await.unwrap(), None);
    let (one, other) = tokio::join!(store.get(&key), store.get(&key));
    assert_eq!((one.unwrap(), other.unwrap()), (None, None));
}

#[tokio::test]
async fn a_call_whose_caller_went_away_leaves_its_connection_to_nobody() {
    let fixture = Fixture::new().await;
    let url = PostgresUrl::parse(&fixture.url).unwrap();
    let store = PostgresStore::connect(&url, PostgresStore::WAIT, 1)
        .await
        .unwrap();
    let key = numbered_key(1);
    let mut left = 0;
    while left < 20 {
        // Dropped at its first wait, with its question asked and no answer read; on a busy machine some are answered at once.
        let get = store.get(&key);
        tokio::select! {
            biased;
            row = get => assert_eq!(row.unwrap(), None),
            () = std::future::ready(()) => left += 1,
        }
    }
    store
        .put(&key, &bare(Status::Done, 1), ABSENT)
        .await
        .unwrap();
    let read = store.get(&key).await.unwrap().unwrap();
    assert_eq!(read.record, bare(Status::Done, 1));
}

#[tokio::test]
async fn a_time_that_the_database_cannot_hold_is_named_and_not_written() {
    let fixture = Fixture::new().await;
    let (store, key) = (&fixture.store, numbered_key(1));
    let beyond = 9_224_318_016_000;
    let claimed_at = Record {
        claimed_at: UnixSeconds(beyond),
        ..bare(Status::Processing, 1)
    };
    let lease_until = Record {
        lease_until: Some(UnixMillis(i64::MIN + 1)),
        ..bare(Status::Processing, 1)
    };
    for (record, column, got) in [
        (claimed_at, "claimed_at", beyond),
        (lease_until, "lease_until", i64::MIN + 1),
    ] {
        let error = store.put(&key, &record, ABSENT).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid { .. }), "{error:?}");
        assert_eq!(
            error.to_string(),
            format!(
                "{store}: claim {key}, column {column}: expected a value of the column's type, \
                 got \"{got}, which is outside 4714 BC to 294276 AD\""
            )
        );
    }
    assert_eq!(store.get(&key).await.unwrap(), None);
    // The ends of the range stand for times without end.
    let endless = Record {
        claimed_at: UnixSeconds(i64::MIN),
        lease_until: Some(UnixMillis(i64::MAX)),
        ..bare(Status::Processing, 1)
    };
    store.put(&key, &endless, ABSENT).await.unwrap();
    assert_eq!(store.get(&key).await.unwrap().unwrap().record, endless);
}

#[tokio::test]
async fn times_and_texts_are_plain_sql_to_other_programs() {
    let fixture = Fixture::new().await;
    let key = numbered_key(1);
    let record = Record {
        claimed_at: UnixSeconds(-1),
        lease_until: Some(UnixMillis(1_767_323_165_007)),
        error: Some("a\0b".to_owned()),
        ..bare(Status::Processing, 1)
    };
    fixture.store.put(&key, &record, ABSENT).await.unwrap();
    let row = connect(&fixture.url)
        .await
        .fetch_one("SELECT claimed_at::text, lease_until::text, error FROM firstclaim_claims")
        .await
        .unwrap();
    let texts: [String; 3] = [row.get(0), row.get(1), row.get(2)];
    assert_eq!(
        texts,
        [
            "1969-12-31 23:59:59+00",
            "2026-01-02 03:06:05.007+00",
            "a␛0b"
        ]
    );
    // A time between two of ours becomes one of ours.
    fixture
        .execute("UPDATE firstclaim_claims SET claimed_at = to_timestamp(5.4), error = 'a␛b'")
        .await;
    let rounded = "UPDATE firstclaim_claims SET redrives = 0 WHERE claimed_at = to_timestamp(5)";
    assert_eq!(fixture.execute(rounded).await, 1);
    let read = fixture.store.get(&key).await.unwrap().unwrap().record;
    assert_eq!(
        (read.claimed_at, read.error.as_deref()),
        (UnixSeconds(5), Some("a␛b"))
    );
}

#[tokio::test]
async fn what_a_changed_table_refuses_is_invalid_and_not_asked_again() {
    let fixture = Fixture::new().await;
    fixture
        .execute("ALTER TABLE firstclaim_claims ADD CONSTRAINT few CHECK (attempt < 1)")
        .await;
    let (key, record) = (numbered_key(1), bare(Status::Done, 1));
    let error = fixture.store.put(&key, &record, ABSENT).await.unwrap_err();
    assert!(matches!(error, StoreError::Invalid { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("\\\"few\\\" (SQLSTATE 23514)"), "{text}");
}

#[tokio::test]
async fn settings_of_the_database_do_not_make_a_commit_a_promise_or_a_lost_race_an_error() {
    let fixture = Fixture::new().await;
    let settings = "&options=-c%20synchronous_commit%3Doff%20-c%20default_transaction_isolation%3Dserializable";
    let store = impatient(&format!("{}{settings}", fixture.url), PostgresStore::WAIT).await;
    let mut lent = store.pool.lend().await.unwrap();
    for (setting, expected) in [
        ("SHOW synchronous_commit", "on"),
        ("SHOW default_transaction_isolation", "read committed"),
        ("SHOW statement_timeout", "10s"),
        ("SHOW lock_timeout", "5s"),
    ] {
        let row = lent.fetch_one(setting).await.unwrap();
        assert_eq!(row.get::<String, _>(0), expected, "{setting}");
    }
}

#[tokio::test]
async fn no_more_connections_are_made_than_allowed() {
    let fixture = Fixture::new().await;
    let store = Arc::new(
        impatient(
            &format!("{}&application_name=few", fixture.url),
            PostgresStore::WAIT,
        )
        .await,
    );
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..50 {
        let store = Arc::clone(&store);
        calls.spawn(async move {
            store
                .put(&numbered_key(number), &bare(Status::Done, 1), ABSENT)
                .await
        });
    }
    for result in calls.join_all().await {
        result.unwrap();
    }
    let count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'few'";
    let row = connect(&fixture.url).await.fetch_one(count).await.unwrap();
    assert_eq!(row.get::<i64, _>(0), 2);
}

#[tokio::test]
async fn a_page_is_read_from_the_index_however_many_claims_are_done() {
    let fixture = Fixture::new().await;
    fixture
        .execute(
            "INSERT INTO firstclaim_claims (key, status, claimed_at)
             SELECT lpad(to_hex(n), 64, '0'), CASE n % 100 WHEN 0 THEN 'failed' WHEN 1 THEN 'waiting' ELSE 'done' END,
                 to_timestamp(n) FROM generate_series(1, 20000) n;
             ANALYZE firstclaim_claims",
        )
        .await;
    let mut sql = format!("EXPLAIN {}", statements::list(2));
    for (parameter, value) in [
        ("$1", "to_timestamp(9000)"),
        ("$2", "''"),
        ("$3", "10"),
        ("$4", "'failed'"),
        ("$5", "'waiting'"),
    ] {
        sql = sql.replace(parameter, value);
    }
    let plan = connect(&fixture.url)
        .await
        .fetch_all(sqlx::raw_sql(sqlx::AssertSqlSafe(sql)))
        .await
        .unwrap();
    let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    let scans = |word: &str| plan.iter().filter(|step| step.contains(word)).count();
    assert_eq!(
        scans("Index Scan using firstclaim_claims_by_status"),
        2,
        "{plan:#?}"
    );
    assert_eq!(scans("Seq Scan") + scans("Sort  "), 0, "{plan:#?}");
    let query = ListQuery {
        statuses: [Status::Failed, Status::Waiting].into(),
        limit: NonZeroU32::MAX,
        after: None,
    };
    let page = fixture.store.list(&query).await;
    assert_eq!(page.unwrap().claims.len(), 400);
}

#[tokio::test]
async fn a_purge_reads_what_it_deletes_from_the_index_and_passes_over_what_is_locked() {
    let fixture = Fixture::new().await;
    fixture
        .execute(
            "INSERT INTO firstclaim_claims (key, status, claimed_at, expires_at)
             SELECT lpad(to_hex(n), 64, '0'), 'done', to_timestamp(n), to_timestamp(n)
             FROM generate_series(1, 20000) n;
             ANALYZE firstclaim_claims",
        )
        .await;
    let sql = format!("EXPLAIN {}", DELETE);
    let sql = sql.replace("$1", "to_timestamp(100)").replace("$2", "10");
    let mut foreign = connect(&fixture.url).await;
    let plan = foreign.fetch_all(sqlx::raw_sql(sqlx::AssertSqlSafe(sql)));
    let plan = plan.await.unwrap();
    let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    let steps = |word: &str| plan.iter().filter(|step| step.contains(word)).count();
    assert_eq!(
        steps("Index Scan using firstclaim_claims_over"),
        1,
        "{plan:#?}"
    );
    assert_eq!(steps("Seq Scan") + steps("Sort  "), 0, "{plan:#?}");

    foreign.execute("BEGIN").await.unwrap();
    foreign
        .execute(
            "UPDATE firstclaim_claims SET status = 'failed' WHERE claimed_at = to_timestamp(2)",
        )
        .await
        .unwrap();
    let purged = fixture.store.purge(UnixSeconds(5), NonZeroU32::MAX).await;
    assert_eq!(purged.unwrap(), 3);
    foreign.execute("ROLLBACK").await.unwrap();
    let purged = fixture.store.purge(UnixSeconds(5), NonZeroU32::MAX).await;
    assert_eq!(purged.unwrap(), 1);
}
