//! This program's own envelope: what was written is read, whatever carries it, and nothing else is.

use super::*;
use crate::{
    event::own::{Sent, write},
    identity::ObjectKey,
};

const RECORD: &str = "a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0";

fn sent(event: &StorageEvent, record: Option<&str>) -> Value {
    let sent = Sent::Event {
        event,
        incomplete: false,
    };
    serde_json::from_str(&write(&sent, record, 3)).unwrap()
}

fn an_event() -> Value {
    sent(&event_in(&notification_of("a+b%2B.shp")), None)
}

/// The envelope with this field of it, or without it if it is null.
fn with(field: &str, value: Value) -> Value {
    let mut envelope = an_event();
    let fields = envelope["firstclaim"].as_object_mut().unwrap();
    if value.is_null() {
        fields.remove(field).unwrap();
    } else {
        fields.insert(field.to_owned(), value);
    }
    envelope
}

#[test]
fn an_event_comes_back_as_it_was_whatever_carries_it() {
    let original = event_in(&notification_of("a+b%2B%FF.shp"));
    let envelope = sent(&original, None);
    let queue = json!({"MessageText": base64(&envelope.to_string())});
    let push = json!({"message": {"data": base64(&envelope.to_string()), "messageId": "1"}});
    for value in [
        envelope.clone(),
        sqs([envelope.clone()]),
        sns(&envelope),
        queue,
        push,
    ] {
        let event = event_in(&value);
        assert_eq!(event.details.envelope, Some("firstclaim event"));
        let details = original.details.clone();
        assert_eq!(StorageEvent { details, ..event }, original, "{value}");
    }
}

#[test]
fn a_character_that_queues_refuse_is_escaped_and_comes_back() {
    let mut original = event_in(&notification_of("a.shp"));
    original.address.key = ObjectKey::verbatim("a\u{ffff}b\u{fffe}\u{fffd}\u{1fffe}\0é.shp");
    let sent_event = Sent::Event {
        event: &original,
        incomplete: false,
    };
    let text = write(&sent_event, None, 0);
    let is_xml =
        |character| matches!(character, ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    assert!(text.chars().all(is_xml), "{text}");
    assert_eq!(only(&read_text(&text)).address, original.address);
}

#[test]
fn a_body_is_read_again_and_all_that_is_in_it_closes_its_record_together() {
    let batch = notification([
        record(&json!({"key": "a", "eTag": ETAG})),
        record(&json!({"key": "b", "eTag": ETAG})),
    ]);
    let text = write(&Sent::Body(batch.to_string().as_bytes()), Some(RECORD), 2);
    let items = read_text(&text);
    assert_eq!(items.len(), 2);
    assert_eq!(
        items[0].envelopes(),
        ["S3 notification", "firstclaim event"]
    );
    let redriven: Vec<_> = items
        .iter()
        .map(|item| item.redriven.clone().unwrap())
        .collect();
    assert!(Arc::ptr_eq(&redriven[0], &redriven[1]));
    assert_eq!((&*redriven[0].record, redriven[0].redrives), (RECORD, 2));
    assert!(!redriven[0].acknowledge());
    assert!(redriven[1].acknowledge(), "the last one closes");
    redriven[0].take_back();
    assert!(
        redriven[0].acknowledge(),
        "what was taken back counts again"
    );
}

#[test]
fn a_body_that_still_cannot_be_read_is_told_by_its_own_bytes() {
    for bytes in [&b"\xff{"[..], b"", b"{\"x\":1}"] {
        let unreadable = unreadable_of(read_text(&write(&Sent::Body(bytes), Some(RECORD), 1)));
        assert_eq!(
            unreadable.bytes, bytes,
            "so that it has the key that it had"
        );
    }
}

#[test]
fn a_request_that_was_kept_as_a_body_is_read_as_a_request() {
    let request = json!({"method": "POST", "headers": {
        "eventType": "OBJECT_FINALIZE", "bucketId": "b", "objectId": "n", "objectGeneration": "7",
    }, "body": ""});
    let text = write(&Sent::Body(request.to_string().as_bytes()), None, 1);
    assert_eq!(only(&read_text(&text)).address.container, "b");
}

#[test]
fn only_what_has_a_record_to_close_can_be_incomplete() {
    let incomplete = with("incomplete", json!(true));
    assert!(matches!(
        error_in(&incomplete.to_string()),
        ReadError::MissingField {
            field: "firstclaim.record"
        }
    ));
    let mut closing = incomplete;
    closing["firstclaim"]["record"] = json!(RECORD);
    assert!(matches!(
        read_value(&closing)[0].reading,
        Reading::Incomplete(_)
    ));
}

#[test]
fn whatever_is_not_meant_is_unreadable() {
    let mut beside = an_event();
    beside["other"] = json!(1);
    let wrong = [
        beside,
        json!({"firstclaim": []}),
        json!({"firstclaim": {}}),
        with("version", json!(2)),
        with("version", json!("1")),
        with("version", Value::Null),
        with("stage", json!("load")),
        with("provider", json!("ftp")),
        with("provider", Value::Null),
        with("container", json!("")),
        with("key", json!("")),
        with("key", Value::Null),
        with("key_base64", json!("YQ==")),
        with("token", json!(["etag", "e"])),
        with("token", json!({"kind": "md5", "value": "e"})),
        with("token", json!({"kind": "etag", "value": "\"\""})),
        with("token", json!({"kind": "etag", "value": "e", "more": 1})),
        with("record", json!("A0")),
        with("redrives", json!(-1)),
        with("unconfirmed", json!("yes")),
        with("body", json!("e30=")),
        with("body", json!("%")),
    ];
    for value in wrong {
        let items = read_value(&value);
        assert!(
            matches!(
                items[..],
                [Item {
                    reading: Reading::Unreadable(_),
                    ..
                }]
            ),
            "{value}: {items:?}"
        );
    }
    // Bytes that are not UTF-8 stood encoded in their payload; without it `reference` has no key.
    let mut bytes = with("key", Value::Null);
    bytes["firstclaim"]["key_base64"] = json!("/w==");
    bytes["firstclaim"]
        .as_object_mut()
        .unwrap()
        .remove("raw_key");
    assert!(matches!(
        error_in(&bytes.to_string()),
        ReadError::MissingField {
            field: "firstclaim.raw_key"
        }
    ));
}

#[test]
fn bodies_in_bodies_come_to_an_end() {
    let mut text = "{}".to_owned();
    for _ in 0..2 * MAX_DEPTH {
        text = write(&Sent::Body(text.as_bytes()), None, 1);
    }
    assert!(matches!(error_in(&text), ReadError::TooDeep { .. }));
}
