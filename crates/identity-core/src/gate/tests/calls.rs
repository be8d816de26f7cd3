//! Calls that end: leases within them, groups whose order is kept, and panics that stay with their event.

use std::time::Duration;

use serde_json::json;

use super::bench::{Act, Bench, LEASE, Objects, items, put, record};
use crate::{
    claim::{Reason, Status},
    event::{Delivery, Item, read},
    gate::{Disposition, Gate, Outcome, Part},
};

fn now(gate: &Gate) -> Duration {
    gate.clock().monotonic()
}

#[tokio::test(start_paused = true)]
async fn no_lease_outlives_its_call() {
    let bench = Bench::new(&[Act::Last(Duration::from_secs(250))]);
    let gate = bench.gate();
    let call = gate.for_call(Some(now(&gate) + Duration::from_secs(300)));
    let end = call.clock().unix_millis().plus(Duration::from_secs(300));
    let running = tokio::spawn(async move { call.settle(&put("a.shp", "e1")).await });
    let mut leases = Vec::new();
    for _ in 0..24 {
        tokio::time::sleep(Duration::from_secs(10)).await;
        leases.push(bench.rows().await[0].lease_until.unwrap());
    }
    assert!(leases.iter().all(|lease| *lease <= end), "{leases:?}");
    assert!(
        leases.contains(&end),
        "it is renewed up to the end: {leases:?}"
    );
    assert!(matches!(
        running.await.unwrap().outcome,
        Outcome::Done { .. }
    ));
}

#[tokio::test(start_paused = true)]
async fn without_time_the_lease_ends_at_once_and_is_none_all_the_same() {
    let bench = Bench::new(&[Act::Last(LEASE)]);
    let gate = bench.gate();
    for left in [Duration::ZERO, Duration::from_millis(1)] {
        let before = gate.clock().unix_millis();
        let call = gate.for_call(Some(now(&gate) + left));
        let settled = call.settle(&put("a.shp", "e1")).await;
        assert!(
            matches!(settled.outcome, Outcome::Failed { .. }),
            "{settled:?}"
        );
        let row = bench.record(&settled).await;
        assert_eq!(row.status, Status::Failed);
        assert!(
            gate.clock().unix_millis().0 - before.0 <= 1,
            "the job was not stopped"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn stopping_a_call_stops_what_it_runs_and_nothing_else() {
    let bench = Bench::new(&[Act::Last(LEASE), Act::Last(LEASE)]);
    let gate = bench.gate();
    let (first, second) = (gate.for_call(None), gate.for_call(None));
    let runs = [(first.clone(), "a.shp"), (second.clone(), "b.shp")];
    let [first_run, second_run] =
        runs.map(|(call, key)| tokio::spawn(async move { call.settle(&put(key, "e1")).await }));
    tokio::time::sleep(Duration::from_secs(1)).await;
    first.stop();
    let settled = first_run.await.unwrap();
    assert_eq!(
        bench.record(&settled).await.reason,
        Some(Reason::Interrupted)
    );
    assert_eq!(bench.running(), 1);
    let refused = first.settle(&put("c.shp", "e1")).await.outcome;
    assert!(matches!(
        refused,
        Outcome::Unavailable {
            part: Part::Process,
            ..
        }
    ));
    // The gate itself stops every call.
    gate.stop();
    assert!(matches!(
        second_run.await.unwrap().outcome,
        Outcome::Failed { .. }
    ));
}

/// A batch of messages, each with its group and its object's key.
fn messages(of: &[(&str, &str)]) -> Vec<Item> {
    let records: Vec<_> = of
        .iter()
        .enumerate()
        .map(|(at, (group, key))| {
            json!({"messageId": format!("m{at}"), "eventSource": "aws:sqs", "attributes": {"MessageGroupId": group},
                "body": format!("{{\"Records\":[{}]}}", record("geo", key, "e1"))})
        })
        .collect();
    read(&Delivery::from_body(
        json!({"Records": records}).to_string().as_bytes(),
    ))
}

#[tokio::test(start_paused = true)]
async fn after_a_failure_the_rest_of_its_group_is_returned_untouched() {
    let bench = Bench::new(&[Act::Succeed, Act::Fail]);
    let batch = [
        ("a", "0.shp"),
        ("a", "1.shp"),
        ("b", "2.shp"),
        ("a", "3.shp"),
        ("b", "4.shp"),
    ];
    // One group at a time: the acts go to the messages of group a.
    let answers = bench.gate().settle_groups(&messages(&batch), 1).await;
    let told: Vec<_> = answers
        .iter()
        .map(|answer| {
            let id = answer.origin.message_id.as_deref().unwrap();
            (
                id,
                answer.disposition == Disposition::Ack,
                answer.settled.len(),
            )
        })
        .collect();
    let expected = [
        ("m0", true, 1),
        ("m1", false, 1),
        ("m2", true, 1),
        ("m3", false, 0),
        ("m4", true, 1),
    ];
    assert_eq!(told, expected);
    assert_eq!(
        bench.rows().await.len(),
        4,
        "nothing is claimed for what is returned untouched"
    );
}

#[tokio::test(start_paused = true)]
async fn groups_run_side_by_side_and_each_in_its_order() {
    let bench = Bench::new(&[
        Act::Last(Duration::from_secs(10)),
        Act::Last(Duration::from_secs(10)),
        Act::Last(Duration::from_secs(10)),
    ]);
    let gate = bench.gate();
    let started = now(&gate);
    let batch = [("a", "0.shp"), ("b", "1.shp"), ("a", "2.shp")];
    let answers = gate.settle_groups(&messages(&batch), 8).await;
    assert!(
        answers
            .iter()
            .all(|answer| answer.disposition == Disposition::Ack)
    );
    assert_eq!((now(&gate) - started).as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_panic_outside_a_job_is_its_own_events_alone() {
    let bench = Bench::new(&[]);
    *bench.objects.lock().unwrap() = Objects::Panics;
    // Only what has no token asks the object store.
    let without = record("geo", "a.shp", "e1").replace("\"eTag\":\"e1\"", "\"size\":1");
    let batch = items(&[without, record("geo", "b.shp", "e1")]);
    let answers = bench.gate().settle_all(&batch, 4).await;
    let outcomes: Vec<_> = answers.iter().flat_map(|answer| &answer.settled).collect();
    assert!(
        matches!(&outcomes[0].outcome, Outcome::Unavailable { error, .. } if error.contains("out of objects")),
        "{outcomes:?}"
    );
    assert!(
        matches!(outcomes[1].outcome, Outcome::Done { .. }),
        "{outcomes:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_is_drained_claims_nothing_and_lets_run_what_runs() {
    let bench = Bench::new(&[Act::Last(LEASE)]);
    let gate = bench.gate();
    let call = gate.for_call(None);
    let running = tokio::spawn({
        let call = call.clone();
        async move { call.settle(&put("a.shp", "e1")).await }
    });
    tokio::time::sleep(LEASE / 2).await;
    gate.drain();
    let late = call.settle(&put("b.shp", "e1")).await;
    assert!(
        matches!(
            late.outcome,
            Outcome::Unavailable {
                part: Part::Process,
                ..
            }
        ),
        "{late:?}"
    );
    assert_eq!(bench.rows().await.len(), 1);
    let first = running.await.unwrap();
    assert!(matches!(first.outcome, Outcome::Done { .. }), "{first:?}");
}
