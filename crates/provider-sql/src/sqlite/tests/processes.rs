//! Many at once: connections of one process, and processes.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::Arc;

use identity_core::claim::{ClaimStore, Owner, Precondition, Record, Revision, Status, StoreError};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::samples::{bare, numbered_key};
use crate::sqlite::SqliteStore;
use crate::sqlite::fixture::Fixture;

/// A claim by this caller.
fn claim(caller: u128, write: u32) -> Record {
    let owner = Owner(caller);
    Record {
        owner: Some(owner),
        revision: Some(Revision { owner, write }),
        ..bare(Status::Processing, 1)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_sixteen_connections_that_want_one_key_one_gets_it() {
    let fixture = Fixture::new().await;
    let mut stores = Vec::new();
    for _ in 0..16 {
        stores.push(Arc::new(fixture.another(SqliteStore::LOCK_WAIT).await));
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
                    Err(StoreError::Conflict { standing }) => {
                        lost_to.push(standing.unwrap().record.owner);
                    }
                    Err(error) => panic!("{error:?}"),
                }
            }
            assert_eq!(won.len(), 1, "round {round}");
            let (winner, version) = won.remove(0);
            assert_eq!(lost_to, [winner; 15], "round {round}");
            when = Precondition::Unchanged(version);
        }
    }
}

#[tokio::test]
async fn twenty_processes_set_up_one_file_and_share_its_keys() {
    const CHILD: &str = "PROVIDER_SQL_TEST_RACER";
    const KEYS: u64 = 40;
    if let Some(path) = std::env::var_os(CHILD) {
        // The parent closes all inputs at once.
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        let store = SqliteStore::open(path, SqliteStore::LOCK_WAIT)
            .await
            .unwrap();
        for number in 0..KEYS {
            let record = claim(std::process::id().into(), 1);
            let key = numbered_key(number);
            match store.put(&key, &record, &Precondition::Absent).await {
                Ok(_) => println!("won {number}."),
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        return;
    }

    let folder = TempDir::new().unwrap();
    let mut racers: Vec<_> = (0..20)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args([
                    "sqlite::tests::processes::twenty_processes_set_up_one_file_and_share_its_keys",
                    "--exact",
                    "--nocapture",
                ])
                .env(CHILD, folder.path().join("claims.db"))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for racer in &mut racers {
        drop(racer.stdin.take());
    }
    let mut won = String::new();
    for racer in racers {
        let output = racer.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}{errors}");
        assert!(text.contains("1 passed"), "{text}");
        won.push_str(&text);
    }
    for key in 0..KEYS {
        assert_eq!(won.matches(&format!("won {key}.")).count(), 1, "key {key}");
    }
}
