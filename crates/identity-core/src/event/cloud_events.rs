//! CloudEvents in structured mode: whose event it is, by its type.
//!
//! Source: CloudEvents 1.0, "JSON Event Format".

use serde::Deserialize;

use super::{
    ReadError,
    azure::{self, Told},
    error::excerpt,
    gcs::{self, Notice},
    json::{self, Raw, Text},
    reader::{Place, Reader},
};

/// What Eventarc wraps around a message that was published to a topic.
const PUBLISHED: &str = "google.cloud.pubsub.topic.v1.messagePublished";

#[derive(Deserialize, Default)]
#[serde(default)]
struct CloudEvent<'a> {
    #[serde(borrow)]
    specversion: Raw<'a>,
    #[serde(borrow, rename = "type")]
    event_type: Text<'a>,
    #[serde(borrow)]
    source: Text<'a>,
    #[serde(borrow)]
    subject: Text<'a>,
    #[serde(borrow)]
    time: Raw<'a>,
    #[serde(borrow)]
    data: Raw<'a>,
}

impl Reader<'_> {
    /// An event of either cloud; `text` is all of it.
    pub(super) fn cloud_event(&mut self, text: &str, place: &Place) {
        if let Err(error) = self.try_cloud_event(text, place) {
            self.unreadable(error, text, place);
        }
    }

    fn try_cloud_event(&mut self, text: &str, place: &Place) -> Result<(), ReadError> {
        let event: CloudEvent<'_> = json::object(text, "the event")?;
        json::check_major(event.specversion, "1", "specversion", "1.x")?;
        let event_type = event.event_type.required("type")?;
        let data = || event.data.ok_or(ReadError::MissingField { field: "data" });
        let reading = if event_type.starts_with(gcs::CLOUD_EVENT_PREFIX) {
            let time = json::shown(event.time);
            let notice = Notice {
                event_type,
                event_time: time.as_deref(),
                ..Notice::default()
            };
            gcs::resource(data()?.get(), Some(&notice))?
        } else if event_type == PUBLISHED {
            self.text(data()?.get(), &place.inside(super::Carrier::CloudEvent));
            return Ok(());
        } else if event_type.starts_with(azure::TYPE_PREFIX) {
            let told = Told {
                event_type,
                type_field: "type",
                resource: &event.source,
                subject: &event.subject,
                time: event.time,
                data: &json::parsed(event.data)?,
            };
            azure::read(&told, self.azure_account)?
        } else {
            return Err(ReadError::UnknownEventName {
                field: "type",
                got: excerpt(event_type),
            });
        };
        self.push(reading, place);
        Ok(())
    }
}
