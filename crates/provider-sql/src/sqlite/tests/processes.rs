//! Many processes on one file.

use std::io::Read;
use std::process::{Command, Stdio};

use identity_core::claim::{ClaimStore, Precondition, StoreError};
use tempfile::TempDir;

use crate::cases::races::claim;
use crate::sqlite::SqliteStore;
use identity_core::claim::conformance::samples::numbered_key;

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
