//! Reads every delivery in `events/` and compares all that is read with `events/index.json`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

use std::{error::Error as _, fs, path::PathBuf, sync::OnceLock};

use identity_core::event::{
    Delivery, Ignored, Item, ReadContext, Reading, Reply, StorageEvent, http_file::OwnedDelivery,
    read, read_in,
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

/// The reasons why items are no jobs, in their order.
fn skipped(items: &[Item]) -> Vec<&'static str> {
    items
        .iter()
        .filter_map(|item| match &item.reading {
            Reading::Ignored(reason) => Some(reason.as_str()),
            Reading::Incomplete(_) => Some(Ignored::Incomplete.as_str()),
            Reading::Reply(_) => Some(Ignored::Handshake.as_str()),
            _ => None,
        })
        .collect()
}

/// A reply in the words of the index.
fn response(reply: &Reply) -> Value {
    let mut row = json!({"status": reply.status});
    for (name, value) in &reply.headers {
        row["headers"][name] = json!(value);
    }
    if let Some(body) = &reply.body {
        row["body"] = serde_json::from_str(body).unwrap();
    }
    row
}

/// The items of a file. One kind of message names no account, so one is assumed.
fn items_of(name: &str) -> Vec<Item> {
    let context = ReadContext {
        s3_keys: None,
        azure_account: Some("acct"),
    };
    read_in(
        &OwnedDelivery::from_file(file(name)).as_delivery(),
        &context,
    )
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
        let items = items_of(name);
        let read: Vec<Value> = events(&items).into_iter().map(described).collect();
        assert_eq!(json!(read), row["expect"], "{name}");
        let unconfirmed = events(&items).iter().any(|event| event.unconfirmed);
        assert_eq!(row.get("unconfirmed").is_some(), unconfirmed, "{name}");
        if let Some(reason) = row.get("skip") {
            assert_eq!(json!(skipped(&items)), json!([reason]), "{name}");
        }
        let told = items.iter().find_map(|item| match &item.reading {
            Reading::Reply(reply) => Some(response(reply)),
            _ => None,
        });
        assert_eq!(told.as_ref(), row.get("response"), "{name}");
        match row.get("unreadable") {
            None => assert_all_read(name, &items),
            Some(expected) => match &items[..] {
                [
                    Item {
                        reading: Reading::Unreadable(unreadable),
                        ..
                    },
                ] => assert_eq!(&json!(unreadable.error.to_string()), expected, "{name}"),
                _ => panic!("{name}: {items:?}"),
            },
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

/// The requests of a capture, as they came.
fn requests(name: &str) -> Vec<OwnedDelivery> {
    let recorded: Vec<Value> = serde_json::from_slice(&file(name)).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    recorded
        .iter()
        .map(|request| OwnedDelivery {
            method: Some("POST".to_owned()),
            path: Some(text(&request["path"])),
            headers: request["headers"]
                .as_array()
                .unwrap()
                .iter()
                .map(|header| (text(&header[0]), text(&header[1])))
                .collect(),
            body: text(&request["body"]).into_bytes(),
        })
        .collect()
}

#[test]
fn captured_pushes_name_the_objects_that_were_written() {
    let mut keys = Vec::new();
    let mut no_jobs = Vec::new();
    for request in requests("captures/gcs_pubsub_push_all.json") {
        let items = read(&request.as_delivery());
        assert_eq!(items.len(), 1);
        assert_all_read("gcs_pubsub_push_all.json", &items);
        no_jobs.extend(skipped(&items));
        for event in events(&items) {
            let token = event.token.as_ref().unwrap();
            assert_eq!(token.kind().as_str(), "generation");
            assert!(!event.unconfirmed);
            keys.push(event.address.key.exact().unwrap().to_owned());
        }
    }
    let written = [
        "plain.txt",
        "dir/with space.txt",
        "lit%2Fpct.txt",
        "a+b.txt",
        "uni/źdźbło-日本-😀.txt",
        "dbl//slash.txt",
        "/lead.txt",
        "trail/",
        "q?x=1&y=2#h.txt",
        "\"quote'.txt",
        "new\nline.txt",
        "meta.txt",
        "plain.txt",
        "empty.bin",
    ];
    assert_eq!(keys, written);
    assert_eq!(no_jobs, ["removed", "metadata", "removed"]);
}

#[test]
fn a_captured_message_with_and_without_its_wrapper_is_one_object_version() {
    let wrapped = items_of("captures/gcs_pubsub_push_body_first.json");
    let data = items_of("captures/gcs_pubsub_push_data_decoded_first.json");
    let (wrapped, data) = (events(&wrapped)[0], events(&data)[0]);
    assert_eq!(wrapped.object_version(), data.object_version());
    assert_eq!(
        [wrapped.unconfirmed, data.unconfirmed],
        [false, true],
        "the data alone does not say what happened"
    );
}

#[test]
fn a_message_that_is_no_event_is_told_at_every_delivery() {
    for request in requests("captures/pubsub_push_redelivery.json") {
        let items = read(&request.as_delivery());
        match &items[0].reading {
            Reading::Unreadable(unreadable) => {
                assert_eq!(unreadable.bytes, b"retry-me");
                assert!(unreadable.error.source().is_some());
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn one_write_is_one_object_version_in_every_file_that_tells_of_it() {
    let told = |name: &str| {
        let items = items_of(name);
        let object = events(&items)[0].object_version().unwrap();
        (
            object.address.provider,
            object.address.account,
            object.address.container,
            object.address.key.exact().unwrap().to_owned(),
            object.token,
        )
    };
    for one_write in [
        &[
            "s3_direct_put.json",
            "s3_direct_put_v26.json",
            "s3_direct_quoted_etag.json",
            "s3_direct_multipart_etag.json",
            "sqs_s3.json",
            "sqs_sns_s3.json",
            "sqs_sns_raw_s3.json",
            "eventbridge_object_created.json",
            "sqs_eventbridge.json",
        ][..],
        &[
            "pubsub_push_wrapped.json",
            "pubsub_push_wrapped_dlq_ordering.json",
            "pubsub_push_wrapped_payload_none.json",
            "pubsub_push_wrapped_overwrite.json",
            "pubsub_push_unwrapped_nometadata.http.json",
            "eventarc_binary_finalized.http.json",
            "eventarc_structured_finalized.json",
        ],
        &[
            "eventgrid_blobcreated.http.json",
            "eventgrid_blobcreated_raw_url.json",
            "eventgrid_blobcreated_quoted_etag.json",
            "eventgrid_batch.json",
            "eventgrid_deadletter_record.json",
            "cloudevents_blobcreated.http.json",
            "cloudevents_batch.json",
            "storage_queue_plain.json",
            "storage_queue_base64.json",
            "storage_queue_cloudevents.json",
            "func_eventgrid_trigger_object.http.json",
            "func_eventgrid_trigger_string.http.json",
            "func_queue_trigger_single_encoded.http.json",
            "func_http_forwarded.http.json",
            "func_http_not_forwarded.http.json",
            "func_blob_trigger_legacy_metadata.http.json",
            "webjobs_blobtrigger_queue_message.json",
        ],
    ] {
        for name in one_write {
            assert_eq!(told(name), told(one_write[0]), "{name}");
        }
    }
}

/// Everything there is to damage: the files of the index, and the captures.
fn all_files() -> &'static [Vec<u8>] {
    static FILES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    FILES.get_or_init(|| {
        let captures = fs::read_dir(folder().join("captures")).unwrap();
        let names = captures.map(|entry| entry.unwrap().path());
        let listed = index()
            .into_iter()
            .map(|row| folder().join(row["file"].as_str().unwrap()));
        names
            .chain(listed)
            .map(|path| fs::read(path).unwrap())
            .collect()
    })
}

/// What every reading holds: nothing is lost, and what is kept of it is bounded by what arrived.
fn assert_bounded(delivery: &Delivery<'_>, items: &[Item]) {
    assert!(!items.is_empty());
    let arrived = delivery.body.len();
    // An item needs at least the two braces of an empty object, and base64 only shrinks what it holds.
    assert!(items.len() <= arrived / 2 + 1, "{} items", items.len());
    for item in items {
        if let Reading::Unreadable(unreadable) = &item.reading {
            let headers: usize = delivery
                .headers
                .iter()
                .map(|(name, value)| name.len() + value.len())
                .sum();
            // Quoting a body doubles it at most six times, in `\u0000`.
            assert!(unreadable.bytes.len() <= 6 * (arrived + headers) + 200);
        }
    }
}

/// The values within a value, itself included.
fn parts(value: &mut Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter_mut().map(parts).sum::<usize>(),
        Value::Object(fields) => fields.values_mut().map(parts).sum(),
        _ => 0,
    }
}

/// Puts another value in the place of the one that comes at `at` in that order.
fn replace(value: &mut Value, at: &mut usize, other: &Value) {
    if *at == 0 {
        *value = other.clone();
    }
    *at = at.wrapping_sub(1);
    match value {
        Value::Array(list) => list.iter_mut().for_each(|part| replace(part, at, other)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|part| replace(part, at, other)),
        _ => {}
    }
}

proptest! {
    // `PROPTEST_CASES` sets how many, for a long run.
    #[test]
    fn a_damaged_file_still_gives_an_item(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..6),
    ) {
        let mut bytes = which.get(all_files()).clone();
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
        let payload = Delivery::from_body(&bytes);
        assert_bounded(&payload, &read(&payload));
        let delivery = OwnedDelivery::from_file(bytes);
        assert_bounded(&delivery.as_delivery(), &read(&delivery.as_delivery()));
    }

    #[test]
    fn a_file_with_another_value_in_it_still_gives_an_item(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0..9_usize, ".{0,9}"), 1..4),
    ) {
        let file: &Vec<u8> = which.get(all_files());
        let mut value: Value = serde_json::from_slice(file).unwrap();
        for (at, kind, text) in damage {
            let others = [
                json!(null), json!(true), json!(-1.5e300), json!(""), json!([]), json!({}), json!(text),
                json!([value]), json!(value.to_string()),
            ];
            let mut at = at.index(parts(&mut value));
            replace(&mut value, &mut at, &others[kind]);
        }
        let bytes = value.to_string().into_bytes();
        let payload = Delivery::from_body(&bytes);
        assert_bounded(&payload, &read(&payload));
        let delivery = OwnedDelivery::from_file(bytes);
        assert_bounded(&delivery.as_delivery(), &read(&delivery.as_delivery()));
    }

    #[test]
    fn pieces_of_files_put_together_still_give_an_item(
        pieces in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..5,
        ),
    ) {
        let mut bytes = Vec::new();
        for (which, from, to) in pieces {
            let file = which.get(all_files());
            let (from, to) = (from.index(file.len()), to.index(file.len()));
            bytes.extend_from_slice(&file[from.min(to)..from.max(to)]);
        }
        let payload = Delivery::from_body(&bytes);
        assert_bounded(&payload, &read(&payload));
    }

    #[test]
    fn a_file_cut_short_still_gives_an_item(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
    ) {
        let bytes = which.get(all_files());
        let cut = &bytes[..at.index(bytes.len())];
        let items = read(&Delivery::from_body(cut));
        prop_assert!(!items.is_empty());
        // All but white space at the end is needed.
        prop_assert!(events(&items).is_empty() || cut.trim_ascii().len() == bytes.trim_ascii().len());
    }
}
