//! The mapping, without a service.

use identity_core::claim::conformance::samples;
use identity_core::claim::{UnixMillis, UnixSeconds};
use proptest::prelude::*;

use super::*;
use crate::dynamodb::attributes::STATUS;

proptest! {
    #[test]
    fn an_item_says_what_its_record_said(key in samples::key(), record in samples::record()) {
        let item = encode(&key, &record).unwrap();
        let (read_key, stored) = decode(&item).unwrap();
        prop_assert_eq!(stored.version, version::of(&item));
        prop_assert_eq!((read_key, stored.record), (key, record));
    }

    #[test]
    fn only_open_claims_are_in_the_index(key in samples::key(), record in samples::record()) {
        let item = encode(&key, &record).unwrap();
        let open = record.status != Status::Done;
        prop_assert_eq!(item.contains_key(OPEN_SHARD), open);
        prop_assert_eq!(item.contains_key(OPEN_SINCE), open);
    }
}

/// An item as the published Python handler leaves it: every number is one of the service's.
fn foreign(status: &str) -> Item {
    Item::from([
        (KEY.to_owned(), AttributeValue::S("ab".repeat(32))),
        (
            "bucket".to_owned(),
            AttributeValue::S("geo-uploads".to_owned()),
        ),
        (
            "key".to_owned(),
            AttributeValue::S("parcels/a b.shp".to_owned()),
        ),
        (STATUS.to_owned(), AttributeValue::S(status.to_owned())),
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

#[test]
fn the_python_handlers_items_are_claims() {
    let (key, stored) = decode(&foreign("processing")).unwrap();
    assert_eq!(key.as_str(), "ab".repeat(32));
    let record = stored.record;
    assert_eq!(record.status, Status::Processing);
    assert_eq!(
        record.lease_end(),
        UnixMillis((1_700_000_000 + 3_600) * 1_000)
    );
    let object = record.object.unwrap();
    assert_eq!((object.provider, object.token), (Provider::S3, None));
    assert_eq!(
        (object.container.as_str(), object.key.as_str()),
        ("geo-uploads", "parcels/a b.shp")
    );

    let mut done = foreign("done");
    // `time.time()` without `int` around it.
    done.insert(
        "finished_at".to_owned(),
        AttributeValue::N("1700000001.25".to_owned()),
    );
    let record = decode(&done).unwrap().1.record;
    assert_eq!(
        (record.status, record.finished_at),
        (Status::Done, Some(UnixSeconds(1_700_000_001)))
    );

    let mut bare_done = Item::new();
    for name in [KEY, STATUS] {
        bare_done.insert(name.to_owned(), done[name].clone());
    }
    assert_eq!(decode(&bare_done).unwrap().1.record.status, Status::Done);
}

#[test]
fn the_published_attributes_have_the_published_names_and_no_two_fields_share_one() {
    let mut names: Vec<_> = Field::ALL
        .iter()
        .map(|field| attributes::of(*field))
        .collect();
    for published in [
        "job_id",
        "bucket",
        "key",
        "status",
        "claimed_at",
        "finished_at",
        "expires_at",
    ] {
        assert!(names.contains(&published), "{published}");
    }
    names.extend([OPEN_SHARD, OPEN_SINCE]);
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn an_item_that_is_no_claim_is_named_by_attribute() {
    let s = |text: &str| Some(AttributeValue::S(text.to_owned()));
    let n = |text: &str| Some(AttributeValue::N(text.to_owned()));
    let time = Kind::Seconds.expected();
    let cases = [
        (KEY, s("job:1"), "64 lower-case hex characters"),
        (KEY, n("5"), "a string"),
        (STATUS, n("1"), "a string"),
        ("attempt", n("-1"), Kind::Count.expected()),
        ("attempt", n("1.5"), Kind::Count.expected()),
        ("attempt", s("1"), Kind::Count.expected()),
        ("claimed_at", s("yesterday"), time),
        ("claimed_at", n("1e400"), time),
        ("lease_until", n("1.5"), time),
        (
            "bucket",
            None,
            "provider, container and key, or none of the three",
        ),
        ("object_provider", s("ftp"), "s3, gcs, azure or file"),
        ("token_kind", s("etag"), "kind and value, or neither"),
        ("body", s("text"), "bytes"),
        ("body", Some(AttributeValue::Bool(true)), "bytes"),
    ];
    for (attribute, value, expected) in cases {
        let mut item = foreign("failed");
        match value {
            Some(value) => item.insert(attribute.to_owned(), value),
            None => item.remove(attribute),
        };
        let misfit = decode(&item).unwrap_err();
        assert_eq!(
            (attributes::of(misfit.field), misfit.expected),
            (attribute, expected)
        );
    }
}

#[test]
fn what_is_told_of_an_item_is_short() {
    let mut item = foreign("done");
    item.insert(
        "error".to_owned(),
        AttributeValue::B(Blob::new(vec![0; 10_000])),
    );
    assert!(decode(&item).unwrap_err().got.chars().count() <= 100);
}
