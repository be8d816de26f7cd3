//! The mapping between an item and a record's fields. What a record does not have is left out; an empty text is kept as the
//! service's null, since not every server takes an empty string.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use identity_core::claim::fields::{self, Field, Kind, Misfit, Value, beginning};
use identity_core::claim::{ClaimKey, Record, Status, StoreError, Stored, open_index};
use identity_core::identity::Provider;

use super::attributes::{self, Item, KEY, OPEN_SHARD, OPEN_SINCE};
use super::{DynamoStore, version};

/// The item of a record.
pub(super) fn encode(key: &ClaimKey, record: &Record) -> Result<Item, Misfit> {
    let mut item = Item::new();
    for (field, value) in fields::write(key, record)? {
        let value = match value {
            Value::Text(text) if text.is_empty() && field.is_pipelines() => continue,
            Value::Text(text) if text.is_empty() => AttributeValue::Null(true),
            Value::Text(text) => AttributeValue::S(text),
            Value::Number(number) => AttributeValue::N(number.to_string()),
            Value::Bytes(bytes) if bytes.is_empty() => AttributeValue::Null(true),
            Value::Bytes(bytes) => AttributeValue::B(Blob::new(bytes)),
        };
        item.insert(attributes::of(field).to_owned(), value);
    }
    if record.status != Status::Done {
        let mut place = |name: &str, text| item.insert(name.to_owned(), AttributeValue::S(text));
        place(OPEN_SHARD, open_index::shard(record.status, key));
        place(OPEN_SINCE, open_index::since(record.claimed_at, key));
    }
    Ok(item)
}

/// The key, the record and the version of an item, whoever wrote it.
///
/// What the Python handler's items lack has a meaning: an object without a provider is in S3, a status `done` is done
/// whatever else is missing.
pub(super) fn decode(item: &Item) -> Result<(ClaimKey, Stored), Misfit> {
    let (key, record) = fields::read(|field| {
        let value = item.get(attributes::of(field));
        if field == Field::ObjectProvider && value.is_none() {
            let is_there = item.contains_key(attributes::of(Field::ObjectContainer));
            return Ok(is_there.then(|| Value::Text(Provider::S3.as_str().to_owned())));
        }
        value.map(|value| read(field, value)).transpose()
    })?;
    let version = version::of(item);
    Ok((key, Stored { record, version }))
}

fn read(field: Field, value: &AttributeValue) -> Result<Value, Misfit> {
    Ok(match (field.kind(), value) {
        (_, AttributeValue::S(text)) => Value::Text(text.clone()),
        (Kind::Text, AttributeValue::Null(_)) => Value::Text(String::new()),
        (Kind::Bytes, AttributeValue::Null(_)) => Value::Bytes(Vec::new()),
        (_, AttributeValue::B(bytes)) => Value::Bytes(bytes.as_ref().to_vec()),
        (kind, AttributeValue::N(text)) => {
            let number = number(kind, text).ok_or_else(|| Misfit::of_kind(field, text))?;
            Value::Number(number)
        }
        (_, other) => return Err(Misfit::of_kind(field, &format!("{other:?}"))),
    })
}

/// The whole number in a text. Of a fraction of a second, which other programs write, only the whole seconds count.
fn number(kind: Kind, text: &str) -> Option<i64> {
    if kind == Kind::Seconds
        && let Some((whole, fraction)) = text.split_once('.')
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
    {
        return whole.parse().ok();
    }
    text.parse().ok()
}

impl DynamoStore {
    /// The claim in an item.
    pub(super) fn stored(&self, item: &Item) -> Result<(ClaimKey, Stored), StoreError> {
        decode(item).map_err(|misfit| {
            let key = match item.get(KEY) {
                Some(AttributeValue::S(key)) => key.clone(),
                other => format!("{other:?}"),
            };
            self.misfit(&key, &misfit)
        })
    }

    /// What a misfit in the claim with this key is for the caller.
    pub(super) fn misfit(&self, key: &str, misfit: &Misfit) -> StoreError {
        let (key, attribute) = (beginning(key), attributes::of(misfit.field));
        let what = format!("claim {key}, attribute {attribute}");
        StoreError::invalid(self, what, misfit.expected, &misfit.got)
    }
}

#[cfg(test)]
mod tests;
