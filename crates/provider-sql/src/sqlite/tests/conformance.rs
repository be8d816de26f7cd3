//! The conformance suite on SQLite, every handle a connection of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use identity_core::claim::conformance::{self, Subject};
use identity_core::claim::{ClaimKey, ClaimStore, Status};

use super::super::SqliteStore;
use super::super::fixture::Fixture;

struct Sqlite {
    fixture: Fixture,
    /// Two processes' worth of connections, handed out in turn.
    handles: [Arc<SqliteStore>; 2],
    next: AtomicUsize,
}

#[async_trait]
impl Subject for Sqlite {
    fn store(&self) -> Arc<dyn ClaimStore> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.handles[next % self.handles.len()].clone()
    }

    async fn delete(&self, key: &ClaimKey) {
        self.fixture.delete(key).await;
    }

    async fn flip_status(&self, key: &ClaimKey, status: Status) {
        self.fixture.flip_status(key, status).await;
    }

    async fn forget_lease(&self, key: &ClaimKey) {
        let nulls = "owner = NULL, revision = NULL, lease_until = NULL";
        let sql = format!("UPDATE firstclaim_claims SET {nulls} WHERE key = '{key}'");
        assert_eq!(self.fixture.execute(sql).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_conforms() {
    let fixture = Fixture::new().await;
    let other = Arc::new(fixture.another(SqliteStore::LOCK_WAIT).await);
    let handles = [fixture.store.clone(), other];
    let subject = Sqlite {
        fixture,
        handles,
        next: AtomicUsize::new(0),
    };
    let failures = conformance::run(&subject, 1).await;
    assert!(failures.is_empty(), "{failures:#?}");
}
