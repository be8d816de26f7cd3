//! Where messages are sent to: a queue or a topic of one of the clouds, read from its text once.

use std::fmt;

/// A queue or a topic. [`fmt::Display`] writes what [`Destination::parse`] reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Destination {
    /// A queue of SQS, or of an emulator of it: its URL, whose last part is its name.
    Sqs {
        /// E.g. `https://sqs.eu-central-1.amazonaws.com/123456789012/jobs.fifo`.
        url: String,
    },
    /// A topic of Pub/Sub, `pubsub://PROJECT/TOPIC`.
    PubSub {
        /// The ID of the project.
        project: String,
        /// The topic's ID.
        topic: String,
    },
    /// A queue of Azure Queue Storage, `azqueue://ACCOUNT/QUEUE`.
    AzureQueue {
        /// The storage account's name.
        account: String,
        /// The queue's name.
        queue: String,
    },
}

/// A text that is no destination.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a destination should be {expected}, got {got:?}")]
pub struct DestinationError {
    /// What it should be, by the kind that it seems to be.
    pub expected: &'static str,
    /// What it is.
    pub got: String,
}

const ANY: &str =
    "the URL of an SQS queue (https://…), pubsub://PROJECT/TOPIC or azqueue://ACCOUNT/QUEUE";
const SQS: &str =
    "the URL of an SQS queue, e.g. https://sqs.eu-central-1.amazonaws.com/123456789012/jobs";
const PUB_SUB: &str = "pubsub://PROJECT/TOPIC, the IDs of a project and of a topic";
const AZURE_QUEUE: &str =
    "azqueue://ACCOUNT/QUEUE, the names of a storage account and of a queue in lower case";

impl Destination {
    /// Reads a destination. Whether it is there is not asked.
    ///
    /// # Errors
    ///
    /// [`DestinationError`].
    pub fn parse(text: &str) -> Result<Self, DestinationError> {
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        let (parsed, expected) = match scheme {
            "https" | "http" => (sqs(text, rest), SQS),
            "pubsub" => (pub_sub(rest), PUB_SUB),
            "azqueue" => (azure_queue(rest), AZURE_QUEUE),
            _ => (None, ANY),
        };
        parsed.ok_or_else(|| DestinationError {
            expected,
            got: text.to_owned(),
        })
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqs { url } => f.write_str(url),
            Self::PubSub { project, topic } => write!(f, "pubsub://{project}/{topic}"),
            Self::AzureQueue { account, queue } => write!(f, "azqueue://{account}/{queue}"),
        }
    }
}

/// A host, and a path of at least two parts, as Amazon and every emulator have it: account (or region and account) and name.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-queue-message-identifiers.html>
fn sqs(url: &str, rest: &str) -> Option<Destination> {
    let (host, path) = rest.split_once('/')?;
    // Whoever is named before an `@` would be sent nothing, and one who reads hastily would think so.
    let host_is_one = !host.is_empty() && host.bytes().all(|byte| of_host(byte) || byte == b':');
    let (around, name) = path.rsplit_once('/')?;
    let stem = name.strip_suffix(".fifo").unwrap_or(name);
    let is_queue = around.split('/').all(named)
        && named(stem)
        && name.len() <= 80
        && stem.bytes().all(|byte| byte != b'.');
    (host_is_one && is_queue).then(|| Destination::Sqs {
        url: url.to_owned(),
    })
}

/// <https://cloud.google.com/resource-manager/docs/creating-managing-projects>,
/// <https://cloud.google.com/pubsub/docs/pubsub-basics#resource_names>. Emulators take shorter projects.
fn pub_sub(rest: &str) -> Option<Destination> {
    let (project, topic) = rest.split_once('/')?;
    // Projects of an organisation's own domain are `example.com:name`.
    let is_project = project.starts_with(|first: char| first.is_ascii_lowercase())
        && project
            .bytes()
            .all(|byte| lower(byte) || matches!(byte, b'-' | b'.' | b':'));
    let is_topic = (3..=255).contains(&topic.len())
        && topic.starts_with(|first: char| first.is_ascii_alphabetic())
        && !topic.starts_with("goog")
        && topic
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~+%".contains(&byte));
    (is_project && is_topic).then(|| Destination::PubSub {
        project: project.to_owned(),
        topic: topic.to_owned(),
    })
}

/// <https://learn.microsoft.com/azure/storage/common/storage-account-overview#storage-account-name>,
/// <https://learn.microsoft.com/rest/api/storageservices/naming-queues-and-metadata>.
fn azure_queue(rest: &str) -> Option<Destination> {
    let (account, queue) = rest.split_once('/')?;
    let is_account = (3..=24).contains(&account.len()) && account.bytes().all(lower);
    let is_queue = (3..=63).contains(&queue.len())
        && queue
            .split('-')
            .all(|part| !part.is_empty() && part.bytes().all(lower));
    (is_account && is_queue).then(|| Destination::AzureQueue {
        account: account.to_owned(),
        queue: queue.to_owned(),
    })
}

fn lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'[' | b']')
}

fn named(part: &str) -> bool {
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !part.is_empty() && part.bytes().all(of_name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_kind_is_told_by_its_scheme() {
        let sqs = "https://sqs.eu-central-1.amazonaws.com/123456789012/jobs.fifo";
        let pub_sub = "pubsub://geo-prod/jobs";
        let azure = "azqueue://devstoreaccount1/jobs-1";
        assert_eq!(
            Destination::parse(sqs),
            Ok(Destination::Sqs { url: sqs.into() })
        );
        assert_eq!(
            Destination::parse(pub_sub),
            Ok(Destination::PubSub {
                project: "geo-prod".into(),
                topic: "jobs".into()
            })
        );
        assert_eq!(
            Destination::parse(azure),
            Ok(Destination::AzureQueue {
                account: "devstoreaccount1".into(),
                queue: "jobs-1".into()
            })
        );
    }

    #[test]
    fn queues_of_emulators_are_queues() {
        for url in [
            "http://127.0.0.1:5000/123456789012/queue",
            "http://[::1]:5000/123456789012/queue",
            "http://localhost:9324/queue/jobs",
            "http://localhost:4566/queue/eu-central-1/000000000000/jobs_1",
            "http://sqs.eu-central-1.localhost.localstack.cloud:4566/000000000000/jobs",
        ] {
            assert!(Destination::parse(url).is_ok(), "{url}");
        }
    }

    #[test]
    fn what_is_no_destination_is_refused_with_what_it_should_be() {
        for (text, expected) in [
            ("", ANY),
            ("jobs", ANY),
            ("arn:aws:sqs:eu-central-1:123456789012:jobs", ANY),
            ("sqs://jobs", ANY),
            ("HTTPS://sqs.eu-central-1.amazonaws.com/1/jobs", ANY),
            ("https://queue", SQS),
            ("https://sqs.eu-central-1.amazonaws.com/jobs", SQS),
            ("https://sqs.eu-central-1.amazonaws.com/1/", SQS),
            ("https://sqs.eu-central-1.amazonaws.com//jobs", SQS),
            ("https:///1/jobs", SQS),
            ("https://me:secret@host/1/jobs", SQS),
            ("https://host/1/jobs?Action=SendMessage", SQS),
            ("https://host/1/jobs#x", SQS),
            ("https://host/1/a b", SQS),
            ("https://host/1/jobs.txt", SQS),
            ("pubsub://", PUB_SUB),
            ("pubsub://geo", PUB_SUB),
            ("pubsub://geo/", PUB_SUB),
            ("pubsub:///jobs", PUB_SUB),
            ("pubsub://geo/jobs/more", PUB_SUB),
            ("pubsub://Geo/jobs", PUB_SUB),
            ("pubsub://geo/google-jobs", PUB_SUB),
            ("pubsub://geo/1jobs", PUB_SUB),
            ("azqueue://acct", AZURE_QUEUE),
            ("azqueue://acct/", AZURE_QUEUE),
            ("azqueue://acct/Jobs", AZURE_QUEUE),
            ("azqueue://acct/a--b", AZURE_QUEUE),
            ("azqueue://acct/-jobs", AZURE_QUEUE),
            ("azqueue://ACCT/jobs", AZURE_QUEUE),
            ("azqueue://acct/jobs/1", AZURE_QUEUE),
        ] {
            let got = text.to_owned();
            assert_eq!(
                Destination::parse(text),
                Err(DestinationError { expected, got })
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_read_is_written_alike(
            text in "(https?://|pubsub://|azqueue://)?[a-zA-Z0-9:/.@_é-]{0,40}"
        ) {
            if let Ok(destination) = Destination::parse(&text) {
                prop_assert_eq!(destination.to_string(), text);
            }
        }
    }
}
