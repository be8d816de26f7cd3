//! A message of Pub/Sub, with attributes and data, which may be a Cloud Storage notification: wrapped, as it is pushed and
//! as a pull hands it over, or alone.
//!
//! Sources: Pub/Sub documentation, "Create push subscriptions", its message format; REST reference, `ReceivedMessage` and
//! `PubsubMessage`.

use serde::Deserialize;

use super::{
    ReadError,
    encoding::{decode_base64, utf8},
    gcs::{self, Notice},
    json::{self, Json, Text},
    reader::{Place, Reader},
};

#[derive(Deserialize, Default)]
#[serde(default)]
struct Push<'a> {
    #[serde(borrow)]
    message: Json<Message<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow)]
    attributes: Json<Attributes<'a>>,
    #[serde(borrow)]
    data: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Attributes<'a> {
    #[serde(borrow, rename = "eventType")]
    event_type: Text<'a>,
    #[serde(borrow, rename = "eventTime")]
    event_time: Text<'a>,
    #[serde(borrow, rename = "bucketId")]
    bucket: Text<'a>,
    #[serde(borrow, rename = "objectId")]
    object: Text<'a>,
    #[serde(borrow, rename = "objectGeneration")]
    generation: Text<'a>,
}

impl Reader<'_> {
    /// A push, or one message of a pull; `text` is all of it.
    pub(super) fn pub_sub(&mut self, text: &str, place: &Place) {
        let read = json::object(text, "the push").and_then(|push: Push<'_>| {
            let message = push.message.object("message")?;
            self.try_pub_sub(message, place)
        });
        if let Err(error) = read {
            self.unreadable(error, text, place);
        }
    }

    /// A message without anything around it; `text` is all of it.
    pub(super) fn pub_sub_message(&mut self, text: &str, place: &Place) {
        let read = json::object(text, "the message")
            .and_then(|message: Message<'_>| self.try_pub_sub(&message, place));
        if let Err(error) = read {
            self.unreadable(error, text, place);
        }
    }

    fn try_pub_sub(&mut self, message: &Message<'_>, place: &Place) -> Result<(), ReadError> {
        let notice = match &message.attributes {
            Json::Absent => None,
            attributes => notice(attributes.object("message.attributes")?)?,
        };
        let data = match message
            .data
            .get("message.data")?
            .filter(|data| !data.is_empty())
        {
            Some(data) => Some(decode_base64(data, "message.data")?),
            None => None,
        };
        let reading = match (notice, data) {
            (Some(notice), None) => notice.without_resource()?,
            (Some(notice), Some(data)) => gcs::resource(utf8(&data)?, Some(&notice))?,
            (None, Some(data)) => {
                self.text(utf8(&data)?, &place.inside(super::Carrier::PubSub));
                return Ok(());
            }
            (None, None) => {
                let field = "message.data";
                return Err(ReadError::MissingField { field });
            }
        };
        self.push(reading, place);
        Ok(())
    }
}

/// What the attributes of a Cloud Storage notification tell; `None` for those of another message.
fn notice<'t>(attributes: &'t Attributes<'_>) -> Result<Option<Notice<'t>>, ReadError> {
    match &attributes.event_type {
        Text::String(event_type) if gcs::is_notification(event_type) => Ok(Some(Notice {
            event_type,
            event_time: attributes.event_time.optional("").unwrap_or_default(),
            bucket: attributes.bucket.optional("attributes.bucketId")?,
            object: attributes.object.optional("attributes.objectId")?,
            generation: attributes
                .generation
                .optional("attributes.objectGeneration")?,
        })),
        _ => Ok(None),
    }
}
