//! The protocol over a wire that loses replies to writes which the server has committed, and writes before they reach it.

use std::sync::Arc;
use std::time::Duration;

use identity_core::claim::conformance::{self, Failure};
use identity_core::claim::{ClaimStore, Precondition, Status, StoreError};
use wire::{Counts, Fault, Plan, Protocol, Request, Wire};

use crate::cases::conformance::Examined;
use crate::postgres::fixture::{Fixture, open};
use crate::postgres::{PostgresStore, PostgresUrl};
use identity_core::claim::conformance::samples::{bare, numbered_key};

/// A wire to the server of this URL, and the URL by way of it.
fn wire_to(url: &str) -> (Wire, String) {
    let options = PostgresUrl::parse(url).unwrap().options;
    let server = format!("{}:{}", options.get_host(), options.get_port());
    let wire = Wire::start(server, Protocol::Postgres).unwrap();
    let address = wire.address();
    let url = format!("{url}&host={}&port={}", address.ip(), address.port());
    (wire, url)
}

/// Runs the protocol's cases over a wire with this plan for the writes of claims.
async fn conformance_over(plan: Plan) -> (Vec<Failure>, Counts) {
    let bed = Fixture::new().await;
    let (wire, url) = wire_to(&bed.url);
    let handle = async || Arc::new(open(&url).await);
    let handles: [Arc<PostgresStore>; 2] = [handle().await, handle().await];
    wire.arm(plan.only(Request::is_write));
    let failures = conformance::run_protocol(&Examined::new(&bed, handles), 1).await;
    assert_eq!(wire.complaints(), Vec::<String>::new());
    (failures, wire.counts())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_protocol_holds_when_replies_of_committed_writes_are_lost() {
    for n in [1, 2, 3] {
        let (failures, counts) = conformance_over(Plan::every(n, Fault::DropReply)).await;
        assert_eq!(failures, [], "one reply of {n} lost");
        let lost = counts.dropped_replies;
        assert!(lost >= 20, "only {lost} replies were lost, one of {n}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_protocol_holds_when_writes_are_lost_before_they_are_committed() {
    for n in [2, 3] {
        let (failures, counts) = conformance_over(Plan::every(n, Fault::DropRequest)).await;
        assert_eq!(failures, [], "one write of {n} lost");
        let lost = counts.dropped_requests;
        assert!(lost >= 20, "only {lost} writes were lost, one of {n}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_protocol_holds_whatever_befalls_its_writes() {
    let faults = [
        Fault::DropReply,
        Fault::DropRequest,
        Fault::Delay(Duration::from_millis(1)),
    ];
    for seed in 1..=5 {
        let (failures, counts) = conformance_over(Plan::seeded(seed, 2, faults)).await;
        assert_eq!(failures, [], "seed {seed}");
        let befell = [
            counts.dropped_replies,
            counts.dropped_requests,
            counts.delayed,
        ];
        assert!(befell.iter().all(|times| *times > 0), "{seed}: {counts:?}");
    }
}

/// What the cases above rest on: the write whose reply is lost is an error here, and in the database all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_write_whose_reply_is_lost_is_there_and_one_that_is_lost_is_not() {
    let bed = Fixture::new().await;
    let (wire, url) = wire_to(&bed.url);
    let store = open(&url).await;
    let record = bare(Status::Done, 1);
    for (fault, there) in [(Fault::DropReply, true), (Fault::DropRequest, false)] {
        wire.arm(Plan::every(1, fault).only(Request::is_write));
        let key = numbered_key(u64::from(there));
        let error = store.put(&key, &record, &Precondition::Absent).await;
        let error = error.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        let row = store.get(&key).await.unwrap();
        assert_eq!(row.is_some(), there, "{fault:?}");
    }
}
