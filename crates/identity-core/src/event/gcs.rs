//! The innermost envelope of Cloud Storage: an object's resource, and what stood around it: attributes or a CloudEvent's
//! type.
//!
//! Sources: Cloud Storage documentation, "Pub/Sub notifications for Cloud Storage"; Pub/Sub documentation, "Payload
//! unwrapping for Pub/Sub messages"; Eventarc documentation, "Cloud Storage direct events"; googleapis/google-cloudevents
//! (`StorageObjectData`, whose 64-bit integers are strings in most samples and numbers in some).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{
    Change, Delivery, EventDetails, Ignored, ReadError, Reading, StorageEvent,
    error::excerpt,
    json::{self, Raw, Text},
};
use crate::identity::{ObjectAddress, ObjectKey, Provider, TokenKind, VersionToken};

/// What the `kind` of a resource says.
pub(super) const RESOURCE_KIND: &str = "storage#object";

/// How the types of Eventarc's Cloud Storage events begin.
pub(super) const CLOUD_EVENT_PREFIX: &str = "google.cloud.storage.";

/// How the types of Cloud Storage's own notifications begin. Other messages may have an attribute of that name, too.
const NOTIFICATION_PREFIX: &str = "OBJECT_";

/// An object's resource, as the JSON API has it.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Resource<'a> {
    #[serde(borrow)]
    bucket: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    generation: Raw<'a>,
    #[serde(borrow)]
    size: Raw<'a>,
    #[serde(borrow)]
    updated: Raw<'a>,
}

/// What is told beside the resource, or in place of it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Notice<'t> {
    /// The type of the event, in either vocabulary.
    pub(super) event_type: &'t str,
    /// When it happened.
    pub(super) event_time: Option<&'t str>,
    /// The object, for a notification without a payload.
    pub(super) bucket: Option<&'t str>,
    /// Likewise.
    pub(super) object: Option<&'t str>,
    /// Likewise.
    pub(super) generation: Option<&'t str>,
}

impl<'t> Notice<'t> {
    /// What the headers of a request tell: Eventarc's in binary mode, or the attributes of an unwrapped push. `None` if
    /// they name no event of Cloud Storage.
    pub(super) fn of_headers(delivery: &Delivery<'t>) -> Option<Self> {
        if let Some(event_type) = delivery
            .header("ce-type")
            .filter(|name| name.starts_with(CLOUD_EVENT_PREFIX))
        {
            return Some(Self {
                event_type,
                event_time: delivery.header("ce-time"),
                ..Self::default()
            });
        }
        let event_type = delivery.header("eventType");
        Some(Self {
            event_type: event_type.filter(|name| is_notification(name))?,
            event_time: delivery.header("eventTime"),
            bucket: delivery.header("bucketId"),
            object: delivery.header("objectId"),
            generation: delivery.header("objectGeneration"),
        })
    }

    /// Reads the event of a notification without a payload, whose object the notice itself names.
    pub(super) fn without_resource(&self) -> Result<Reading, ReadError> {
        if let Change::None(reason) = change(self.event_type)? {
            return Ok(Reading::Ignored(reason));
        }
        let bucket = needed(self.bucket, "bucketId")?;
        let name = needed(self.object, "objectId")?;
        let generation = self
            .generation
            .map(|text| whole_number(text, "objectGeneration"))
            .transpose()?;
        event(bucket, name, generation, false, self.details())
    }

    /// The same, of a notice in headers.
    pub(super) fn without_body(&self) -> Result<Reading, ReadError> {
        match self.object {
            Some(name) if may_be_encoded(name) => Err(ReadError::UnusableHeader {
                name: "objectId",
                got: excerpt(name),
                expected: "visible ASCII without a percent sign, or a payload that names the object",
            }),
            _ => self.without_resource(),
        }
    }

    /// A request with these headers and this body, as a file of its own: read again, it means the same.
    pub(super) fn as_request(&self, body: &str) -> String {
        let type_name = if is_notification(self.event_type) {
            "eventType"
        } else {
            "ce-type"
        };
        let headers: BTreeMap<&str, &str> = [
            (type_name, Some(self.event_type)),
            ("bucketId", self.bucket),
            ("objectId", self.object),
            ("objectGeneration", self.generation),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
        serde_json::json!({"method": "POST", "headers": headers, "body": body}).to_string()
    }

    fn details(&self) -> EventDetails {
        EventDetails {
            envelope: Some("Cloud Storage notification"),
            event_name: Some(self.event_type.to_owned()),
            event_time: self.event_time.map(str::to_owned),
            ..EventDetails::default()
        }
    }
}

/// Whether this is the type of a notification of Cloud Storage.
pub(super) fn is_notification(event_type: &str) -> bool {
    event_type.starts_with(NOTIFICATION_PREFIX)
}

/// Reads the event of a resource. Without a notice nothing tells whether the object is new, so it is unconfirmed.
pub(super) fn resource(text: &str, notice: Option<&Notice<'_>>) -> Result<Reading, ReadError> {
    if let Some(notice) = notice
        && let Change::None(reason) = change(notice.event_type)?
    {
        return Ok(Reading::Ignored(reason));
    }
    let resource: Resource<'_> = json::object(text, "the resource")?;
    let details = notice.map(Notice::details).unwrap_or_default();
    let details = EventDetails {
        event_time: details.event_time.or_else(|| json::shown(resource.updated)),
        size: json::integer(resource.size),
        envelope: Some("Cloud Storage resource"),
        ..details
    };
    event(
        resource.bucket.required("bucket")?,
        resource.name.required("name")?,
        generation(resource.generation)?,
        notice.is_none(),
        details,
    )
}

fn event(
    bucket: &str,
    name: &str,
    generation: Option<u64>,
    unconfirmed: bool,
    details: EventDetails,
) -> Result<Reading, ReadError> {
    // No object has generation 0: it would be one token for all of them.
    let token = generation
        .filter(|generation| *generation != 0)
        .map(|generation| VersionToken::new(TokenKind::Generation, generation.to_string()))
        .transpose()?;
    Ok(Reading::Event(Box::new(StorageEvent {
        address: ObjectAddress {
            provider: Provider::Gcs,
            account: None,
            container: bucket.to_owned(),
            key: ObjectKey::verbatim(name),
        },
        token,
        // An object's ETag changes with its metadata, too.
        etag: None,
        details,
        unconfirmed,
        refused_by_reference: None,
    })))
}

fn change(event_type: &str) -> Result<Change, ReadError> {
    Ok(match event_type {
        "OBJECT_FINALIZE" | "google.cloud.storage.object.v1.finalized" => Change::NewObject,
        "OBJECT_DELETE"
        | "OBJECT_ARCHIVE"
        | "google.cloud.storage.object.v1.deleted"
        | "google.cloud.storage.object.v1.archived" => Change::None(Ignored::Removed),
        "OBJECT_METADATA_UPDATE" | "google.cloud.storage.object.v1.metadataUpdated" => {
            Change::None(Ignored::Metadata)
        }
        _ => {
            return Err(ReadError::UnknownEventName {
                field: "the event type",
                got: excerpt(event_type),
            });
        }
    })
}

/// A generation as it stands in a resource; `None` if it is absent.
fn generation(raw: Raw<'_>) -> Result<Option<u64>, ReadError> {
    const FIELD: &str = "generation";
    let Some(raw) = raw else { return Ok(None) };
    match json::kind(raw.get()) {
        json::STRING => whole_number(&json::string(raw.get()).unwrap_or_default(), FIELD).map(Some),
        json::NUMBER => whole_number(raw.get(), FIELD).map(Some),
        got => Err(ReadError::WrongType {
            field: FIELD,
            expected: "a whole number",
            got,
        }),
    }
}

/// Digits, and nothing but digits: a float would round a generation without a word.
fn whole_number(text: &str, field: &'static str) -> Result<u64, ReadError> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if digits => Ok(number),
        _ => Err(ReadError::NotAWholeNumber {
            field,
            got: excerpt(text),
        }),
    }
}

fn needed<'t>(text: Option<&'t str>, field: &'static str) -> Result<&'t str, ReadError> {
    match text {
        None => Err(ReadError::MissingField { field }),
        Some("") => Err(ReadError::EmptyField { field }),
        Some(text) => Ok(text),
    }
}

/// Whether a name in a header could stand there in some encoding.
fn may_be_encoded(name: &str) -> bool {
    let escape = |window: &[u8]| {
        window[0] == b'%' && window[1].is_ascii_hexdigit() && window[2].is_ascii_hexdigit()
    };
    name.bytes().any(|byte| !(b' '..=b'~').contains(&byte))
        || name.as_bytes().windows(3).any(escape)
}
