//! What arrived: bytes of any envelope → [`StorageEvent`]s, each bound to the delivery item it came from.
//!
//! The reader's way: [`read`] → `envelope` (unwrap down to the innermost envelope) → `s3` (one record or one EventBridge
//! detail → address, token, details). [`local`] makes the same event of a file on this machine, and [`http_file`]
//! restores a [`Delivery`] that was written to a file.
//!
//! # Which shape is it
//!
//! Fields decide, never the transport, and in this order, at every level anew:
//!
//! 1. a list, bare or under `Records` or `Messages`: each element on its own;
//! 2. an SQS message (`body`/`Body`, `messageId`/`MessageId`): its body, as text of its own;
//! 3. an SNS notification (`Sns`, or `Type` with `TopicArn` or `Message`): its `Message`, as text of its own;
//! 4. EventBridge (`detail-type`);
//! 5. the test event that S3 sends on configuration (`Event` is `s3:TestEvent`);
//! 6. an S3 record (`s3` or `eventName`).
//!
//! Anything else is [`Reading::Unreadable`]: no input gives zero items, so "0 jobs, all well" cannot be said of an
//! event that nobody understood. One unreadable element never takes its batch with it. Texts inside texts are followed
//! [`MAX_DEPTH`] levels deep.
//!
//! # Which source encodes the key
//!
//! The *innermost* envelope does, so that one queue may carry both kinds. The key is decoded exactly once.
//!
//! | innermost envelope | field | encoding | source |
//! |---|---|---|---|
//! | S3 record (direct, in SQS, in SNS) | `s3.object.key` | form: `+` is a space, then `%XX` | Amazon S3 User Guide, "Event message structure" |
//! | the same from MinIO | `s3.object.key` | form, and `/` is `%2F` | MinIO issues 7665, 15200 |
//! | EventBridge | `detail.object.key` | none | Amazon S3 User Guide, "EventBridge event message structure" (its samples) |
//! | a local file | path | none | |
//!
//! # What is strict and what is not
//!
//! Strict: what identity needs (bucket, key, version ID, ETag), the event's name, and the major number of the event's
//! version (Amazon S3 User Guide, "Event message structure": compare the major for equality, the minor for ≥).
//! Lenient: all else, whatever its type. A field that is named twice is refused, since two readers could
//! disagree on which of them counts.
//!
//! # Which token
//!
//! The version ID, else the ETag, else none (the store must be asked). A version ID that is absent, `null`, `""` or
//! `"null"` is no version: every write to a bucket with suspended versioning replaces the same `null` version, so
//! the word does not tell two writes apart.

mod envelope;
mod error;
pub mod http_file;
mod json;
pub mod local;
mod s3;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use error::{ReadError, Unreadable};

use crate::identity::{ObjectAddress, ObjectVersion, Refusal, Scheme, TokenKind, VersionToken};

/// How many texts inside texts are followed: a notification in SNS in SQS is 2.
pub const MAX_DEPTH: usize = 8;

/// How many items one delivery may hold. Ten times the largest batch that SQS hands to a function; the bound is on
/// memory, since a list of empty objects would otherwise grow a hundredfold when it is read.
pub const MAX_ITEMS: usize = 100_000;

/// Reads whatever arrived into its events, in their order there; never none.
#[must_use]
pub fn read(delivery: &Delivery<'_>) -> Vec<Item> {
    envelope::read(delivery)
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
}

/// One thing that a delivery said, and the delivery item that said it.
#[derive(Debug)]
pub struct Item {
    /// Where it came from. Items of one SQS message share one origin, and the message gets one answer for all of them.
    pub origin: Arc<Origin>,
    /// What it is.
    pub reading: Reading,
}

/// The delivery item that something came from: what its source takes an answer for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Position in the delivery's outermost list, from 0; 0 where there is none.
    pub index: usize,
    /// The SQS message's ID, for a batch response. `None` where the source takes one answer for the whole delivery, or
    /// where the ID is missing or empty.
    pub message_id: Option<String>,
    /// The SQS message's receipt handle, for deleting it or changing its visibility.
    pub receipt_handle: Option<String>,
    /// The message group of a FIFO queue: after a failure the rest of the group must wait.
    pub message_group_id: Option<String>,
}

/// What one part of a delivery is.
#[derive(Debug)]
#[non_exhaustive]
pub enum Reading {
    /// A new object or a new version of one.
    Event(Box<StorageEvent>),
    /// Understood, and by its kind no job: acknowledged and counted.
    Ignored(Ignored),
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
}

impl Ignored {
    /// The reason in outputs and counts: `removed`, `metadata`, `test-event`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::Metadata => "metadata",
            Self::TestEvent => "test-event",
        }
    }
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
}

impl StorageEvent {
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
    /// The [`Refusal`] of an ETag that identity cannot use, where the scheme needs it.
    pub fn token_for(&self, scheme: Scheme) -> Result<Option<VersionToken>, Refusal> {
        match scheme {
            Scheme::Ingest => Ok(scheme
                .token(self.token.as_ref(), self.etag_token()?.as_ref())
                .cloned()),
            Scheme::Strict | Scheme::Reference => Ok(self.token.clone()),
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
    /// The provider's name of the event, e.g. `ObjectCreated:Put`.
    pub event_name: Option<String>,
    /// When the provider says that it happened, as written there.
    pub event_time: Option<String>,
    /// The provider's request ID.
    pub request_id: Option<String>,
    /// S3's ordering hint, comparable only within one key.
    pub sequencer: Option<String>,
    /// Size of the object in bytes.
    pub size: Option<u64>,
}
