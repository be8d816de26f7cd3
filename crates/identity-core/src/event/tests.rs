//! Tests of the reader: deliveries as their sources write them, built here, and what they must give.

mod bad_input;
mod batches;
mod event_grid;
mod functions;
mod google;
mod handshakes;
mod keys_and_tokens;
mod own;
mod properties;

use serde_json::{Value, json};

use super::*;
use crate::identity::Provider;

const ETAG: &str = "6f1ed002ab5595859014ebf0951522d9";
const VERSION: &str = "3HL4kqtJlcpXroDTDmJ.rmSpXd3dIbrHY";

/// A notification record of a new object, whose `s3.object` is this.
fn record(object: &Value) -> Value {
    json!({
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "eventTime": "2026-01-02T03:04:05.678Z",
        "eventName": "ObjectCreated:Put",
        "userIdentity": {"principalId": "AWS:AIDAEXAMPLE"},
        "responseElements": {"x-amz-request-id": "C3D13FE58DE4C810"},
        "s3": {
            "s3SchemaVersion": "1.0",
            "bucket": {"name": "geo-in", "arn": "arn:aws:s3:::geo-in"},
            "object": object,
        },
    })
}

/// A notification of one object with this key as it stands in the payload.
fn notification_of(key: &str) -> Value {
    notification([record(&json!({"key": key, "size": 4096, "eTag": ETAG}))])
}

fn notification(records: impl IntoIterator<Item = Value>) -> Value {
    json!({"Records": Value::from_iter(records)})
}

fn test_event() -> Value {
    json!({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "geo-in"})
}

/// An EventBridge event of a new object, whose `detail.object` is this.
fn event_bridge(object: &Value) -> Value {
    json!({
        "version": "0",
        "id": "17793124-05d4-b198-2fde-7ededc63b103",
        "detail-type": "Object Created",
        "source": "aws.s3",
        "time": "2026-01-02T03:04:05Z",
        "detail": {
            "version": "0",
            "event-version": "1.1",
            "bucket": {"name": "geo-in"},
            "object": object,
            "request-id": "N4N7GDK58NMKJ12R",
            "reason": "PutObject",
        },
    })
}

/// An SQS batch as a function receives it; the message IDs are `m0`, `m1` …
fn sqs(bodies: impl IntoIterator<Item = Value>) -> Value {
    let messages = bodies.into_iter().enumerate().map(|(index, body)| {
        json!({
            "messageId": format!("m{index}"),
            "receiptHandle": format!("r{index}"),
            "body": body.to_string(),
            "attributes": {"ApproximateReceiveCount": "1", "MessageGroupId": format!("g{index}")},
            "eventSource": "aws:sqs",
        })
    });
    notification(messages)
}

/// A message as SNS posts it, and as it lies in a queue without raw delivery.
fn sns(message: &Value) -> Value {
    json!({
        "Type": "Notification",
        "MessageId": "95df01b4-ee98-5cb9-9903-4c221d41eb5e",
        "TopicArn": "arn:aws:sns:eu-west-1:111122223333:geo",
        "Message": message.to_string(),
    })
}

/// The same as a function receives it.
fn sns_to_function(message: &Value) -> Value {
    notification([json!({"EventSource": "aws:sns", "EventVersion": "1.0", "Sns": sns(message)})])
}

fn base64(text: &str) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    STANDARD.encode(text)
}

fn read_text(text: &str) -> Vec<Item> {
    read(&Delivery::from_body(text.as_bytes()))
}

fn read_value(value: &Value) -> Vec<Item> {
    read_text(&value.to_string())
}

/// The one event of a delivery that holds nothing else.
fn event_in(value: &Value) -> StorageEvent {
    only(&read_value(value))
}

/// The event of the only item there is.
fn only(items: &[Item]) -> StorageEvent {
    let [item] = items else {
        panic!("expected one item, got {items:#?}");
    };
    event_of(item).clone()
}

/// The items of a request with these headers.
fn read_request(method: &str, headers: &[(&str, &str)], body: &str) -> Vec<Item> {
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    read(&Delivery {
        method: Some(method),
        path: Some("/"),
        headers: &headers,
        body: body.as_bytes(),
    })
}

fn event_of(item: &Item) -> &StorageEvent {
    match &item.reading {
        Reading::Event(event) => event,
        other => panic!("expected an event, got {other:?}"),
    }
}

/// The one thing that keeps a delivery from being read.
fn error_in(text: &str) -> ReadError {
    unreadable_of(read_text(text)).error
}

fn unreadable_of(mut items: Vec<Item>) -> Unreadable {
    assert_eq!(items.len(), 1, "{items:?}");
    match items.remove(0).reading {
        Reading::Unreadable(unreadable) => unreadable,
        other => panic!("expected an error, got {other:?}"),
    }
}

fn ignored_in(value: &Value) -> Ignored {
    ignored_of(&read_value(value))
}

fn ignored_of(items: &[Item]) -> Ignored {
    match items {
        [
            Item {
                reading: Reading::Ignored(reason),
                ..
            },
        ] => *reason,
        _ => panic!("expected one ignored item, got {items:#?}"),
    }
}

fn exact_key(value: &Value) -> String {
    event_in(value).address.key.exact().unwrap().to_owned()
}

/// What the `strict` identity sees of an event: nothing else may reach a job ID.
fn identity_of(
    event: &StorageEvent,
) -> (
    Provider,
    Option<String>,
    String,
    Vec<u8>,
    Option<VersionToken>,
) {
    (
        event.address.provider,
        event.address.account.clone(),
        event.address.container.clone(),
        event.address.key.exact_bytes().to_vec(),
        event.token.clone(),
    )
}
