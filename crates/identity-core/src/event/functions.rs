//! What the Azure Functions host posts to a custom handler: bindings in `Data`, and `Metadata` of the trigger.
//!
//! Source: Azure/azure-functions-host, `Workers/Http` and `ScriptInvocationContextExtensions`: what is no object is
//! serialised, so that a string arrives as a JSON string in a JSON string; the documentation's samples have it once. Every
//! metadata key that ends in `trigger` is dropped, so a blob trigger is known by its `Uri`.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{
    Delivery, EventDetails, MAX_ITEMS, ReadError, Reading, azure,
    blob_path::{self, BlobUrl},
    http_file::HeaderFields,
    json::{self, Json, Raw, Text},
    reader::{Place, Reader, too_many},
};

#[derive(Deserialize, Default)]
#[serde(default)]
struct Invocation<'a> {
    #[serde(borrow, rename = "Data")]
    data: Json<Bindings<'a>>,
    #[serde(borrow, rename = "Metadata")]
    metadata: Raw<'a>,
}

/// The values of an object, in their order.
struct Bindings<'a>(Vec<&'a RawValue>);

#[derive(Deserialize, Default)]
#[serde(default)]
struct Metadata<'a> {
    #[serde(borrow, rename = "Uri")]
    uri: Text<'a>,
    #[serde(borrow, rename = "Properties")]
    properties: Raw<'a>,
}

/// The blob's properties when the trigger saw it; older hosts write the object as a string.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Properties<'a> {
    #[serde(borrow, rename = "ETag")]
    etag: Raw<'a>,
    #[serde(borrow, rename = "ContentLength", alias = "Length")]
    length: Raw<'a>,
}

/// An HTTP request as a binding.
#[derive(Deserialize, Default)]
#[serde(default)]
struct HttpRequest<'a> {
    #[serde(borrow, rename = "Method")]
    method: Text<'a>,
    #[serde(borrow, rename = "Url")]
    url: Text<'a>,
    #[serde(borrow, rename = "Headers")]
    headers: Raw<'a>,
    #[serde(borrow, rename = "Body")]
    body: Raw<'a>,
}

impl Reader<'_> {
    /// An invocation; `text` is all of it.
    pub(super) fn invocation(&mut self, text: &str, place: &Place) {
        let invocation: Invocation<'_> = match json::object(text, "the invocation") {
            Ok(invocation) => invocation,
            Err(error) => return self.unreadable(error, text, place),
        };
        let metadata: Metadata<'_> = json::unneeded(invocation.metadata).unwrap_or_default();
        if metadata.uri.is_present() {
            match blob(&metadata, self.azure_account) {
                Ok(reading) => self.push(reading, place),
                Err(error) => {
                    // The blob itself is in `Data`, and says nothing here.
                    let raw = invocation.metadata.map_or("null", RawValue::get);
                    self.unreadable(error, format!("{{\"Metadata\":{raw}}}"), place);
                }
            }
            return;
        }
        match invocation.data.object("Data") {
            Ok(Bindings(bindings)) if bindings.is_empty() => {
                let error = ReadError::EmptyBatch { field: "Data" };
                self.unreadable(error, text, place);
            }
            Ok(Bindings(bindings)) if bindings.len() > MAX_ITEMS => {
                self.unreadable(too_many("Data", bindings.len()), text, place);
            }
            Ok(Bindings(bindings)) => {
                for binding in bindings {
                    self.binding(binding.get(), &place.inside(super::Carrier::Functions));
                }
            }
            Err(error) => self.unreadable(error, text, place),
        }
    }

    fn binding(&mut self, binding: &str, place: &Place) {
        match json::kind(binding) {
            json::STRING => match json::string(binding) {
                Some(text) => self.encoded(&text, "Data", place),
                None => self.text(binding, place),
            },
            json::OBJECT => match json::object::<HttpRequest<'_>>(binding, "Data") {
                Ok(request) if request.method.is_present() && request.url.is_present() => {
                    self.request(&request, place);
                }
                _ => self.text(binding, place),
            },
            _ => self.text(binding, place),
        }
    }

    fn request(&mut self, request: &HttpRequest<'_>, place: &Place) {
        let headers: HeaderFields = request
            .headers
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        let body = request.body.map_or("", RawValue::get);
        let text = json::unquoted(body);
        let delivery = Delivery {
            method: request.method.optional("Method").ok().flatten(),
            path: None,
            headers: &headers.into_pairs(),
            body: text.as_bytes(),
        };
        self.delivery(&delivery, &place.inside(super::Carrier::Functions));
    }
}

/// The blob of a blob trigger. The bytes in `Data` are never looked at. The ETag is the one that the host saw, unless its
/// version leaves out the text; then the store must be asked.
fn blob(metadata: &Metadata<'_>, account: Option<&str>) -> Result<Reading, ReadError> {
    let uri = metadata.uri.required("Metadata.Uri")?;
    let uri = json::unquoted(uri);
    let blob = blob_path::of_uri(&uri, "Metadata.Uri")?;
    let account = BlobUrl::parse(&uri).and_then(|url| url.account).or(account);
    let properties = metadata.properties.map(RawValue::get).unwrap_or_default();
    let properties = json::unquoted(properties);
    let properties: Properties<'_> =
        json::object(&properties, "Metadata.Properties").unwrap_or_default();
    let etag = properties.etag.and_then(|raw| json::string(raw.get()));
    let details = EventDetails {
        envelope: Some("Functions blob trigger"),
        size: json::integer(properties.length),
        ..EventDetails::default()
    };
    azure::event(account, blob, etag.as_deref(), details)
}

impl<'de: 'a, 'a> Deserialize<'de> for Bindings<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Vec<&'de RawValue>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(json::OBJECT)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut values = Vec::new();
                while let Some((IgnoredAny, value)) = map.next_entry()? {
                    values.push(value);
                }
                Ok(values)
            }
        }
        deserializer.deserialize_map(Collect).map(Self)
    }
}
