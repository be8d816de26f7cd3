//! Rows on real tables: those of the published Python handler, those that somebody changed behind the store's back.

use aws_sdk_dynamodb::types::AttributeValue;
use identity_core::claim::conformance::samples::{bare, numbered_key};
use identity_core::claim::{ClaimStore as _, Precondition, Record, Status, StoreError};

use super::fixture::{Table, client};
use crate::DynamoStore;
use crate::dynamodb::attributes::{self, Item};
use crate::dynamodb::samples::claim;

/// The item that the published handler puts under a key before it works.
fn foreign(status: &str) -> Item {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    Item::from([
        (attributes::KEY.to_owned(), text(numbered_key(1).as_str())),
        ("bucket".to_owned(), text("geo-uploads")),
        ("key".to_owned(), text("parcels/county.shp")),
        (attributes::STATUS.to_owned(), text(status)),
        (
            "claimed_at".to_owned(),
            AttributeValue::N("1700000000".to_owned()),
        ),
        (
            "expires_at".to_owned(),
            AttributeValue::N("1701209600".to_owned()),
        ),
    ])
}

/// What stands under the key, as a fresh claim is told or finds.
async fn in_the_way(table: &Table) -> identity_core::claim::Stored {
    let (key, record) = (numbered_key(1), claim(1, 1));
    match table.store.put(&key, &record, &Precondition::Absent).await {
        Err(StoreError::Conflict { standing }) => {
            let stands = table.store.get(&key).await.unwrap().unwrap();
            assert!(standing.is_none_or(|row| *row == stands));
            stands
        }
        other => panic!("expected a conflict, got {other:?}"),
    }
}

async fn a_foreign_claim_stands_and_can_be_taken_over(table: &Table) {
    table.put(foreign("processing")).await;
    let row = in_the_way(table).await;
    assert_eq!(
        (row.record.status, row.record.attempt),
        (Status::Processing, 0)
    );
    let (key, when) = (numbered_key(1), Precondition::Unchanged(row.version));
    table.store.put(&key, &claim(1, 1), &when).await.unwrap();
    let again = table.store.put(&key, &claim(2, 1), &when).await;
    assert!(
        matches!(again, Err(StoreError::Conflict { .. })),
        "{again:?}"
    );
    // Undone work must not be forgotten: the handler's expiry is gone.
    assert!(!table.item(&key).await.contains_key("expires_at"));
}

async fn a_foreign_done_is_done(table: &Table) {
    table.put(foreign("done")).await;
    assert_eq!(in_the_way(table).await.record.status, Status::Done);
}

async fn only_done_claims_expire(table: &Table) {
    let key = numbered_key(1);
    let mut when = Precondition::Absent;
    for (status, write) in [(Status::Failed, 1), (Status::Done, 2), (Status::Failed, 3)] {
        let record = Record {
            expires_at: (status == Status::Done).then_some(identity_core::claim::UnixSeconds(5)),
            ..bare(status, write)
        };
        when = Precondition::Unchanged(table.store.put(&key, &record, &when).await.unwrap());
        let item = table.item(&key).await;
        assert_eq!(item.contains_key("expires_at"), status == Status::Done);
        assert_eq!(
            item.contains_key(attributes::OPEN_SHARD),
            status != Status::Done
        );
    }
}

async fn a_table_that_is_not_there_says_how_to_make_it(table: &Table) {
    let nowhere = DynamoStore::new(client(&table.url).await, "not-there");
    let error = nowhere.get(&numbered_key(1)).await.unwrap_err();
    let told = identity_core::text::error_chain(&error);
    assert!(
        told.contains("create-table --table-name not-there"),
        "{told}"
    );
    assert!(table.store.warm().await.is_ok());
    assert!(nowhere.warm().await.is_err());
}

super::on_both! {
    a_foreign_claim_stands_and_can_be_taken_over,
    a_foreign_done_is_done,
    only_done_claims_expire,
    a_table_that_is_not_there_says_how_to_make_it,
}
