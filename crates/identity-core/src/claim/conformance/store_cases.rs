//! Cases that ask the store alone: what `get`, `put` and `list` promise.

use std::{collections::BTreeSet, sync::Arc};

use super::{CaseResult, Failure, Subject, ensure, key, object, told, won};
use crate::{
    claim::{
        record::{
            ClaimKey, Owner, Reason, Record, RecordedObject, RecordedPipeline, Release, Revision,
            Status, UnixMillis, UnixSeconds,
        },
        store::{ClaimStore, ListQuery, Precondition, StoreError, Stored, Version},
    },
    host::Entropy as _,
    identity::{Provider, TokenKind},
};

pub(super) async fn run(subject: &dyn Subject, seed: u64) -> Vec<Failure> {
    let cases: [(&str, CaseResult); 9] = [
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
        ("listing finds every row once", listing(subject, seed).await),
    ];
    let failed = |(case, result): (&str, CaseResult)| {
        result.err().map(|what| Failure {
            case: case.into(),
            what,
        })
    };
    cases.into_iter().filter_map(failed).collect()
}

fn owner() -> Result<Owner, String> {
    super::host::CountedEntropy
        .owner()
        .map_err(|error| error.to_string())
}

async fn put(
    store: &Arc<dyn ClaimStore>,
    key: &ClaimKey,
    record: &Record,
    when: Precondition,
) -> Result<Version, String> {
    store
        .put(key, record, &when)
        .await
        .map_err(|error| told(&error))
}

async fn get(store: &Arc<dyn ClaimStore>, key: &ClaimKey) -> Result<Option<Stored>, String> {
    store.get(key).await.map_err(|error| told(&error))
}

/// The write must be refused as a conflict; if the store tells what stands there, it must be what does.
async fn conflict(
    store: &Arc<dyn ClaimStore>,
    key: &ClaimKey,
    record: &Record,
    when: &Precondition,
) -> CaseResult {
    match store.put(key, record, when).await {
        Ok(_) => Err(format!(
            "expected a conflict under {when:?}, and the write took place"
        )),
        Err(StoreError::Conflict { standing }) => {
            let stands = get(store, key).await?;
            ensure!(
                standing.is_none() || standing.as_deref() == stands.as_ref(),
                "the conflict told {standing:?}, but {stands:?} stands there"
            );
            Ok(())
        }
        Err(error) => Err(format!(
            "expected a conflict under {when:?}, got: {}",
            told(&error)
        )),
    }
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

/// A record with every field set to something that a careless encoding would lose.
fn full(owner: Owner) -> Record {
    Record {
        status: Status::Rejected,
        attempt: u32::MAX,
        owner: Some(owner),
        revision: Some(Revision {
            owner,
            write: u32::MAX,
        }),
        claimed_at: UnixSeconds(0),
        lease_until: Some(UnixMillis(1_767_323_165_001)),
        waiting_until: Some(UnixMillis(1_767_323_165_002)),
        finished_at: Some(UnixSeconds(1_767_323_165)),
        expires_at: Some(UnixSeconds(i64::from(u32::MAX) + 1)),
        object: Some(RecordedObject {
            provider: Provider::Azure,
            account: Some("acct".into()),
            container: "geo".into(),
            key: "العربية/地図/🗺 'quoted' \"twice\" \\ \t%2F.shp ".into(),
            raw_key: Some(" raw+%20 ".into()),
            token: Some((
                TokenKind::VersionId,
                "3HL4kqtJlcpXroDTDmJ.rmSpXd3dIbrHY".into(),
            )),
        }),
        pipeline: RecordedPipeline {
            name: "naïve".into(),
            version: "1.0.0-β".into(),
            scheme: "reference".into(),
            params_digest: "a".repeat(64),
            contract_digest: "b".repeat(64),
        },
        redrives: 3,
        reason: Some(Reason::Exhausted),
        error: Some("first line\nsecond line: 'é'".into()),
        result: Some(format!(
            "{{\"text\":\"{}\"}}",
            "x".repeat(Record::MAX_RESULT_BYTES - 11)
        )),
        body: Some(
            (0..Record::MAX_BODY_BYTES)
                .map(|at| u8::try_from(at % 256).unwrap_or(0))
                .collect(),
        ),
        released: Some(Release {
            at: UnixSeconds(1_767_323_165),
            from: Status::Done,
            attempt: 7,
        }),
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

async fn listing(subject: &dyn Subject, seed: u64) -> CaseResult {
    let store = subject.store();
    // Times of the seed's own, so that rows of other cases and earlier runs can be told apart.
    let base = 2_000_000_000 + i64::from(u32::try_from(seed % 1_000_000).unwrap_or(0)) * 1_000;
    let mut expected = BTreeSet::new();
    for at in 0..25_i64 {
        let status = if at % 5 == 0 {
            Status::Done
        } else {
            Status::Failed
        };
        let key = key(seed, &format!("list {at}"));
        let record = Record {
            status,
            claimed_at: UnixSeconds(base + at / 3),
            ..won(owner()?)
        };
        put(&store, &key, &record, Precondition::Absent).await?;
        if status == Status::Failed && at / 3 <= 6 {
            expected.insert(key);
        }
    }
    let claimed_until = Some(UnixSeconds(base + 6).millis());
    let mut query = ListQuery {
        statuses: vec![Status::Failed],
        claimed_until,
        limit: 4,
        after: None,
    };
    let mut found = Vec::new();
    for _page in 0..10_000 {
        let page = store.list(&query).await.map_err(|error| told(&error))?;
        ensure!(
            page.claims.len() <= 4,
            "asked for pages of 4, got one of {}",
            page.claims.len()
        );
        for (key, stored) in page.claims {
            ensure!(
                stored.record.status == Status::Failed,
                "asked for failed, got {}",
                stored.record.status
            );
            ensure!(
                Some(stored.record.claimed_at.millis()) <= claimed_until,
                "{key} was claimed too late"
            );
            found.push(key);
        }
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    let mine: Vec<_> = found.iter().filter(|key| expected.contains(*key)).collect();
    ensure!(
        mine.len() == expected.len(),
        "listed {} of {} rows",
        mine.len(),
        expected.len()
    );
    ensure!(
        found.iter().collect::<BTreeSet<_>>().len() == found.len(),
        "a row was listed twice"
    );
    Ok(())
}
