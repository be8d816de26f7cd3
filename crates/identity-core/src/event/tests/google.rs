//! Cloud Storage: notifications through Pub/Sub, wrapped and not, and Eventarc's events.

use super::*;

const GENERATION: u64 = 1_767_323_045_678_901;
const KEY: &str = "in/東京+v2 %2F.shp";

fn resource() -> Value {
    json!({
        "kind": "storage#object",
        "id": format!("geo-in/{KEY}/{GENERATION}"),
        "name": KEY,
        "bucket": "geo-in",
        "generation": GENERATION.to_string(),
        "metageneration": "1",
        "size": "4096",
        "updated": "2026-01-02T03:04:05.678Z",
        "etag": "CPWi0Z+Q6ZEDEAE=",
    })
}

fn attributes(event_type: &str) -> Value {
    json!({
        "notificationConfig": "projects/_/buckets/geo-in/notificationConfigs/3",
        "eventType": event_type,
        "payloadFormat": "JSON_API_V1",
        "bucketId": "geo-in",
        "objectId": KEY,
        "objectGeneration": GENERATION.to_string(),
        "eventTime": "2026-01-02T03:04:05.678901Z",
    })
}

/// A wrapped push of a message with these attributes, and this data if it is not null.
fn push(attributes: &Value, data: &Value) -> Value {
    let mut message = json!({
        "attributes": attributes,
        "messageId": "2070443601311540",
        "message_id": "2070443601311540",
        "publishTime": "2026-01-02T03:04:06.1Z",
    });
    if !data.is_null() {
        message["data"] = json!(base64(&data.to_string()));
    }
    json!({"message": message, "subscription": "projects/p/subscriptions/geo-in", "deliveryAttempt": 5})
}

/// An event of Eventarc in structured mode.
fn eventarc(kind: &str, data: &Value) -> Value {
    json!({
        "specversion": "1.0",
        "id": "7142431093204892",
        "source": "//storage.googleapis.com/projects/_/buckets/geo-in",
        "type": format!("google.cloud.storage.object.v1.{kind}"),
        "subject": "objects/other",
        "time": "2026-01-02T03:04:05.678901Z",
        "data": data,
    })
}

fn as_headers(attributes: &Value) -> Vec<(&str, &str)> {
    let attributes = attributes.as_object().unwrap();
    attributes
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
        .collect()
}

#[test]
fn one_object_version_through_every_envelope() {
    let expected = identity_of(&event_in(&push(
        &attributes("OBJECT_FINALIZE"),
        &resource(),
    )));
    assert_eq!(expected.2, "geo-in");
    assert_eq!(expected.3, KEY.as_bytes());
    assert_eq!(
        expected.4.as_ref().unwrap().to_string(),
        format!("generation:{GENERATION}")
    );
    let finalize = attributes("OBJECT_FINALIZE");
    let push_of_eventarc = push(&json!({}), &eventarc("finalized", &resource()));
    for (name, value) in [
        ("no payload", push(&finalize, &json!(null))),
        ("Eventarc", eventarc("finalized", &resource())),
        ("Eventarc through a topic", push_of_eventarc),
        (
            "a topic through Eventarc",
            json!({
                "specversion": "1.0",
                "type": "google.cloud.pubsub.topic.v1.messagePublished",
                "data": push(&finalize, &resource()),
            }),
        ),
        ("SQS", sqs([push(&finalize, &resource())])),
        ("no metadata", resource()),
    ] {
        assert_eq!(identity_of(&event_in(&value)), expected, "{name}");
    }
    let body = resource().to_string();
    let unwrapped = only(&read_request("POST", &as_headers(&finalize), &body));
    assert_eq!(identity_of(&unwrapped), expected);
    let binary = [
        ("Ce-Type", "google.cloud.storage.object.v1.finalized"),
        ("ce-subject", "objects/other"),
    ];
    assert_eq!(
        identity_of(&only(&read_request("POST", &binary, &body))),
        expected
    );
}

#[test]
fn an_s3_event_in_a_pub_sub_message_is_read_as_such() {
    let event = event_in(&push(
        &json!({"eventType": "mine"}),
        &notification_of("a+b"),
    ));
    assert_eq!(event.address.provider, Provider::S3);
    assert_eq!(event.address.key.exact(), Some("a b"));
}

// Case D1, D2.
#[test]
fn what_differs_between_two_messages_of_one_write_does_not_reach_the_identity() {
    let first = push(&attributes("OBJECT_FINALIZE"), &resource());
    let mut second = first.clone();
    second["message"]["messageId"] = json!("2");
    second["message"]["publishTime"] = json!("2026-01-02T03:14:06.1Z");
    second["message"]["attributes"]["notificationConfig"] = json!("other/4");
    second["deliveryAttempt"] = json!(1);
    assert_eq!(
        identity_of(&event_in(&first)),
        identity_of(&event_in(&second))
    );
}

// Case D3.
#[test]
fn an_overwritten_generation_is_no_mark_of_a_duplicate() {
    let mut attributes = attributes("OBJECT_FINALIZE");
    attributes["overwroteGeneration"] = json!("1767000000000001");
    let event = event_in(&push(&attributes, &resource()));
    assert_eq!(event.token.unwrap().value(), GENERATION.to_string());
}

// Case D4.
#[test]
fn a_generation_is_the_same_as_a_number_and_as_a_string_and_never_a_float() {
    let token = |generation: &str| {
        let text = eventarc("finalized", &resource())
            .to_string()
            .replace(&format!("\"{GENERATION}\""), generation);
        only(&read_text(&text)).token.map(|token| token.to_string())
    };
    assert_eq!(token("\"1767323045678901\""), token("1767323045678901"));
    // Beyond what a double holds exactly.
    assert_eq!(
        token("9007199254740993").as_deref(),
        Some("generation:9007199254740993")
    );
    assert_eq!(
        token("18446744073709551615").as_deref(),
        Some("generation:18446744073709551615")
    );
    for none in ["null", "0", "\"0\""] {
        assert_eq!(token(none), None, "{none}: the store must be asked");
    }
    for generation in [
        "1.767323045678901e15",
        "1767323045678901.0",
        "-1",
        "\"\"",
        "\"+1\"",
        "\"1 \"",
        "\"0x1\"",
        "18446744073709551616",
    ] {
        let text = resource()
            .to_string()
            .replace(&format!("\"{GENERATION}\""), generation);
        assert!(
            matches!(
                error_in(&text),
                ReadError::NotAWholeNumber {
                    field: "generation",
                    ..
                }
            ),
            "{generation}"
        );
    }
    for generation in ["{}", "true", "[1]"] {
        let text = resource()
            .to_string()
            .replace(&format!("\"{GENERATION}\""), generation);
        assert!(
            matches!(error_in(&text), ReadError::WrongType { .. }),
            "{generation}"
        );
    }
    let mut rounded = attributes("OBJECT_FINALIZE");
    rounded["objectGeneration"] = json!("1.7e15");
    assert_eq!(
        error_in(&push(&rounded, &json!(null)).to_string()).to_string(),
        r#"objectGeneration is "1.7e15", expected a whole number"#
    );
}

// Case D5.
#[test]
fn attributes_in_headers_are_found_in_any_case() {
    let body = resource().to_string();
    for name in ["Eventtype", "eventtype", "eventType", "EVENTTYPE"] {
        let of = |event_type| read_request("POST", &[(name, event_type)], &body);
        assert_eq!(ignored_of(&of("OBJECT_DELETE")), Ignored::Removed);
        assert_eq!(ignored_of(&of("OBJECT_ARCHIVE")), Ignored::Removed);
        assert_eq!(ignored_of(&of("OBJECT_METADATA_UPDATE")), Ignored::Metadata);
        let created = only(&of("OBJECT_FINALIZE"));
        assert!(!created.unconfirmed);
        assert_eq!(
            created.details.event_name.as_deref(),
            Some("OBJECT_FINALIZE")
        );
    }
}

// Case D5.
#[test]
fn without_an_event_type_a_resource_is_unconfirmed() {
    let body = resource().to_string();
    for headers in [
        &[][..],
        &[("eventType", "mine")],
        &[("ce-type", "org.example.thing")],
        &[("x-goog-pubsub-message-id", "1")],
    ] {
        assert!(
            only(&read_request("POST", headers, &body)).unconfirmed,
            "{headers:?}"
        );
    }
    assert!(event_in(&push(&json!({}), &resource())).unconfirmed);
    assert!(!event_in(&push(&attributes("OBJECT_FINALIZE"), &resource())).unconfirmed);
}

#[test]
fn nothing_that_identifies_an_object_is_unreadable() {
    for headers in [&[][..], &[("x-goog-pubsub-message-id", "1")]] {
        let unreadable = unreadable_of(read_request("POST", headers, ""));
        assert!(matches!(unreadable.error, ReadError::Empty));
    }
    assert_eq!(
        error_in(&push(&json!({}), &json!(null)).to_string()).to_string(),
        "message.data is missing"
    );
}

#[test]
fn the_body_names_the_object_and_headers_only_where_there_is_none() {
    let mut attributes = attributes("OBJECT_FINALIZE");
    attributes["objectId"] = json!("in/other.shp");
    let headers = as_headers(&attributes);
    let event = only(&read_request("POST", &headers, &resource().to_string()));
    assert_eq!(event.address.key.exact(), Some(KEY));
    let event = only(&read_request("POST", &headers, " \n"));
    assert_eq!(event.address.key.exact(), Some("in/other.shp"));
    assert_eq!(event.token.unwrap().value(), GENERATION.to_string());
    assert_eq!(event.details.size, None);
}

#[test]
fn a_name_in_a_header_that_may_be_encoded_is_not_guessed_at() {
    let of = |name: &str| {
        let mut attributes = attributes("OBJECT_FINALIZE");
        attributes["objectId"] = json!(name);
        read_request("POST", &as_headers(&attributes), "")
    };
    for name in ["in/a b+c.shp", "50%", "a%2", "~"] {
        assert_eq!(only(&of(name)).address.key.exact(), Some(name));
    }
    for name in [
        "in/東京.shp",
        "in/%E6%9D%B1.shp",
        "a\u{fffd}",
        "a\tb",
        "\u{7f}",
    ] {
        let unreadable = unreadable_of(of(name));
        assert!(
            matches!(
                unreadable.error,
                ReadError::UnusableHeader {
                    name: "objectId",
                    ..
                }
            ),
            "{name}"
        );
        // The record of it says all that the request said, as a request.
        let again = http_file::OwnedDelivery::from_file(unreadable.bytes.clone());
        assert_eq!(
            unreadable_of(read(&again.as_delivery())).bytes,
            unreadable.bytes
        );
        assert!(
            String::from_utf8(unreadable.bytes)
                .unwrap()
                .contains("objectGeneration")
        );
    }
}

#[test]
fn every_kind_of_event_is_known_or_an_error() {
    for (kind, expected) in [
        ("deleted", Ignored::Removed),
        ("archived", Ignored::Removed),
        ("metadataUpdated", Ignored::Metadata),
    ] {
        // Nothing else is asked of it.
        assert_eq!(ignored_in(&eventarc(kind, &json!({}))), expected);
        let event_type = format!("google.cloud.storage.object.v1.{kind}");
        let items = read_request("POST", &[("ce-type", &event_type)], "{}");
        assert_eq!(ignored_of(&items), expected);
    }
    assert_eq!(
        ignored_in(&push(&attributes("OBJECT_DELETE"), &json!(null))),
        Ignored::Removed
    );
    let unknown = [
        push(&attributes("OBJECT_TELEPORT"), &resource()).to_string(),
        eventarc("teleported", &resource()).to_string(),
        json!({"specversion": "1.0", "type": "org.example.thing", "data": resource()}).to_string(),
    ];
    for text in unknown {
        assert!(
            matches!(error_in(&text), ReadError::UnknownEventName { .. }),
            "{text}"
        );
    }
    let unreadable = unreadable_of(read_request(
        "POST",
        &[("ce-type", "google.cloud.storage.object.v2.finalized")],
        &resource().to_string(),
    ));
    assert!(matches!(
        unreadable.error,
        ReadError::UnknownEventName { .. }
    ));
    let again = http_file::OwnedDelivery::from_file(unreadable.bytes);
    assert!(matches!(
        unreadable_of(read(&again.as_delivery())).error,
        ReadError::UnknownEventName { .. }
    ));
    let mut version = eventarc("finalized", &resource());
    version["specversion"] = json!("2.0");
    assert_eq!(
        error_in(&version.to_string()).to_string(),
        r#"specversion is "2.0", expected 1.x"#
    );
}

#[test]
fn what_identity_needs_must_be_there() {
    let finalize = || attributes("OBJECT_FINALIZE");
    let mut no_name = resource();
    no_name["name"] = json!("");
    let mut no_bucket = resource();
    no_bucket["bucket"] = json!(null);
    let mut no_object = finalize();
    no_object["objectId"] = json!(null);
    let mut no_bucket_id = finalize();
    no_bucket_id["bucketId"] = json!("");
    let mut odd_attributes = finalize();
    odd_attributes["objectId"] = json!(7);
    let mut not_base64 = push(&json!({}), &json!(null));
    not_base64["message"]["data"] = json!("{}");
    let mut not_utf8 = push(&finalize(), &json!(null));
    not_utf8["message"]["data"] = json!("/w==");
    for (value, message) in [
        (push(&finalize(), &no_name), "name is empty"),
        (push(&finalize(), &no_bucket), "bucket is missing"),
        (push(&no_object, &json!(null)), "objectId is missing"),
        (push(&no_bucket_id, &json!(null)), "bucketId is empty"),
        (
            push(&odd_attributes, &json!(null)),
            "attributes.objectId is a number, expected a string",
        ),
        (
            push(&json!([]), &resource()),
            "message.attributes is an array, expected an object",
        ),
        (
            push(&finalize(), &json!([1])),
            "the resource is an array, expected an object",
        ),
        (
            json!({"message": "x"}),
            "message is a string, expected an object",
        ),
        (not_base64, "message.data is not base64"),
        (not_utf8, "the event is not UTF-8 text"),
        (json!({"specversion": "1.0"}), "type is missing"),
        (
            json!({"specversion": "1.0", "type": "google.cloud.storage.object.v1.finalized"}),
            "data is missing",
        ),
        (
            json!({"specversion": "1.0", "type": "google.cloud.pubsub.topic.v1.messagePublished"}),
            "data is missing",
        ),
    ] {
        assert_eq!(error_in(&value.to_string()).to_string(), message, "{value}");
    }
}

#[test]
fn an_unreadable_push_keeps_its_attributes() {
    let value = push(&attributes("OBJECT_TELEPORT"), &resource());
    assert_eq!(
        unreadable_of(read_value(&value)).bytes,
        value.to_string().as_bytes()
    );
}
