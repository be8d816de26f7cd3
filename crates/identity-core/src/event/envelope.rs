//! Unwrapping: bytes → the innermost envelope, whatever carried it. What stands in that one is its own module's to read.

use std::{cell::LazyCell, sync::Arc};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    Carrier, Delivery, Ignored, Item, MAX_DEPTH, MAX_ITEMS, Origin, ReadContext, ReadError,
    Reading, azure,
    encoding::{utf8, without_mark},
    error::excerpt,
    gcs::{self, Notice},
    handshake,
    json::{self, Json, List, Raw, Text},
    reader::{Place, Reader, too_many},
    s3,
};

/// An object that stands alone: the fields that tell its kind, and those that its kind needs. What is large and not in
/// every envelope is boxed: it is moved several times while it is parsed.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Envelope<'a> {
    #[serde(borrow, rename = "Records")]
    records: List<Box<Record<'a>>>,
    #[serde(borrow, rename = "Messages")]
    messages: List<Box<Record<'a>>>,
    #[serde(borrow, rename = "receivedMessages")]
    received_messages: List<Box<Record<'a>>>,

    #[serde(borrow, rename = "Type")]
    sns_type: Text<'a>,
    #[serde(borrow, rename = "TopicArn")]
    topic_arn: Text<'a>,
    #[serde(borrow, rename = "Message")]
    message: Text<'a>,

    #[serde(borrow, rename = "detail-type")]
    detail_type: Text<'a>,
    #[serde(borrow)]
    source: Text<'a>,
    #[serde(borrow)]
    time: Raw<'a>,
    #[serde(borrow)]
    detail: Json<Box<s3::Detail<'a>>>,
}

impl<'a> Envelope<'a> {
    const fn bridged(&self) -> s3::Bridged<'_, 'a> {
        s3::Bridged {
            detail_type: &self.detail_type,
            source: &self.source,
            time: self.time,
            detail: &self.detail,
        }
    }
}

/// An element of a list, likewise: all that tells its kind, and S3's record itself. What another kind needs is parsed
/// from its text, once it is known to be of that kind.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Record<'a> {
    #[serde(borrow, rename = "messageId", alias = "MessageId")]
    message_id: Raw<'a>,
    #[serde(
        borrow,
        rename = "receiptHandle",
        alias = "ReceiptHandle",
        alias = "PopReceipt",
        alias = "popReceipt",
        alias = "ackId"
    )]
    receipt_handle: Raw<'a>,
    #[serde(borrow, alias = "Body")]
    body: Text<'a>,
    #[serde(borrow, alias = "Attributes")]
    attributes: Raw<'a>,
    #[serde(borrow, rename = "eventSourceARN")]
    event_source_arn: Raw<'a>,

    #[serde(borrow, rename = "Sns")]
    sns: Json<Sns<'a>>,

    #[serde(borrow, rename = "requestPayload")]
    request_payload: Raw<'a>,

    #[serde(borrow, rename = "Event")]
    event: Text<'a>,

    #[serde(borrow, rename = "eventVersion")]
    event_version: Raw<'a>,
    #[serde(borrow, rename = "eventSource")]
    event_source: Text<'a>,
    #[serde(borrow, rename = "eventName")]
    event_name: Text<'a>,
    #[serde(borrow, rename = "eventTime")]
    event_time: Raw<'a>,
    #[serde(borrow, rename = "responseElements")]
    response_elements: Raw<'a>,
    #[serde(borrow)]
    s3: Json<Box<s3::Entity<'a>>>,

    #[serde(borrow, rename = "MessageText", alias = "messageText")]
    message_text: Raw<'a>,
    #[serde(borrow)]
    content: Raw<'a>,
    #[serde(borrow, rename = "dequeueCount")]
    dequeue_count: Raw<'a>,
    #[serde(borrow)]
    message: Raw<'a>,
    #[serde(borrow, rename = "publishTime")]
    publish_time: Raw<'a>,
    #[serde(borrow, rename = "Metadata")]
    metadata: Raw<'a>,
    #[serde(borrow)]
    specversion: Raw<'a>,
    #[serde(borrow, rename = "eventType")]
    event_type: Raw<'a>,
    #[serde(borrow, rename = "BlobName")]
    blob_name: Raw<'a>,
    #[serde(borrow)]
    kind: Raw<'a>,
    #[serde(borrow)]
    firstclaim: Raw<'a>,
}

/// What answers a message in a queue.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Handles<'a> {
    #[serde(borrow, rename = "messageId", alias = "MessageId")]
    message_id: Raw<'a>,
    #[serde(
        borrow,
        rename = "receiptHandle",
        alias = "ReceiptHandle",
        alias = "PopReceipt",
        alias = "popReceipt",
        alias = "ackId"
    )]
    receipt_handle: Raw<'a>,
    #[serde(borrow, alias = "Attributes")]
    attributes: Raw<'a>,
    #[serde(borrow, rename = "eventSourceARN")]
    event_source_arn: Raw<'a>,
}

impl<'a> Record<'a> {
    const fn notification(&self) -> s3::Notification<'_, 'a> {
        s3::Notification {
            event_version: self.event_version,
            event_source: &self.event_source,
            event_name: &self.event_name,
            event_time: self.event_time,
            response_elements: self.response_elements,
            s3: &self.s3,
        }
    }

    /// Dead letters of Event Grid have the time of publishing, too.
    const fn is_pub_sub_message(&self) -> bool {
        self.publish_time.is_some()
            && self.message_id.is_some()
            && self.event_type.is_none()
            && self.specversion.is_none()
            && !self.body.is_present()
    }

    const fn handles(&self) -> Handles<'a> {
        Handles {
            message_id: self.message_id,
            receipt_handle: self.receipt_handle,
            attributes: self.attributes,
            event_source_arn: self.event_source_arn,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SqsAttributes<'a> {
    #[serde(borrow, rename = "MessageGroupId")]
    message_group_id: Raw<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Sns<'a> {
    #[serde(borrow, rename = "Type")]
    sns_type: Text<'a>,
    #[serde(borrow, rename = "Message")]
    message: Text<'a>,
}

pub(super) fn read(delivery: &Delivery<'_>, context: &ReadContext<'_>) -> Vec<Item> {
    let mut reader = Reader::new(context);
    reader.delivery(delivery, &Place::default());
    reader.items
}

impl Reader<'_> {
    /// A request, or a payload that came without one.
    pub(super) fn delivery(&mut self, delivery: &Delivery<'_>, place: &Place) {
        if let Some(reply) = handshake::permission(delivery) {
            return match reply {
                Ok(reply) => self.push(Reading::Reply(reply), place),
                Err(error) => self.unreadable(error, delivery.body, place),
            };
        }
        let text = match utf8(delivery.body) {
            Ok(text) => text,
            Err(error) => return self.unreadable(error, delivery.body, place),
        };
        let Some(notice) = Notice::of_headers(delivery) else {
            return self.text(text, place);
        };
        let reading = if text.trim_ascii().is_empty() {
            notice.without_body()
        } else {
            gcs::resource(without_mark(text), Some(&notice))
        };
        match reading {
            Ok(reading) => self.push(reading, place),
            Err(error) => self.unreadable(error, notice.as_request(text), place),
        }
    }

    /// A whole JSON text: the payload, or what a message carries.
    pub(super) fn text(&mut self, text: &str, place: &Place) {
        let text = without_mark(text);
        if place.depth > MAX_DEPTH {
            let limit = MAX_DEPTH;
            return self.unreadable(ReadError::TooDeep { limit }, text, place);
        }
        match text.trim_start().bytes().next() {
            None => self.unreadable(ReadError::Empty, text, place),
            Some(b'{') => match serde_json::from_str(text) {
                Ok(envelope) => self.envelope(&envelope, text, place),
                Err(error) => self.salvage(error, text, place),
            },
            Some(b'[') => match serde_json::from_str(text) {
                Ok(list) => self.list(&list, "the event", text, place),
                Err(error) => self.salvage(error, text, place),
            },
            Some(_) => match serde_json::from_str::<&RawValue>(text) {
                Ok(_) => self.unknown(text, place),
                Err(source) => self.unreadable(ReadError::NotJson { source }, text, place),
            },
        }
    }

    fn envelope(&mut self, envelope: &Envelope<'_>, text: &str, place: &Place) {
        let lists = [
            ("Records", &envelope.records),
            ("Messages", &envelope.messages),
            ("receivedMessages", &envelope.received_messages),
        ];
        let mut lists = lists
            .into_iter()
            .filter(|(_, list)| !matches!(list, List::Absent));
        match (lists.next(), lists.next()) {
            (None, _) => {}
            (Some((field, list)), None) => return self.list(list, field, text, place),
            (Some(_), Some(_)) => return self.unknown(text, place),
        }
        if envelope.sns_type.is_present()
            && (envelope.topic_arn.is_present() || envelope.message.is_present())
        {
            return self.sns(&envelope.sns_type, &envelope.message, &|| text, place);
        }
        if envelope.detail_type.is_present() {
            return self.push_result(s3::event_bridge(&envelope.bridged()), &|| text, place);
        }
        // A test event, or a record that was taken out of its list. A pass of its own, because it is rare.
        match serde_json::from_str(text) {
            Ok(record) => self.record(&record, 0, &|| text, place),
            Err(source) => self.unreadable(ReadError::NotJson { source }, text, place),
        }
    }

    fn list(
        &mut self,
        list: &List<Box<Record<'_>>>,
        field: &'static str,
        text: &str,
        place: &Place,
    ) {
        let error = match list {
            List::Elements(elements) if elements.is_empty() => ReadError::EmptyBatch { field },
            List::Elements(elements) => {
                let got = self.items.len() + elements.len();
                if got <= MAX_ITEMS {
                    return self.elements(elements, text, place);
                }
                too_many(field, got)
            }
            List::TooMany(got) => too_many(field, *got),
            List::Other(got) => ReadError::WrongType {
                field,
                expected: "an array",
                got,
            },
            List::Absent => ReadError::MissingField { field },
        };
        self.unreadable(error, text, place);
    }

    fn elements(&mut self, elements: &[Json<Box<Record<'_>>>], text: &str, place: &Place) {
        // The text of a single element is wanted only when it cannot be read, so it is looked up only then.
        let texts = LazyCell::new(|| element_texts(text).unwrap_or_default());
        for (index, element) in elements.iter().enumerate() {
            let element_text = || texts.get(index).map_or(text, |raw| raw.get());
            self.element(element, index, &element_text, place);
        }
    }

    /// A list one of whose elements kept the whole from being read: each element is read on its own.
    fn salvage(&mut self, error: serde_json::Error, text: &str, place: &Place) {
        let texts = element_texts(text).unwrap_or_default();
        let got = self.items.len() + texts.len();
        if texts.is_empty() {
            return self.unreadable(ReadError::NotJson { source: error }, text, place);
        }
        if got > MAX_ITEMS {
            return self.unreadable(too_many("the event", got), text, place);
        }
        for (index, raw) in texts.iter().enumerate() {
            match serde_json::from_str(raw.get()) {
                Ok(element) => self.element(&element, index, &|| raw.get(), place),
                Err(source) => {
                    // A message can be answered even if the rest of it cannot be read.
                    let handles = json::unneeded(Some(raw)).unwrap_or_default();
                    let place = place_of(&handles, index, place);
                    self.unreadable(ReadError::NotJson { source }, raw.get(), &place);
                }
            }
        }
    }

    fn element<'t>(
        &mut self,
        element: &Json<Box<Record<'_>>>,
        index: usize,
        text: &dyn Fn() -> &'t str,
        place: &Place,
    ) {
        match element.as_object() {
            Some(record) => self.record(record, index, text, place),
            None => self.unknown(text(), &place_of(&Handles::default(), index, place)),
        }
    }

    /// One element of a list, or the same standing alone.
    fn record<'t>(
        &mut self,
        record: &Record<'_>,
        index: usize,
        text: &dyn Fn() -> &'t str,
        place: &Place,
    ) {
        let place = &place_of(&record.handles(), index, place);
        if record.message_text.is_some() {
            self.queue_message(text(), place);
        } else if record.content.is_some() && record.dequeue_count.is_some() {
            self.printed_queue_message(text(), place);
        } else if record.is_pub_sub_message() {
            self.pub_sub_message(text(), place);
        } else if record.message_id.is_some() || record.body.is_present() {
            self.carried(Carrier::Sqs, "body", &record.body, text, place);
        } else if record.sns.is_present() {
            match record.sns.object("Sns") {
                Ok(sns) => self.sns(&sns.sns_type, &sns.message, text, place),
                Err(error) => self.unreadable(error, text(), place),
            }
        } else if let Some(payload) = record.request_payload {
            self.text(payload.get(), &place.inside(Carrier::LambdaRecord));
        } else if is_test_event(record) {
            self.push(Reading::Ignored(Ignored::TestEvent), place);
        } else if record.s3.is_present() || record.event_name.is_present() {
            let read = s3::record(&record.notification(), &self.s3_keys);
            self.push_result(read, text, place);
        } else {
            self.of_another_cloud(record, text(), place);
        }
    }

    /// What is not Amazon's, or this program's own; `text` is all of it.
    fn of_another_cloud(&mut self, record: &Record<'_>, text: &str, place: &Place) {
        if record.message.is_some() {
            self.pub_sub(text, place);
        } else if record.metadata.is_some() {
            self.invocation(text, place);
        } else if record.specversion.is_some() {
            self.cloud_event(text, place);
        } else if record.event_type.is_some() {
            let event = azure::grid_event(text, self.azure_account);
            self.push_result(event, &|| text, place);
        } else if record.blob_name.is_some() {
            let event = azure::blob_trigger_message(text, self.azure_account);
            self.push_result(event, &|| text, place);
        } else if json::shown(record.kind).as_deref() == Some(gcs::RESOURCE_KIND) {
            self.push_result(gcs::resource(text, None), &|| text, place);
        } else if record.firstclaim.is_some() {
            self.own(text, place);
        } else {
            self.unknown(text, place);
        }
    }

    fn sns<'t>(
        &mut self,
        sns_type: &Text<'_>,
        message: &Text<'_>,
        text: &dyn Fn() -> &'t str,
        place: &Place,
    ) {
        let error = match sns_type.get("Type") {
            Ok(Some(got)) if got != "Notification" => {
                ReadError::NotANotification { got: excerpt(got) }
            }
            Ok(_) => return self.carried(Carrier::Sns, "Message", message, text, place),
            Err(error) => error,
        };
        self.unreadable(error, text(), place);
    }

    /// The text that a message carries in one of its fields; `text` is the message itself.
    fn carried<'t>(
        &mut self,
        carrier: Carrier,
        field: &'static str,
        carried: &Text<'_>,
        text: &dyn Fn() -> &'t str,
        place: &Place,
    ) {
        match carried.required(field) {
            Ok(carried) => self.text(carried, &place.inside(carrier)),
            Err(error) => self.unreadable(error, text(), place),
        }
    }

    fn unknown(&mut self, text: &str, place: &Place) {
        let got = json::describe(text);
        self.unreadable(ReadError::UnknownEnvelope { got }, text, place);
    }
}

/// The element itself is the origin, unless it lies in an element that was entered before: only the outermost list is
/// answered.
fn place_of(handles: &Handles<'_>, index: usize, around: &Place) -> Place {
    let origin = around.origin.clone().unwrap_or_else(|| {
        let attributes: Option<SqsAttributes<'_>> = json::unneeded(handles.attributes);
        Arc::new(Origin {
            index,
            message_id: json::shown(handles.message_id),
            receipt_handle: json::shown(handles.receipt_handle),
            message_group_id: attributes
                .and_then(|attributes| json::shown(attributes.message_group_id)),
            queue_arn: json::shown(handles.event_source_arn),
        })
    });
    Place {
        origin: Some(origin),
        depth: around.depth,
        carriers: around.carriers,
    }
}

/// S3 sends it when a notification is configured, to queues and topics: it has no `Records`, and no object.
fn is_test_event(record: &Record<'_>) -> bool {
    matches!(&record.event, Text::String(event) if event == "s3:TestEvent")
}

/// The text of each element of the list that `text` holds; `None` if it holds none, or more than one.
fn element_texts(text: &str) -> Option<Vec<&RawValue>> {
    #[derive(Deserialize)]
    struct Lists<'a> {
        #[serde(borrow, rename = "Records")]
        records: Raw<'a>,
        #[serde(borrow, rename = "Messages")]
        messages: Raw<'a>,
        #[serde(borrow, rename = "receivedMessages")]
        received_messages: Raw<'a>,
    }
    let list = match json::kind(text) {
        json::ARRAY => text,
        json::OBJECT => {
            let lists: Lists<'_> = serde_json::from_str(text).ok()?;
            let mut lists = [lists.records, lists.messages, lists.received_messages]
                .into_iter()
                .flatten();
            let list = lists.next()?.get();
            if lists.next().is_some() || json::kind(list) != json::ARRAY {
                return None;
            }
            list
        }
        _ => return None,
    };
    serde_json::from_str(list).ok()
}
