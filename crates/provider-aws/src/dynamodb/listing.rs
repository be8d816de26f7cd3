//! Pages of claims: open ones by the index, oldest first; done ones by a scan, in the table's own order.
//!
//! The index is read eventually consistently and holds keys alone; each claim is then read from the table, strongly
//! consistent, and left out if it has moved on. The index lists what programs of this project wrote. A scan sees every
//! item, those of other programs, too, and costs what the whole table does: it is there for people.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use identity_core::claim::{
    ClaimKey, Cursor, ListQuery, Page, Status, StoreError, Stored, UnixSeconds,
};

use super::attributes::{self, Item, SHARDS};
use super::item::Misfit;
use super::{DynamoStore, OPEN_INDEX};

/// The most claims of a page, whatever limit it was asked for: a claim can have 48 KiB.
const MAX_PAGE: u32 = 1_000;
/// How many requests of one listing are under way at once.
const SIDE_BY_SIDE: usize = 16;

/// A checked query.
struct Listing {
    /// Each once.
    statuses: Vec<Status>,
    /// Unix seconds.
    until: i64,
    limit: usize,
    after: Option<After>,
}

/// Where the page before ended.
enum After {
    /// In the order of the index.
    Open(String),
    /// In the order of a scan, at this key.
    Scan(ClaimKey),
}

impl Listing {
    fn new(query: &ListQuery) -> Result<Self, Misfit> {
        let misfit = |what: &str, expected, got: &str| Misfit {
            what: what.to_owned(),
            expected,
            got: got.to_owned(),
        };
        if query.limit == 0 {
            return Err(misfit("limit of a page", "1 or more", "0"));
        }
        let mut statuses = query.statuses.clone();
        statuses.sort_unstable();
        statuses.dedup();
        let scans = statuses.contains(&Status::Done);
        let after = match &query.after {
            None => None,
            Some(Cursor(text)) => Some(After::parse(text, scans).ok_or_else(|| {
                misfit(
                    "cursor",
                    "one that a page of the same query ended with",
                    text,
                )
            })?),
        };
        Ok(Self {
            statuses,
            // Whole seconds are compared: a claim of this moment's second was made at its first millisecond.
            until: query
                .claimed_until
                .map_or(i64::MAX, |until| until.seconds().0),
            limit: usize::try_from(query.limit.min(MAX_PAGE)).unwrap_or(usize::MAX),
            after,
        })
    }

    fn wants(&self, stored: &Stored) -> bool {
        self.statuses.contains(&stored.record.status) && stored.record.claimed_at.0 <= self.until
    }
}

impl After {
    /// The cursor's text; what [`After::parse`] reads.
    fn cursor(&self) -> Cursor {
        Cursor(match self {
            Self::Open(since) => format!("open {since}"),
            Self::Scan(key) => format!("scan {key}"),
        })
    }

    fn parse(text: &str, scans: bool) -> Option<Self> {
        match text.split_once(' ')? {
            ("open", since) if !scans => {
                let (seconds, key) = since.split_once('.')?;
                let rebuilt =
                    attributes::since(UnixSeconds(seconds.parse().ok()?), &ClaimKey::parse(key)?);
                (rebuilt == since).then_some(Self::Open(rebuilt))
            }
            ("scan", key) if scans => ClaimKey::parse(key).map(Self::Scan),
            _ => None,
        }
    }
}

/// The page that answers `query`.
pub(super) async fn list(store: &DynamoStore, query: &ListQuery) -> Result<Page, StoreError> {
    let listing = Listing::new(query).map_err(|misfit| store.invalid(misfit))?;
    if listing.statuses.is_empty() {
        return Ok(empty());
    }
    if listing.statuses.contains(&Status::Done) {
        scan(store, &listing).await
    } else {
        open(store, &listing).await
    }
}

/// A page by the index. It may have fewer claims than the limit, even none, and a next page: some may have moved on.
async fn open(store: &DynamoStore, listing: &Listing) -> Result<Page, StoreError> {
    let mut shards = Vec::new();
    for status in &listing.statuses {
        for number in 0..u32::from(SHARDS) {
            shards.push(query_shard(
                store,
                listing,
                attributes::shard_name(*status, number),
            ));
        }
    }
    let found: Vec<Vec<Place>> = stream::iter(shards)
        .buffer_unordered(SIDE_BY_SIDE)
        .try_collect()
        .await?;
    let mut found = found.concat();
    found.sort_unstable();
    // A claim whose status has just changed can be in two partitions for a moment.
    found.dedup();
    let more = found.len() > listing.limit;
    found.truncate(listing.limit);
    let next = found.last().filter(|_| more);
    let next = next.map(|place| After::Open(place.since.clone()).cursor());
    let mut reads = Vec::new();
    for place in &found {
        reads.push(store.item(&place.key));
    }
    let items: Vec<Option<Item>> = stream::iter(reads)
        .buffered(SIDE_BY_SIDE)
        .try_collect()
        .await?;
    let mut page = Page { next, ..empty() };
    for (place, item) in found.iter().zip(&items) {
        // One that was won again since has another place, where it is listed.
        if let Some(item) = item
            && item.get(attributes::OPEN_SINCE) == Some(&AttributeValue::S(place.since.clone()))
        {
            add(&mut page, store, listing, item);
        }
    }
    Ok(page)
}

fn empty() -> Page {
    Page {
        claims: Vec::new(),
        unreadable: Vec::new(),
        next: None,
    }
}

/// An entry of the index. The order is that of pages.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    since: String,
    key: String,
}

/// What one partition of the index has for the page, and one more.
async fn query_shard(
    store: &DynamoStore,
    listing: &Listing,
    shard: String,
) -> Result<Vec<Place>, StoreError> {
    // A claim's text in the index is that of its second, a dot and its key. A space sorts before a dot and before every
    // letter of a key, a slash after a dot.
    let after = match &listing.after {
        Some(After::Open(since)) => format!("{since} "),
        _ => " ".to_owned(),
    };
    let until = format!("{:020}/", listing.until.max(0));
    if after > until {
        return Ok(Vec::new());
    }
    let most = listing.limit.saturating_add(1);
    let mut pages = store
        .client
        .query()
        .table_name(&store.table)
        .index_name(OPEN_INDEX)
        .key_condition_expression("open_shard = :shard AND open_since BETWEEN :after AND :until")
        .expression_attribute_values(":shard", AttributeValue::S(shard))
        .expression_attribute_values(":after", AttributeValue::S(after))
        .expression_attribute_values(":until", AttributeValue::S(until))
        .limit(i32::try_from(most).unwrap_or(i32::MAX))
        .into_paginator()
        .send();
    let mut found = Vec::new();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|error| store.failed("listing claims", error))?;
        for item in page.items() {
            if let (Some(AttributeValue::S(since)), Some(AttributeValue::S(key))) =
                (item.get(attributes::OPEN_SINCE), item.get(attributes::KEY))
            {
                let (since, key) = (since.clone(), key.clone());
                found.push(Place { since, key });
            }
        }
        if found.len() >= most {
            break;
        }
    }
    found.truncate(most);
    Ok(found)
}

/// A page by a scan of the table, from where the page before ended.
async fn scan(store: &DynamoStore, listing: &Listing) -> Result<Page, StoreError> {
    let mut values = HashMap::new();
    let mut names = Vec::new();
    for (number, status) in listing.statuses.iter().enumerate() {
        let name = format!(":status{number}");
        values.insert(name.clone(), AttributeValue::S(status.to_string()));
        names.push(name);
    }
    let mut start = match &listing.after {
        Some(After::Scan(key)) => Some(key.to_string()),
        _ => None,
    };
    let mut page = empty();
    loop {
        let from =
            start.map(|key| HashMap::from([(attributes::KEY.to_owned(), AttributeValue::S(key))]));
        let scanned = store
            .client
            .scan()
            .table_name(&store.table)
            .consistent_read(true)
            .filter_expression(format!("#status IN ({})", names.join(", ")))
            .expression_attribute_names("#status", attributes::STATUS)
            .set_expression_attribute_values(Some(values.clone()))
            .set_exclusive_start_key(from)
            .send()
            .await
            .map_err(|error| store.failed("listing claims", error))?;
        for item in scanned.items() {
            if page.claims.len() == listing.limit {
                // Whatever follows the last claim is the next page's.
                let last = page.claims.last();
                page.next = last.map(|(key, _)| After::Scan(key.clone()).cursor());
                return Ok(page);
            }
            add(&mut page, store, listing, item);
        }
        start = match scanned
            .last_evaluated_key
            .as_ref()
            .and_then(|key| key.get(attributes::KEY))
        {
            Some(AttributeValue::S(key)) => Some(key.clone()),
            _ => return Ok(page),
        };
    }
}

/// Adds the claim in an item if it is one that was asked for, or why no claim can be read from it.
fn add(page: &mut Page, store: &DynamoStore, listing: &Listing, item: &Item) {
    match store.stored(item) {
        Ok(claim) if listing.wants(&claim.1) => page.claims.push(claim),
        Ok(_) => {}
        Err(error) => page.unreadable.push(error),
    }
}
