//! The attributes of an item.
//!
//! `job_id`, `bucket`, `key`, `status`, `claimed_at`, `finished_at` and `expires_at` are the published Python handler's, in
//! its types; the others are named as the fields of a row are.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use identity_core::claim::fields::Field;

/// An item as the service has it.
pub(super) type Item = HashMap<String, AttributeValue>;

pub(super) const KEY: &str = of(Field::Key);
pub(super) const STATUS: &str = of(Field::Status);
/// In which partition of the index an open claim is.
pub(super) const OPEN_SHARD: &str = "open_shard";
/// Where in its partition.
pub(super) const OPEN_SINCE: &str = "open_since";

/// The attribute that holds a field.
pub(super) const fn of(field: Field) -> &'static str {
    match field {
        Field::Key => "job_id",
        Field::ObjectContainer => "bucket",
        Field::ObjectKey => "key",
        field => field.name(),
    }
}
