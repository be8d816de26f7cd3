//! Stores that keep their rows well, and list or purge them wrongly in one way each.

use std::{fmt, num::NonZeroU32, sync::Arc};

use async_trait::async_trait;
use identity_core::claim::{
    ClaimKey, ClaimStore, Cursor, ListQuery, Page, Precondition, Record, Status, StoreError,
    Stored, UnixSeconds, Version,
    conformance::{self, Failure, Subject},
    memory::MemoryStore,
};

use crate::{Memory, assert_failed};

/// What a store does wrongly.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Defect {
    /// A purge takes what somebody is at, too, if its row has a time in it.
    PurgesRunning,
    /// A purge takes every row that is done.
    PurgesUnexpired,
    /// A purge takes by its key what it has looked at before.
    PurgesBlindly,
    /// A purge takes all that is over, however many.
    PurgesAll,
    /// Nothing is ever purged.
    PurgesNothing,
    /// Rows that no claim can be read from are in no list.
    DropsUnreadable,
    /// Such a row ends the list.
    StopsAtUnreadable,
    /// Such rows are beside those that a page may have.
    UnreadableUncounted,
    /// The row after the last one of a page is in none.
    LosesOneBetweenPages,
    /// The last row of a page is the first of the next one, too.
    RepeatsTheLast,
    /// A page ends at a place that is counted from the first row.
    CountedCursor,
    /// Within a page, the newest row comes first.
    NewestFirst,
    /// A status that was not asked for is listed, too.
    ListsAll,
}

#[derive(Debug)]
struct Defective {
    inner: Arc<MemoryStore>,
    defect: Defect,
}

impl fmt::Display for Defective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.defect)
    }
}

impl Defective {
    /// All rows with this status that a purge may be wrong about.
    async fn with(&self, status: Status) -> Vec<(ClaimKey, Stored)> {
        let query = ListQuery {
            statuses: [status].into(),
            limit: NonZeroU32::MAX,
            after: None,
        };
        self.inner.list(&query).await.unwrap().claims
    }

    fn remove(&self, rows: Vec<(ClaimKey, Stored)>) -> u32 {
        for (key, _) in &rows {
            self.inner.delete(key);
        }
        u32::try_from(rows.len()).unwrap()
    }

    async fn page(&self, query: &ListQuery, limit: u32) -> Result<Page, StoreError> {
        let limit = NonZeroU32::new(limit).unwrap_or(NonZeroU32::MIN);
        let query = ListQuery {
            limit,
            ..query.clone()
        };
        self.inner.list(&query).await
    }
}

#[async_trait]
impl ClaimStore for Defective {
    async fn get(&self, key: &ClaimKey) -> Result<Option<Stored>, StoreError> {
        self.inner.get(key).await
    }

    async fn put(
        &self,
        key: &ClaimKey,
        record: &Record,
        when: &Precondition,
    ) -> Result<Version, StoreError> {
        self.inner.put(key, record, when).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        let limit = query.limit.get();
        let mut page = self.inner.list(query).await?;
        match self.defect {
            Defect::DropsUnreadable => page.unreadable.clear(),
            Defect::StopsAtUnreadable if !page.unreadable.is_empty() => page.next = None,
            Defect::UnreadableUncounted => {
                while page.claims.len() < limit as usize && page.next.is_some() {
                    let after = page.next.take();
                    let query = ListQuery {
                        after,
                        ..query.clone()
                    };
                    let more = self.page(&query, 1).await?;
                    page.claims.extend(more.claims);
                    page.unreadable.extend(more.unreadable);
                    page.next = more.next;
                }
            }
            Defect::LosesOneBetweenPages if page.next.is_some() => {
                page.next = self.page(query, limit.saturating_add(1)).await?.next;
            }
            Defect::RepeatsTheLast if limit > 1 && page.next.is_some() => {
                page.next = self.page(query, limit - 1).await?.next;
            }
            Defect::CountedCursor => return self.counted(query).await,
            Defect::NewestFirst => page.claims.reverse(),
            Defect::ListsAll if !query.statuses.is_empty() => {
                let query = ListQuery {
                    statuses: Status::ALL.into(),
                    ..query.clone()
                };
                return self.inner.list(&query).await;
            }
            _ => {}
        }
        Ok(page)
    }

    async fn purge(&self, now: UnixSeconds, most: NonZeroU32) -> Result<u32, StoreError> {
        let over = |(_, stored): &(ClaimKey, Stored)| {
            let expires_at = stored.record.expires_at;
            expires_at.is_some_and(|expires| expires < now)
        };
        match self.defect {
            Defect::PurgesNothing => Ok(0),
            Defect::PurgesUnexpired => Ok(self.remove(self.with(Status::Done).await)),
            Defect::PurgesRunning => {
                let mut running = self.with(Status::Processing).await;
                running.retain(over);
                self.remove(running);
                self.inner.purge(now, most).await
            }
            Defect::PurgesBlindly => {
                let mut looked_at = self.with(Status::Done).await;
                looked_at.retain(over);
                // As long as another program takes for a write.
                for _ in 0..1_000 {
                    tokio::task::yield_now().await;
                }
                Ok(self.remove(looked_at))
            }
            Defect::PurgesAll => self.inner.purge(now, NonZeroU32::MAX).await,
            _ => self.inner.purge(now, most).await,
        }
    }
}

impl Defective {
    /// As an offset of SQL counts: what ends meanwhile moves the rest.
    async fn counted(&self, query: &ListQuery) -> Result<Page, StoreError> {
        let from: usize = match &query.after {
            None => 0,
            Some(Cursor(text)) => text.parse().map_err(|_| {
                let expected = "a number";
                StoreError::invalid(self, "cursor".into(), expected, text)
            })?,
        };
        let query = ListQuery {
            after: None,
            ..query.clone()
        };
        let limit = query.limit.get() as usize;
        let mut all = self.page(&query, u32::MAX).await?;
        let more = all.claims.len() > from + limit;
        all.next = more.then(|| Cursor((from + limit).to_string()));
        all.claims = all.claims.into_iter().skip(from).take(limit).collect();
        Ok(all)
    }
}

struct Examined {
    rows: Memory,
    store: Arc<Defective>,
}

#[async_trait]
impl Subject for Examined {
    fn store(&self) -> Arc<dyn ClaimStore> {
        self.store.clone()
    }
    async fn delete(&self, key: &ClaimKey) {
        self.rows.delete(key).await;
    }
    async fn flip_status(&self, key: &ClaimKey, status: Status) {
        self.rows.flip_status(key, status).await;
    }
    async fn forget_lease(&self, key: &ClaimKey) {
        self.rows.forget_lease(key).await;
    }
    async fn put_unreadable(&self, key: &ClaimKey) {
        self.rows.put_unreadable(key).await;
    }
}

async fn failures_of(defect: Defect) -> Vec<Failure> {
    let inner: Arc<MemoryStore> = Arc::default();
    let subject = Examined {
        rows: Memory(inner.clone()),
        store: Arc::new(Defective { inner, defect }),
    };
    conformance::run(&subject, 1).await
}

/// The cases that each defect has to fail.
macro_rules! fails {
    ($($test:ident: $defect:ident fails $($case:literal),+;)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $test() {
            let failures = failures_of(Defect::$defect).await;
            $(assert_failed(&failures, $case);)+
        }
    )*};
}

fails! {
    a_purge_that_takes_a_running_row_fails:
        PurgesRunning fails "a purge takes ends whose time is over, and nothing else";
    a_purge_that_takes_what_is_not_over_fails:
        PurgesUnexpired fails "a purge takes ends whose time is over, and nothing else";
    a_purge_that_takes_what_has_changed_fails:
        PurgesBlindly fails "a row that changed after a purge looked at it stays";
    a_purge_that_takes_too_many_fails:
        PurgesAll fails "a purge takes no more than it was told to";
    a_purge_that_takes_nothing_fails:
        PurgesNothing fails "a purge takes ends whose time is over, and nothing else";
    a_listing_that_drops_an_unreadable_row_fails:
        DropsUnreadable fails "a row that is no claim is told once, and hides no other";
    a_listing_that_an_unreadable_row_ends_fails:
        StopsAtUnreadable fails "a row that is no claim is told once, and hides no other";
    a_listing_that_does_not_count_unreadable_rows_fails:
        UnreadableUncounted fails "a row that is no claim is told once, and hides no other";
    a_listing_that_loses_a_row_between_pages_fails:
        LosesOneBetweenPages fails
            "pages hold each row once, the oldest first",
            "no row is lost between pages while others end and come";
    a_listing_that_repeats_a_row_fails:
        RepeatsTheLast fails "pages hold each row once, the oldest first";
    a_listing_that_goes_on_where_it_has_counted_to_fails:
        CountedCursor fails "no row is lost between pages while others end and come";
    a_listing_that_sorts_the_other_way_fails:
        NewestFirst fails "pages hold each row once, the oldest first";
    a_listing_of_other_statuses_fails:
        ListsAll fails "a row is listed as what another program made it";
}
