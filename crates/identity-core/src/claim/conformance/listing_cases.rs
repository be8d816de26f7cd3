//! Cases about lists: pages, cursors, order, and rows that no claim can be read from.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    sync::Arc,
};

use super::{
    CaseResult, Failure, Subject,
    asking::{owner, put},
    ensure, key, told, won,
};
use crate::claim::{
    record::{ClaimKey, Record, Status, UnixSeconds},
    store::{ClaimStore, Cursor, ListQuery, Page, Precondition, StoreError},
};

const OPEN: [Status; 4] = [
    Status::Processing,
    Status::Failed,
    Status::Rejected,
    Status::Waiting,
];

pub(super) async fn run(subject: &dyn Subject, seed: u64) -> Vec<Failure> {
    Failure::of([
        (
            "pages hold each row once, the oldest first",
            each_once(subject, seed).await,
        ),
        (
            "no status is no row",
            no_status(subject.store().as_ref()).await,
        ),
        (
            "no row is lost between pages while others end and come",
            between_pages(subject, seed).await,
        ),
        (
            "a row is listed as what another program made it",
            foreign(subject, seed).await,
        ),
        (
            "a row that is no claim is told once, and hides no other",
            unreadable(subject, seed).await,
        ),
        (
            "a cursor that no page ended with is refused",
            no_cursor(subject.store().as_ref()).await,
        ),
    ])
}

/// A row of the case, of the seed's own time.
async fn row(
    store: &Arc<dyn ClaimStore>,
    seed: u64,
    name: &str,
    status: Status,
    at: i64,
) -> Result<(UnixSeconds, ClaimKey), String> {
    let base = 1_500_000_000 + i64::try_from(seed % 1_000_000).unwrap_or(0) * 100;
    let (key, claimed_at) = (key(seed, name), UnixSeconds(base + at));
    let record = Record {
        status,
        claimed_at,
        ..won(owner()?)
    };
    put(store, &key, &record, Precondition::Absent).await?;
    Ok((claimed_at, key))
}

fn query(statuses: &[Status], limit: u32) -> ListQuery {
    ListQuery {
        statuses: statuses.iter().copied().collect(),
        limit: NonZeroU32::new(limit).unwrap_or(NonZeroU32::MIN),
        after: None,
    }
}

/// One page, which is none too large and has nothing that was not asked for.
async fn page(store: &Arc<dyn ClaimStore>, query: &ListQuery) -> Result<Page, String> {
    let page = store.list(query).await.map_err(|error| told(&error))?;
    ensure!(
        page.rows() <= usize::try_from(query.limit.get()).unwrap_or(usize::MAX),
        "asked for pages of {}, got one of {} claims and {} others",
        query.limit,
        page.claims.len(),
        page.unreadable.len()
    );
    for (key, stored) in &page.claims {
        let status = stored.record.status;
        ensure!(
            query.statuses.contains(&status),
            "asked for {:?}, got {key}, which is {status}",
            query.statuses
        );
    }
    Ok(page)
}

/// What all pages hold.
#[derive(Default)]
struct Seen {
    claims: Vec<(UnixSeconds, ClaimKey)>,
    unreadable: Vec<String>,
}

impl Seen {
    fn add(&mut self, page: &Page) {
        let place = |key: &ClaimKey, record: &Record| (record.claimed_at, key.clone());
        let claims = page.claims.iter();
        self.claims
            .extend(claims.map(|(key, stored)| place(key, &stored.record)));
        self.unreadable.extend(page.unreadable.iter().map(told));
    }

    /// Those of the case, in the order in which they came.
    fn of(&self, mine: &BTreeSet<(UnixSeconds, ClaimKey)>) -> Vec<(UnixSeconds, ClaimKey)> {
        let claims = self.claims.iter();
        claims
            .filter(|claim| mine.contains(claim))
            .cloned()
            .collect()
    }
}

async fn all(store: &Arc<dyn ClaimStore>, mut query: ListQuery) -> Result<Seen, String> {
    let mut seen = Seen::default();
    for _page in 0..10_000 {
        let page = page(store, &query).await?;
        seen.add(&page);
        query.after = page.next;
        if query.after.is_none() {
            return Ok(seen);
        }
    }
    Err("10,000 pages, and still another one".into())
}

async fn each_once(subject: &dyn Subject, seed: u64) -> CaseResult {
    let store = subject.store();
    let mut rows: BTreeMap<Status, BTreeSet<_>> = BTreeMap::new();
    for (at, status) in (0..25).zip(Status::ALL.into_iter().cycle()) {
        // Four share a second, so that pages end between them; the last written is the oldest.
        let row = row(&store, seed, &format!("each {at}"), status, 10 - at / 4).await?;
        rows.entry(status).or_default().insert(row);
    }
    let of = |statuses: &[Status]| -> BTreeSet<_> {
        let rows = statuses.iter().filter_map(|status| rows.get(status));
        rows.flatten().cloned().collect()
    };
    let few = [Status::Failed];
    for (statuses, limits) in [(&OPEN[..], [4, 1_000]), (&few, [1, 5])] {
        for limit in limits {
            let (mine, seen) = (of(statuses), all(&store, query(statuses, limit)).await?);
            let listed = seen.of(&mine);
            ensure!(
                listed.iter().eq(&mine),
                "pages of {limit} of {statuses:?}: expected {mine:?}, listed {listed:?}"
            );
        }
    }
    for statuses in [&[Status::Done][..], &[Status::Done, Status::Failed]] {
        for limit in [1, 4, 1_000] {
            let (mine, seen) = (of(statuses), all(&store, query(statuses, limit)).await?);
            let mut listed = seen.of(&mine);
            listed.sort();
            ensure!(
                listed.iter().eq(&mine),
                "pages of {limit} of {statuses:?}: expected {mine:?}, in any order, listed {listed:?}"
            );
        }
    }
    Ok(())
}

async fn no_status(store: &dyn ClaimStore) -> CaseResult {
    let page = store.list(&query(&[], 10)).await;
    let page = page.map_err(|error| told(&error))?;
    ensure!(
        page.rows() == 0 && page.next.is_none(),
        "asked for no status, got {page:?}"
    );
    Ok(())
}

async fn between_pages(subject: &dyn Subject, seed: u64) -> CaseResult {
    let store = subject.store();
    let mut mine = BTreeSet::new();
    for at in 0..20 {
        mine.insert(row(&store, seed, &format!("between {at}"), Status::Failed, 50).await?);
    }
    let mut query = query(&[Status::Failed], 5);
    let (mut seen, mut ended) = (Seen::default(), BTreeSet::new());
    loop {
        let page = page(&store, &query).await?;
        seen.add(&page);
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
        let listed = seen.of(&mine);
        if !listed.is_empty() && ended.is_empty() {
            // One that was seen, the last that was, and one that is still to come end; one comes before all, one after.
            let to_come = mine.iter().filter(|row| !listed.contains(row)).nth(2);
            ended = [listed.first(), listed.last(), to_come]
                .into_iter()
                .flatten()
                .cloned()
                .collect();
            for (_, key) in &ended {
                subject.flip_status(key, Status::Done).await;
            }
            row(&store, seed, "between, before", Status::Failed, 49).await?;
            mine.insert(row(&store, seed, "between, after", Status::Failed, 51).await?);
        }
    }
    let listed = seen.of(&mine);
    let set: BTreeSet<_> = listed.iter().cloned().collect();
    ensure!(
        set.len() == listed.len(),
        "a row was listed twice: {listed:?}"
    );
    let lost: Vec<_> = mine
        .difference(&set)
        .filter(|row| !ended.contains(row))
        .collect();
    ensure!(lost.is_empty(), "not listed: {lost:?}");
    Ok(())
}

async fn foreign(subject: &dyn Subject, seed: u64) -> CaseResult {
    let store = subject.store();
    let ended = row(&store, seed, "foreign, ended", Status::Processing, 60).await?;
    let bare = row(&store, seed, "foreign, bare", Status::Processing, 60).await?;
    subject.flip_status(&ended.1, Status::Done).await;
    subject.forget_lease(&bare.1).await;
    let both = BTreeSet::from([ended.clone(), bare.clone()]);
    for (statuses, expected) in [(&OPEN[..], bare), (&[Status::Done], ended)] {
        let listed = all(&store, query(statuses, 10)).await?.of(&both);
        ensure!(
            listed == [expected.clone()],
            "{statuses:?}: expected {expected:?}, listed {listed:?}"
        );
    }
    Ok(())
}

async fn unreadable(subject: &dyn Subject, seed: u64) -> CaseResult {
    const BAD: [i64; 4] = [0, 4, 5, 9];
    let store = subject.store();
    let (mut good, mut bad) = (BTreeSet::new(), Vec::new());
    for at in 0..10 {
        let name = format!("unreadable {at}");
        let row = row(&store, seed, &name, Status::Failed, 70 + at).await?;
        if BAD.contains(&at) {
            subject.put_unreadable(&row.1).await;
            bad.push(row.1);
        } else {
            good.insert(row);
        }
    }
    for key in &bad {
        let read = store.get(key).await;
        ensure!(
            matches!(read, Err(StoreError::Invalid { .. })),
            "{key}: expected that it cannot be read, got {read:?}"
        );
    }
    for statuses in [&[Status::Failed][..], &[Status::Failed, Status::Done]] {
        for limit in [2, 1_000] {
            let seen = all(&store, query(statuses, limit)).await?;
            let mut listed = seen.of(&good);
            listed.sort();
            ensure!(
                listed.iter().eq(&good),
                "pages of {limit} of {statuses:?}: expected {good:?}, listed {listed:?}"
            );
            for key in &bad {
                let about = |text: &&String| text.contains(key.as_str());
                let times = seen.unreadable.iter().filter(about).count();
                ensure!(
                    times == 1,
                    "pages of {limit} of {statuses:?}: {key} is told {times} times in {:?}",
                    seen.unreadable
                );
            }
        }
    }
    // They are no part of other cases.
    for key in &bad {
        subject.delete(key).await;
    }
    Ok(())
}

async fn no_cursor(store: &dyn ClaimStore) -> CaseResult {
    for statuses in [&OPEN[..], &[Status::Done]] {
        for text in ["", "5", "nowhere"] {
            let query = ListQuery {
                after: Some(Cursor(text.to_owned())),
                ..query(statuses, 10)
            };
            let listed = store.list(&query).await;
            ensure!(
                matches!(listed, Err(StoreError::Invalid { .. })),
                "expected that the cursor {text:?} is refused, got {listed:?}"
            );
        }
    }
    Ok(())
}
