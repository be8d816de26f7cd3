//! The conformance suite, every handle a connection of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use identity_core::claim::conformance::{self, Subject};
use identity_core::claim::{ClaimKey, ClaimStore, Status};

use super::Testbed;

/// A store that is examined through these handles, and whose rows the testbed's foreign program changes.
pub(crate) struct Examined<'a, T: Testbed> {
    bed: &'a T,
    /// Two processes' worth of connections, handed out in turn.
    handles: [Arc<T::Store>; 2],
    next: AtomicUsize,
}

impl<'a, T: Testbed> Examined<'a, T> {
    pub(crate) fn new(bed: &'a T, handles: [Arc<T::Store>; 2]) -> Self {
        Self {
            bed,
            handles,
            next: AtomicUsize::new(0),
        }
    }
}

#[async_trait]
impl<T: Testbed> Subject for Examined<'_, T> {
    fn store(&self) -> Arc<dyn ClaimStore> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.handles[next % self.handles.len()].clone()
    }

    async fn delete(&self, key: &ClaimKey) {
        self.bed.delete(key).await;
    }

    async fn flip_status(&self, key: &ClaimKey, status: Status) {
        self.bed.flip_status(key, status).await;
    }

    async fn forget_lease(&self, key: &ClaimKey) {
        let nulls = "owner = NULL, revision = NULL, lease_until = NULL";
        let sql = format!("UPDATE firstclaim_claims SET {nulls} WHERE key = '{key}'");
        assert_eq!(self.bed.execute(&sql).await, 1);
    }

    async fn put_unreadable(&self, key: &ClaimKey) {
        let sql = format!("UPDATE firstclaim_claims SET attempt = -1 WHERE key = '{key}'");
        assert_eq!(self.bed.execute(&sql).await, 1);
    }
}

pub(crate) async fn the_store_conforms(bed: &impl Testbed) {
    let handles = [bed.store().clone(), Arc::new(bed.another().await)];
    let failures = conformance::run(&Examined::new(bed, handles), 1).await;
    assert!(failures.is_empty(), "{failures:#?}");
}
