//! Many connections that want the same key at once.

use std::sync::Arc;

use identity_core::claim::{ClaimStore, Owner, Precondition, Record, Revision, Status, StoreError};
use tokio::task::JoinSet;

use super::Testbed;
use identity_core::claim::conformance::samples::{bare, numbered_key};

/// A claim by this caller.
pub(crate) fn claim(caller: u128, write: u32) -> Record {
    let owner = Owner(caller);
    Record {
        owner: Some(owner),
        revision: Some(Revision { owner, write }),
        ..bare(Status::Processing, 1)
    }
}

pub(crate) async fn of_sixteen_connections_that_want_one_key_one_gets_it(bed: &impl Testbed) {
    let mut stores = Vec::new();
    for _ in 0..16 {
        stores.push(Arc::new(bed.another().await));
    }
    // First over a key that nobody has, then over the row that everybody has read.
    for round in 0..100 {
        let key = numbered_key(round);
        let mut when = Precondition::Absent;
        for write in [1, 2] {
            let mut racers = JoinSet::new();
            for (caller, store) in (0..).zip(&stores) {
                let (store, key, when) = (Arc::clone(store), key.clone(), when.clone());
                racers.spawn(async move {
                    let record = claim(caller, write);
                    (record.owner, store.put(&key, &record, &when).await)
                });
            }
            let (mut won, mut lost_to) = (Vec::new(), Vec::new());
            for (owner, result) in racers.join_all().await {
                match result {
                    Ok(version) => won.push((owner, version)),
                    // Where the refusal tells what stands there, it is the winner's row.
                    Err(StoreError::Conflict { standing }) => {
                        lost_to.push(standing.map(|row| row.record.owner));
                    }
                    Err(error) => panic!("{error:?}"),
                }
            }
            assert_eq!(won.len(), 1, "round {round}");
            let (winner, version) = won.remove(0);
            assert_eq!(lost_to.len(), 15, "round {round}");
            let told = lost_to.into_iter().flatten();
            assert!(
                told.into_iter().all(|owner| owner == winner),
                "round {round}"
            );
            let stands = stores[0].get(&key).await.unwrap().unwrap();
            assert_eq!(stands.record.owner, winner, "round {round}");
            when = Precondition::Unchanged(version);
        }
    }
}
