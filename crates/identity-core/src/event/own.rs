//! This program's own envelope: an event that a sweep or an operator sends again, or a job that is handed on.
//!
//! One JSON object with the one field `firstclaim`, whose `version` is 1. It says which object was written,
//!
//! ```json
//! {"firstclaim":{"version":1,"provider":"s3","container":"geo-in","key":"a b.shp","raw_key":"a+b.shp",
//!   "token":{"kind":"etag","value":"9f86d0"},"etag":"9f86d0","redrives":1}}
//! ```
//!
//! or it is the bytes of an event that could not be read, in base64 (`"body":"AAEC"`), to be read again as they came.
//!
//! `provider`, `account`, `container`, `key`, `token` and `etag` are a [`StorageEvent`]'s, `raw_key` is the key as it stood in
//! the first payload, where that differs; a key that is not UTF-8 is `key_base64` instead. `incomplete` and `unconfirmed` are
//! true or absent. `record` is the key of a record that never was a job, and is of this event: it is closed once this event is
//! settled ([`Redriven`]). `redrives` counts how often the event was sent again. Whatever else stands there is an error: a sender
//! that means more has another version.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use sha2::{Digest as _, Sha256};

use super::{
    Carrier, EventDetails, ReadError, Reading, StorageEvent,
    encoding::decode_base64,
    error::excerpt,
    http_file::OwnedDelivery,
    json::{self, Json, Raw, Text},
    reader::{Place, Reader},
};
use crate::identity::{ObjectAddress, ObjectKey, Provider, TokenKind, VersionToken, hex};

/// The version that is written, and the only one that is read.
const VERSION: &str = "1";

/// What an own envelope carries.
#[derive(Debug, Clone, Copy)]
pub enum Sent<'a> {
    /// An event. What only `reference` refuses in it ([`StorageEvent::refused_by_reference`]) is not carried.
    Event {
        /// The event itself.
        event: &'a StorageEvent,
        /// Whether the object was not whole when the event came.
        incomplete: bool,
    },
    /// The bytes of an event that could not be read.
    Body(&'a [u8]),
}

/// An own envelope, in one line, of characters that every queue takes.
///
/// `record` is the key of the record that is to be closed once this is settled, 64 lower-case hex characters; `redrives`
/// counts how often the event was sent again.
#[must_use]
pub fn write(sent: &Sent<'_>, record: Option<&str>, redrives: u32) -> String {
    let mut fields = match sent {
        Sent::Event { event, incomplete } => event_fields(event, *incomplete),
        Sent::Body(bytes) => vec![("body", STANDARD.encode(bytes).into())],
    };
    fields.push(("version", 1.into()));
    fields.push(("redrives", redrives.into()));
    fields.extend(record.map(|key| ("record", key.into())));
    let fields: serde_json::Map<_, _> = fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    acceptable(json!({ "firstclaim": fields }).to_string())
}

/// The envelope with the two characters escaped that JSON allows in a string and XML nowhere, U+FFFE and U+FFFF: queues whose
/// messages are XML, or were, refuse them (SQS, Azure's).
/// <https://www.w3.org/TR/xml/#charsets>,
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
fn acceptable(envelope: String) -> String {
    if !envelope.contains(['\u{fffe}', '\u{ffff}']) {
        return envelope;
    }
    envelope
        .replace('\u{fffe}', "\\ufffe")
        .replace('\u{ffff}', "\\uffff")
}

fn event_fields(event: &StorageEvent, incomplete: bool) -> Vec<(&'static str, Value)> {
    let ObjectAddress {
        provider,
        account,
        container,
        key,
    } = &event.address;
    let (name, exact) = match key.exact() {
        Some(text) => ("key", text.to_owned()),
        None => ("key_base64", STANDARD.encode(key.exact_bytes())),
    };
    let mut fields = vec![
        ("provider", provider.as_str().into()),
        ("container", container.as_str().into()),
        (name, exact.into()),
    ];
    let mut add = |name, value: Option<Value>| fields.extend(value.map(|value| (name, value)));
    let raw = key.raw();
    let differs = raw.as_bytes() != key.exact_bytes();
    add("raw_key", differs.then(|| raw.into()));
    add("account", account.as_deref().map(Value::from));
    add("etag", event.etag.as_deref().map(Value::from));
    add(
        "token",
        event
            .token
            .as_ref()
            .map(|token| json!({"kind": token.kind().as_str(), "value": token.value()})),
    );
    add("unconfirmed", event.unconfirmed.then(|| true.into()));
    add("incomplete", incomplete.then(|| true.into()));
    fields
}

/// The record that items of one own envelope were sent again from: it never was a job, and is closed when all of them are
/// acknowledged.
#[derive(Debug)]
pub struct Redriven {
    /// Its key: 64 lower-case hex characters.
    pub record: String,
    /// How often it had been sent again then: a record that was sent again since waits for that event.
    pub redrives: u32,
    /// What the envelope carried: only a record of just that is closed.
    pub carried: Carried,
    /// How many of its items are not acknowledged yet.
    open: AtomicUsize,
}

/// What an own envelope carried, to be compared with the record that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carried {
    /// An event: which object, and which version of it, if that was known.
    Event {
        /// The object.
        address: Box<ObjectAddress>,
        /// Its version.
        token: Option<VersionToken>,
    },
    /// The bytes of an event that could not be read: their SHA-256.
    Body([u8; 32]),
}

impl Carried {
    /// Such bytes.
    pub fn body(bytes: &[u8]) -> Self {
        Self::Body(Sha256::digest(bytes).into())
    }
}

impl Redriven {
    /// Counts one of its items as acknowledged; whether it was the last one.
    pub fn acknowledge(&self) -> bool {
        self.open.fetch_sub(1, Ordering::SeqCst) == 1
    }

    /// Takes an acknowledgement back: its item will come again.
    pub fn take_back(&self) {
        self.open.fetch_add(1, Ordering::SeqCst);
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    #[serde(borrow)]
    firstclaim: &'a RawValue,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Versioned<'a> {
    #[serde(borrow)]
    version: Raw<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Fields<'a> {
    #[serde(borrow, rename = "version")]
    _version: Raw<'a>,
    #[serde(borrow)]
    provider: Text<'a>,
    #[serde(borrow)]
    account: Text<'a>,
    #[serde(borrow)]
    container: Text<'a>,
    #[serde(borrow)]
    key: Text<'a>,
    #[serde(borrow)]
    key_base64: Text<'a>,
    #[serde(borrow)]
    raw_key: Text<'a>,
    #[serde(borrow)]
    token: Json<Token<'a>>,
    #[serde(borrow)]
    etag: Text<'a>,
    unconfirmed: bool,
    incomplete: bool,
    #[serde(borrow)]
    body: Text<'a>,
    #[serde(borrow)]
    record: Text<'a>,
    redrives: u32,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Token<'a> {
    #[serde(borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    value: Text<'a>,
}

impl Reader<'_> {
    /// An own envelope; `text` is all of it.
    pub(super) fn own(&mut self, text: &str, place: &Place) {
        let from = self.items.len();
        let fields = fields(text);
        let read =
            fields.and_then(|fields| Ok((self.own_fields(&fields, place)?, fields.redrives)));
        let (redriven, redrives) = match read {
            Ok(read) => read,
            Err(error) => return self.unreadable(error, text, place),
        };
        let Some((record, carried)) = redriven else {
            return;
        };
        let mut items: Vec<_> = self
            .items
            .iter_mut()
            .skip(from)
            .filter(|item| item.redriven.is_none())
            .collect();
        let redriven = Arc::new(Redriven {
            record,
            redrives,
            carried,
            open: AtomicUsize::new(items.len()),
        });
        for item in &mut items {
            item.redriven = Some(redriven.clone());
        }
    }

    /// Reads what it carries. Returns the record to be closed, and what that is to hold.
    fn own_fields(
        &mut self,
        fields: &Fields<'_>,
        place: &Place,
    ) -> Result<Option<(String, Carried)>, ReadError> {
        let record = match fields.record.optional("firstclaim.record")? {
            Some(key) if hex::from_hex(key).is_none() => {
                return Err(unknown(
                    "firstclaim.record",
                    key,
                    "64 lower-case hex characters",
                ));
            }
            record => record.map(str::to_owned),
        };
        let carried = if let Some(body) = fields.body.optional("firstclaim.body")? {
            let named = [
                &fields.provider,
                &fields.container,
                &fields.key,
                &fields.key_base64,
            ];
            if named.iter().any(|field| field.is_present()) || fields.token.is_present() {
                return Err(unknown("firstclaim.body", "there", "none beside an object"));
            }
            let bytes = decode_base64(body, "firstclaim.body")?;
            let carried = Carried::body(&bytes);
            let delivery = OwnedDelivery::from_file(bytes);
            self.delivery(&delivery.as_delivery(), &place.inside(Carrier::Own));
            carried
        } else {
            let event = Box::new(event(fields)?);
            let carried = Carried::Event {
                address: Box::new(event.address.clone()),
                token: event.token.clone(),
            };
            let reading = match (fields.incomplete, &record) {
                (false, _) => Reading::Event(event),
                (true, Some(_)) => Reading::Incomplete(event),
                (true, None) => {
                    return Err(ReadError::MissingField {
                        field: "firstclaim.record",
                    });
                }
            };
            self.push(reading, place);
            carried
        };
        Ok(record.map(|record| (record, carried)))
    }
}

fn fields(text: &str) -> Result<Fields<'_>, ReadError> {
    let envelope: Envelope<'_> =
        serde_json::from_str(text).map_err(|source| ReadError::NotJson { source })?;
    let inner = envelope.firstclaim.get();
    let Versioned { version } = json::object(inner, "firstclaim")?;
    match version.map(RawValue::get) {
        None => Err(ReadError::MissingField {
            field: "firstclaim.version",
        }),
        Some(VERSION) => json::object(inner, "firstclaim"),
        Some(got) => Err(ReadError::UnsupportedVersion {
            field: "firstclaim.version",
            got: excerpt(got),
            expected: VERSION,
        }),
    }
}

fn event(fields: &Fields<'_>) -> Result<StorageEvent, ReadError> {
    let provider = fields.provider.required("firstclaim.provider")?;
    let provider = Provider::from_name(provider)
        .ok_or_else(|| unknown("firstclaim.provider", provider, "s3, gcs, azure or file"))?;
    let exact = match fields.key_base64.optional("firstclaim.key_base64")? {
        None => fields.key.required("firstclaim.key")?.as_bytes().to_vec(),
        Some(_) if fields.key.is_present() => {
            return Err(unknown(
                "firstclaim.key",
                "there",
                "none beside firstclaim.key_base64",
            ));
        }
        Some(encoded) => decode_base64(encoded, "firstclaim.key_base64")?,
    };
    let raw = fields.raw_key.optional("firstclaim.raw_key")?;
    let key = match (raw, String::from_utf8(exact)) {
        (Some(raw), Ok(exact)) => ObjectKey::decoded(raw, exact),
        (Some(raw), Err(exact)) => ObjectKey::decoded(raw, exact.into_bytes()),
        (None, Ok(exact)) => ObjectKey::verbatim(exact),
        // What is not UTF-8 stood encoded in its payload.
        (None, Err(_)) => {
            return Err(ReadError::MissingField {
                field: "firstclaim.raw_key",
            });
        }
    };
    let token = match &fields.token {
        Json::Absent => None,
        token => {
            let token = token.object("firstclaim.token")?;
            let kind = token.kind.required("firstclaim.token.kind")?;
            let kind = TokenKind::from_tag(kind)
                .ok_or_else(|| unknown("firstclaim.token.kind", kind, TokenKind::EXPECTED))?;
            let value = token.value.required("firstclaim.token.value")?;
            Some(VersionToken::new(kind, &**value)?)
        }
    };
    let etag = fields.etag.optional("firstclaim.etag")?;
    Ok(StorageEvent {
        address: ObjectAddress {
            provider,
            account: fields
                .account
                .optional("firstclaim.account")?
                .map(str::to_owned),
            container: fields
                .container
                .required("firstclaim.container")?
                .to_string(),
            key,
        },
        token,
        etag: etag.filter(|etag| !etag.is_empty()).map(str::to_owned),
        details: EventDetails {
            envelope: Some("firstclaim event"),
            ..EventDetails::default()
        },
        unconfirmed: fields.unconfirmed,
        refused_by_reference: None,
    })
}

fn unknown(field: &'static str, got: &str, expected: &'static str) -> ReadError {
    ReadError::UnknownValue {
        field,
        got: excerpt(got),
        expected,
    }
}
