//! A query for claims as the database is asked it: bounds, cursor, and where a page ends.

use identity_core::claim::{ClaimKey, Cursor, ListQuery, Page, Status, Stored};

use crate::columns::Misfit;

/// The most rows of a page, whatever limit it was asked for: a row can have 48 KiB.
const MAX_PAGE: u32 = 1_000;

/// The parameters of [`statements::list`](crate::statements::list).
#[derive(Debug)]
pub(crate) struct Listing {
    /// Each once.
    pub(crate) statuses: Vec<Status>,
    /// Unix seconds.
    pub(crate) until: i64,
    /// The row that the page before ended with: `claimed_at` and key.
    pub(crate) after: (i64, String),
    limit: u32,
}

impl Listing {
    /// Checks a query.
    pub(crate) fn new(query: &ListQuery) -> Result<Self, Misfit> {
        let misfit = |what: &str, expected, got| Misfit {
            what: what.to_owned(),
            expected,
            got,
        };
        if query.limit == 0 {
            return Err(misfit("limit of a page", "1 or more", "0".to_owned()));
        }
        let mut statuses = query.statuses.clone();
        statuses.sort_unstable();
        statuses.dedup();
        let after = match &query.after {
            None => (i64::MIN, String::new()),
            Some(Cursor(text)) => parse(text)
                .ok_or_else(|| misfit("cursor", "one that a page ended with", text.clone()))?,
        };
        Ok(Self {
            statuses,
            // Whole seconds are compared: a row of this moment's second was claimed at its first millisecond.
            until: query
                .claimed_until
                .map_or(i64::MAX, |until| until.seconds().0),
            after,
            limit: query.limit.min(MAX_PAGE),
        })
    }

    /// How many rows to ask for: one more than the page holds says that there is a next one.
    pub(crate) fn rows(&self) -> i64 {
        i64::from(self.limit) + 1
    }

    /// The page of these rows.
    pub(crate) fn page(&self, mut claims: Vec<(ClaimKey, Stored)>) -> Page {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let more = claims.len() > limit;
        claims.truncate(limit);
        let next = claims.last().filter(|_| more).map(|(key, stored)| {
            let time = stored.record.claimed_at.0;
            Cursor(format!("{time} {key}"))
        });
        Page { claims, next }
    }
}

fn parse(cursor: &str) -> Option<(i64, String)> {
    let (time, key) = cursor.split_once(' ')?;
    Some((time.parse().ok()?, ClaimKey::parse(key)?.to_string()))
}
