//! Queues on moto: what arrives of a message, what a FIFO queue drops, and how long a received message stays hidden.

use std::collections::HashMap;

use aws_sdk_sqs::types::{
    Message as Received, MessageSystemAttributeName as Attribute, QueueAttributeName,
};
use identity_core::text::error_chain;

use super::*;
use crate::testing::{configuration, emulator, unused_name};

/// A queue of the test's own.
struct Queue {
    client: Client,
    outbox: SqsOutbox,
}

impl Queue {
    async fn standard() -> Self {
        Self::new(unused_name("queue"), HashMap::new()).await
    }

    async fn fifo() -> Self {
        let attributes = HashMap::from([(QueueAttributeName::FifoQueue, "true".to_owned())]);
        Self::new(format!("{}.fifo", unused_name("queue")), attributes).await
    }

    async fn new(name: String, attributes: HashMap<QueueAttributeName, String>) -> Self {
        let client = Client::new(&configuration(&emulator("TEST_MOTO_URL")).await);
        let create = client.create_queue().queue_name(name);
        let create = create.set_attributes(Some(attributes).filter(|some| !some.is_empty()));
        let url = create.send().await.unwrap().queue_url.unwrap();
        Self {
            outbox: SqsOutbox::new(client.clone(), url),
            client,
        }
    }

    fn url(&self) -> &str {
        &self.outbox.queue_url
    }

    /// What is visible now; it then stays hidden for a minute.
    async fn receive(&self) -> Vec<Received> {
        let receive = self.client.receive_message().queue_url(self.url());
        let receive = receive
            .max_number_of_messages(10)
            .visibility_timeout(60)
            .message_system_attribute_names(Attribute::All);
        receive.send().await.unwrap().messages.unwrap_or_default()
    }

    async fn hide(&self, message: &Received, hidden: Duration) -> Result<(), OutboxError> {
        let receipt = message.receipt_handle().unwrap();
        change_visibility(&self.client, self.url(), receipt, hidden).await
    }
}

fn message(body: &str, deduplication: &str, group: &str) -> Message {
    Message {
        body: body.to_owned(),
        deduplication: deduplication.to_owned(),
        group: group.to_owned(),
    }
}

#[tokio::test]
async fn a_standard_queue_gets_each_message_and_is_told_neither_text() {
    let queue = Queue::standard().await;
    let sent = message(r#"{"key":"ü\uffff"}"#, "job-1", "key-1");
    for _ in 0..2 {
        queue.outbox.send(&sent).await.unwrap();
    }
    let messages = queue.receive().await;
    let bodies: Vec<_> = messages.iter().filter_map(Received::body).collect();
    assert_eq!(bodies, [r#"{"key":"ü\uffff"}"#; 2]);
    for message in messages {
        let attributes = message.attributes.unwrap();
        assert!(!attributes.contains_key(&Attribute::MessageGroupId));
        assert!(!attributes.contains_key(&Attribute::MessageDeduplicationId));
    }
}

#[tokio::test]
async fn a_fifo_queue_drops_what_it_has_seen_and_knows_the_groups() {
    let queue = Queue::fifo().await;
    for (body, deduplication, group) in [
        ("first", "job-1", "key-1"),
        // The text counts, and not the body.
        ("again", "job-1", "key-1"),
        ("first", "job-1-1", "key-1"),
        ("other", "job-2", "key-2"),
    ] {
        let message = message(body, deduplication, group);
        queue.outbox.send(&message).await.unwrap();
    }
    let mut received = Vec::new();
    for message in queue.receive().await {
        let attributes = message.attributes.unwrap();
        received.push([
            attributes[&Attribute::MessageGroupId].clone(),
            message.body.unwrap(),
            attributes[&Attribute::MessageDeduplicationId].clone(),
        ]);
    }
    // Between groups there is no order; within one the sort keeps it.
    received.sort_by(|a, b| a[0].cmp(&b[0]));
    assert_eq!(
        received,
        [
            ["key-1", "first", "job-1"],
            ["key-1", "first", "job-1-1"],
            ["key-2", "other", "job-2"]
        ]
    );
}

#[tokio::test]
async fn a_received_message_appears_again_when_it_is_told_to() {
    let queue = Queue::standard().await;
    let sent = message("body", "job-1", "key-1");
    queue.outbox.send(&sent).await.unwrap();
    let received = queue.receive().await.pop().unwrap();
    assert!(queue.receive().await.is_empty());
    queue.hide(&received, Duration::ZERO).await.unwrap();
    let received = queue.receive().await.pop().unwrap();
    // However long, it is a time that the queue accepts.
    queue.hide(&received, Duration::MAX).await.unwrap();
    assert!(queue.receive().await.is_empty());
}

#[tokio::test]
async fn what_is_longer_than_the_queue_takes_is_refused_and_the_next_message_is_taken() {
    let limit = (QueueAttributeName::MaximumMessageSize, "1024".to_owned());
    let queue = Queue::new(unused_name("queue"), HashMap::from([limit])).await;
    let (long, short) = ("x".repeat(1_025), "x".repeat(1_024));
    let sent = queue.outbox.send(&message(&long, "job-1", "key-1")).await;
    assert!(matches!(sent, Err(OutboxError::Refused { .. })), "{sent:?}");
    let sent = message(&short, "job-2", "key-2");
    queue.outbox.send(&sent).await.unwrap();
    assert_eq!(queue.receive().await.len(), 1);
}

#[tokio::test]
async fn what_fails_names_the_queue_and_the_cause() {
    let queue = Queue::standard().await;
    let client = queue.client.clone();
    let hidden = change_visibility(&client, queue.url(), "nobody's", Duration::ZERO).await;
    let told = error_chain(&hidden.unwrap_err());
    assert!(
        told.contains(queue.url()) && told.contains("ReceiptHandleIsInvalid"),
        "{told}"
    );
    let nowhere = format!("{}-gone", queue.url());
    let outbox = SqsOutbox::new(client, &nowhere);
    let sent = outbox.send(&message("body", "job-1", "key-1")).await;
    let told = error_chain(&sent.unwrap_err());
    assert!(
        told.contains(&nowhere) && told.contains("NonExistentQueue"),
        "{told}"
    );
}
