//! The conformance suite and races, plain and over a wire that loses replies.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_dynamodb::types::AttributeValue;
use identity_core::claim::conformance::{self, Failure, Subject};
use identity_core::claim::{ClaimKey, ClaimStore, Precondition, Status, StoreError};
use tokio::task::JoinSet;
use wire::{Counts, Fault, Plan, Protocol, Request, Wire};

use super::fixture::Table;
use crate::DynamoStore;
use crate::dynamodb::attributes::Item;
use crate::dynamodb::samples::{claim, numbered_key};

struct Examined<'a> {
    table: &'a Table,
    /// Two processes' worth of connections, handed out in turn.
    handles: [Arc<DynamoStore>; 2],
    next: AtomicUsize,
}

impl<'a> Examined<'a> {
    async fn by_way_of(table: &'a Table, url: &str) -> Self {
        let handle = async || Arc::new(table.by_way_of(url).await);
        Self {
            table,
            handles: [handle().await, handle().await],
            next: AtomicUsize::new(0),
        }
    }
}

#[async_trait]
impl Subject for Examined<'_> {
    fn store(&self) -> Arc<dyn ClaimStore> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.handles[next % self.handles.len()].clone()
    }

    async fn delete(&self, key: &ClaimKey) {
        self.table.delete(key).await;
    }

    async fn flip_status(&self, key: &ClaimKey, status: Status) {
        self.table.flip_status(key, status).await;
    }

    async fn forget_lease(&self, key: &ClaimKey) {
        let expression = "REMOVE #owner, #revision, lease_until";
        self.table.update(key, expression, Item::new()).await;
    }

    async fn put_unreadable(&self, key: &ClaimKey) {
        let values = Item::from([(":a".to_owned(), AttributeValue::N("-1".to_owned()))]);
        self.table.update(key, "SET attempt = :a", values).await;
    }

    /// Time to live is the service's.
    fn purges(&self) -> bool {
        false
    }
}

async fn the_store_conforms(table: &Table) {
    let failures = conformance::run(&Examined::by_way_of(table, &table.url).await, 1).await;
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Runs the protocol's cases over a wire with this plan for writes.
async fn conformance_over(table: &Table, seed: u64, plan: Plan) -> (Vec<Failure>, Counts) {
    let server = table.url.strip_prefix("http://").unwrap();
    let wire = Wire::start(server, Protocol::Http).unwrap();
    let url = format!("http://{}", wire.address());
    let subject = Examined::by_way_of(table, &url).await;
    wire.arm(plan.only(Request::is_write));
    let failures = conformance::run_protocol(&subject, seed).await;
    assert_eq!(wire.complaints(), Vec::<String>::new());
    (failures, wire.counts())
}

/// Of one reply in two or three the SDK sees none, sends the write again, and is refused by what it wrote itself.
async fn the_protocol_holds_when_replies_of_committed_writes_are_lost(table: &Table) {
    for n in [1, 2, 3] {
        let (failures, counts) = conformance_over(table, n, Plan::every(n, Fault::DropReply)).await;
        assert_eq!(failures, [], "one reply of {n} lost");
        let lost = counts.dropped_replies;
        assert!(lost >= 20, "only {lost} replies were lost, one of {n}");
    }
}

async fn the_protocol_holds_whatever_befalls_its_writes(table: &Table) {
    let faults = [
        Fault::DropReply,
        Fault::DropRequest,
        Fault::Delay(Duration::from_millis(1)),
    ];
    for seed in 11..=13 {
        let plan = Plan::seeded(seed, 2, faults);
        let (failures, counts) = conformance_over(table, seed, plan).await;
        assert_eq!(failures, [], "seed {seed}");
        let befell = [
            counts.dropped_replies,
            counts.dropped_requests,
            counts.delayed,
        ];
        assert!(befell.iter().all(|times| *times > 0), "{seed}: {counts:?}");
    }
}

/// What the cases above rest on: a write of which one reply is lost is sent again by the SDK, and refused by itself.
async fn a_write_whose_reply_is_lost_is_refused_by_itself(table: &Table) {
    let server = table.url.strip_prefix("http://").unwrap();
    let wire = Wire::start(server, Protocol::Http).unwrap();
    let store = table.by_way_of(&format!("http://{}", wire.address())).await;
    let (key, record) = (numbered_key(1), claim(1, 1));
    wire.arm(Plan::nth(1, Fault::DropReply).only(Request::is_write));
    match store.put(&key, &record, &Precondition::Absent).await {
        Err(StoreError::Conflict { .. }) => {
            let stands = store.get(&key).await.unwrap().unwrap();
            assert_eq!(stands.record, record);
        }
        other => panic!("expected a conflict with itself, got {other:?}"),
    }
    assert_eq!(wire.counts().dropped_replies, 1);
}

async fn of_sixteen_that_want_one_key_one_gets_it(table: &Table) {
    let mut stores = Vec::new();
    for _ in 0..16 {
        stores.push(Arc::new(table.by_way_of(&table.url).await));
    }
    for round in 0..200 {
        let key = numbered_key(round);
        let mut racers = JoinSet::new();
        for (caller, store) in (0..).zip(&stores) {
            let (store, key, record) = (Arc::clone(store), key.clone(), claim(caller, 1));
            racers.spawn(async move {
                let put = store.put(&key, &record, &Precondition::Absent).await;
                (record.owner, put)
            });
        }
        let (mut won, mut lost_to) = (Vec::new(), Vec::new());
        for (owner, result) in racers.join_all().await {
            match result {
                Ok(_) => won.push(owner),
                // Where the refusal tells what stands there, it is the winner's row.
                Err(StoreError::Conflict { standing }) => {
                    lost_to.push(standing.map(|row| row.record.owner));
                }
                Err(error) => panic!("{error:?}"),
            }
        }
        assert_eq!(won.len(), 1, "round {round}");
        assert_eq!(lost_to.len(), 15, "round {round}");
        let mut told = lost_to.into_iter().flatten();
        assert!(told.all(|owner| owner == won[0]), "round {round}");
        let stands = stores[0].get(&key).await.unwrap().unwrap();
        assert_eq!(stands.record.owner, won[0], "round {round}");
    }
}

super::on_both! {
    the_store_conforms,
    the_protocol_holds_when_replies_of_committed_writes_are_lost,
    the_protocol_holds_whatever_befalls_its_writes,
    a_write_whose_reply_is_lost_is_refused_by_itself,
    of_sixteen_that_want_one_key_one_gets_it,
}
