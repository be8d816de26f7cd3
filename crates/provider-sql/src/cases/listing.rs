//! Pages of claims.

use std::num::NonZeroU32;
use std::sync::Arc;

use identity_core::claim::{
    ClaimKey, ClaimStore, ListQuery, Page, Precondition, Record, Status, UnixSeconds,
};

use super::Testbed;
use identity_core::claim::conformance::samples::{bare, numbered_key};

const OPEN: [Status; 3] = [Status::Processing, Status::Failed, Status::Waiting];

fn query(statuses: &[Status], limit: u32) -> ListQuery {
    ListQuery {
        statuses: statuses.iter().copied().collect(),
        limit: NonZeroU32::new(limit).unwrap(),
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

pub(crate) async fn a_claim_before_1970_is_older_than_all_others(bed: &impl Testbed) {
    let times = [-9, -2, 0, 1];
    for (number, time) in (0..).zip(times.into_iter().rev()) {
        put(bed.store(), number, Status::Failed, time).await;
    }
    for limit in [1, 3] {
        let listed = pages(bed.store(), query(&OPEN, limit)).await.concat();
        let listed: Vec<_> = listed.into_iter().map(|(time, _)| time).collect();
        assert_eq!(listed, times);
    }
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

pub(crate) async fn a_row_whose_key_is_none_is_named_and_can_end_a_page(bed: &impl Testbed) {
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
