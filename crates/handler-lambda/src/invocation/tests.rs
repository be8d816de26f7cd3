//! Who is answered how, and what a reply says.

use std::sync::Arc;

use identity_core::{
    event::{Origin, read},
    gate::{Outcome, Settled},
};

use super::*;

const ARN: &str = "arn:aws:sqs:eu-central-1:123456789012:events";

fn source(payload: &Value) -> Source {
    Source::of(&read(&Delivery::from_body(payload.to_string().as_bytes())))
}

#[test]
fn the_outermost_envelope_says_who_is_answered() {
    let message = |arn: &str| {
        json!({"Records": [{"messageId": "m", "body": "{}", "eventSource": "aws:sqs",
        "eventSourceARN": arn, "attributes": {"MessageGroupId": "g"}}]})
    };
    assert_eq!(source(&message(ARN)), Source::Queue);
    assert_eq!(
        source(&message(&format!("{ARN}.fifo"))),
        Source::OrderedQueue
    );
    let record = json!({"eventName": "ObjectCreated:Put", "eventVersion": "2.1",
        "s3": {"bucket": {"name": "b"}, "object": {"key": "k", "eTag": "e"}}});
    assert_eq!(source(&json!({"Records": [record]})), Source::Other);
    let sns = json!({"Records": [{"Sns": {"Type": "Notification", "Message": "{}"}}]});
    assert_eq!(source(&sns), Source::Other);
    assert_eq!(source(&json!({"hello": "world"})), Source::Other);
}

fn answer(id: Option<&str>, outcome: Outcome) -> ItemAnswer {
    let origin = Origin {
        message_id: id.map(str::to_owned),
        ..Origin::default()
    };
    ItemAnswer {
        origin: Arc::new(origin),
        disposition: outcome.disposition(),
        settled: vec![Settled {
            key: None,
            uri: Some("s3://b/k".to_owned()),
            outcome,
        }],
    }
}

fn failed() -> Outcome {
    Outcome::Failed {
        attempt: 1,
        error: "exit code 1".to_owned(),
        again: None,
    }
}

fn told(source: Source, answers: &[ItemAnswer]) -> Result<Value, Diagnostic> {
    reply(source, &Settlement::new(answers.to_vec(), Vec::new()))
}

#[test]
fn a_queue_is_told_which_messages_come_again() {
    let answers = [
        answer(Some("a"), Outcome::Duplicate),
        answer(Some("b"), failed()),
    ];
    let expected = json!({"batchItemFailures": [{"itemIdentifier": "b"}]});
    assert_eq!(told(Source::Queue, &answers).unwrap(), expected);
    let none = json!({"batchItemFailures": []});
    assert_eq!(told(Source::Queue, &answers[..1]).unwrap(), none);
}

#[test]
fn a_message_without_an_id_fails_all_only_if_it_must_come_again() {
    let nameless = [answer(Some("a"), failed()), answer(None, failed())];
    assert!(told(Source::Queue, &nameless).is_err());
    let done = [
        answer(Some("a"), failed()),
        answer(None, Outcome::Duplicate),
    ];
    assert!(told(Source::Queue, &done).is_ok());
}

#[test]
fn all_else_is_told_all_or_nothing() {
    let answers = [answer(None, Outcome::Duplicate), answer(None, failed())];
    let error = told(Source::Other, &answers).unwrap_err();
    assert_eq!(error.error_type, "firstclaim.Retry");
    assert_eq!(
        error.error_message,
        "1 of 2 must come again; the first: s3://b/k is failed (exit code 1)"
    );
    assert_eq!(told(Source::Other, &answers[..1]).unwrap()["duplicate"], 1);
}
