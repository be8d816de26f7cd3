//! Pages of claims: open ones by the index, oldest first; done ones by a scan, in the table's own order.
//!
//! The index is read eventually consistently and holds keys alone; each claim is then read from the table, strongly
//! consistent, and left out if it has moved on. The index lists what programs of this project wrote. A scan sees every
//! item, those of other programs, too, and costs what the whole table does: it is there for people.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use identity_core::claim::open_index::{self, Place};
use identity_core::claim::{Cursor, ListQuery, Page, Status, StoreError};

use super::attributes::{self, Item};
use super::{DynamoStore, OPEN_INDEX};

/// The most claims of a page, whatever limit it was asked for: a claim can have 48 KiB.
const MAX_PAGE: u32 = 1_000;
/// How many requests of one listing are under way at once.
const SIDE_BY_SIDE: usize = 16;

/// A checked query.
struct Listing {
    statuses: BTreeSet<Status>,
    limit: usize,
    after: Option<After>,
}

/// Where the page before ended.
enum After {
    /// In the order of the index.
    Open(String),
    /// In the order of a scan, at this key: any text, since a row that is no claim can end a page, too.
    Scan(String),
}

impl Listing {
    fn new(store: &DynamoStore, query: &ListQuery) -> Result<Self, StoreError> {
        let after = match &query.after {
            None => None,
            Some(Cursor(text)) => {
                let after = After::parse(text, query.statuses.contains(&Status::Done));
                Some(after.ok_or_else(|| {
                    let expected = "one that a page of the same query ended with";
                    StoreError::invalid(store, "cursor".to_owned(), expected, text)
                })?)
            }
        };
        Ok(Self {
            statuses: query.statuses.clone(),
            limit: usize::try_from(query.limit.get().min(MAX_PAGE)).unwrap_or(usize::MAX),
            after,
        })
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
            ("open", since) if !scans => open_index::parse_since(since).map(Self::Open),
            ("scan", key) if scans && !key.is_empty() => Some(Self::Scan(key.to_owned())),
            _ => None,
        }
    }
}

/// The page that answers `query`.
pub(super) async fn list(store: &DynamoStore, query: &ListQuery) -> Result<Page, StoreError> {
    let listing = Listing::new(store, query)?;
    if listing.statuses.is_empty() {
        return Ok(Page::default());
    }
    if listing.statuses.contains(&Status::Done) {
        scan(store, &listing).await
    } else {
        open(store, &listing).await
    }
}

/// A page by the index. It may have fewer claims than the limit, even none, and a next page: some may have moved on.
async fn open(store: &DynamoStore, listing: &Listing) -> Result<Page, StoreError> {
    let shards = open_index::shards(listing.statuses.iter().copied());
    let queries: Vec<_> = shards
        .map(|shard| query_shard(store, listing, shard))
        .collect();
    let found: Vec<Vec<Place>> = stream::iter(queries)
        .buffer_unordered(SIDE_BY_SIDE)
        .try_collect()
        .await?;
    let (found, next) = open_index::page(found, listing.limit);
    let reads: Vec<_> = found.iter().map(|place| store.item(&place.key)).collect();
    let items: Vec<Option<Item>> = stream::iter(reads)
        .buffered(SIDE_BY_SIDE)
        .try_collect()
        .await?;
    let mut page = Page {
        next: next.map(|Cursor(since)| After::Open(since).cursor()),
        ..Page::default()
    };
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

/// What one partition of the index has for the page, and one more.
async fn query_shard(
    store: &DynamoStore,
    listing: &Listing,
    shard: String,
) -> Result<Vec<Place>, StoreError> {
    let mut condition = "open_shard = :shard".to_owned();
    let mut values = Item::from([(":shard".to_owned(), AttributeValue::S(shard))]);
    if let Some(After::Open(since)) = &listing.after {
        condition.push_str(" AND open_since > :after");
        values.insert(":after".to_owned(), AttributeValue::S(since.clone()));
    }
    let most = open_index::of_each(listing.limit);
    let mut pages = store
        .client
        .query()
        .table_name(&store.table)
        .index_name(OPEN_INDEX)
        .key_condition_expression(condition)
        .set_expression_attribute_values(Some(values))
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
        Some(After::Scan(key)) => Some(key.clone()),
        _ => None,
    };
    let mut page = Page::default();
    let mut last = None;
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
            if page.rows() == listing.limit {
                // Whatever follows the last row is the next page's.
                page.next = last.map(|key| After::Scan(key).cursor());
                return Ok(page);
            }
            add(&mut page, store, listing, item);
            last = key_of(item);
        }
        start = scanned.last_evaluated_key.as_ref().and_then(key_of);
        if start.is_none() {
            return Ok(page);
        }
    }
}

fn key_of(item: &Item) -> Option<String> {
    let key = item.get(attributes::KEY)?;
    key.as_s().ok().cloned()
}

/// Adds the claim in an item if it is one that was asked for, or why no claim can be read from it.
fn add(page: &mut Page, store: &DynamoStore, listing: &Listing, item: &Item) {
    match store.stored(item) {
        Ok(claim) if listing.statuses.contains(&claim.1.record.status) => page.claims.push(claim),
        Ok(_) => {}
        Err(error) => page.unreadable.push(error),
    }
}
