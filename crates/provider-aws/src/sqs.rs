//! Queues: messages sent on, and how long a received one stays hidden.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::ProvideErrorMetadata as _;
use identity_core::outbox::{Message, Outbox, OutboxError};

use crate::error;

/// One queue that messages are sent to, standard or FIFO (its name, and so its URL, ends with `.fifo`).
///
/// A FIFO queue drops a message whose deduplication text it saw within 5 minutes, and keeps the order within a group. A
/// standard queue is told neither.
#[derive(Debug, Clone)]
pub struct SqsOutbox {
    client: Client,
    queue_url: String,
}

impl SqsOutbox {
    /// The queue with this URL, e.g. `https://sqs.eu-central-1.amazonaws.com/123456789012/jobs.fifo`.
    pub fn new(client: Client, queue_url: impl Into<String>) -> Self {
        let queue_url = queue_url.into();
        Self { client, queue_url }
    }

    fn is_fifo(&self) -> bool {
        self.queue_url.ends_with(".fifo")
    }
}

impl fmt::Display for SqsOutbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.queue_url)
    }
}

#[async_trait]
impl Outbox for SqsOutbox {
    async fn send(&self, message: &Message) -> Result<(), OutboxError> {
        let fifo = |text: &str| self.is_fifo().then(|| text.to_owned());
        let sent = self
            .client
            .send_message()
            .queue_url(&self.queue_url)
            .message_body(&message.body)
            .set_message_deduplication_id(fifo(&message.deduplication))
            .set_message_group_id(fifo(&message.group))
            .send()
            .await;
        match sent {
            Ok(_) => Ok(()),
            Err(error) => {
                let refused = is_refusal(error.code(), error.message());
                let (queue, source) = (self.to_string(), error::cause(error));
                Err(if refused {
                    OutboxError::Refused { queue, source }
                } else {
                    OutboxError::Unavailable { queue, source }
                })
            }
        }
    }
}

/// Whether the service says of the message itself that it is none: that it has a character which no message can have, or
/// that it is longer than the queue allows (a limit of its own, of at most 1 MiB). All else may pass: a missing queue or
/// permission is mended, a throttled one waits.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html#API_SendMessage_Errors>
///
/// The code for what is too long is that for any wrong parameter, so that its words have to be read:
/// <https://github.com/getmoto/moto/issues/450> has them as the service says them.
fn is_refusal(code: Option<&str>, message: Option<&str>) -> bool {
    match code {
        Some("InvalidMessageContents") => true,
        Some("InvalidParameterValue") => {
            message.is_some_and(|message| message.contains("Message must be shorter than"))
        }
        _ => false,
    }
}

/// How long a message can be hidden at most. The service allows 12 hours in all, from when the message was received, and
/// refuses a longer time instead of cutting it: an hour is left for what has passed since.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html>
pub const LONGEST_HIDDEN: Duration = Duration::from_secs(39_600);

/// Hides a received message for this long from now, in whole seconds, rounded up, at most 11 hours.
///
/// # Errors
///
/// [`OutboxError`]: the message appears again when the queue had it in mind anyway.
pub async fn change_visibility(
    client: &Client,
    queue_url: &str,
    receipt_handle: &str,
    hidden: Duration,
) -> Result<(), OutboxError> {
    let changed = client
        .change_message_visibility()
        .queue_url(queue_url)
        .receipt_handle(receipt_handle)
        .visibility_timeout(whole_seconds(hidden))
        .send()
        .await;
    match changed {
        Ok(_) => Ok(()),
        Err(error) => Err(OutboxError::Unavailable {
            queue: queue_url.to_owned(),
            source: error::cause(error),
        }),
    }
}

/// The seconds that the service is told.
fn whole_seconds(hidden: Duration) -> i32 {
    let hidden = hidden.min(LONGEST_HIDDEN);
    let seconds = hidden.as_secs() + u64::from(hidden.subsec_nanos() > 0);
    // at most 39,600
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
