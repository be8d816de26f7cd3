//! Azure Storage Queue: a message whose text is JSON, or JSON in base64, as its sender and the queue's settings will have
//! it. Nothing says which, so the first character does: JSON that can be an event begins with `{` or `[`, base64 never.
//!
//! Sources: MicrosoftDocs/azure-docs issues 69702 (plain) and 102923 (base64); Azure CLI reference, `az storage message get`,
//! which prints a message under other names.

use std::sync::Arc;

use serde::Deserialize;

use super::{
    Origin,
    encoding::{decode_base64, utf8, without_mark},
    json::{self, Raw, Text},
    reader::{Place, Reader},
};

#[derive(Deserialize, Default)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow, rename = "MessageText", alias = "messageText")]
    text: Text<'a>,
}

/// A message as the command line prints it.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Printed<'a> {
    #[serde(borrow)]
    content: Text<'a>,
    #[serde(borrow)]
    id: Raw<'a>,
}

impl Reader<'_> {
    /// A message that `az storage message get` or `peek` printed; `text` is all of it.
    pub(super) fn printed_queue_message(&mut self, text: &str, place: &Place) {
        let read = json::object::<Printed<'_>>(text, "the message").and_then(|message| {
            Ok((
                json::shown(message.id),
                message.content.required("content")?.to_string(),
            ))
        });
        match read {
            Ok((id, carried)) => {
                let mut inside = place.inside(super::Carrier::StorageQueue);
                if let Some(origin) = &place.origin
                    && origin.message_id.is_none()
                {
                    inside.origin = Some(Arc::new(Origin {
                        message_id: id,
                        ..Origin::clone(origin)
                    }));
                }
                self.encoded(&carried, "content", &inside);
            }
            Err(error) => self.unreadable(error, text, place),
        }
    }

    /// A message; `text` is all of it.
    pub(super) fn queue_message(&mut self, text: &str, place: &Place) {
        let field = "MessageText";
        match json::object::<Message<'_>>(text, "the message") {
            Ok(message) => match message.text.required(field) {
                Ok(carried) => {
                    self.encoded(carried, field, &place.inside(super::Carrier::StorageQueue))
                }
                Err(error) => self.unreadable(error, text, place),
            },
            Err(error) => self.unreadable(error, text, place),
        }
    }

    /// A text that may be in quotes or in base64.
    pub(super) fn encoded(&mut self, text: &str, field: &'static str, place: &Place) {
        let text = json::unquoted(text.trim_ascii());
        let start = without_mark(&text).trim_start();
        if start.is_empty() || start.starts_with(['{', '[']) {
            return self.text(&text, place);
        }
        match decode_base64(&text, field) {
            Ok(bytes) => match utf8(&bytes) {
                Ok(inner) => self.text(inner, place),
                Err(error) => self.unreadable(error, &*text, place),
            },
            Err(error) => self.unreadable(error, &*text, place),
        }
    }
}
