//! A layer between the protocol and a store that does what networks and SDKs do to writes.

use std::{
    fmt,
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;

use crate::claim::{
    record::{ClaimKey, Record, UnixSeconds},
    store::{ClaimStore, ListQuery, Page, Precondition, StoreError, Stored, Version},
};

/// What happens to writes. Reads are left alone, for they change nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Nothing.
    None,
    /// Every write that takes place is answered with an error: the reply is lost.
    ReplyLost,
    /// Every other write fails before it takes place.
    FailsBefore,
    /// Every other write is answered with an error, and takes place only after the next question was answered.
    Late,
    /// Every write is sent twice, as an SDK does that saw no reply: the second send meets the first one's row.
    Resent,
}

impl Fault {
    /// Every fault, and none.
    pub const ALL: [Self; 5] = [
        Self::None,
        Self::ReplyLost,
        Self::FailsBefore,
        Self::Late,
        Self::Resent,
    ];
}

/// A store behind a fault.
#[derive(Debug)]
pub struct FaultyStore {
    inner: Arc<dyn ClaimStore>,
    fault: Fault,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    writes: u32,
    late: Vec<(ClaimKey, Record, Precondition)>,
}

/// The cause that a fault gives.
#[derive(Debug, thiserror::Error)]
#[error("injected: the write {0}")]
struct Injected(&'static str);

impl FaultyStore {
    /// `inner` behind `fault`.
    pub fn new(inner: Arc<dyn ClaimStore>, fault: Fault) -> Self {
        Self {
            inner,
            fault,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn injected(&self, what: &'static str) -> StoreError {
        let source = Box::new(Injected(what));
        StoreError::Unavailable {
            store: self.inner.to_string(),
            doing: "writing a claim",
            source,
        }
    }

    /// Whether this write is one of every two that the fault strikes.
    fn strikes(&self) -> bool {
        let mut state = self.state();
        state.writes += 1;
        state.writes % 2 == 1
    }

    /// Lets the writes take place that were on their way.
    async fn land(&self) {
        let late = std::mem::take(&mut self.state().late);
        for (key, record, when) in late {
            // Its caller is long gone: whether the condition still held concerns nobody.
            let _ = self.inner.put(&key, &record, &when).await;
        }
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} behind {:?}", self.inner, self.fault)
    }
}

#[async_trait]
impl ClaimStore for FaultyStore {
    async fn get(&self, key: &ClaimKey) -> Result<Option<Stored>, StoreError> {
        let row = self.inner.get(key).await;
        self.land().await;
        row
    }

    async fn put(
        &self,
        key: &ClaimKey,
        record: &Record,
        when: &Precondition,
    ) -> Result<Version, StoreError> {
        match self.fault {
            Fault::None => self.inner.put(key, record, when).await,
            Fault::ReplyLost => {
                self.inner.put(key, record, when).await?;
                Err(self.injected("took place and its reply was lost"))
            }
            Fault::FailsBefore if self.strikes() => Err(self.injected("never reached the store")),
            Fault::Late if self.strikes() => {
                self.state()
                    .late
                    .push((key.clone(), record.clone(), when.clone()));
                Err(self.injected("is still on its way"))
            }
            Fault::Resent => {
                self.inner.put(key, record, when).await?;
                self.inner.put(key, record, when).await
            }
            Fault::FailsBefore | Fault::Late => {
                let written = self.inner.put(key, record, when).await;
                self.land().await;
                written
            }
        }
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        self.inner.list(query).await
    }

    async fn purge(&self, now: UnixSeconds, most: NonZeroU32) -> Result<u32, StoreError> {
        self.inner.purge(now, most).await
    }
}
