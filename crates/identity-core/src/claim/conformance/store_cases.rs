//! Cases that ask the store alone about one row: what `get` and `put` promise.

use std::sync::Arc;

use super::{
    CaseResult, Failure, Subject,
    asking::{conflict, get, owner, put},
    ensure, key, object, samples, told, won,
};
use crate::claim::{
    record::{
        ClaimKey, Owner, Record, RecordedObject, RecordedPipeline, Revision, Status, UnixSeconds,
    },
    store::{Precondition, StoreError, Stored, Version},
};

pub(super) async fn run(subject: &dyn Subject, seed: u64) -> Vec<Failure> {
    let cases = [
        (
            "an absent key is written once",
            written_once(subject, key(seed, "once")).await,
        ),
        (
            "every field comes back as it was written",
            round_trip(subject, seed).await,
        ),
        (
            "a stale version writes nothing",
            stale_version(subject, key(seed, "stale")).await,
        ),
        (
            "a missing row is not unchanged",
            missing_row(subject, key(seed, "missing")).await,
        ),
        (
            "a row deleted and made anew is another row",
            made_anew(subject, key(seed, "anew")).await,
        ),
        (
            "a foreign flip changes the version",
            foreign_flip(subject, key(seed, "flip")).await,
        ),
        (
            "of many first writers one wins",
            race_absent(subject, seed).await,
        ),
        (
            "of many writers of one version one wins",
            race_unchanged(subject, seed).await,
        ),
        (
            "one record written twice has two versions",
            written_twice(subject, key(seed, "twice")).await,
        ),
        (
            "a version that no row ever had is a conflict",
            unknown_version(subject, key(seed, "unknown")).await,
        ),
        (
            "what is longer than stores keep is not written",
            too_long(subject, key(seed, "long")).await,
        ),
    ];
    Failure::of(cases)
}

async fn written_once(subject: &dyn Subject, key: ClaimKey) -> CaseResult {
    let store = subject.store();
    ensure!(
        get(&store, &key).await?.is_none(),
        "a key that was never written has a row"
    );
    let record = won(owner()?);
    let version = put(&store, &key, &record, Precondition::Absent).await?;
    let stands = get(&subject.store(), &key).await?;
    ensure!(
        stands
            == Some(Stored {
                record: record.clone(),
                version
            }),
        "wrote {record:?}, read {stands:?}"
    );
    conflict(&store, &key, &won(owner()?), &Precondition::Absent).await
}

/// A record with every field set, claimed at the first second that there is.
fn full(owner: Owner) -> Record {
    let revision = Revision {
        owner,
        write: u32::MAX,
    };
    Record {
        owner: Some(owner),
        revision: Some(revision),
        claimed_at: UnixSeconds(0),
        ..samples::full()
    }
}

/// A record with every optional field empty.
fn bare(owner: Owner) -> Record {
    Record {
        status: Status::Waiting,
        attempt: 0,
        lease_until: None,
        object: None,
        pipeline: RecordedPipeline::default(),
        ..won(owner)
    }
}

async fn round_trip(subject: &dyn Subject, seed: u64) -> CaseResult {
    let store = subject.store();
    for (case, record) in [
        ("full", full(owner()?)),
        ("bare", bare(owner()?)),
        ("empty texts", {
            let object = RecordedObject {
                key: String::new(),
                raw_key: Some(String::new()),
                ..object()
            };
            let error = Some(String::new());
            Record {
                object: Some(object),
                error,
                body: Some(Vec::new()),
                ..won(owner()?)
            }
        }),
    ] {
        let key = key(seed, case);
        let first = put(&store, &key, &won(owner()?), Precondition::Absent).await?;
        let version = put(
            &store,
            &key,
            &record,
            Precondition::Unchanged(first.clone()),
        )
        .await?;
        ensure!(
            version != first,
            "{case}: a write did not change the version {first:?}"
        );
        let stands = get(&subject.store(), &key).await?;
        ensure!(
            stands
                == Some(Stored {
                    record: record.clone(),
                    version
                }),
            "{case}: wrote {record:?}, read {stands:?}"
        );
    }
    Ok(())
}

/// Two writes that differ in their revision alone: a store whose service passes over a write that changes nothing must not
/// pass over the second.
async fn written_twice(subject: &dyn Subject, key: ClaimKey) -> CaseResult {
    let (store, owner) = (subject.store(), owner()?);
    let write = |write| Record {
        revision: Some(Revision { owner, write }),
        ..won(owner)
    };
    let first = put(&store, &key, &write(1), Precondition::Absent).await?;
    let unchanged = Precondition::Unchanged(first.clone());
    let second = put(&store, &key, &write(2), unchanged.clone()).await?;
    ensure!(
        first != second,
        "two writes of one record both left the version {first:?}"
    );
    conflict(&store, &key, &write(3), &unchanged).await
}

async fn unknown_version(subject: &dyn Subject, key: ClaimKey) -> CaseResult {
    let store = subject.store();
    for standing in [false, true] {
        if standing {
            put(&store, &key, &won(owner()?), Precondition::Absent).await?;
        }
        for text in ["", "-", "1", "another store's", "'; DROP TABLE claims; --"] {
            let when = Precondition::Unchanged(Version(text.to_owned()));
            conflict(&store, &key, &won(owner()?), &when).await?;
        }
        let stands = get(&store, &key).await?.is_some();
        ensure!(
            stands == standing,
            "a refused write left its mark: there is a row: {stands}"
        );
    }
    Ok(())
}

async fn too_long(subject: &dyn Subject, key: ClaimKey) -> CaseResult {
    let store = subject.store();
    let result = Record {
        result: Some("x".repeat(Record::MAX_RESULT_BYTES + 1)),
        ..won(owner()?)
    };
    let body = Record {
        body: Some(vec![0; Record::MAX_BODY_BYTES + 1]),
        ..won(owner()?)
    };
    for (record, got) in [(result, "16385 bytes"), (body, "32769 bytes")] {
        match store.put(&key, &record, &Precondition::Absent).await {
            Err(StoreError::Invalid { got: told, .. }) if told == got => {}
            other => return Err(format!("expected that {got} are refused, got {other:?}")),
        }
    }
    ensure!(
        get(&store, &key).await?.is_none(),
        "a refused write made a row"
    );
    Ok(())
}

async fn stale_version(subject: &dyn Subject, key: ClaimKey) -> CaseResult {
    let (store, owner) = (subject.store(), owner()?);
    let first = put(&store, &key, &won(owner), Precondition::Absent).await?;
    let renewed = Record {
        revision: Some(Revision { owner, write: 2 }),
        ..won(owner)
    };
    let second = put(
        &store,
        &key,
        &renewed,
        Precondition::Unchanged(first.clone()),
    )
    .await?;
    let late = Record {
        status: Status::Done,
        revision: Some(Revision { owner, write: 3 }),
        ..won(owner)
    };
    conflict(&store, &key, &late, &Precondition::Unchanged(first)).await?;
    let stands = get(&store, &key).await?;
    ensure!(
        stands
            == Some(Stored {
                record: renewed,
                version: second
            }),
        "a refused write left its mark: {stands:?}"
    );
    Ok(())
}

async fn missing_row(subject: &dyn Subject, key: ClaimKey) -> CaseResult {
    let (store, owner) = (subject.store(), owner()?);
    let version = put(&store, &key, &won(owner), Precondition::Absent).await?;
    subject.delete(&key).await;
    conflict(&store, &key, &won(owner), &Precondition::Unchanged(version)).await?;
    ensure!(
        get(&store, &key).await?.is_none(),
        "a refused write made a row"
    );
    Ok(())
}

async fn made_anew(subject: &dyn Subject, key: ClaimKey) -> CaseResult {
    let store = subject.store();
    let (zombie, successor) = (owner()?, won(owner()?));
    let old = put(&store, &key, &won(zombie), Precondition::Absent).await?;
    subject.delete(&key).await;
    let new = put(&store, &key, &successor, Precondition::Absent).await?;
    ensure!(
        old != new,
        "the version {old:?} came back after the row was deleted"
    );
    let end = Record {
        status: Status::Done,
        revision: Some(Revision {
            owner: zombie,
            write: 2,
        }),
        ..won(zombie)
    };
    conflict(&store, &key, &end, &Precondition::Unchanged(old)).await?;
    let stands = get(&store, &key).await?.map(|stored| stored.record);
    ensure!(
        stands == Some(successor),
        "the successor's row became {stands:?}"
    );
    Ok(())
}

async fn foreign_flip(subject: &dyn Subject, key: ClaimKey) -> CaseResult {
    let (store, owner) = (subject.store(), owner()?);
    let version = put(&store, &key, &won(owner), Precondition::Absent).await?;
    subject.flip_status(&key, Status::Done).await;
    let renewed = Record {
        revision: Some(Revision { owner, write: 2 }),
        ..won(owner)
    };
    conflict(&store, &key, &renewed, &Precondition::Unchanged(version)).await?;
    let stands = get(&store, &key).await?.map(|stored| stored.record.status);
    ensure!(
        stands == Some(Status::Done),
        "a row that another program set to done became {stands:?}"
    );
    Ok(())
}

const ROUNDS: u32 = 25;
const RACERS: usize = 16;

/// Lets every racer write at once and says who won.
async fn race(
    subject: &dyn Subject,
    key: &ClaimKey,
    when: &Precondition,
) -> Result<Vec<Record>, String> {
    let mut racers = tokio::task::JoinSet::new();
    let barrier = Arc::new(tokio::sync::Barrier::new(RACERS));
    for _ in 0..RACERS {
        let (store, record, key, when) =
            (subject.store(), won(owner()?), key.clone(), when.clone());
        let barrier = barrier.clone();
        racers.spawn(async move {
            barrier.wait().await;
            (store.put(&key, &record, &when).await, record)
        });
    }
    let mut winners = Vec::new();
    while let Some(racer) = racers.join_next().await {
        match racer.map_err(|error| error.to_string())? {
            (Ok(_), record) => winners.push(record),
            (Err(StoreError::Conflict { .. }), _) => {}
            (Err(error), _) => return Err(format!("a racer got: {}", told(&error))),
        }
    }
    Ok(winners)
}

async fn race_absent(subject: &dyn Subject, seed: u64) -> CaseResult {
    for round in 0..ROUNDS {
        let key = key(seed, &format!("race absent {round}"));
        one_wins(subject, round, &key, &Precondition::Absent).await?;
    }
    Ok(())
}

async fn race_unchanged(subject: &dyn Subject, seed: u64) -> CaseResult {
    for round in 0..ROUNDS {
        let key = key(seed, &format!("race unchanged {round}"));
        let version = put(&subject.store(), &key, &won(owner()?), Precondition::Absent).await?;
        one_wins(subject, round, &key, &Precondition::Unchanged(version)).await?;
    }
    Ok(())
}

/// Of those who write at once one wins, and its record is what stands.
async fn one_wins(
    subject: &dyn Subject,
    round: u32,
    key: &ClaimKey,
    when: &Precondition,
) -> CaseResult {
    let winners = race(subject, key, when).await?;
    let stands = get(&subject.store(), key)
        .await?
        .map(|stored| stored.record);
    ensure!(
        winners.len() == 1,
        "round {round}: {} of {RACERS} won",
        winners.len()
    );
    ensure!(
        stands.as_ref() == winners.first(),
        "round {round}: {winners:?} won, but {stands:?} stands"
    );
    Ok(())
}
