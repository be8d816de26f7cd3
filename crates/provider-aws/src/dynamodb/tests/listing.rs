//! What is DynamoDB's own about lists: the cursors of its two orders, and items whose key is none.

use std::num::NonZeroU32;

use aws_sdk_dynamodb::types::AttributeValue;
use identity_core::claim::conformance::samples::bare;
use identity_core::claim::{
    ClaimStore as _, Cursor, ListQuery, Precondition, Record, Status, StoreError, UnixSeconds,
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
        statuses: statuses.iter().copied().collect(),
        limit: NonZeroU32::new(limit).unwrap(),
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

/// A scan sees every item, and the index only what this project's programs wrote.
async fn an_item_whose_key_is_none_is_named_and_can_end_a_page(table: &Table) {
    put(table, 1, Status::Failed, 5).await;
    table
        .put(Item::from([
            (
                attributes::KEY.to_owned(),
                AttributeValue::S("k".to_owned()),
            ),
            (
                attributes::STATUS.to_owned(),
                AttributeValue::S("done".to_owned()),
            ),
        ]))
        .await;
    let mut query = query(&[Status::Failed, Status::Done], 1);
    let (mut claims, mut named) = (0, Vec::new());
    loop {
        let page = table.store.list(&query).await.unwrap();
        assert!(page.rows() <= 1, "{page:?}");
        claims += page.claims.len();
        named.extend(page.unreadable.iter().map(ToString::to_string));
        let Some(next) = page.next else { break };
        query.after = Some(next);
    }
    let why = format!(
        "{}: claim k, attribute job_id: expected 64 lower-case hex characters, got \"k\"",
        table.store
    );
    assert_eq!((claims, named), (1, vec![why]));
}

async fn a_cursor_of_the_other_order_is_refused(table: &Table) {
    let after = |statuses: &[Status], text: &str| ListQuery {
        after: Some(Cursor(text.to_owned())),
        ..query(statuses, 10)
    };
    let key = numbered_key(1);
    for query in [
        after(&OPEN, "open 5"),
        after(&OPEN, &format!("open 5.{key}")),
        after(&OPEN, &format!("scan {key}")),
        after(&[Status::Done], &format!("open {:020}.{key}", 5)),
        after(&[Status::Done], "scan "),
    ] {
        let error = table.store.list(&query).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid { .. }), "{error:?}");
    }
}

super::on_both! {
    an_item_whose_key_is_none_is_named_and_can_end_a_page,
    a_cursor_of_the_other_order_is_refused,
}
