//! Reads every delivery in `events/` and compares all that is read with `events/index.json`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

use std::{fs, path::PathBuf};

use identity_core::event::{
    Delivery, Ignored, Item, Reading, StorageEvent, http_file::OwnedDelivery, read,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("events")
}

fn file(name: &str) -> Vec<u8> {
    fs::read(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn index() -> Vec<Value> {
    serde_json::from_slice(&file("index.json")).unwrap()
}

/// The event in the words of the index.
fn described(event: &StorageEvent) -> Value {
    let version = event
        .token
        .as_ref()
        .filter(|token| token.kind().as_str() != "etag")
        .map(|token| token.value());
    let etag = event.etag_token().unwrap();
    let mut row = json!({
        "provider": event.address.provider.as_str(),
        "container": event.address.container,
        "key": event.address.key.exact(),
        "version": version,
        "etag": etag.as_ref().map(|etag| etag.value()),
        "size": event.details.size,
        "action": "created",
    });
    if let Some(account) = &event.address.account {
        row["account"] = json!(account);
    }
    row
}

fn events(items: &[Item]) -> Vec<&StorageEvent> {
    items
        .iter()
        .filter_map(|item| match &item.reading {
            Reading::Event(event) => Some(&**event),
            _ => None,
        })
        .collect()
}

fn ignored(items: &[Item]) -> Vec<Ignored> {
    items
        .iter()
        .filter_map(|item| match item.reading {
            Reading::Ignored(reason) => Some(reason),
            _ => None,
        })
        .collect()
}

fn assert_all_read(name: &str, items: &[Item]) {
    for item in items {
        assert!(
            !matches!(item.reading, Reading::Unreadable(_)),
            "{name}: {item:?}"
        );
    }
}

#[test]
fn every_file_reads_as_the_index_says() {
    let rows = index();
    assert!(!rows.is_empty());
    for row in &rows {
        let name = row["file"].as_str().unwrap();
        let delivery = OwnedDelivery::from_file(file(name));
        assert_eq!(delivery.method.is_some(), row["kind"] == "http", "{name}");
        let items = read(&delivery.as_delivery());
        assert_all_read(name, &items);
        let read: Vec<Value> = events(&items).into_iter().map(described).collect();
        assert_eq!(json!(read), row["expect"], "{name}");
        if let Some(reason) = row.get("skip") {
            let reasons: Vec<_> = ignored(&items)
                .iter()
                .map(|reason| reason.as_str())
                .collect();
            assert_eq!(json!(reasons), json!([reason]), "{name}");
        }
    }
}

#[test]
fn every_file_of_the_folder_is_in_the_index() {
    let rows = index();
    let mut listed: Vec<&str> = rows
        .iter()
        .map(|row| row["file"].as_str().unwrap())
        .collect();
    listed.extend(["README.md", "captures", "index.json"]);
    listed.sort_unstable();
    let mut found: Vec<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort_unstable();
    assert_eq!(listed, found);
}

/// The keys that a capture's events name, in their order.
fn keys(name: &str, removed: usize, metadata: usize) -> Vec<String> {
    let bytes = file(name);
    let items = read(&Delivery::from_body(&bytes));
    assert_all_read(name, &items);
    let reasons = ignored(&items);
    let count = |reason| reasons.iter().filter(|&&other| other == reason).count();
    assert_eq!(
        (
            count(Ignored::Removed),
            count(Ignored::Metadata),
            reasons.len()
        ),
        (removed, metadata, removed + metadata),
        "{name}"
    );
    for (index, item) in items.iter().enumerate() {
        assert_eq!(item.origin.index, index);
        assert!(item.origin.message_id.is_some() && item.origin.receipt_handle.is_some());
    }
    events(&items)
        .iter()
        .map(|event| {
            // The captured bucket's versions are all the word `null`.
            assert_eq!(event.token, event.etag_token().unwrap());
            event.address.key.exact().unwrap().to_owned()
        })
        .collect()
}

#[test]
fn captures_name_the_objects_that_were_written() {
    let written = [
        "plain.txt",
        "dir/with space.txt",
        "a+b.txt",
        "lit%2Fpct.txt",
        "uni/źdźbło-日本-😀.txt",
        "dbl//slash.txt",
        "trail/",
        "q?x=1&y=2#h.txt",
        "\"quote'.txt",
        "par(en)!*~.txt",
        "plain.txt",
        "empty",
        "copy.txt",
        "mp.bin",
        "mp.bin",
    ];
    assert_eq!(
        keys("captures/s3_sqs_messages_evt-plain.json", 1, 0),
        written
    );
    assert_eq!(keys("captures/s3_sqs_messages_evt-ver.json", 0, 0), written);
    assert_eq!(keys("captures/s3_eventbridge_sqs.json", 1, 5), written[..5]);
}

#[test]
fn one_write_is_one_object_version_in_every_file_that_tells_of_it() {
    let told = |name: &str| {
        let bytes = file(name);
        let items = read(&Delivery::from_body(&bytes));
        let events = events(&items);
        assert_eq!(events.len(), 1, "{name}");
        let object = events[0].object_version().unwrap();
        (
            object.address.key.exact().unwrap().to_owned(),
            object.address.container,
            object.token,
        )
    };
    let direct = told("s3_direct_put.json");
    for name in [
        "s3_direct_put_v26.json",
        "s3_direct_quoted_etag.json",
        "s3_direct_multipart_etag.json",
        "sqs_s3.json",
        "sqs_sns_s3.json",
        "sqs_sns_raw_s3.json",
        "eventbridge_object_created.json",
        "sqs_eventbridge.json",
    ] {
        assert_eq!(told(name), direct, "{name}");
    }
}

proptest! {
    #[test]
    fn a_damaged_file_still_gives_an_item(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..6),
    ) {
        let rows = index();
        let mut bytes = file(which.get(&rows)["file"].as_str().unwrap());
        for (at, byte, kind) in damage {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => { bytes.remove(at); }
            }
        }
        prop_assert!(!read(&Delivery::from_body(&bytes)).is_empty());
        let delivery = OwnedDelivery::from_file(bytes);
        prop_assert!(!read(&delivery.as_delivery()).is_empty());
    }

    #[test]
    fn a_file_cut_short_still_gives_an_item(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
    ) {
        let rows = index();
        let bytes = file(which.get(&rows)["file"].as_str().unwrap());
        let cut = &bytes[..at.index(bytes.len())];
        let items = read(&Delivery::from_body(cut));
        prop_assert!(!items.is_empty());
        // All but white space at the end is needed.
        prop_assert!(events(&items).is_empty() || cut.trim_ascii().len() == bytes.trim_ascii().len());
    }
}
