//! Pages of claims.

use std::collections::BTreeSet;
use std::sync::Arc;

use identity_core::claim::{
    ClaimKey, ClaimStore, Cursor, ListQuery, Page, Precondition, Record, Status, StoreError,
    UnixMillis, UnixSeconds,
};

use super::Testbed;
use identity_core::claim::conformance::samples::{bare, numbered_key};

const OPEN: [Status; 3] = [Status::Processing, Status::Failed, Status::Waiting];

fn query(statuses: &[Status], limit: u32) -> ListQuery {
    ListQuery {
        statuses: statuses.to_vec(),
        claimed_until: None,
        limit,
        after: None,
    }
}

async fn put(store: &Arc<impl ClaimStore>, number: u64, status: Status, claimed_at: i64) {
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
async fn pages(store: &Arc<impl ClaimStore>, mut query: ListQuery) -> Vec<Vec<(i64, ClaimKey)>> {
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

pub(crate) async fn the_pages_hold_each_claim_once_and_the_oldest_first(bed: &impl Testbed) {
    let mut expected = BTreeSet::new();
    for number in 0..50 {
        let status = Status::ALL[usize::try_from(number % 5).unwrap()];
        // Four share a second, so that pages end between them; and their order is not that of the keys.
        let claimed_at = 100 - i64::try_from(number / 4).unwrap();
        put(bed.store(), number, status, claimed_at).await;
        if OPEN.contains(&status) {
            expected.insert((claimed_at, numbered_key(number)));
        }
    }
    for limit in [1, 3, 7, 30, 31, u32::MAX] {
        let pages = pages(bed.store(), query(&OPEN, limit)).await;
        let full = usize::try_from(limit).unwrap();
        let (last, before) = pages.split_last().unwrap();
        assert!(before.iter().all(|page| page.len() == full));
        assert!((1..=full).contains(&last.len()), "{limit}: {}", last.len());
        assert!(pages.concat().iter().eq(&expected), "{limit}: {pages:?}");
    }
}

pub(crate) async fn a_claim_is_as_old_as_the_second_it_was_claimed_in(bed: &impl Testbed) {
    for (number, claimed_at) in [(1, -2), (2, 0), (3, 9), (4, 10)] {
        put(bed.store(), number, Status::Failed, claimed_at).await;
    }
    let until = async |moment| {
        let query = ListQuery {
            claimed_until: Some(UnixMillis(moment)),
            ..query(&OPEN, 10)
        };
        pages(bed.store(), query).await.concat().len()
    };
    assert_eq!(until(i64::MIN).await, 0);
    assert_eq!(until(-2_001).await, 0);
    assert_eq!(until(-1_001).await, 1);
    assert_eq!(until(9_999).await, 3);
    assert_eq!(until(10_000).await, 4);
    assert_eq!(until(i64::MAX).await, 4);
}

pub(crate) async fn no_claim_is_lost_between_pages_while_others_end_and_come(bed: &impl Testbed) {
    for number in 0..20 {
        put(bed.store(), number, Status::Failed, 50).await;
    }
    let mut query = query(&OPEN, 5);
    let mut seen = Vec::new();
    loop {
        let page = bed.store().list(&query).await.unwrap();
        seen.extend(page.claims.into_iter().map(|(key, _)| key));
        let Some(next) = page.next else { break };
        query.after = Some(next);
        if seen.len() == 5 {
            // One that was seen, the one that the page ended with, and one that is still to come end; one comes before them
            // all, and one after.
            for number in [0, 4, 7] {
                bed.flip_status(&numbered_key(number), Status::Done).await;
            }
            put(bed.store(), 100, Status::Failed, 49).await;
            put(bed.store(), 101, Status::Failed, 51).await;
        }
    }
    let expected = (0..20).filter(|number| *number != 7).chain([101]);
    assert_eq!(seen, expected.map(numbered_key).collect::<Vec<_>>());
}

pub(crate) async fn a_status_asked_for_twice_is_listed_once_and_none_is_nothing(
    bed: &impl Testbed,
) {
    put(bed.store(), 1, Status::Waiting, 5).await;
    let twice = query(&[Status::Waiting, Status::Waiting], 10);
    assert_eq!(pages(bed.store(), twice).await.concat().len(), 1);
    let none = bed.store().list(&query(&[], 10)).await.unwrap();
    assert!(none.claims.is_empty() && none.next.is_none());
}

pub(crate) async fn a_page_is_never_larger_than_memory_likes(bed: &impl Testbed) {
    let rows: Vec<_> = (1..=1_500)
        .map(|number| format!("('{}', 'failed', {})", numbered_key(number), bed.time(5)))
        .collect();
    let sql = "INSERT INTO firstclaim_claims (key, status, claimed_at) VALUES ";
    assert_eq!(
        bed.execute(&format!("{sql}{}", rows.join(", "))).await,
        1_500
    );
    let pages = pages(bed.store(), query(&OPEN, u32::MAX)).await;
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [1_000, 500]);
}

pub(crate) async fn a_query_that_no_page_can_answer_is_refused(bed: &impl Testbed) {
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
    ] {
        let error = bed.store().list(&query).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid { .. }), "{error:?}");
        assert_eq!(error.to_string(), format!("{}: {what}", bed.store()));
    }
}

pub(crate) async fn a_row_that_is_no_claim_is_named_and_hides_no_other(bed: &impl Testbed) {
    let columns = "INSERT INTO firstclaim_claims (key, status, claimed_at)";
    bed.execute(&format!(
        "{columns} VALUES ('k', 'failed', {})",
        bed.time(1)
    ))
    .await;
    put(bed.store(), 1, Status::Failed, 2).await;
    let named =
        |page: &Page| -> Vec<String> { page.unreadable.iter().map(ToString::to_string).collect() };
    let why = format!(
        "{}: claim k, column key: expected 64 lower-case hex characters, got \"k\"",
        bed.store()
    );
    let first = bed.store().list(&query(&OPEN, 1)).await.unwrap();
    assert_eq!((first.claims.len(), named(&first)), (0, vec![why.clone()]));
    let second = ListQuery {
        after: first.next,
        ..query(&OPEN, 1)
    };
    let second = bed.store().list(&second).await.unwrap();
    assert_eq!((second.claims.len(), named(&second)), (1, vec![]));
    let both = bed.store().list(&query(&OPEN, 10)).await.unwrap();
    assert_eq!((both.claims.len(), named(&both)), (1, vec![why]));
}
