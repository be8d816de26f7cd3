//! Pages of claims, through the index and through a scan.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use identity_core::claim::conformance::samples::bare;
use identity_core::claim::{
    ClaimKey, ClaimStore as _, Cursor, ListQuery, Precondition, Record, Status, StoreError,
    UnixMillis, UnixSeconds,
};

use super::fixture::Table;
use crate::dynamodb::attributes::{self, Item};
use crate::dynamodb::samples::numbered_key;

const OPEN: [Status; 4] = [
    Status::Processing,
    Status::Failed,
    Status::Rejected,
    Status::Waiting,
];

fn query(statuses: &[Status], limit: u32) -> ListQuery {
    ListQuery {
        statuses: statuses.to_vec(),
        claimed_until: None,
        limit,
        after: None,
    }
}

async fn put(table: &Table, number: u64, status: Status, claimed_at: i64) {
    let record = Record {
        claimed_at: UnixSeconds(claimed_at),
        ..bare(status, 1)
    };
    let key = numbered_key(number);
    table
        .store
        .put(&key, &record, &Precondition::Absent)
        .await
        .unwrap();
}

/// All pages, as times and keys.
async fn pages(table: &Table, mut query: ListQuery) -> Vec<Vec<(i64, ClaimKey)>> {
    let mut pages = Vec::new();
    loop {
        let page = table.store.list(&query).await.unwrap();
        assert!(page.unreadable.is_empty(), "{:?}", page.unreadable);
        let rows = page.claims.into_iter();
        pages.push(
            rows.map(|(key, row)| (row.record.claimed_at.0, key))
                .collect(),
        );
        match page.next {
            Some(next) => query.after = Some(next),
            None => return pages,
        }
    }
}

async fn the_pages_hold_each_open_claim_once_and_the_oldest_first(table: &Table) {
    let mut expected = BTreeSet::new();
    for number in 0..40 {
        let status = Status::ALL[usize::try_from(number % 5).unwrap()];
        // Four share a second, so that pages end between them.
        let claimed_at = 100 - i64::try_from(number / 4).unwrap();
        put(table, number, status, claimed_at).await;
        if OPEN.contains(&status) {
            expected.insert((claimed_at, numbered_key(number)));
        }
    }
    for limit in [1, 7, 31, 32, 1_000] {
        let pages = pages(table, query(&OPEN, limit)).await;
        let full = usize::try_from(limit).unwrap();
        assert!(pages.iter().all(|page| page.len() <= full), "{limit}");
        assert!(pages.concat().iter().eq(&expected), "{limit}: {pages:?}");
    }
    let done = pages(table, query(&[Status::Done], 3)).await.concat();
    let done: BTreeSet<_> = done.into_iter().map(|(_, key)| key).collect();
    let expected = (0..40).filter(|number| number % 5 == 1).map(numbered_key);
    assert_eq!(done, expected.collect());
}

async fn a_claim_is_as_old_as_the_second_it_was_claimed_in(table: &Table) {
    for (number, claimed_at) in [(2, 0), (3, 9), (4, 10)] {
        put(table, number, Status::Failed, claimed_at).await;
    }
    for (moment, found) in [
        (-1, 0),
        (0, 1),
        (8_999, 1),
        (9_999, 2),
        (10_000, 3),
        (i64::MAX, 3),
    ] {
        let query = ListQuery {
            claimed_until: Some(UnixMillis(moment)),
            ..query(&OPEN, 10)
        };
        assert_eq!(pages(table, query).await.concat().len(), found, "{moment}");
    }
}

async fn no_claim_is_lost_between_pages_while_others_end_and_come(table: &Table) {
    for number in 0..20 {
        put(table, number, Status::Failed, 50).await;
    }
    let mut order = (0..20).map(numbered_key).collect::<Vec<_>>();
    order.sort();
    let mut query = query(&OPEN, 5);
    let (mut seen, mut first) = (Vec::new(), true);
    loop {
        let page = table.store.list(&query).await.unwrap();
        seen.extend(page.claims.into_iter().map(|(key, _)| key));
        let Some(next) = page.next else { break };
        query.after = Some(next);
        if std::mem::take(&mut first) {
            // One that was seen, the one that the page ended with, and one that is still to come end.
            for place in [0, 4, 7] {
                table.flip_status(&order[place], Status::Done).await;
            }
            put(table, 100, Status::Failed, 49).await;
            put(table, 101, Status::Failed, 51).await;
        }
    }
    let ended = order.remove(7);
    order.push(numbered_key(101));
    assert_eq!(seen, order, "{ended} ended");
}

/// A row whose status another program changed keeps its place in the index.
async fn what_has_ended_elsewhere_is_not_listed(table: &Table) {
    put(table, 1, Status::Processing, 5).await;
    put(table, 2, Status::Processing, 5).await;
    table.flip_status(&numbered_key(1), Status::Done).await;
    let listed = pages(table, query(&OPEN, 10)).await.concat();
    assert_eq!(listed, [(5, numbered_key(2))]);
}

async fn an_item_that_is_no_claim_is_named_and_hides_no_other(table: &Table) {
    put(table, 1, Status::Failed, 5).await;
    put(table, 2, Status::Failed, 6).await;
    let values = Item::from([(":a".to_owned(), AttributeValue::N("-1".to_owned()))]);
    table
        .update(&numbered_key(1), "SET attempt = :a", values)
        .await;
    for statuses in [&OPEN[..], &[Status::Failed, Status::Done]] {
        let page = table.store.list(&query(statuses, 10)).await.unwrap();
        assert_eq!(page.claims.len(), 1);
        let named: Vec<_> = page.unreadable.iter().map(ToString::to_string).collect();
        assert_eq!(named.len(), 1, "{named:?}");
        let what = format!(
            "claim {}, attribute {}",
            numbered_key(1),
            attributes::ATTEMPT
        );
        assert!(named[0].contains(&what), "{named:?}");
    }
}

async fn over_pages_an_item_that_is_no_claim_is_named_once(table: &Table) {
    const BAD: [u64; 4] = [0, 4, 5, 9];
    for number in 0..10 {
        put(table, number, Status::Failed, 5).await;
    }
    for number in BAD {
        let values = Item::from([(":a".to_owned(), AttributeValue::N("-1".to_owned()))]);
        table
            .update(&numbered_key(number), "SET attempt = :a", values)
            .await;
    }
    for statuses in [&OPEN[..], &[Status::Failed, Status::Done]] {
        let mut query = query(statuses, 2);
        let (mut claims, mut named) = (Vec::new(), Vec::new());
        loop {
            let page = table.store.list(&query).await.unwrap();
            claims.extend(page.claims.into_iter().map(|(key, _)| key));
            named.extend(page.unreadable.iter().map(ToString::to_string));
            let Some(next) = page.next else { break };
            query.after = Some(next);
        }
        claims.sort();
        claims.dedup();
        assert_eq!(claims.len(), 6);
        assert_eq!(named.len(), BAD.len(), "{named:?}");
        for number in BAD {
            let key = numbered_key(number).to_string();
            assert!(named.iter().any(|name| name.contains(&key)), "{named:?}");
        }
    }
}

async fn a_query_that_no_page_can_answer_is_refused(table: &Table) {
    let after = |statuses: &[Status], text: &str| ListQuery {
        after: Some(Cursor(text.to_owned())),
        ..query(statuses, 10)
    };
    let (key, of_the_scan) = (numbered_key(1), format!("scan {}", numbered_key(1)));
    for query in [
        query(&OPEN, 0),
        after(&OPEN, ""),
        after(&OPEN, "open 5"),
        after(&OPEN, &format!("open 5.{key}")),
        after(&OPEN, &of_the_scan),
        after(&[Status::Done], &format!("open {:020}.{key}", 5)),
        after(&[Status::Done], "scan key"),
    ] {
        let error = table.store.list(&query).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid { .. }), "{error:?}");
    }
    let none = table.store.list(&query(&[], 10)).await.unwrap();
    assert!(none.claims.is_empty() && none.next.is_none());
}

super::on_both! {
    the_pages_hold_each_open_claim_once_and_the_oldest_first,
    a_claim_is_as_old_as_the_second_it_was_claimed_in,
    no_claim_is_lost_between_pages_while_others_end_and_come,
    what_has_ended_elsewhere_is_not_listed,
    an_item_that_is_no_claim_is_named_and_hides_no_other,
    over_pages_an_item_that_is_no_claim_is_named_once,
    a_query_that_no_page_can_answer_is_refused,
}
