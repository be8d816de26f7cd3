//! What arrived: bytes of any envelope → [`StorageEvent`]s, each bound to the delivery item it came from.
//!
//! The reader's way: [`read`] → `envelope` (unwrap down to the innermost envelope; `pub_sub`, `functions` and
//! `storage_queue` know the wrappers of their clouds) → `s3`, `gcs` or `azure` (the innermost envelope → address, token,
//! details). `handshake` answers those who ask before they deliver. [`local`] makes the same event of a file on this
//! machine, [`http_file`] restores a [`Delivery`] that was written to a file, and [`own`] writes and reads what this program
//! sends on itself.
//!
//! # Which shape is it
//!
//! Fields and headers decide, never the transport, and in this order:
//!
//! 1. an `OPTIONS` request with `WebHook-Request-Origin`: the handshake of CloudEvents, a [`Reply`];
//! 2. a request whose headers name a Cloud Storage event, in `ce-type` (Eventarc's binary mode) or in `eventType` (an
//!    unwrapped push, whose attributes are headers): the body is the object's resource, or empty.
//!
//! Then the body, and at every level anew:
//!
//! 3. a list, bare or under `Records`, `Messages` or `receivedMessages` (what a pull of Pub/Sub answers): each element on
//!    its own;
//! 4. an SNS notification (`Type` with `TopicArn` or `Message`): its `Message`, as text of its own;
//! 5. EventBridge (`detail-type`);
//! 6. a Storage Queue message (`MessageText`; as `az storage message get` prints it, `content` with `dequeueCount`): its
//!    text, plain or base64, as text of its own; a Pub/Sub message alone (`publishTime`), as in 12;
//! 7. an SQS message (`body`/`Body`, `messageId`/`MessageId`): its body, as text of its own;
//! 8. an SNS notification to a function (`Sns`): its `Message`;
//! 9. Lambda's record of an asynchronous invocation that failed (`requestPayload`): the payload, as text of its own
//!    (AWS Lambda Developer Guide, "Capturing records of asynchronous invocations");
//! 10. the test event that S3 sends on configuration (`Event` is `s3:TestEvent`);
//! 11. an S3 record (`s3` or `eventName`);
//! 12. a wrapped Pub/Sub push, or a message that was pulled (`message`): a Cloud Storage notification by its attributes, else its `data`, as text of
//!     its own;
//! 13. an invocation of an Azure Functions custom handler (`Metadata`): the blob that `Metadata.Uri` names, else each
//!     binding in `Data`, as text of its own or as an HTTP request;
//! 14. CloudEvents (`specversion`): Eventarc's or Event Grid's, by `type`;
//! 15. Event Grid's own schema (`eventType`), and its handshake, a [`Reply`];
//! 16. a message of the blob trigger's own queue (`BlobName`);
//! 17. a Cloud Storage resource without anything around it (`kind` is `storage#object`);
//! 18. this program's own envelope (`firstclaim`): an event that was sent again, see [`own`].
//!
//! Anything else is [`Reading::Unreadable`]: no input gives zero items, so "0 jobs, all well" cannot be said of an
//! event that nobody understood. One unreadable element never takes its batch with it. Texts inside texts are followed
//! [`MAX_DEPTH`] levels deep. A byte order mark before a text is passed over.
//!
//! # Which source encodes the key
//!
//! The *innermost* envelope does, so that one queue may carry all kinds. The key is decoded exactly once.
//!
//! | innermost envelope | field | encoding | source |
//! |---|---|---|---|
//! | S3 record (direct, in SQS, in SNS) | `s3.object.key` | form: `+` is a space, then `%XX` | Amazon S3 User Guide, "Event message structure" |
//! | the same from MinIO, RustFS, CubeFS | `s3.object.key` | form, and `/` is `%2F` | `s3_keys.rs` |
//! | the same from Ceph, Storj, Scality, NooBaa | `s3.object.key` | none | `s3_keys.rs` |
//! | the same from any other `eventSource` | `s3.object.key` | configured ([`S3Keys`]); until then a key with `+` or `%` is unreadable | |
//! | EventBridge | `detail.object.key` | none | Amazon S3 User Guide, "EventBridge event message structure" (its samples) |
//! | Cloud Storage resource | `name` | none | googleapis/google-cloudevents, its examples |
//! | Cloud Storage attributes, no body | `objectId` | none | Cloud Storage documentation, "Pub/Sub notifications" |
//! | the same as a header | `objectId` | none is documented: see below | Pub/Sub documentation, "Payload unwrapping" |
//! | Event Grid | `subject` after `/blobs/` | none, but astral characters may be U+FFFD | Azure-Samples/azure-event-grid-viewer issue 9 |
//! | Event Grid | `data.url`, a cross-check | none or percent: see below | azure-sdk-for-net issue 23634 (`#` unescaped) |
//! | Functions blob trigger | `Metadata.Uri` | percent | Azure/azure-functions-host |
//! | blob trigger's queue | `BlobName` | none | azure-sdk-for-net, `BlobTriggerMessage` |
//! | this program's own | `key` | none, or base64 in `key_base64` | [`own`] |
//! | a local file | path | none | |
//!
//! A name in a *header* is taken only if no encoding could matter: visible ASCII without a `%XX`. Another is unreadable;
//! notifications with a payload (`JSON_API_V1`) name the object in the body.
//!
//! Event Grid's `data.url` must say what `subject` says: its path, or its path decoded once, equals container and name.
//! A URL without a container is one in `$root`. If `subject` holds U+FFFD, the decoded path is the name. If the two disagree, the event has no token, so that the
//! store is asked for the blob that `subject` names (after a rename: the blob that `destinationUrl` names). The host may be
//! `.blob.`, `.dfs.` or an emulator's; no part of it but the account reaches the identity, and the account is rather taken
//! from `topic` or `source`. Under `reference` the key is what Python's `urlparse` leaves of the URL; a URL that it refuses
//! is refused under that scheme alone ([`StorageEvent::refused_by_reference`]).
//!
//! # What is strict and what is not
//!
//! Strict: what identity needs (bucket, key, version ID, ETag, generation), the event's name, and the major number of the
//! event's version (Amazon S3 User Guide, "Event message structure": compare the major for equality, the minor for ≥).
//! Lenient: all else, whatever its type. A field that is named twice is refused, since two readers could
//! disagree on which of them counts.
//!
//! # Which token
//!
//! - S3: the version ID, else the ETag. A version ID that is absent, `null`, `""` or `"null"` is no version: every write
//!   to a bucket with suspended versioning replaces the same `null` version, so the word does not tell two writes apart.
//! - Cloud Storage: the generation, a number or a string of digits, never through a float.
//! - Azure: the ETag. A rename carries none, and the blob trigger's may be an empty object.
//!
//! Where there is none, the store must be asked.
//!
//! # What is created, and what is not yet
//!
//! A Cloud Storage resource without an event type (an unwrapped push without metadata) is the same for a new object, a
//! removed one and a changed one: it is read as created but [`StorageEvent::unconfirmed`]. At Azure, `CreateFile` of 0 bytes,
//! `SftpCreate`, and `PutBlob` of an append or a page blob are [`Reading::Incomplete`]: a file's commit brings an event of its
//! own, and what is appended none. So is `PutBlob` of 0 bytes, but with its ETag: a writer may have opened the blob, or it is
//! whole and has no other event. Zero bytes at S3 and Cloud Storage are an object like any other. The renaming of a
//! directory names no blob, and is ignored.

mod azure;
mod blob_path;
mod cloud_events;
mod encoding;
mod envelope;
mod error;
mod functions;
mod gcs;
mod handshake;
pub mod http_file;
mod json;
pub mod local;
pub mod own;
mod pub_sub;
mod reader;
mod s3;
mod s3_keys;
mod storage_queue;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use error::{ReadError, Unreadable};
pub use handshake::Reply;
pub use own::{Carried, Redriven};
pub use s3_keys::S3Keys;

use crate::identity::{ObjectAddress, ObjectVersion, Refusal, Scheme, TokenKind, VersionToken};

/// How many texts inside texts are followed: a notification in SNS in SQS is 2.
pub const MAX_DEPTH: usize = 8;

/// How many items one delivery may hold. Ten times the largest batch that SQS hands to a function; the bound is on
/// memory, since a list of empty objects would otherwise grow a hundredfold when it is read.
pub const MAX_ITEMS: usize = 100_000;

/// Reads whatever arrived into its events, in their order there; never none.
#[must_use]
pub fn read(delivery: &Delivery<'_>) -> Vec<Item> {
    read_in(delivery, &ReadContext::default())
}

/// [`read`], where the envelope leaves to configuration what it does not say.
#[must_use]
pub fn read_in(delivery: &Delivery<'_>, context: &ReadContext<'_>) -> Vec<Item> {
    envelope::read(delivery, context)
}

/// What is configured, and no envelope says.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadContext<'a> {
    /// The storage account of blobs whose event names none, as a message of the blob trigger's own queue does. Without
    /// it such an event has no account, and `strict` refuses it.
    pub azure_account: Option<&'a str>,
    /// How stores that imitate S3 write keys, where nobody documents it. Without it a key of theirs that could mean two
    /// objects cannot be read.
    pub s3_keys: Option<&'a S3Keys>,
}

/// What a source handed over: an HTTP request, or the payload alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Delivery<'a> {
    /// The request's method, in upper case.
    pub method: Option<&'a str>,
    /// The request's path, with its query.
    pub path: Option<&'a str>,
    /// The request's headers. Their names are compared without regard to case.
    pub headers: &'a [(String, String)],
    /// The payload.
    pub body: &'a [u8],
}

impl<'a> Delivery<'a> {
    /// A payload that came without an HTTP request.
    #[must_use]
    pub const fn from_body(body: &'a [u8]) -> Self {
        Self {
            method: None,
            path: None,
            headers: &[],
            body,
        }
    }

    /// The value of the first header of this name, in whatever case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.headers
            .iter()
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// One thing that a delivery said, and the delivery item that said it.
#[derive(Debug)]
pub struct Item {
    /// What lay around its own envelope, from the outside in.
    pub carriers: Carriers,
    /// Where it came from. Items of one SQS message share one origin, and the message gets one answer for all of them.
    pub origin: Arc<Origin>,
    /// The record that it was sent again from, if that is to be closed.
    pub redriven: Option<Arc<Redriven>>,
    /// What it is.
    pub reading: Reading,
}

impl Item {
    /// The envelopes that it came in, from the inside out: `S3 notification`, `SQS message`.
    #[must_use]
    pub fn envelopes(&self) -> Vec<&'static str> {
        let own = match &self.reading {
            Reading::Event(event) => event.details.envelope,
            _ => None,
        };
        let around = self
            .carriers
            .0
            .iter()
            .rev()
            .flatten()
            .map(|carrier| carrier.as_str());
        own.into_iter().chain(around).collect()
    }
}

/// What carries another envelope as text or data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Carrier {
    /// A message of SQS.
    Sqs,
    /// A notification of SNS.
    Sns,
    /// Lambda's record of an invocation that failed.
    LambdaRecord,
    /// A message of Pub/Sub.
    PubSub,
    /// An event in the CloudEvents form that carries a message.
    CloudEvent,
    /// A call of an Azure Functions custom handler.
    Functions,
    /// A message of Azure Queue Storage.
    StorageQueue,
    /// An event that could not be read, and was sent again by this program.
    Own,
}

impl Carrier {
    /// Its name for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sqs => "SQS message",
            Self::Sns => "SNS notification",
            Self::LambdaRecord => "Lambda failure record",
            Self::PubSub => "Pub/Sub message",
            Self::CloudEvent => "CloudEvents event",
            Self::Functions => "Functions call",
            Self::StorageQueue => "Storage Queue message",
            Self::Own => "firstclaim event",
        }
    }
}

/// The carriers around an envelope, from the outside in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Carriers([Option<Carrier>; MAX_DEPTH]);

impl Carriers {
    /// What lies around all else: the kind of delivery.
    #[must_use]
    pub fn outermost(&self) -> Option<Carrier> {
        self.0[0]
    }

    /// These, and one more inside them. What lies deeper than is ever read is not told.
    pub(crate) fn and(mut self, carrier: Carrier) -> Self {
        if let Some(free) = self.0.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(carrier);
        }
        self
    }
}

/// The delivery item that something came from: what its source takes an answer for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Position in the delivery's outermost list, from 0; 0 where there is none.
    pub index: usize,
    /// The ID of the SQS or Storage Queue message, for a batch response. `None` where the source takes one answer for the
    /// whole delivery, or where the ID is missing or empty.
    pub message_id: Option<String>,
    /// The message's receipt handle (SQS) or pop receipt (Storage Queue), for deleting it or changing its visibility.
    pub receipt_handle: Option<String>,
    /// The message group of a FIFO queue: after a failure the rest of the group must wait.
    pub message_group_id: Option<String>,
    /// The ARN of the SQS queue that the message came from, where a function was given it.
    pub queue_arn: Option<String>,
}

/// What one part of a delivery is.
#[derive(Debug)]
#[non_exhaustive]
pub enum Reading {
    /// A new object or a new version of one.
    Event(Box<StorageEvent>),
    /// Understood, and by its kind no job: acknowledged and counted.
    Ignored(Ignored),
    /// An object that is being made and not whole yet ([`Ignored::Incomplete`]): the event of its commit is the job. It
    /// is recorded as waiting, for that event may never come. One with a token holds 0 bytes and may be whole: if it is still
    /// that version when a sweep looks, it is the job.
    Incomplete(Box<StorageEvent>),
    /// A handshake: the source wants this answer, and nothing else.
    Reply(Reply),
    /// Not understood, or refused: recorded, then acknowledged.
    Unreadable(Unreadable),
}

/// Why something that was understood is no job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Ignored {
    /// An object was removed.
    Removed,
    /// Something other than an object's bytes changed, or they were only read.
    Metadata,
    /// What a source sends to try a new configuration.
    TestEvent,
    /// A source asked whether it may deliver; see [`Reading::Reply`].
    Handshake,
    /// A file was created and is still being written: its close has an event of its own.
    Incomplete,
}

impl Ignored {
    /// The reason in outputs and counts: `removed`, `metadata`, `test-event`, `handshake`, `incomplete`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::Metadata => "metadata",
            Self::TestEvent => "test-event",
            Self::Handshake => "handshake",
            Self::Incomplete => "incomplete",
        }
    }
}

/// What an event's name says of the object's bytes.
enum Change {
    /// They are new.
    NewObject,
    /// They are not.
    None(Ignored),
}

/// One write of one object, as an envelope told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageEvent {
    /// Which object was written.
    pub address: ObjectAddress,
    /// Which version, by the best token there is; `None` if the envelope carries none, so that the store must be asked
    /// once (HEAD).
    pub token: Option<VersionToken>,
    /// The ETag as the envelope wrote it, also where [`StorageEvent::token`] is a better one; never empty.
    pub etag: Option<String>,
    /// What people want to see. Identity functions never take it.
    pub details: EventDetails,
    /// Whether the envelope leaves open that the object was removed or only its metadata changed. Before anything is
    /// claimed the store must be asked for this very version; if it is gone, the event is [`Ignored::Removed`].
    pub unconfirmed: bool,
    /// Why `reference` cannot take this event, although it can be read: Python refuses its URL.
    pub refused_by_reference: Option<Refusal>,
}

impl StorageEvent {
    /// The event of a written object of which no more is known than where it lies and, perhaps, its version.
    #[must_use]
    pub fn of(address: ObjectAddress, token: Option<VersionToken>) -> Self {
        let etag = token
            .as_ref()
            .filter(|token| token.kind() == TokenKind::ETag);
        Self {
            etag: etag.map(|token| token.value().to_owned()),
            address,
            token,
            details: EventDetails::default(),
            unconfirmed: false,
            refused_by_reference: None,
        }
    }

    /// The longest name and version, in bytes, that are taken: a key has 1,024 characters at most, each up to four bytes, or
    /// twelve where they are escaped; the rest is ample.
    pub const MAX_BYTES: usize = 24 * 1024;

    /// Its name and version as something that cannot be taken, if they are too long for any object.
    #[must_use]
    pub fn too_long(&self) -> Option<Unreadable> {
        let ObjectAddress {
            account,
            container,
            key,
            ..
        } = &self.address;
        let of = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let token = self.token.as_ref().map_or(0, |token| token.value().len());
        let got = of(account)
            + container.len()
            + key.raw().len()
            + key.exact_bytes().len()
            + of(&self.etag)
            + token;
        (got > Self::MAX_BYTES).then(|| Unreadable {
            error: ReadError::TooLong {
                got,
                limit: Self::MAX_BYTES,
            },
            bytes: self.as_own_envelope().into_bytes(),
        })
    }

    /// All that it says, as an event that [`read`] takes.
    fn as_own_envelope(&self) -> String {
        let sent = own::Sent::Event {
            event: self,
            incomplete: false,
        };
        own::write(&sent, None, 0)
    }

    /// The object at the version of the best token; `None` if the store must be asked for one.
    #[must_use]
    pub fn object_version(&self) -> Option<ObjectVersion> {
        self.token.clone().map(|token| ObjectVersion {
            address: self.address.clone(),
            token,
        })
    }

    /// The token that this scheme hashes; `None` if the store must be asked for it.
    ///
    /// # Errors
    ///
    /// The [`Refusal`] of an ETag that identity cannot use, or of a URL that `reference` cannot, where the scheme needs
    /// them.
    pub fn token_for(&self, scheme: Scheme) -> Result<Option<VersionToken>, Refusal> {
        match scheme {
            Scheme::Ingest => Ok(scheme
                .token(self.token.as_ref(), self.etag_token()?.as_ref())
                .cloned()),
            Scheme::Reference => match &self.refused_by_reference {
                Some(refusal) => Err(refusal.clone()),
                None => Ok(self.token.clone()),
            },
            Scheme::Strict => Ok(self.token.clone()),
        }
    }

    /// The ETag as a token, for the scheme that takes no other (`ingest`); `None` if the store must be asked for it.
    ///
    /// # Errors
    ///
    /// The [`Refusal`] of an ETag that identity cannot use. Where a version ID is the token, such an ETag is nobody
    /// else's concern, which is why it is judged only here.
    pub fn etag_token(&self) -> Result<Option<VersionToken>, Refusal> {
        self.etag
            .as_deref()
            .map(|etag| VersionToken::new(TokenKind::ETag, etag))
            .transpose()
    }
}

/// What an envelope says beside identity. It differs between two deliveries of one event, so nothing here may reach a
/// job ID.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventDetails {
    /// The envelope that told it, for people, e.g. `S3 notification`.
    pub envelope: Option<&'static str>,
    /// The provider's name of the event, e.g. `ObjectCreated:Put` or `OBJECT_FINALIZE`.
    pub event_name: Option<String>,
    /// When the provider says that it happened, as written there.
    pub event_time: Option<String>,
    /// The provider's request ID.
    pub request_id: Option<String>,
    /// S3's or Azure's ordering hint, comparable only within one key.
    pub sequencer: Option<String>,
    /// Size of the object in bytes.
    pub size: Option<u64>,
}
