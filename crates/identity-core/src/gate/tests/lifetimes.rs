//! The life of a won claim: renewal, and every way in which a job is stopped.

use std::{sync::Arc, time::Duration};

use super::{
    bench::{Act, Bench, LEASE, MAX_RUN, ScriptedJob, put},
    told::Log,
};
use crate::{
    claim::{ClaimStore as _, Reason, Record, Status},
    gate::Outcome,
};

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_for_as_long_as_the_job_runs() {
    let bench = Bench::new(&[Act::Last(LEASE * 5)]);
    let (holder, other) = (bench.gate(), bench.gate());
    let running = tokio::spawn(async move { holder.settle(&put("a.shp", "e1")).await });
    for _ in 0..9 {
        tokio::time::sleep(LEASE / 2).await;
        assert!(matches!(
            other.settle(&put("a.shp", "e1")).await.outcome,
            Outcome::Held { .. }
        ));
    }
    assert_eq!(
        running.await.unwrap().outcome,
        Outcome::Done {
            attempt: 1,
            reason: None
        }
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_is_stopped_before_its_lease_ends_if_the_store_is_away() {
    let bench = Bench::new(&[Act::Last(LEASE * 5)]);
    let gate = bench.gate();
    // Not the first thing that its process does.
    tokio::time::sleep(LEASE * 10).await;
    let running = tokio::spawn(async move { gate.settle(&put("a.shp", "e1")).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.running(), 1);
    *bench.store.away.lock().unwrap() = true;
    tokio::time::sleep(LEASE - Duration::from_secs(1)).await;
    assert_eq!(
        bench.running(),
        0,
        "the lease is over, and the job still runs"
    );
    assert!(matches!(
        running.await.unwrap().outcome,
        Outcome::Unavailable { .. }
    ));
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_any_length_is_renewed_in_time() {
    for lease in [Duration::from_secs(9), LEASE * 5] {
        let mut bench = Bench::new(&[Act::Last(lease * 5)]);
        bench.terms.lease = lease;
        let settled = bench.gate().settle(&put("a.shp", "e1")).await;
        assert!(
            matches!(settled.outcome, Outcome::Done { attempt: 1, .. }),
            "{settled:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_failed_is_told_and_tried_again_before_the_lease_is_over() {
    let (log, _guard) = Log::start();
    let bench = Bench::new(&[Act::Last(LEASE * 2)]);
    let gate = bench.gate();
    let running = tokio::spawn(async move { gate.settle(&put("a.shp", "e1")).await });
    // Away when the first renewal is due, after a third of the lease.
    tokio::time::sleep(LEASE / 3 - Duration::from_secs(1)).await;
    *bench.store.away.lock().unwrap() = true;
    tokio::time::sleep(Duration::from_secs(5)).await;
    *bench.store.away.lock().unwrap() = false;
    let settled = running.await.unwrap();
    assert!(
        matches!(settled.outcome, Outcome::Done { attempt: 1, .. }),
        "{settled:?}"
    );
    let told = log.saying("lease not renewed");
    let key = settled.key.unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains(key.as_str()) && told[0].contains("connection refused"),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_end_is_recorded_though_the_store_was_away_for_a_while() {
    let bench = Bench::new(&[Act::Last(Duration::from_secs(10))]);
    let gate = bench.gate();
    let running = tokio::spawn(async move { gate.settle(&put("a.shp", "e1")).await });
    tokio::time::sleep(Duration::from_secs(9)).await;
    *bench.store.away.lock().unwrap() = true;
    tokio::time::sleep(Duration::from_secs(60)).await;
    *bench.store.away.lock().unwrap() = false;
    assert_eq!(
        running.await.unwrap().outcome,
        Outcome::Done {
            attempt: 1,
            reason: None
        }
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_claim_was_taken_over_is_stopped_and_records_nothing() {
    let bench = Bench::new(&[Act::Last(LEASE * 5), Act::Last(LEASE * 5)]);
    let (holder, other) = (bench.gate(), bench.gate());
    let running = tokio::spawn(async move { holder.settle(&put("a.shp", "e1")).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let key = bench.rows().await.len();
    assert_eq!(key, 1);
    let released = {
        let query_key = claim_key(&bench).await;
        other.claims().release(&query_key).await.unwrap()
    };
    assert_eq!(
        (released.0.status, released.1.status),
        (Status::Processing, Status::Failed)
    );
    let successor = tokio::spawn(async move { other.settle(&put("a.shp", "e1")).await });
    assert_eq!(
        running.await.unwrap().outcome,
        Outcome::LeaseLost { attempt: 1 }
    );
    assert_eq!(bench.running(), 1, "only the successor's job runs");
    assert_eq!(
        successor.await.unwrap().outcome,
        Outcome::Done {
            attempt: 2,
            reason: None
        }
    );
}

async fn claim_key(bench: &Bench) -> crate::claim::ClaimKey {
    use crate::claim::ListQuery;
    let query = ListQuery {
        statuses: Status::ALL.into(),
        limit: std::num::NonZeroU32::MIN,
        after: None,
    };
    bench
        .store
        .rows
        .list(&query)
        .await
        .unwrap()
        .claims
        .remove(0)
        .0
}

/// A bench whose job goes on for `lingers` after it was told to stop, and asks for `grace`.
fn lingering(lingers: Duration, grace: Duration) -> Bench {
    let bench = Bench::new(&[Act::Linger(lingers)]);
    let job = ScriptedJob {
        acts: std::mem::take(&mut *bench.job.acts.lock().unwrap()).into(),
        grace,
        ..ScriptedJob::default()
    };
    Bench {
        job: Arc::new(job),
        ..bench
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_stopped_has_its_grace_and_no_more_than_half_of_its_lease() {
    let seconds = Duration::from_secs;
    let patient = seconds(u64::MAX);
    // How long it lingers, what it asks for, what who stops it allows, and what it gets.
    for (lingers, grace, patience, gets) in [
        (seconds(3), seconds(10), patient, seconds(3)),
        (seconds(900), seconds(10), patient, seconds(10)),
        (seconds(900), seconds(10), seconds(2), seconds(2)),
        (seconds(900), seconds(10), seconds(0), seconds(0)),
        (seconds(900), seconds(0), patient, seconds(0)),
        (seconds(900), seconds(900), patient, LEASE / 2),
    ] {
        let bench = lingering(lingers, grace);
        let gate = bench.gate();
        let event = put("a.shp", "e1");
        let began = tokio::time::Instant::now();
        let (settled, ()) = tokio::join!(gate.settle(&event), async {
            while bench.running() == 0 {
                tokio::task::yield_now().await;
            }
            gate.stop_within(patience);
        });
        assert_eq!(
            began.elapsed().as_secs(),
            gets.as_secs(),
            "{lingers:?} of {grace:?}"
        );
        // It ended well, and late: nobody can tell whether it was done.
        assert!(
            matches!(settled.outcome, Outcome::Failed { .. }),
            "{settled:?}"
        );
        let record = bench.record(&settled).await;
        assert_eq!(
            (record.status, record.reason),
            (Status::Failed, Some(Reason::Interrupted))
        );
        assert_eq!(bench.running(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_is_not_overrun_by_a_grace() {
    let bench = lingering(MAX_RUN, Duration::from_secs(900));
    let left = Duration::from_secs(20);
    let gate = bench.gate();
    let call = gate.for_call(Some(gate.clock().monotonic() + left));
    let began = tokio::time::Instant::now();
    let event = put("a.shp", "e1");
    let (settled, ()) = tokio::join!(call.settle(&event), async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        call.stop();
    });
    assert!(
        matches!(settled.outcome, Outcome::Failed { .. }),
        "{settled:?}"
    );
    assert_eq!(began.elapsed().as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_time_is_up_has_its_grace_too() {
    let bench = lingering(Duration::from_secs(4), Duration::from_secs(10));
    let began = tokio::time::Instant::now();
    let settled = bench.gate().settle(&put("a.shp", "e1")).await;
    assert!(
        matches!(settled.outcome, Outcome::Failed { ref error, .. } if error.contains("3600 seconds")),
        "{settled:?}"
    );
    assert_eq!(began.elapsed(), MAX_RUN + Duration::from_secs(4));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_runs_too_long_is_stopped_and_failed() {
    let bench = Bench::new(&[Act::Last(MAX_RUN * 2)]);
    let settled = bench.gate().settle(&put("a.shp", "e1")).await;
    assert!(
        matches!(settled.outcome, Outcome::Failed { attempt: 1, ref error, .. } if error.contains("3600 seconds"))
    );
    assert_eq!(
        (bench.running(), bench.record(&settled).await.status),
        (0, Status::Failed)
    );
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure() {
    let bench = Bench::new(&[Act::Panic]);
    let settled = bench.gate().settle(&put("a.shp", "e1")).await;
    let error = "the job panicked: out of luck".to_owned();
    assert_eq!(
        settled.outcome,
        Outcome::Failed {
            attempt: 1,
            error,
            again: None
        }
    );
}

async fn only_row(bench: &Bench) -> Record {
    let mut rows = bench.rows().await;
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

#[tokio::test(start_paused = true)]
async fn a_dropped_gate_leaves_a_failed_claim_and_no_job() {
    let bench = Bench::new(&[Act::Last(LEASE)]);
    let gate = bench.gate();
    let event = put("a.shp", "e1");
    let dropped = tokio::time::timeout(Duration::from_secs(1), gate.settle(&event)).await;
    assert!(dropped.is_err());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.running(), 0);
    let row = only_row(&bench).await;
    assert_eq!(
        (row.status, row.reason),
        (Status::Failed, Some(Reason::Interrupted))
    );
    assert_eq!(
        gate.settle(&event).await.outcome,
        Outcome::Done {
            attempt: 2,
            reason: None
        }
    );
}

#[tokio::test(start_paused = true)]
async fn a_stopped_gate_ends_its_jobs_as_failed_and_claims_nothing_more() {
    let bench = Bench::new(&[Act::Last(LEASE)]);
    let gate = bench.gate();
    let settling = gate.clone();
    let running = tokio::spawn(async move { settling.settle(&put("a.shp", "e1")).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    gate.stop();
    assert!(matches!(
        running.await.unwrap().outcome,
        Outcome::Failed { attempt: 1, .. }
    ));
    assert_eq!(only_row(&bench).await.reason, Some(Reason::Interrupted));
    let after = gate.settle(&put("b.shp", "e1")).await;
    assert!(
        matches!(after.outcome, Outcome::Unavailable { .. }),
        "{after:?}"
    );
    assert_eq!(bench.rows().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_flip_to_done_stops_the_job_and_stands() {
    let bench = Bench::new(&[Act::Last(LEASE * 5)]);
    let gate = bench.gate();
    let running = tokio::spawn(async move { gate.settle(&put("a.shp", "e1")).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let key = claim_key(&bench).await;
    bench.store.rows.flip_status(&key, Status::Done);
    assert_eq!(
        running.await.unwrap().outcome,
        Outcome::LeaseLost { attempt: 1 }
    );
    let row = bench.store.rows.get(&key).await.unwrap().unwrap();
    assert_eq!((row.record.status, bench.running()), (Status::Done, 0));
}
