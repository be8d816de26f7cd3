//! The attributes of an item that more than its mapping needs, and what places an open claim in the index.
//!
//! `job_id`, `bucket`, `key`, `status`, `claimed_at`, `finished_at` and `expires_at` are the published Python handler's, in
//! its types.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use identity_core::claim::{ClaimKey, Status, UnixSeconds};

/// An item as the service has it.
pub(super) type Item = HashMap<String, AttributeValue>;

pub(super) const KEY: &str = "job_id";
pub(super) const STATUS: &str = "status";
pub(super) const ATTEMPT: &str = "attempt";
pub(super) const OWNER: &str = "owner";
pub(super) const REVISION: &str = "revision";
pub(super) const CLAIMED_AT: &str = "claimed_at";
/// In which partition of the index an open claim is.
pub(super) const OPEN_SHARD: &str = "open_shard";
/// Where in its partition: see [`since`].
pub(super) const OPEN_SINCE: &str = "open_since";

/// Into how many partitions of the index the open claims of one status are spread: a partition takes 1,000 writes a second.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-indexes-gsi-sharding.html>
pub const SHARDS: u8 = 8;

/// The partition of the index for claims of this status with this key.
pub(super) fn shard(status: Status, key: &ClaimKey) -> String {
    // The key is a digest: its first character is as good as random.
    let digit = key.as_str().bytes().next().unwrap_or_default();
    let number = char::from(digit).to_digit(16).unwrap_or_default();
    shard_name(status, number % u32::from(SHARDS))
}

/// The name of a partition of the index, e.g. `processing#3`.
pub(super) fn shard_name(status: Status, number: u32) -> String {
    format!("{status}#{number}")
}

/// Where a claim stands in its partition of the index: its `claimed_at` in 20 digits, a dot and the key, which no two claims
/// share, so that a page can end at any of them. Times before 1970 sort first, all alike.
pub(super) fn since(claimed_at: UnixSeconds, key: &ClaimKey) -> String {
    format!("{:020}.{key}", claimed_at.0.max(0))
}
