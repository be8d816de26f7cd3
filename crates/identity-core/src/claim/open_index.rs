//! The index of open claims, for stores without one of their own: in which part of it a claim is, where it stands there, and
//! where a page of all the parts together ends. Arithmetic alone; asking the parts is the store's.
//!
//! A store keeps two texts with each row that is not `done`: [`shard`], by which the index is split, and [`since`], by which
//! it is sorted. Rows that are done have neither, so that the index holds open claims alone, however many there were.

use super::{
    record::{ClaimKey, Status, UnixSeconds},
    store::Cursor,
};

/// Into how many parts the open claims of one status are split. One part alone would be a bottleneck: new claims all come at
/// its end. DynamoDB's takes 1,000 writes a second:
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-indexes-gsi-sharding.html>
pub const SHARDS: u8 = 8;

/// The part of the index for claims of this status with this key, e.g. `processing#3`.
pub fn shard(status: Status, key: &ClaimKey) -> String {
    // The key is a digest: its first character is as good as random.
    let digit = key.as_str().bytes().next().unwrap_or_default();
    let number = char::from(digit).to_digit(16).unwrap_or_default();
    name(status, number % u32::from(SHARDS))
}

/// Every part of the index in which there are claims of these statuses.
pub fn shards(statuses: impl IntoIterator<Item = Status>) -> impl Iterator<Item = String> {
    let numbers = 0..u32::from(SHARDS);
    statuses
        .into_iter()
        .flat_map(move |status| numbers.clone().map(move |number| name(status, number)))
}

fn name(status: Status, number: u32) -> String {
    format!("{status}#{number}")
}

/// Where a claim stands in its part, and in a page: its `claimed_at` in 20 digits, a dot and the key, which no two claims
/// share, so that a page can end at any of them. Times before 1970 sort first, all alike.
pub fn since(claimed_at: UnixSeconds, key: &ClaimKey) -> String {
    format!("{:020}.{key}", claimed_at.0.max(0))
}

/// The text again if [`since`] wrote it, or `None`.
pub fn parse_since(text: &str) -> Option<String> {
    let (seconds, key) = text.split_once('.')?;
    let rebuilt = since(UnixSeconds(seconds.parse().ok()?), &ClaimKey::parse(key)?);
    (rebuilt == text).then_some(rebuilt)
}

/// An entry of the index. The order is that of pages.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// [`since`]
    pub since: String,
    /// The key by which the row itself is found.
    pub key: String,
}

/// How many entries after the cursor to ask each part for: one more than a page holds says that there is a next one.
pub fn of_each(limit: usize) -> usize {
    limit.saturating_add(1)
}

/// The page of what was found in the parts, of each [`of_each`] of the first ones or all that there are, and where the next
/// page begins.
pub fn page(found: Vec<Vec<Place>>, limit: usize) -> (Vec<Place>, Option<Cursor>) {
    let mut found = found.concat();
    found.sort_unstable();
    // A claim whose status has just changed can be in two parts for a moment.
    found.dedup();
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more);
    let next = next.map(|place| Cursor(place.since.clone()));
    (found, next)
}

#[cfg(all(test, feature = "conformance"))]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::claim::conformance::samples;

    proptest! {
        #[test]
        fn the_index_sorts_by_time_and_then_by_key(
            (a, b) in (samples::key(), samples::key()),
            (early, late) in (0..i64::MAX, 0..i64::MAX),
        ) {
            let (first, second) = (since(UnixSeconds(early), &a), since(UnixSeconds(late), &b));
            prop_assert_eq!(first.cmp(&second), (early, a.as_str()).cmp(&(late, b.as_str())));
        }

        #[test]
        fn a_place_in_the_index_is_read_as_it_was_written(key in samples::key(), at: i64) {
            let text = since(UnixSeconds(at), &key);
            prop_assert_eq!(parse_since(&text), Some(text));
        }

        /// However the claims lie in the parts, the pages hold each once, in order.
        #[test]
        fn the_pages_hold_each_claim_once_and_in_order(
            claims in proptest::collection::btree_set((0..5_i64, 0..30_u64, 0..3_usize), 0..40),
            limit in 1..12_usize,
        ) {
            let place = |at: i64, number: u64| {
                let key = samples::numbered_key(number);
                Place { since: since(UnixSeconds(at), &key), key: key.to_string() }
            };
            let mut parts = vec![Vec::new(); 3];
            for (at, number, part) in &claims {
                parts[*part].push(place(*at, *number));
            }
            let expected: BTreeSet<_> = claims.iter().map(|(at, number, _)| place(*at, *number)).collect();
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let found = parts.iter().map(|part| {
                    let mut part = part.clone();
                    part.sort();
                    let rest = part.into_iter().filter(|place| after.as_ref().is_none_or(|Cursor(after)| place.since > *after));
                    rest.take(of_each(limit)).collect()
                });
                let (page, next) = page(found.collect(), limit);
                prop_assert!(page.len() <= limit);
                prop_assert!(page.len() == limit || next.is_none());
                prop_assert!(!page.is_empty() || expected.is_empty(), "a page without rows");
                seen.extend(page);
                if next.is_none() {
                    break;
                }
                after = next;
            }
            prop_assert!(seen.iter().eq(&expected), "{:?}", seen);
        }
    }

    #[test]
    fn every_part_has_its_share_of_keys() {
        let parts: BTreeSet<String> = (0..=255)
            .map(|byte| shard(Status::Failed, &ClaimKey::from_digest([byte; 32])))
            .collect();
        assert!(parts.into_iter().eq(shards([Status::Failed])));
    }

    #[test]
    fn what_is_no_place_is_not_read_as_one() {
        let key = samples::numbered_key(1);
        for text in ["", "5", &format!("5.{key}"), &format!("{:020}.key", 5)] {
            assert_eq!(parse_since(text), None, "{text}");
        }
    }
}
