//! The innermost envelope of Azure Blob Storage: what Event Grid tells, in either schema, and the messages of the blob
//! trigger's own queue.
//!
//! Sources: Azure documentation, "Azure Blob Storage as an Event Grid source", "Event Grid event schema", "Webhook event
//! delivery", "Put Blob"; azure-sdk-for-net, `BlobTriggerMessage`.

use serde::Deserialize;

use super::{
    Change, EventDetails, Ignored, ReadError, Reading, StorageEvent,
    blob_path::{self, Blob, BlobUrl},
    error::excerpt,
    handshake,
    json::{self, Json, Raw, Text},
};
use crate::identity::{ObjectAddress, ObjectKey, Provider, TokenKind, VersionToken};

/// How the types of Event Grid's own and of Azure's events begin.
pub(super) const TYPE_PREFIX: &str = "Microsoft.";

/// An event in Event Grid's own schema. A dead-letter record is one with a few fields more.
#[derive(Deserialize, Default)]
#[serde(default)]
struct GridEvent<'a> {
    #[serde(borrow)]
    topic: Text<'a>,
    #[serde(borrow)]
    subject: Text<'a>,
    #[serde(borrow, rename = "eventType")]
    event_type: Text<'a>,
    #[serde(borrow, rename = "eventTime")]
    event_time: Raw<'a>,
    #[serde(borrow)]
    data: Json<Data<'a>>,
}

/// `data`, in both schemas.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Data<'a> {
    #[serde(borrow)]
    api: Raw<'a>,
    #[serde(borrow, rename = "requestId")]
    request_id: Raw<'a>,
    #[serde(borrow, rename = "eTag")]
    etag: Text<'a>,
    #[serde(borrow, rename = "contentLength")]
    content_length: Raw<'a>,
    #[serde(borrow, rename = "blobType")]
    blob_type: Raw<'a>,
    #[serde(borrow)]
    url: Text<'a>,
    #[serde(borrow, rename = "destinationUrl")]
    destination_url: Text<'a>,
    #[serde(borrow)]
    sequencer: Raw<'a>,
    #[serde(borrow, rename = "validationCode")]
    validation_code: Text<'a>,
}

/// What the two schemas say in fields of their own.
pub(super) struct Told<'t, 'a> {
    pub(super) event_type: &'t str,
    /// Where the type stands, for messages.
    pub(super) type_field: &'static str,
    /// The resource ID of the storage account.
    pub(super) resource: &'t Text<'a>,
    pub(super) subject: &'t Text<'a>,
    pub(super) time: Raw<'a>,
    pub(super) data: &'t Json<Data<'a>>,
}

/// Reads an event in Event Grid's own schema.
pub(super) fn grid_event(text: &str, account: Option<&str>) -> Result<Reading, ReadError> {
    let event: GridEvent<'_> = json::object(text, "the event")?;
    let told = Told {
        event_type: event.event_type.required("eventType")?,
        type_field: "eventType",
        resource: &event.topic,
        subject: &event.subject,
        time: event.event_time,
        data: &event.data,
    };
    read(&told, account)
}

/// Reads what either schema told. `account` is the one to assume if the event names none.
pub(super) fn read(told: &Told<'_, '_>, account: Option<&str>) -> Result<Reading, ReadError> {
    match change(told)? {
        Type::Validation => {
            let data = told.data.object("data")?;
            let code = data.validation_code.required("data.validationCode")?;
            handshake::echo(code).map(Reading::Reply)
        }
        Type::Change(Change::None(reason)) => Ok(Reading::Ignored(reason)),
        Type::Change(Change::NewObject) => {
            let data = told.data.object("data")?;
            let event = || written(told, data, (&data.url, "data.url"), account);
            Ok(match (unfinished(data), event()?) {
                (Some(unfinished), Reading::Event(mut event)) => {
                    if unfinished == Unfinished::Begun {
                        (event.token, event.etag) = (None, None);
                    }
                    Reading::Incomplete(event)
                }
                (_, reading) => reading,
            })
        }
        Type::Renamed => {
            let data = told.data.object("data")?;
            let url = (&data.destination_url, "data.destinationUrl");
            written(told, data, url, account)
        }
    }
}

fn written(
    told: &Told<'_, '_>,
    data: &Data<'_>,
    (url, url_field): (&Text<'_>, &'static str),
    account: Option<&str>,
) -> Result<Reading, ReadError> {
    let renamed = url_field == "data.destinationUrl";
    let subject = told.subject.required("subject")?;
    let url = url.optional(url_field)?;
    let blob = blob_path::of_event(subject, url, url_field, renamed)?;
    let named = told
        .resource
        .optional("the resource")?
        .and_then(blob_path::account_of_resource)
        .or_else(|| url.and_then(BlobUrl::parse).and_then(|url| url.account))
        .or(account);
    // A name in doubt is to be looked up, and then the token is the one that is found there.
    let etag = data.etag.optional("data.eTag")?.filter(|_| blob.agreed);
    let details = EventDetails {
        envelope: Some("Blob Storage event"),
        event_name: Some(told.event_type.to_owned()),
        event_time: json::shown(told.time),
        request_id: json::shown(data.request_id),
        sequencer: json::shown(data.sequencer),
        size: json::integer(data.content_length),
    };
    event(named, blob, etag, details)
}

/// The event of a blob. An empty ETag is none.
pub(super) fn event(
    account: Option<&str>,
    blob: Blob,
    etag: Option<&str>,
    details: EventDetails,
) -> Result<Reading, ReadError> {
    let etag = etag.filter(|etag| !etag.is_empty());
    let token = etag
        .map(|etag| VersionToken::new(TokenKind::ETag, etag))
        .transpose()?;
    Ok(Reading::Event(Box::new(StorageEvent {
        address: ObjectAddress {
            provider: Provider::Azure,
            account: account.map(str::to_owned),
            container: blob.container,
            key: blob.key,
        },
        token,
        etag: etag.map(str::to_owned),
        details,
        unconfirmed: false,
        refused_by_reference: blob.refused_by_reference,
    })))
}

/// Why a `BlobCreated` may be no new content yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unfinished {
    /// A block blob that was put with 0 bytes. It is whole, and this can be its only event (a marker such as `_SUCCESS`); or a
    /// writer opened it, and its commit follows. Its ETag tells later whether it is still the same.
    Empty,
    /// What was begun, and whose content comes by other calls: its ETag of now is that of no content.
    Begun,
}

/// What is not whole, as far as the event tells. An API that nobody knows is one that wrote a blob.
///
/// `PutBlob` tells once a block blob is committed (<https://learn.microsoft.com/azure/event-grid/event-schema-blob-storage>);
/// of an append or a page blob it only makes the blob, and what is then written to it has no event
/// (<https://learn.microsoft.com/rest/api/storageservices/put-blob>).
fn unfinished(data: &Data<'_>) -> Option<Unfinished> {
    let size = json::integer(data.content_length);
    let blob_type = json::shown(data.blob_type);
    match (json::shown(data.api).as_deref(), size, blob_type.as_deref()) {
        (Some("PutBlob"), _, Some("AppendBlob" | "PageBlob"))
        | (Some("CreateFile"), Some(0), _)
        | (Some("SftpCreate"), _, _) => Some(Unfinished::Begun),
        (Some("PutBlob"), Some(0), _) => Some(Unfinished::Empty),
        _ => None,
    }
}

enum Type {
    Change(Change),
    /// A blob has another name; its ETag is not told.
    Renamed,
    /// The handshake.
    Validation,
}

/// By the event's type.
fn change(told: &Told<'_, '_>) -> Result<Type, ReadError> {
    let none = |reason| Ok(Type::Change(Change::None(reason)));
    match told.event_type {
        "Microsoft.Storage.BlobCreated" => Ok(Type::Change(Change::NewObject)),
        "Microsoft.Storage.BlobRenamed" => Ok(Type::Renamed),
        "Microsoft.Storage.BlobDeleted" | "Microsoft.Storage.DirectoryDeleted" => {
            none(Ignored::Removed)
        }
        "Microsoft.Storage.BlobTierChanged"
        | "Microsoft.Storage.BlobInventoryPolicyCompleted"
        | "Microsoft.Storage.AsyncOperationInitiated"
        | "Microsoft.Storage.LifecyclePolicyCompleted"
        | "Microsoft.Storage.DirectoryCreated"
        | "Microsoft.Storage.DirectoryRenamed"
        | "Microsoft.Storage.StorageTaskQueued"
        | "Microsoft.Storage.StorageTaskCompleted"
        | "Microsoft.Storage.StorageTaskAssignmentQueued"
        | "Microsoft.Storage.StorageTaskAssignmentCompleted"
        | "Microsoft.EventGrid.SubscriptionDeletedEvent" => none(Ignored::Metadata),
        "Microsoft.EventGrid.SubscriptionValidationEvent" => Ok(Type::Validation),
        got => Err(ReadError::UnknownEventName {
            field: told.type_field,
            got: excerpt(got),
        }),
    }
}

/// A message of the blob trigger's own queue, `azure-webjobs-blobtrigger-…` or `webjobs-blobtrigger-poison`.
#[derive(Deserialize, Default)]
#[serde(default)]
struct BlobTriggerMessage<'a> {
    #[serde(borrow, rename = "ContainerName")]
    container: Text<'a>,
    #[serde(borrow, rename = "BlobName")]
    name: Text<'a>,
    #[serde(borrow, rename = "ETag")]
    etag: Text<'a>,
}

/// Reads a message of the blob trigger's own queue, which names no account.
pub(super) fn blob_trigger_message(
    text: &str,
    account: Option<&str>,
) -> Result<Reading, ReadError> {
    let message: BlobTriggerMessage<'_> = json::object(text, "the message")?;
    let blob = Blob {
        container: message.container.required("ContainerName")?.to_string(),
        key: ObjectKey::verbatim(&**message.name.required("BlobName")?),
        refused_by_reference: None,
        agreed: true,
    };
    let etag = message.etag.optional("ETag")?;
    event(account, blob, etag, EventDetails::default())
}
