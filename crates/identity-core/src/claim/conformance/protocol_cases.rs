//! Cases that drive the protocol over the store: claims, leases, takeovers, lost replies, foreign rows.

use std::{sync::Arc, time::Duration};

use super::{
    CaseResult, Failure, Subject, Worker, ensure, failed, faults::Fault, host::ManualClock, key,
    object, pipeline, won,
};
use crate::claim::{
    lease::{Claimed, Kept, Lease},
    machine::{End, Terms},
    record::{ClaimKey, Reason, Record, RecordedObject, Status, UnixMillis},
    store::Stored,
};

const LEASE: Duration = Duration::from_secs(120);
const TERMS: Terms = Terms {
    lease: LEASE,
    max_attempts: 3,
    done_ttl: Duration::from_secs(1_209_600),
};
const NOW: UnixMillis = UnixMillis(1_767_323_045_000);

pub(super) async fn run(subject: &dyn Subject, seed: u64, fault: Fault) -> Vec<Failure> {
    let bench = |case: &str| Bench {
        subject,
        fault,
        key: key(seed, &format!("{fault:?} {case}")),
        clock: Arc::new(ManualClock::at(NOW)),
    };
    let cases: [(&str, CaseResult); 13] = [
        (
            "a job is won once, and done for good",
            won_once(bench("once")).await,
        ),
        (
            "a failed job is won at once, as the next attempt",
            failed_then_won(bench("failed")).await,
        ),
        (
            "a rejected job stays rejected",
            rejected(bench("rejected")).await,
        ),
        (
            "a lease that has ended is taken over, and the zombie records nothing",
            taken_over(bench("takeover")).await,
        ),
        (
            "a renewed lease is not taken over",
            renewed(bench("renewed")).await,
        ),
        (
            "a holder whose row was deleted records nothing",
            deleted(bench("deleted")).await,
        ),
        (
            "a holder whose row was made anew records nothing",
            made_anew(bench("anew")).await,
        ),
        (
            "a foreign flip to done stands",
            flipped(bench("flipped")).await,
        ),
        (
            "a row without a lease is held for an hour, then taken over",
            foreign_row(bench("foreign")).await,
        ),
        ("attempts run out", exhausted(bench("exhausted")).await),
        (
            "two jobs with one ID are told apart",
            collapsed(bench("collapsed")).await,
        ),
        (
            "a released claim is won again, and its holder has lost it",
            released(bench("released")).await,
        ),
        (
            "machines whose clocks disagree record one end",
            wrong_clock(bench("clock")).await,
        ),
    ];
    let failed = |(case, result): (&str, CaseResult)| {
        result.err().map(|what| Failure {
            case: format!("{case} ({fault:?})"),
            what,
        })
    };
    cases.into_iter().filter_map(failed).collect()
}

/// What one case works with: its own key and its own clock.
struct Bench<'a> {
    subject: &'a dyn Subject,
    fault: Fault,
    key: ClaimKey,
    clock: Arc<ManualClock>,
}

impl Bench<'_> {
    fn worker(&self) -> Worker {
        Worker::new(self.subject, self.fault, &self.clock, TERMS)
    }

    async fn claim(&self, worker: &Worker) -> Result<Claimed, String> {
        worker
            .claims
            .claim(&self.key, &object(), &pipeline())
            .await
            .map_err(|error| failed(&error))
    }

    async fn win(&self, worker: &Worker, attempt: u32) -> Result<Lease, String> {
        match self.claim(worker).await? {
            Claimed::Won(lease) if lease.attempt() == attempt => Ok(lease),
            other => Err(format!(
                "expected to win as attempt {attempt}, got {other:?}"
            )),
        }
    }

    async fn ended(&self, worker: &Worker, status: Status) -> Result<Box<Record>, String> {
        match self.claim(worker).await? {
            Claimed::Ended { record, .. } if record.status == status => Ok(record),
            other => Err(format!("expected a job that is {status}, got {other:?}")),
        }
    }

    async fn held(&self, worker: &Worker) -> Result<UnixMillis, String> {
        match self.claim(worker).await? {
            Claimed::Held {
                until,
                suspicious: false,
                ..
            } => Ok(until),
            other => Err(format!("expected a held claim, got {other:?}")),
        }
    }

    async fn end(&self, worker: &Worker, lease: Lease, end: End, expected: Kept) -> CaseResult {
        let kept = worker
            .claims
            .end(lease, end.clone())
            .await
            .map_err(|error| failed(&error))?;
        ensure!(
            kept == expected,
            "ending as {end:?}: expected {expected:?}, got {kept:?}"
        );
        Ok(())
    }

    async fn stands(&self) -> Result<Record, String> {
        let row: Option<Stored> = self
            .subject
            .store()
            .get(&self.key)
            .await
            .map_err(|error| super::told(&error))?;
        row.map(|stored| stored.record)
            .ok_or_else(|| "expected a row, found none".to_owned())
    }
}

fn done() -> End {
    End::Done {
        result: Some("{\"features\":3}".into()),
        reason: None,
        note: None,
    }
}

fn failure() -> End {
    End::Failed {
        reason: None,
        error: "exit code 1".into(),
    }
}

async fn won_once(bench: Bench<'_>) -> CaseResult {
    let (a, b) = (bench.worker(), bench.worker());
    let lease = bench.win(&a, 1).await?;
    bench.held(&b).await?;
    bench.end(&a, lease, done(), Kept::Yes).await?;
    let record = bench.ended(&b, Status::Done).await?;
    ensure!(
        record.result.as_deref() == Some("{\"features\":3}"),
        "the result became {:?}",
        record.result
    );
    let expires = record.finished_at.map(|at| at.0 + 1_209_600);
    ensure!(
        record.expires_at.map(|at| at.0) == expires,
        "done at {:?} expires at {:?}",
        record.finished_at,
        record.expires_at
    );
    bench.clock.advance(TERMS.done_ttl * 2);
    bench.ended(&a, Status::Done).await.map(|_| ())
}

async fn failed_then_won(bench: Bench<'_>) -> CaseResult {
    let (a, b) = (bench.worker(), bench.worker());
    let lease = bench.win(&a, 1).await?;
    bench.end(&a, lease, failure(), Kept::Yes).await?;
    let row = bench.stands().await?;
    ensure!(
        row.expires_at.is_none(),
        "undone work expires at {:?}",
        row.expires_at
    );
    ensure!(
        row.error.as_deref() == Some("exit code 1"),
        "the error became {:?}",
        row.error
    );
    let lease = bench.win(&b, 2).await?;
    bench.held(&a).await?;
    bench.end(&b, lease, done(), Kept::Yes).await
}

async fn rejected(bench: Bench<'_>) -> CaseResult {
    let (a, b) = (bench.worker(), bench.worker());
    let lease = bench.win(&a, 1).await?;
    bench
        .end(
            &a,
            lease,
            End::Rejected {
                error: "no geometry".into(),
            },
            Kept::Yes,
        )
        .await?;
    bench.clock.advance(TERMS.done_ttl * 2);
    let record = bench.ended(&b, Status::Rejected).await?;
    ensure!(
        record.reason == Some(Reason::Permanent),
        "rejected for {:?}",
        record.reason
    );
    ensure!(
        record.expires_at.is_none(),
        "a rejected job expires at {:?}",
        record.expires_at
    );
    Ok(())
}

async fn taken_over(bench: Bench<'_>) -> CaseResult {
    let (zombie, b) = (bench.worker(), bench.worker());
    for end in [done(), failure(), End::Rejected { error: "no".into() }] {
        let attempt = bench
            .subject
            .store()
            .get(&bench.key)
            .await
            .map_err(|error| super::told(&error))?;
        let attempt = attempt.map_or(1, |row| row.record.attempt + 1);
        if attempt > 2 {
            break;
        }
        let old = bench.win(&zombie, attempt).await?;
        let until = bench.held(&b).await?;
        bench.clock.advance(b.clock_until(until));
        let new = bench.win(&b, attempt + 1).await?;
        let renewed = zombie
            .claims
            .renew(&old)
            .await
            .map_err(|error| failed(&error))?;
        ensure!(renewed == Kept::LeaseLost, "the zombie renewed");
        bench.end(&zombie, old, end, Kept::LeaseLost).await?;
        let row = bench.stands().await?;
        ensure!(
            row.owner == Some(new.owner()) && row.status == Status::Processing,
            "the zombie left {row:?}"
        );
        bench.end(&b, new, done(), Kept::Yes).await?;
    }
    bench.ended(&zombie, Status::Done).await.map(|_| ())
}

async fn renewed(bench: Bench<'_>) -> CaseResult {
    let (a, b) = (bench.worker(), bench.worker());
    let lease = bench.win(&a, 1).await?;
    for _ in 0..5 {
        bench.clock.advance(LEASE / 3);
        let kept = a
            .claims
            .renew(&lease)
            .await
            .map_err(|error| failed(&error))?;
        ensure!(kept == Kept::Yes, "the holder could not renew");
    }
    let until = bench.held(&b).await?;
    let remaining = b.clock_until(until);
    ensure!(
        remaining > LEASE / 2,
        "after a renewal the lease lasts {remaining:?}"
    );
    bench.end(&a, lease, done(), Kept::Yes).await?;
    bench.ended(&b, Status::Done).await.map(|_| ())
}

async fn deleted(bench: Bench<'_>) -> CaseResult {
    let a = bench.worker();
    let lease = bench.win(&a, 1).await?;
    bench.subject.delete(&bench.key).await;
    let kept = a
        .claims
        .renew(&lease)
        .await
        .map_err(|error| failed(&error))?;
    ensure!(kept == Kept::LeaseLost, "a deleted claim was renewed");
    bench.end(&a, lease, done(), Kept::LeaseLost).await?;
    ensure!(
        bench.stands().await.is_err(),
        "a holder made its deleted row anew"
    );
    Ok(())
}

async fn made_anew(bench: Bench<'_>) -> CaseResult {
    let (zombie, b) = (bench.worker(), bench.worker());
    let old = bench.win(&zombie, 1).await?;
    bench.subject.delete(&bench.key).await;
    let new = bench.win(&b, 1).await?; // the same attempt again: only the owner tells them apart
    let kept = zombie
        .claims
        .renew(&old)
        .await
        .map_err(|error| failed(&error))?;
    ensure!(
        kept == Kept::LeaseLost,
        "the zombie renewed its successor's claim"
    );
    bench.end(&zombie, old, done(), Kept::LeaseLost).await?;
    bench.held(&zombie).await?;
    bench.end(&b, new, done(), Kept::Yes).await
}

async fn flipped(bench: Bench<'_>) -> CaseResult {
    let (a, b) = (bench.worker(), bench.worker());
    let lease = bench.win(&a, 1).await?;
    bench.subject.flip_status(&bench.key, Status::Done).await;
    bench.ended(&b, Status::Done).await?;
    let kept = a
        .claims
        .renew(&lease)
        .await
        .map_err(|error| failed(&error))?;
    ensure!(
        kept == Kept::LeaseLost,
        "a claim that another program ended was renewed"
    );
    bench.end(&a, lease, failure(), Kept::LeaseLost).await?;
    bench.ended(&b, Status::Done).await.map(|_| ())
}

async fn foreign_row(bench: Bench<'_>) -> CaseResult {
    let (foreign, b) = (bench.worker(), bench.worker());
    drop(bench.win(&foreign, 1).await?);
    bench.subject.forget_lease(&bench.key).await;
    let until = bench.held(&b).await?;
    let hour = Duration::from_secs(3_600);
    ensure!(
        until == NOW.seconds().millis().plus(hour),
        "a row without a lease is held until {until:?}"
    );
    bench.clock.advance(hour + Duration::from_secs(1));
    let lease = bench.win(&b, 2).await?;
    bench.end(&b, lease, done(), Kept::Yes).await
}

async fn exhausted(bench: Bench<'_>) -> CaseResult {
    let a = bench.worker();
    for attempt in 1..=TERMS.max_attempts {
        let lease = bench.win(&a, attempt).await?;
        if attempt % 2 == 0 {
            drop(lease); // a crash: nobody records anything
            bench.clock.advance(LEASE * 2);
        } else {
            bench.end(&a, lease, failure(), Kept::Yes).await?;
        }
    }
    let record = bench.ended(&a, Status::Rejected).await?;
    ensure!(
        record.reason == Some(Reason::Exhausted),
        "rejected for {:?}",
        record.reason
    );
    ensure!(
        record.attempt == TERMS.max_attempts,
        "attempt {} at the end",
        record.attempt
    );
    a.claims
        .release(&bench.key)
        .await
        .map_err(|error| failed(&error))?;
    let lease = bench.win(&a, TERMS.max_attempts + 1).await?;
    bench.end(&a, lease, done(), Kept::Yes).await
}

async fn collapsed(bench: Bench<'_>) -> CaseResult {
    let (a, b) = (bench.worker(), bench.worker());
    let lease = bench.win(&a, 1).await?;
    bench.end(&a, lease, done(), Kept::Yes).await?;
    let other = RecordedObject {
        container: "another".into(),
        ..object()
    };
    match b
        .claims
        .claim(&bench.key, &other, &pipeline())
        .await
        .map_err(|error| failed(&error))?
    {
        Claimed::Collapsed { differing, .. } if differing == ["object"] => {}
        outcome => return Err(format!("expected two jobs under one ID, got {outcome:?}")),
    }
    let rejection = Record {
        status: Status::Rejected,
        attempt: 0,
        reason: Some(Reason::Collapsed),
        lease_until: None,
        object: Some(other),
        ..won(crate::claim::Owner(7))
    };
    let own_key = key(0, &format!("{} {:?}", bench.key, bench.fault));
    for _ in 0..2 {
        let stands = b
            .claims
            .record(&own_key, rejection.clone())
            .await
            .map_err(|error| failed(&error))?;
        ensure!(
            stands.reason == Some(Reason::Collapsed),
            "recorded {stands:?}"
        );
    }
    Ok(())
}

async fn released(bench: Bench<'_>) -> CaseResult {
    let (a, b) = (bench.worker(), bench.worker());
    let old = bench.win(&a, 1).await?;
    b.claims
        .release(&bench.key)
        .await
        .map_err(|error| failed(&error))?;
    let row = bench.stands().await?;
    ensure!(
        row.status == Status::Failed && row.attempt == 1,
        "released, the row is {row:?}"
    );
    ensure!(
        row.released
            .is_some_and(|release| release.from == Status::Processing),
        "recorded as {:?}",
        row.released
    );
    bench.end(&a, old, done(), Kept::LeaseLost).await?;
    let lease = bench.win(&b, 2).await?;
    bench.end(&b, lease, done(), Kept::Yes).await?;
    b.claims
        .release(&bench.key)
        .await
        .map_err(|error| failed(&error))?;
    ensure!(
        bench.stands().await?.expires_at.is_none(),
        "a released claim still expires"
    );
    bench.win(&a, 3).await.map(|_| ())
}

async fn wrong_clock(bench: Bench<'_>) -> CaseResult {
    let a = bench.worker();
    let ahead = Arc::new(ManualClock::at(NOW.plus(LEASE * 5)));
    let b = Worker::new(bench.subject, bench.fault, &ahead, TERMS);
    let old = bench.win(&a, 1).await?;
    let new = bench.win(&b, 2).await?; // too early, by a clock that is five leases ahead: a repeated run
    match bench.claim(&a).await? {
        Claimed::Held { .. } => {}
        other => return Err(format!("expected a held claim, got {other:?}")),
    }
    bench.end(&a, old, done(), Kept::LeaseLost).await?;
    bench.end(&b, new, done(), Kept::Yes).await?;
    bench.ended(&a, Status::Done).await.map(|_| ())
}

impl Worker {
    /// How long until `until` by this worker's clock.
    fn clock_until(&self, until: UnixMillis) -> Duration {
        use crate::host::Clock as _;
        self.clock.unix_millis().until(until)
    }
}
