//! The claim store as one worker sees it: rows that all share, behind a network that loses, delays and repeats.

use std::{fmt, num::NonZeroU32, sync::Arc, time::Duration};

use async_trait::async_trait;
use identity_core::claim::{
    ClaimKey, ClaimStore, ListQuery, Page, Precondition, Record, Status, StoreError, Stored,
    UnixSeconds, Version,
};
use tokio::sync::oneshot;

use super::{plan::Control, process::Process, world::State};

/// The store, through one process's connection.
#[derive(Debug, Clone)]
pub(super) struct Connection(pub(super) Arc<Process>);

/// What the network does to one write.
#[derive(Debug, Clone, Copy)]
enum Fault {
    None,
    /// It does not arrive.
    Lost,
    /// It takes place, and the caller does not learn it.
    ReplyLost,
    /// The caller gives up; it takes place so much later.
    Late(Duration),
    /// The SDK sends it again by itself after so long, for the first reply got lost.
    Resent(Duration),
}

impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("simulated:")
    }
}

impl Connection {
    fn unavailable(doing: &'static str) -> StoreError {
        StoreError::Unavailable {
            store: "simulated:".to_owned(),
            doing,
            source: "connection reset".into(),
        }
    }

    /// How long one way of a request takes: now and then longer than a lease.
    fn latency(&self) -> Duration {
        let plan = &self.0.world.plan;
        self.0.world.with(|state| {
            if !state.calm && plan.store_faults > 0 && state.chance(2) {
                state.fault("slow request");
                return state.up_to(plan.lease * 2);
            }
            state.millis(1, 40)
        })
    }

    fn fault(&self) -> Fault {
        let plan = &self.0.world.plan;
        self.0.world.with(|state| {
            if state.calm || !state.chance(plan.store_faults) {
                return Fault::None;
            }
            let (fault, kind) = match state.rng.u32(..5) {
                0 => (Fault::Lost, "write lost"),
                1 | 2 => (Fault::ReplyLost, "reply lost"),
                3 => (Fault::Late(state.up_to(plan.lease * 2)), "late write"),
                _ => (
                    Fault::Resent(state.millis(5, 500)),
                    "write resent by the SDK",
                ),
            };
            state.fault(kind);
            fault
        })
    }

    /// The store's own part: one row, compared and swapped.
    fn commit(
        &self,
        key: &ClaimKey,
        record: &Record,
        when: &Precondition,
    ) -> Result<Version, StoreError> {
        let world = &self.0.world;
        let control = world.plan.control;
        world.with(|state| {
            let standing = state.rows.get(key).cloned();
            let holds = match (when, &standing) {
                (Precondition::Absent, None) => true,
                (Precondition::Unchanged(version), Some(row)) => row.version == *version,
                _ => false,
            };
            let what = self.describe(key, record);
            if !holds && control != Some(Control::IgnorePreconditions) {
                world.refused(state, key, record);
                state.tell(&self.0.name, format_args!("{what}: refused"));
                // Some stores tell what stands there, others do not.
                let standing = standing.filter(|_| state.chance(50)).map(Box::new);
                return Err(StoreError::Conflict { standing });
            }
            if control == Some(Control::LoseFailed) && record.status == Status::Failed {
                state.tell(&self.0.name, format_args!("{what}: thrown away"));
                return Ok(Version("thrown away".to_owned()));
            }
            let counted =
                (control == Some(Control::CountedVersions)).then(|| count(standing.as_ref()));
            state.tell(&self.0.name, format_args!("{what}: written"));
            world.committed(state, key, standing.as_ref().map(|row| &row.record), record);
            Ok(state.write(key, record.clone(), counted))
        })
    }

    fn describe(&self, key: &ClaimKey, record: &Record) -> String {
        let world = &self.0.world;
        let job = world.catalogue.job(key).map(|job| job.to_string());
        let reason = record.reason.map_or("", |reason| reason.as_str());
        format!(
            "put {} {} attempt {} {reason}",
            job.unwrap_or_default(),
            record.status,
            record.attempt
        )
    }

    fn told(&self, state: &mut State, what: impl fmt::Display) {
        state.tell(&self.0.name, what);
    }
}

fn count(standing: Option<&Stored>) -> Version {
    let counted = standing.and_then(|row| row.version.0.parse::<u64>().ok());
    Version((counted.unwrap_or(0) + 1).to_string())
}

#[async_trait]
impl ClaimStore for Connection {
    async fn get(&self, key: &ClaimKey) -> Result<Option<Stored>, StoreError> {
        self.0.pass().await;
        tokio::time::sleep(self.latency()).await;
        let read = self.0.world.with(|state| {
            let failed = !state.calm && state.chance(self.0.world.plan.store_faults);
            let row = state.rows.get(key).cloned();
            if failed {
                state.fault("read lost");
            }
            let job = self.0.world.catalogue.job(key).map(|job| job.to_string());
            let status = row
                .as_ref()
                .map_or("nothing", |row| row.record.status.as_str());
            self.told(
                state,
                format_args!("get {}: {status}", job.unwrap_or_default()),
            );
            (!failed).then_some(row)
        });
        tokio::time::sleep(self.latency()).await;
        self.0.pass().await;
        read.ok_or_else(|| Self::unavailable("reading a claim"))
    }

    /// What was sent goes its way, whatever becomes of the sender: hence a task of its own.
    async fn put(
        &self,
        key: &ClaimKey,
        record: &Record,
        when: &Precondition,
    ) -> Result<Version, StoreError> {
        self.0.pass().await;
        let (fault, latency) = (self.fault(), self.latency());
        let (sender, receiver) = oneshot::channel();
        let (connection, key, record, when) =
            (self.clone(), key.clone(), record.clone(), when.clone());
        tokio::spawn(async move {
            tokio::time::sleep(latency).await;
            let answer = match fault {
                Fault::None => connection.commit(&key, &record, &when),
                Fault::Lost => Err(Self::unavailable("writing a claim")),
                Fault::ReplyLost => {
                    if connection.commit(&key, &record, &when).is_ok() {
                        let world = &connection.0.world;
                        world.with(|state| state.ledger.unanswered(&key, &record));
                    }
                    Err(Self::unavailable("writing a claim"))
                }
                Fault::Late(later) => {
                    // The sender may be gone by now.
                    let _ = sender.send(Err(Self::unavailable("writing a claim")));
                    tokio::time::sleep(later).await;
                    let _ = connection.commit(&key, &record, &when);
                    return;
                }
                Fault::Resent(later) => {
                    if connection.commit(&key, &record, &when).is_ok() {
                        let world = &connection.0.world;
                        world.with(|state| state.ledger.unanswered(&key, &record));
                    }
                    tokio::time::sleep(later).await;
                    connection.commit(&key, &record, &when)
                }
            };
            let _ = sender.send(answer);
        });
        let answer = receiver
            .await
            .unwrap_or_else(|_| Err(Self::unavailable("writing a claim")));
        tokio::time::sleep(self.latency()).await;
        self.0.pass().await;
        answer
    }

    async fn list(&self, _: &ListQuery) -> Result<Page, StoreError> {
        Err(Self::unavailable("listing claims"))
    }

    async fn purge(&self, _: UnixSeconds, _: NonZeroU32) -> Result<u32, StoreError> {
        Err(Self::unavailable("deleting old ends"))
    }
}
