//! Pages of claims.

use std::collections::BTreeSet;

use identity_core::claim::{
    ClaimKey, ClaimStore, Cursor, ListQuery, Precondition, Record, Status, StoreError, UnixMillis,
    UnixSeconds,
};
use sqlx::{Executor, Row};

use crate::samples::{bare, numbered_key};
use crate::sqlite::SqliteStore;
use crate::sqlite::fixture::Fixture;
use crate::statements;

const OPEN: [Status; 3] = [Status::Processing, Status::Failed, Status::Waiting];

fn query(statuses: &[Status], limit: u32) -> ListQuery {
    ListQuery {
        statuses: statuses.to_vec(),
        claimed_until: None,
        limit,
        after: None,
    }
}

async fn put(store: &SqliteStore, number: u64, status: Status, claimed_at: i64) {
    let record = Record {
        claimed_at: UnixSeconds(claimed_at),
        ..bare(status, 1)
    };
    store
        .put(&numbered_key(number), &record, &Precondition::Absent)
        .await
        .unwrap();
}

/// All pages, each at most the limit, as times and keys.
async fn pages(store: &SqliteStore, mut query: ListQuery) -> Vec<Vec<(i64, ClaimKey)>> {
    let mut pages = Vec::new();
    loop {
        let page = store.list(&query).await.unwrap();
        let rows = page.claims.into_iter();
        pages.push(
            rows.map(|(key, stored)| (stored.record.claimed_at.0, key))
                .collect(),
        );
        match page.next {
            Some(next) => query.after = Some(next),
            None => return pages,
        }
    }
}

#[tokio::test]
async fn the_pages_hold_each_claim_once_and_the_oldest_first() {
    let fixture = Fixture::new().await;
    let mut expected = BTreeSet::new();
    for number in 0..50 {
        let status = Status::ALL[usize::try_from(number % 5).unwrap()];
        // Four share a second, so that pages end between them; and their order is not that of the keys.
        let claimed_at = 100 - i64::try_from(number / 4).unwrap();
        put(&fixture.store, number, status, claimed_at).await;
        if OPEN.contains(&status) {
            expected.insert((claimed_at, numbered_key(number)));
        }
    }
    for limit in [1, 3, 7, 30, 31, u32::MAX] {
        let pages = pages(&fixture.store, query(&OPEN, limit)).await;
        let full = usize::try_from(limit).unwrap();
        let (last, before) = pages.split_last().unwrap();
        assert!(before.iter().all(|page| page.len() == full));
        assert!((1..=full).contains(&last.len()), "{limit}: {}", last.len());
        assert!(pages.concat().iter().eq(&expected), "{limit}: {pages:?}");
    }
}

#[tokio::test]
async fn a_claim_is_as_old_as_the_second_it_was_claimed_in() {
    let fixture = Fixture::new().await;
    for (number, claimed_at) in [(1, -2), (2, 0), (3, 9), (4, 10)] {
        put(&fixture.store, number, Status::Failed, claimed_at).await;
    }
    let until = async |moment| {
        let query = ListQuery {
            claimed_until: Some(UnixMillis(moment)),
            ..query(&OPEN, 10)
        };
        pages(&fixture.store, query).await.concat().len()
    };
    assert_eq!(until(i64::MIN).await, 0);
    assert_eq!(until(-2_001).await, 0);
    assert_eq!(until(-1_001).await, 1);
    assert_eq!(until(9_999).await, 3);
    assert_eq!(until(10_000).await, 4);
    assert_eq!(until(i64::MAX).await, 4);
}

#[tokio::test]
async fn no_claim_is_lost_between_pages_while_others_end_and_come() {
    let fixture = Fixture::new().await;
    for number in 0..20 {
        put(&fixture.store, number, Status::Failed, 50).await;
    }
    let mut query = query(&OPEN, 5);
    let mut seen = Vec::new();
    loop {
        let page = fixture.store.list(&query).await.unwrap();
        seen.extend(page.claims.into_iter().map(|(key, _)| key));
        let Some(next) = page.next else { break };
        query.after = Some(next);
        if seen.len() == 5 {
            // One that was seen, the one that the page ended with, and one that is still to come end; one comes before them
            // all, and one after.
            for number in [0, 4, 7] {
                fixture
                    .flip_status(&numbered_key(number), Status::Done)
                    .await;
            }
            put(&fixture.store, 100, Status::Failed, 49).await;
            put(&fixture.store, 101, Status::Failed, 51).await;
        }
    }
    let expected = (0..20).filter(|number| *number != 7).chain([101]);
    assert_eq!(seen, expected.map(numbered_key).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_status_asked_for_twice_is_listed_once_and_none_is_nothing() {
    let fixture = Fixture::new().await;
    put(&fixture.store, 1, Status::Waiting, 5).await;
    let twice = query(&[Status::Waiting, Status::Waiting], 10);
    assert_eq!(pages(&fixture.store, twice).await.concat().len(), 1);
    let none = fixture.store.list(&query(&[], 10)).await.unwrap();
    assert!(none.claims.is_empty() && none.next.is_none());
}

#[tokio::test]
async fn a_page_is_never_larger_than_memory_likes() {
    let fixture = Fixture::new().await;
    let sql = "INSERT INTO firstclaim_claims (key, status, claimed_at)
               SELECT format('%064x', value), 'failed', value FROM generate(1, 1500)";
    let sql = sql.replace(
        "generate(1, 1500)",
        "(WITH RECURSIVE up (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM up LIMIT 1500) \
         SELECT value FROM up)",
    );
    assert_eq!(fixture.execute(sql).await, 1_500);
    let pages = pages(&fixture.store, query(&OPEN, u32::MAX)).await;
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [1_000, 500]);
}

#[tokio::test]
async fn a_query_that_no_page_can_answer_is_refused() {
    let fixture = Fixture::new().await;
    let after = |text: &str| ListQuery {
        after: Some(Cursor(text.to_owned())),
        ..query(&OPEN, 10)
    };
    let key = numbered_key(1);
    for (query, what) in [
        (
            query(&OPEN, 0),
            "limit of a page: expected 1 or more, got \"0\"",
        ),
        (
            after(""),
            "cursor: expected one that a page ended with, got \"\"",
        ),
        (
            after("5"),
            "cursor: expected one that a page ended with, got \"5\"",
        ),
        (
            after(&format!("x {key}")),
            &format!("cursor: expected one that a page ended with, got \"x {key}\""),
        ),
        (
            after("5 key"),
            "cursor: expected one that a page ended with, got \"5 key\"",
        ),
    ] {
        let error = fixture.store.list(&query).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid { .. }), "{error:?}");
        assert_eq!(error.to_string(), format!("{}: {what}", fixture.store));
    }
}

#[tokio::test]
async fn a_row_that_is_no_claim_fails_its_page_by_name() {
    let fixture = Fixture::new().await;
    let sql = "INSERT INTO firstclaim_claims (key, status, claimed_at) VALUES ('k', 'failed', 1)";
    fixture.execute(sql).await;
    let error = fixture.store.list(&query(&OPEN, 10)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{}: claim k, column key: expected 64 lower-case hex characters, got \"k\"",
            fixture.store
        )
    );
}

#[tokio::test]
async fn a_listing_reads_the_index_and_sorts_nothing() {
    let fixture = Fixture::new().await;
    let mut foreign = fixture.foreign().await;
    for statuses in 1..=Status::ALL.len() {
        let mut sql = format!("EXPLAIN QUERY PLAN {}", statements::list(statuses));
        for (parameter, value) in [("$1", "9"), ("$2", "0"), ("$3", "''"), ("$4", "10")] {
            sql = sql.replace(parameter, value);
        }
        for (index, status) in Status::ALL.into_iter().enumerate() {
            sql = sql.replace(&format!("${}", index + 5), &format!("'{status}'"));
        }
        let plan = foreign.fetch_all(sqlx::raw_sql(sqlx::AssertSqlSafe(sql)));
        let plan: Vec<String> = plan
            .await
            .unwrap()
            .iter()
            .map(|row| row.get("detail"))
            .collect();
        let searches = plan.iter().filter(|step| {
            step.contains(
                "SEARCH firstclaim_claims USING INDEX firstclaim_claims_by_status (status=? AND",
            )
        });
        assert_eq!(searches.count(), statuses, "{plan:#?}");
        let other = ["SCAN", "TEMP B-TREE"];
        let bad = |step: &String| other.iter().any(|word| step.contains(word));
        assert!(!plan.iter().any(bad), "{plan:#?}");
    }
}
