//! The mapping, without a service.

use identity_core::claim::conformance::samples::{self, bare, numbered_key};
use proptest::prelude::*;

use super::*;
use crate::dynamodb::attributes::{SHARDS, shard_name};

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

    #[test]
    fn the_index_sorts_by_time_and_then_by_key(
        (a, b) in (samples::key(), samples::key()),
        (early, late) in (0..i64::MAX, 0..i64::MAX),
    ) {
        let (first, second) = (since(UnixSeconds(early), &a), since(UnixSeconds(late), &b));
        prop_assert_eq!(first.cmp(&second), (early, a.as_str()).cmp(&(late, b.as_str())));
    }
}

#[test]
fn every_shard_has_its_share_of_keys() {
    let shards: std::collections::BTreeSet<String> = (0..=255)
        .map(|byte| shard(Status::Failed, &ClaimKey::from_digest([byte; 32])))
        .collect();
    let expected = (0..u32::from(SHARDS)).map(|number| shard_name(Status::Failed, number));
    assert!(shards.into_iter().eq(expected));
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
            CLAIMED_AT.to_owned(),
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
fn an_item_that_is_no_claim_is_named_by_key_and_attribute() {
    let s = |text: &str| Some(AttributeValue::S(text.to_owned()));
    let n = |text: &str| Some(AttributeValue::N(text.to_owned()));
    let cases = [
        (KEY, s("job:1"), "64 lower-case hex characters"),
        (KEY, n("5"), "64 lower-case hex characters"),
        (STATUS, s("finished"), STATUSES),
        (STATUS, None, STATUSES),
        (STATUS, n("1"), "a string"),
        (ATTEMPT, n("-1"), COUNT),
        (ATTEMPT, n("4294967296"), COUNT),
        (ATTEMPT, s("1"), COUNT),
        (OWNER, s("me"), "32 lower-case hex characters"),
        (REVISION, s("1"), "an owner, a dot and a number"),
        (CLAIMED_AT, s("yesterday"), TIME),
        (CLAIMED_AT, n("1e400"), TIME),
        ("lease_until", n("1.5"), TIME),
        ("bucket", None, "bucket and key, or neither"),
        ("object_provider", s("ftp"), "s3, gcs, azure or file"),
        ("token_kind", s("etag"), "kind and value, or neither"),
        ("reason", s("because"), "the name of a reason"),
        ("body", s("text"), "bytes"),
        (
            "released_at",
            n("1"),
            "released_at, released_from and released_attempt, or none of the three",
        ),
    ];
    for (attribute, value, expected) in cases {
        let mut item = foreign("failed");
        match value {
            Some(value) => item.insert(attribute.to_owned(), value),
            None => item.remove(attribute),
        };
        let misfit = decode(&item).unwrap_err();
        assert!(
            misfit.what.ends_with(&format!(", attribute {attribute}")),
            "{misfit:?}"
        );
        assert_eq!(misfit.expected, expected, "{attribute}");
    }
}

#[test]
fn what_is_too_large_to_keep_is_refused_before_it_is_sent() {
    let key = numbered_key(1);
    let result = Record {
        result: Some("x".repeat(Record::MAX_RESULT_BYTES + 1)),
        ..bare(Status::Done, 1)
    };
    let body = Record {
        body: Some(vec![0; Record::MAX_BODY_BYTES + 1]),
        ..bare(Status::Rejected, 1)
    };
    for (record, attribute, got) in [
        (result, "result", "16385 bytes"),
        (body, "body", "32769 bytes"),
    ] {
        let misfit = encode(&key, &record).unwrap_err();
        assert!(misfit.what.ends_with(attribute), "{misfit:?}");
        assert_eq!(misfit.got, got);
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
