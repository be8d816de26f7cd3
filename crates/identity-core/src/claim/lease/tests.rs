//! Tests of claims driven over a store.

use std::num::NonZeroU32;

use super::*;
use crate::claim::{
    ListQuery, Page, UnixSeconds, Version,
    conformance::host::{CountedEntropy, ManualClock},
    memory::MemoryStore,
    testing::{object, pipeline},
};

/// A store whose every write takes its time.
#[derive(Debug)]
struct Slow(MemoryStore, Arc<ManualClock>);

const WRITE: Duration = Duration::from_secs(30);

impl std::fmt::Display for Slow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("slow")
    }
}

#[async_trait::async_trait]
impl ClaimStore for Slow {
    async fn get(&self, key: &ClaimKey) -> Result<Option<Stored>, StoreError> {
        self.0.get(key).await
    }
    async fn put(
        &self,
        key: &ClaimKey,
        record: &Record,
        when: &Precondition,
    ) -> Result<Version, StoreError> {
        self.1.advance(WRITE);
        self.0.put(key, record, when).await
    }
    async fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        self.0.list(query).await
    }
    async fn purge(&self, now: UnixSeconds, most: NonZeroU32) -> Result<u32, StoreError> {
        self.0.purge(now, most).await
    }
}

#[tokio::test]
async fn a_lease_is_counted_from_before_its_write_was_sent() {
    let clock = Arc::new(ManualClock::at(UnixMillis(1_000)));
    let store = Arc::new(Slow(MemoryStore::default(), clock.clone()));
    let claims = Claims::new(
        store,
        clock.clone(),
        Arc::new(CountedEntropy),
        Terms::default(),
    );
    let key = ClaimKey::from_digest([1; 32]);
    let Claimed::Won(lease) = claims
        .claim(&key, &object("a.shp"), &pipeline())
        .await
        .unwrap()
    else {
        panic!("a new key was not won");
    };
    let lasts = Terms::default().lease;
    assert_eq!((clock.monotonic(), lease.confirmed_until()), (WRITE, lasts));
    assert_eq!(claims.renew(&lease).await.unwrap(), Kept::Yes);
    assert_eq!(
        (clock.monotonic(), lease.confirmed_until()),
        (WRITE * 2, WRITE + lasts)
    );
}
