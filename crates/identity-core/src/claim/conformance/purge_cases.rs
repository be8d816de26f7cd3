//! Cases about old ends: which rows a purge deletes, how many, and what becomes of one that changes meanwhile.

use std::{num::NonZeroU32, sync::Arc};

use super::{
    CaseResult, Failure, Subject,
    asking::{get, owner, put},
    ensure, key, told, won,
};
use crate::claim::{
    machine,
    record::{ClaimKey, Reason, Record, Status, UnixSeconds},
    store::{ClaimStore, Precondition, StoreError},
};

/// Long before the times of all other cases, so that none of their rows is over.
const OVER: UnixSeconds = UnixSeconds(1_000);
const NOW: UnixSeconds = UnixSeconds(2_000);
const MANY: NonZeroU32 = NonZeroU32::new(500).unwrap();
const ROUNDS: u32 = 25;

pub(super) async fn run(subject: &dyn Subject, seed: u64) -> Vec<Failure> {
    Failure::of([
        (
            "a purge takes ends whose time is over, and nothing else",
            only_ends(subject, seed).await,
        ),
        (
            "a purge takes no more than it was told to",
            at_most(subject, seed).await,
        ),
        (
            "a row that changed after a purge looked at it stays",
            changed(subject, seed).await,
        ),
    ])
}

fn ended(status: Status, expires_at: Option<UnixSeconds>) -> Result<Record, String> {
    Ok(Record {
        status,
        expires_at,
        ..won(owner()?)
    })
}

async fn purge(store: &Arc<dyn ClaimStore>, most: NonZeroU32) -> Result<u32, String> {
    store.purge(NOW, most).await.map_err(|error| told(&error))
}

async fn only_ends(subject: &dyn Subject, seed: u64) -> CaseResult {
    let store = subject.store();
    let closed = Record {
        reason: Some(Reason::Redriven),
        ..ended(Status::Done, Some(OVER))?
    };
    let over = [
        ("over", ended(Status::Done, Some(OVER))?),
        ("over, closed", closed),
    ];
    // A row of the published handlers has the time in it before it is done.
    let released = machine::released(
        &ended(Status::Done, Some(OVER))?,
        owner()?,
        UnixSeconds(1_500).millis(),
    );
    let mut others = vec![
        ("done until now", ended(Status::Done, Some(NOW))?),
        (
            "done for longer",
            ended(Status::Done, Some(UnixSeconds(NOW.0 + 1)))?,
        ),
        ("done for ever", ended(Status::Done, None)?),
        ("released", released),
    ];
    for status in Status::ALL {
        if status != Status::Done {
            others.push((status.as_str(), ended(status, Some(OVER))?));
        }
    }
    let key = |name: &str| key(seed, &format!("purge {name}"));
    for (name, record) in over.iter().chain(&others) {
        put(&store, &key(name), record, Precondition::Absent).await?;
    }
    let taken_back = key("taken back");
    let record = ended(Status::Done, Some(OVER))?;
    put(&store, &taken_back, &record, Precondition::Absent).await?;
    subject.flip_status(&taken_back, Status::Processing).await;

    let purged = purge(&store, MANY).await?;
    let expected = if subject.purges() { 2 } else { 0 };
    ensure!(
        purged == expected,
        "of {expected} ends that are over {purged} were purged"
    );
    for (name, _) in &over {
        let stands = get(&store, &key(name)).await?.is_some();
        ensure!(
            stands != subject.purges(),
            "{name}: expected a row: {}, there is one: {stands}",
            !subject.purges()
        );
    }
    for (name, record) in others {
        let stands = get(&store, &key(name)).await?.map(|stored| stored.record);
        ensure!(
            stands.as_ref() == Some(&record),
            "{name}: expected {record:?}, found {stands:?}"
        );
    }
    ensure!(
        get(&store, &taken_back).await?.is_some(),
        "a row that another program took back to processing is gone"
    );
    Ok(())
}

async fn at_most(subject: &dyn Subject, seed: u64) -> CaseResult {
    if !subject.purges() {
        return Ok(());
    }
    let store = subject.store();
    for at in 0..5 {
        let (key, record) = (
            key(seed, &format!("purge most {at}")),
            ended(Status::Done, Some(OVER))?,
        );
        put(&store, &key, &record, Precondition::Absent).await?;
    }
    let two = NonZeroU32::MIN.saturating_add(1);
    for expected in [2, 2, 1, 0] {
        let purged = purge(&store, two).await?;
        ensure!(
            purged == expected,
            "told to take 2 of 5 at a time: expected {expected}, got {purged}"
        );
    }
    Ok(())
}

/// An operator gives back a claim while a purge is at it: one of the two has its way, never both.
async fn changed(subject: &dyn Subject, seed: u64) -> CaseResult {
    if !subject.purges() {
        return Ok(());
    }
    for round in 0..ROUNDS {
        let key = key(seed, &format!("purge changed {round}"));
        changes(subject, &key)
            .await
            .map_err(|what| format!("round {round}: {what}"))?;
    }
    Ok(())
}

async fn changes(subject: &dyn Subject, key: &ClaimKey) -> CaseResult {
    let (store, purger) = (subject.store(), subject.store());
    let record = ended(Status::Done, Some(OVER))?;
    let version = put(&store, key, &record, Precondition::Absent).await?;
    let released = machine::released(&record, owner()?, NOW.millis());
    let barrier = Arc::new(tokio::sync::Barrier::new(2));
    let purging = tokio::spawn({
        let barrier = barrier.clone();
        async move {
            barrier.wait().await;
            purge(&purger, MANY).await
        }
    });
    barrier.wait().await;
    let written = store
        .put(key, &released, &Precondition::Unchanged(version))
        .await;
    let purged = purging.await.map_err(|error| error.to_string())??;
    let stands = get(&store, key).await?.map(|stored| stored.record);
    let (expected, gone) = match written {
        Ok(_) => (Some(released), 0),
        Err(StoreError::Conflict { .. }) => (None, 1),
        Err(error) => return Err(told(&error)),
    };
    ensure!(
        stands == expected && purged == gone,
        "expected {expected:?} and {gone} purged, found {stands:?} and {purged} purged"
    );
    Ok(())
}
