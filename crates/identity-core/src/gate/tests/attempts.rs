//! Attempts: which of them count, and how long a job is left alone between two.

use std::time::Duration;

use super::bench::{Act, Bench, Objects, put};
use crate::{
    claim::{Reason, Status, Terms},
    gate::{Disposition, Outcome, Part},
};

#[tokio::test(start_paused = true)]
async fn what_is_not_the_jobs_fault_uses_no_attempt() {
    use Act::{Fail, Machine, Unread};
    // Three attempts count, and two do before the last.
    let bench = Bench::new(&[Machine, Fail, Unread, Machine, Machine, Fail, Unread, Fail]);
    let parts = [
        Some(Part::Machine),
        None,
        Some(Part::ObjectStore),
        Some(Part::Machine),
        Some(Part::Machine),
        None,
        Some(Part::ObjectStore),
        None,
    ];
    let mut uncounted = 0;
    for (attempt, part) in (1..).zip(parts) {
        let settled = bench.gate().settle(&put("a.shp", "e1")).await;
        let Disposition::Retry { .. } = settled.outcome.disposition() else {
            panic!("{settled:?}");
        };
        match (&settled.outcome, part) {
            (Outcome::Unavailable { part: told, .. }, Some(part)) => assert_eq!(*told, part),
            (Outcome::Failed { attempt: told, .. }, None) => assert_eq!(*told, attempt),
            other => panic!("{other:?}"),
        }
        uncounted += u32::from(part.is_some());
        let record = bench.record(&settled).await;
        assert_eq!(record.status, Status::Failed);
        assert_eq!(
            record.reason == Some(Reason::Unavailable),
            part.is_some(),
            "{record:?}"
        );
        // The number goes on: it is what sinks tell attempts apart by.
        assert_eq!((record.attempt, record.uncounted), (attempt, uncounted));
    }
    let last = bench.gate().settle(&put("a.shp", "e1")).await;
    assert!(
        matches!(
            last.outcome,
            Outcome::Rejected {
                reason: Reason::Exhausted,
                ..
            }
        ),
        "{last:?}"
    );
    assert_eq!(bench.runs().len(), parts.len());

    // A release counts from itself on: what did not count before is not taken off twice.
    let key = last.key.as_ref().unwrap();
    let (_, released) = bench.gate().claims().release(key).await.unwrap();
    assert_eq!((released.uncounted, released.counted()), (0, 0));
    let mended = bench.gate().settle(&put("a.shp", "e1")).await;
    assert!(
        matches!(mended.outcome, Outcome::Done { attempt: 9, .. }),
        "{mended:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_worker_was_not_given_to_read_is_not_even_claimed() {
    let bench = Bench::new(&[]);
    for (objects, told) in [
        (Objects::NotGiven, "no such folder"),
        (
            Objects::NotOurs,
            "s3://geo/a.shp cannot be read by this build, and the job reads it",
        ),
    ] {
        *bench.objects.lock().unwrap() = objects;
        let settled = bench.gate().settle(&put("a.shp", "e1")).await;
        let expected = Outcome::Unavailable {
            part: Part::Machine,
            error: told.to_owned(),
        };
        assert_eq!(settled.outcome, expected);
    }
    assert_eq!((bench.rows().await, bench.runs()), (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn after_each_failure_a_job_is_left_alone_for_longer_and_its_source_is_told() {
    let bench = Bench {
        retry: Duration::from_secs(10),
        terms: Terms {
            max_attempts: 9,
            ..Terms::default()
        },
        ..Bench::new(&[Act::Fail, Act::Fail, Act::Machine, Act::Fail])
    };
    let gate = bench.gate();
    for full in [10, 20, 40, 80] {
        let settled = gate.settle(&put("a.shp", "e1")).await;
        let until = bench.record(&settled).await.waiting_until.unwrap();
        let pause = gate.clock().unix_millis().until(until);
        assert!(
            (full / 2..=full).contains(&pause.as_secs()),
            "{pause:?} of {full} s"
        );
        // What the machine failed says nothing of when it will do better, but a sweep leaves it alone, too.
        let told = match settled.outcome {
            Outcome::Unavailable { .. } => None,
            _ => Some(until),
        };
        let expected = Disposition::Retry { not_before: told };
        assert_eq!(settled.outcome.disposition(), expected);
    }
    // Whoever delivers it sooner is served: its source, or a person who has mended it.
    let done = gate.settle(&put("a.shp", "e1")).await;
    assert!(
        matches!(done.outcome, Outcome::Done { attempt: 5, .. }),
        "{done:?}"
    );
    assert_eq!(bench.record(&done).await.waiting_until, None);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_job_is_worth_another_attempt_at_once() {
    let bench = Bench {
        retry: Duration::from_secs(10),
        ..Bench::new(&[Act::Last(Duration::from_secs(60))])
    };
    let gate = bench.gate();
    let event = put("a.shp", "e1");
    let (settled, ()) = tokio::join!(gate.settle(&event), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        gate.stop();
    });
    let expected = Disposition::Retry { not_before: None };
    assert_eq!(settled.outcome.disposition(), expected);
    assert_eq!(bench.record(&settled).await.waiting_until, None);
}
