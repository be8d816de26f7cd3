//! A query for claims as the database is asked it: bounds, cursor, and where a page ends.

use std::collections::BTreeSet;

use identity_core::claim::{Cursor, ListQuery, Page, Status};

use crate::columns::{Listed, Misfit};

/// The most rows of a page, whatever limit it was asked for: a row can have 48 KiB.
const MAX_PAGE: u32 = 1_000;

/// The parameters of [`statements::list`](crate::statements::list).
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) statuses: BTreeSet<Status>,
    /// The row that the page before ended with: `claimed_at` and key.
    pub(crate) after: (i64, String),
    limit: u32,
}

impl Listing {
    /// Checks a query.
    pub(crate) fn new(query: &ListQuery) -> Result<Self, Misfit> {
        let after = match &query.after {
            None => (i64::MIN, String::new()),
            Some(Cursor(text)) => parse(text).ok_or_else(|| Misfit {
                what: "cursor".to_owned(),
                expected: "one that a page ended with",
                got: text.clone(),
            })?,
        };
        Ok(Self {
            statuses: query.statuses.clone(),
            after,
            limit: query.limit.get().min(MAX_PAGE),
        })
    }

    /// How many rows to ask for: one more than the page holds says that there is a next one.
    pub(crate) fn rows(&self) -> i64 {
        i64::from(self.limit) + 1
    }

    /// The page of these rows, in `store`.
    pub(crate) fn page(&self, mut rows: Vec<Listed>, store: &impl std::fmt::Display) -> Page {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(|row| {
            let (time, key) = &row.position;
            Cursor(format!("{time} {key}"))
        });
        let mut page = Page {
            next,
            ..Page::default()
        };
        for row in rows {
            match row.claim {
                Ok(claim) => page.claims.push(claim),
                Err(misfit) => page.unreadable.push(misfit.in_store(store)),
            }
        }
        page
    }
}

/// The key of a row that no claim can be read from may be any text.
fn parse(cursor: &str) -> Option<(i64, String)> {
    let (time, key) = cursor.split_once(' ')?;
    Some((time.parse().ok()?, key.to_owned()))
}
