//! The two innermost envelopes of S3, a notification record and an EventBridge event, and what their fields mean.
//!
//! Sources: Amazon S3 User Guide, "Event message structure", "Supported event types" and "EventBridge event message
//! structure"; MinIO documentation, "Bucket Notifications"; Ceph documentation, "S3 Bucket Notifications Compatibility".
//! How each store writes keys is in `s3_keys.rs`.

use serde::Deserialize;

use super::{
    Change, EventDetails, Ignored, ReadError, Reading, StorageEvent,
    error::excerpt,
    json::{self, Json, Raw, Text},
    s3_keys::{KeyEncoding, S3Keys},
};
use crate::identity::{ObjectAddress, ObjectKey, Provider, VersionToken, decode::form_decode};

/// What a notification record says.
pub(super) struct Notification<'r, 'a> {
    pub(super) event_version: Raw<'a>,
    pub(super) event_source: &'r Text<'a>,
    pub(super) event_name: &'r Text<'a>,
    pub(super) event_time: Raw<'a>,
    pub(super) response_elements: Raw<'a>,
    pub(super) s3: &'r Json<Box<Entity<'a>>>,
}

/// What an EventBridge event says.
pub(super) struct Bridged<'r, 'a> {
    pub(super) detail_type: &'r Text<'a>,
    pub(super) source: &'r Text<'a>,
    pub(super) time: Raw<'a>,
    pub(super) detail: &'r Json<Box<Detail<'a>>>,
}

/// `s3` of a record.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Entity<'a> {
    #[serde(borrow)]
    bucket: Json<Bucket<'a>>,
    #[serde(borrow)]
    object: Json<Object<'a>>,
}

/// `responseElements` of a record.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ResponseElements<'a> {
    #[serde(borrow, rename = "x-amz-request-id")]
    request_id: Raw<'a>,
}

/// `detail` of an EventBridge event.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Detail<'a> {
    #[serde(borrow, rename = "event-version")]
    event_version: Raw<'a>,
    #[serde(borrow, rename = "request-id")]
    request_id: Raw<'a>,
    #[serde(borrow)]
    bucket: Json<Bucket<'a>>,
    #[serde(borrow)]
    object: Json<Object<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Bucket<'a> {
    #[serde(borrow)]
    name: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Object<'a> {
    #[serde(borrow)]
    key: Text<'a>,
    #[serde(borrow)]
    size: Raw<'a>,
    /// S3's spelling in records.
    #[serde(borrow, rename = "eTag")]
    etag: Text<'a>,
    /// S3's spelling in EventBridge. Stores that imitate S3 use either spelling in either place.
    #[serde(borrow, rename = "etag")]
    lower_case_etag: Text<'a>,
    #[serde(borrow, rename = "versionId")]
    version_id: Text<'a>,
    #[serde(borrow, rename = "version-id")]
    hyphenated_version_id: Text<'a>,
    #[serde(borrow)]
    sequencer: Raw<'a>,
}

/// The paths of the two envelopes' fields, for messages.
struct Layout {
    bucket: &'static str,
    bucket_name: &'static str,
    object: &'static str,
    key: &'static str,
    etag: &'static str,
    version_id: &'static str,
}

const RECORD: Layout = Layout {
    bucket: "s3.bucket",
    bucket_name: "s3.bucket.name",
    object: "s3.object",
    key: "s3.object.key",
    etag: "s3.object.eTag",
    version_id: "s3.object.versionId",
};

const EVENT_BRIDGE: Layout = Layout {
    bucket: "detail.bucket",
    bucket_name: "detail.bucket.name",
    object: "detail.object",
    key: "detail.object.key",
    etag: "detail.object.etag",
    version_id: "detail.object.version-id",
};

/// Reads a notification record. `keys` is what is configured of the stores that write them.
pub(super) fn record(record: &Notification<'_, '_>, keys: &S3Keys) -> Result<Reading, ReadError> {
    let source = record.event_source.optional("eventSource")?;
    match source {
        // Its versions are its own, and the fields are the same (scality/backbeat, `extensions/notification/constants.js`).
        Some("scality:s3") => {
            json::check_major(record.event_version, "1", "eventVersion", "1.x")?;
        }
        _ => json::check_major(record.event_version, "2", "eventVersion", "2.x")?,
    }
    let name = record.event_name.required("eventName")?;
    match change_of_record(name) {
        None => Err(ReadError::UnknownEventName {
            field: "eventName",
            got: excerpt(name),
        }),
        Some(Change::None(reason)) => Ok(Reading::Ignored(reason)),
        Some(Change::NewObject) => {
            let entity = record.s3.object("s3")?;
            let details = EventDetails {
                event_name: Some(name.to_string()),
                envelope: Some("S3 notification"),
                event_time: json::shown(record.event_time),
                request_id: request_id(record.response_elements),
                ..EventDetails::default()
            };
            let object = entity.object.object(RECORD.object)?;
            // Who wrote the record decides how the key is written, not the shape, which all stores imitate.
            let keys = |key: &str| keys.of(source, key);
            event(
                &RECORD,
                keys,
                &entity.bucket,
                object,
                &object.version_id,
                details,
            )
        }
    }
}

/// The request ID in `responseElements`. S3 writes it first, and then the rest need not be parsed: that would take longer
/// than all other details together.
fn request_id(elements: Raw<'_>) -> Option<String> {
    json::first_text(elements, "\"x-amz-request-id\"").or_else(|| {
        let elements: Option<ResponseElements<'_>> = json::unneeded(elements);
        elements.and_then(|elements| json::shown(elements.request_id))
    })
}

/// Reads an EventBridge event.
pub(super) fn event_bridge(envelope: &Bridged<'_, '_>) -> Result<Reading, ReadError> {
    let source = envelope.source.required("source")?;
    if source != "aws.s3" {
        let got = excerpt(source);
        return Err(ReadError::UnknownSource { got });
    }
    let detail = envelope.detail.object("detail")?;
    json::check_major(detail.event_version, "1", "detail.event-version", "1.x")?;
    let name = envelope.detail_type.required("detail-type")?;
    match change_of_detail_type(name) {
        None => Err(ReadError::UnknownEventName {
            field: "detail-type",
            got: excerpt(name),
        }),
        Some(Change::None(reason)) => Ok(Reading::Ignored(reason)),
        Some(Change::NewObject) => {
            let details = EventDetails {
                event_name: Some(name.to_string()),
                envelope: Some("EventBridge event"),
                event_time: json::shown(envelope.time),
                request_id: json::shown(detail.request_id),
                ..EventDetails::default()
            };
            let object = detail.object.object(EVENT_BRIDGE.object)?;
            let version_id = &object.hyphenated_version_id;
            let keys = |_: &str| Ok(KeyEncoding::Verbatim);
            event(
                &EVENT_BRIDGE,
                keys,
                &detail.bucket,
                object,
                version_id,
                details,
            )
        }
    }
}

fn event(
    layout: &Layout,
    keys: impl Fn(&str) -> Result<KeyEncoding, ReadError>,
    bucket: &Json<Bucket<'_>>,
    object: &Object<'_>,
    version_id: &Text<'_>,
    details: EventDetails,
) -> Result<Reading, ReadError> {
    let bucket = bucket.object(layout.bucket)?;
    let container = bucket.name.required(layout.bucket_name)?.to_string();
    let key = object.key.required(layout.key)?;
    let key = match keys(key)? {
        KeyEncoding::Form => {
            let exact = form_decode(key);
            ObjectKey::decoded(&**key, exact)
        }
        KeyEncoding::Verbatim => ObjectKey::verbatim(&**key),
    };

    let etag = match object.etag.optional(layout.etag)? {
        None => object.lower_case_etag.optional(layout.etag)?,
        etag => etag,
    };
    let etag = etag.filter(|etag| !etag.is_empty());
    let version_id = version_id.optional(layout.version_id)?;

    Ok(Reading::Event(Box::new(StorageEvent {
        address: ObjectAddress {
            provider: Provider::S3,
            account: None,
            container,
            key,
        },
        token: VersionToken::for_s3(version_id, etag)?,
        etag: etag.map(str::to_owned),
        details: EventDetails {
            sequencer: json::shown(object.sequencer),
            size: json::integer(object.size),
            ..details
        },
        unconfirmed: false,
        refused_by_reference: None,
    })))
}

/// By the name of a record, with or without the `s3:` that stands before it in configurations and at some stores;
/// `None` if nobody documents it.
fn change_of_record(name: &str) -> Option<Change> {
    let name = name.strip_prefix("s3:").unwrap_or(name);
    let (family, kind) = name.split_once(':').unwrap_or((name, ""));
    Some(match (family, kind) {
        // MinIO files what happens to an object's tags, retention and legal hold under its creation.
        ("ObjectCreated", "PutTagging" | "DeleteTagging" | "PutRetention" | "PutLegalHold") => {
            Change::None(Ignored::Metadata)
        }
        ("ObjectCreated", kind) if !kind.is_empty() => Change::NewObject,
        // Ceph: an object that arrived from another zone, by its two names. There is no other event of it in this zone.
        ("ObjectSynced" | "Replication", "Create") => Change::NewObject,
        ("ObjectSynced" | "Replication", "Delete" | "DeletionMarkerCreated") => {
            Change::None(Ignored::Removed)
        }
        ("ObjectRemoved" | "LifecycleExpiration" | "BucketRemoved", _)
        // MinIO, by the names that its documentation and its program give to one event.
        | ("LifecycleDelMarkerExpiration", "Delete")
        | ("ILM", "DelMarkerExpirationDelete") => Change::None(Ignored::Removed),
        // Ceph: `ObjectLifecycle:Expiration:Current` and its like.
        ("ObjectLifecycle", kind) if kind.starts_with("Expiration") => {
            Change::None(Ignored::Removed)
        }
        ("ObjectLifecycle", kind) if kind.starts_with("Transition") => {
            Change::None(Ignored::Metadata)
        }
        ("Replication", kind) if kind.starts_with("Operation") => Change::None(Ignored::Metadata),
        (
            "ObjectTagging"
            | "ObjectAcl"
            | "ObjectAnnotation"
            | "ObjectRestore"
            | "ObjectRetention"
            | "ObjectAccessed"
            | "LifecycleTransition"
            | "IntelligentTiering"
            | "ReducedRedundancyLostObject"
            // MinIO: what was moved to another tier, what its scanner noticed, and buckets.
            | "ObjectTransition"
            | "Scanner"
            | "BucketCreated",
            _,
        ) => Change::None(Ignored::Metadata),
        ("TestEvent", "") => Change::None(Ignored::TestEvent),
        _ => return None,
    })
}

/// By EventBridge's `detail-type`.
fn change_of_detail_type(name: &str) -> Option<Change> {
    Some(match name {
        "Object Created" => Change::NewObject,
        "Object Deleted" => Change::None(Ignored::Removed),
        "Object Restore Initiated"
        | "Object Restore Completed"
        | "Object Restore Expired"
        | "Object Storage Class Changed"
        | "Object Access Tier Changed"
        | "Object ACL Updated"
        | "Object Tags Added"
        | "Object Tags Deleted" => Change::None(Ignored::Metadata),
        _ => return None,
    })
}
