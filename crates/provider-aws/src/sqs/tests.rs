//! What queues are told; and, with the feature `emulators`, queues on an emulator.

use super::*;
use crate::testing::{Says, configuration, server};

const TOO_LONG: &str =
    "One or more parameters are invalid. Reason: Message must be shorter than 262144 bytes.";

/// What an outbox says of a message that the service answers so.
async fn answered(status: u16, code: &str, why: &str) -> Result<(), OutboxError> {
    let body = format!(r#"{{"__type":"com.amazonaws.sqs#{code}","message":"{why}"}}"#);
    let (url, _) = server(vec![Says::answer(status, body)]);
    let client = Client::new(&configuration(&url).await);
    let message = Message {
        body: "{}".to_owned(),
        deduplication: "job-1".to_owned(),
        group: "key-1".to_owned(),
    };
    let queue = format!("{url}/123456789012/jobs");
    SqsOutbox::new(client, queue).send(&message).await
}

#[tokio::test]
async fn only_what_is_said_of_the_message_itself_is_a_refusal() {
    for (code, why) in [
        ("InvalidMessageContents", "so it is"),
        ("InvalidParameterValue", TOO_LONG),
    ] {
        let sent = answered(400, code, why).await;
        let Err(OutboxError::Refused { queue, source }) = sent else {
            panic!("{code}: expected a refusal, got {sent:?}");
        };
        assert!(queue.ends_with("/jobs"), "{queue}");
        assert_eq!(source.to_string(), format!("{why} ({code})"));
    }
    for (status, code) in [
        (400, "QueueDoesNotExist"),
        (403, "AccessDeniedException"),
        (400, "RequestThrottled"),
        (400, "KmsThrottled"),
        (400, "UnsupportedOperation"),
        (400, "InvalidParameterValue"),
        (500, "InternalError"),
    ] {
        let sent = answered(status, code, "so it is").await;
        assert!(
            matches!(sent, Err(OutboxError::Unavailable { .. })),
            "{code}: {sent:?}"
        );
    }
}

#[test]
fn a_part_of_a_second_is_a_second_and_eleven_hours_are_the_most() {
    for (hidden, seconds) in [
        (Duration::ZERO, 0),
        (Duration::from_nanos(1), 1),
        (Duration::from_secs(90), 90),
        (Duration::from_millis(90_001), 91),
        (Duration::from_secs(39_600), 39_600),
        (Duration::from_millis(39_600_001), 39_600),
        (Duration::MAX, 39_600),
    ] {
        assert_eq!(whole_seconds(hidden), seconds, "{hidden:?}");
    }
}

#[cfg(feature = "emulators")]
mod emulated;
