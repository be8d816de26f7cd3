//! Sending again, driven over a store: sweeps for what nobody redelivers, and an operator's redrive.
//!
//! A row is marked by one compare-and-swap before its event goes out, so of many sweeps one sends it. If that one stops
//! between the two, the mark ends with the grace, and the next sweep sends the event: a crash costs time, or an event
//! more, never a job. The worker that takes the event claims it like any other.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use super::{
    lease::{ClaimError, Claims},
    record::{ClaimKey, Record, Status, UnixMillis},
    redrive::{self, Obstacle, Resend, Ripeness},
    store::{ListQuery, StoreError, Stored},
};
use crate::{
    identity::Contract,
    outbox::{Message, Outbox, OutboxError},
    text::error_chain,
};

/// How many rows are asked for, or purged, at once.
const PAGE: NonZeroU32 = NonZeroU32::new(500).unwrap();
/// How many times one sweep purges at most: it has to end, and the next one goes on.
const PURGES: u32 = 100;

/// Sends the events of one pipeline's open claims again.
#[derive(Debug, Clone)]
pub struct Resender {
    /// The claims.
    pub claims: Claims,
    /// The pipeline: rows of another one are left alone and told.
    pub contract: Contract,
    /// Where the events go.
    pub outbox: Arc<dyn Outbox>,
    /// How long a row stands unchanged before a sweep sends its event, and until one sends it again.
    pub grace: Duration,
}

/// What became of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resent {
    /// Its event was sent.
    Sent {
        /// How often by now.
        redrives: u32,
    },
    /// In a dry run: its event would have been sent.
    WouldBeSent,
    /// It is not time, or it has ended meanwhile.
    Left,
    /// It cannot be sent. Nothing was written, but for [`Obstacle::Refused`].
    Obstacle(Obstacle),
}

/// The counts of a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Swept {
    /// Events that were sent, or would have been.
    pub sent: u64,
    /// Rows that somebody is at, or whose time has not come.
    pub left: u64,
    /// Rows that cannot be sent.
    pub reported: u64,
    /// Rows that cannot be read, or that too many wrote at once.
    pub failed: u64,
    /// Ends whose time is over, and which were deleted.
    pub purged: u64,
}

/// Why a sweep or a redrive stopped. A row that was marked is sent by a sweep after its grace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResendError {
    /// The claims cannot be listed.
    #[error("the claims cannot be listed")]
    List(#[source] StoreError),
    /// A claim cannot be read or marked.
    #[error("the claim {key} cannot be marked")]
    Claim {
        /// Which.
        key: ClaimKey,
        /// The cause.
        #[source]
        source: ClaimError,
    },
    /// An event may not have been sent.
    #[error("the event of {key} may not have been sent; a sweep sends it again later")]
    Outbox {
        /// Whose event.
        key: ClaimKey,
        /// The cause.
        #[source]
        source: OutboxError,
    },
}

impl Resender {
    /// How long rows are left alone unless something else is said: longer than a source takes to deliver again by itself.
    pub const GRACE: Duration = Duration::from_mins(15);

    /// Sends the event of every claim that nobody is at and nobody redelivers, and tells of every row whose event was sent
    /// or cannot be; then deletes the ends whose time is over. Any number of sweeps may run at once. A dry run writes, sends and
    /// deletes nothing.
    ///
    /// # Errors
    ///
    /// [`ResendError`]: the store or the outbox failed, and the rest of the rows was not looked at.
    pub async fn sweep(
        &self,
        dry_run: bool,
        tell: &mut (dyn FnMut(&ClaimKey, &Record, &Resent) + Send),
    ) -> Result<Swept, ResendError> {
        let mut counts = Swept::default();
        let swept = self.sweep_rows(dry_run, tell, &mut counts).await;
        if !dry_run {
            // Also where sending fails: or ends would never go while a queue is away.
            counts.purged = self.purge().await;
        }
        swept.map(|()| counts)
    }

    async fn sweep_rows(
        &self,
        dry_run: bool,
        tell: &mut (dyn FnMut(&ClaimKey, &Record, &Resent) + Send),
        counts: &mut Swept,
    ) -> Result<(), ResendError> {
        let mut query = ListQuery {
            statuses: [Status::Processing, Status::Failed, Status::Waiting].into(),
            limit: PAGE,
            after: None,
        };
        loop {
            let page = self.claims.store().list(&query).await;
            let page = page.map_err(ResendError::List)?;
            for error in &page.unreadable {
                tracing::warn!(error = error_chain(error), "not swept");
                counts.failed += 1;
            }
            for (key, stored) in page.claims {
                let record = stored.record.clone();
                let resent = match self.sweep_row(&key, stored, dry_run).await {
                    Err(ResendError::Claim {
                        source: error @ ClaimError::Contended(_),
                        ..
                    }) => {
                        tracing::warn!(job_id = %key, error = %error, "not swept");
                        counts.failed += 1;
                        continue;
                    }
                    Err(ResendError::Claim {
                        source: ClaimError::Unknown(_),
                        ..
                    }) => continue, // deleted meanwhile
                    resent => resent?,
                };
                match resent {
                    Resent::Sent { .. } | Resent::WouldBeSent => counts.sent += 1,
                    Resent::Left => counts.left += 1,
                    Resent::Obstacle(_) => counts.reported += 1,
                }
                if resent != Resent::Left {
                    tell(&key, &record, &resent);
                }
            }
            query.after = page.next;
            if query.after.is_none() {
                return Ok(());
            }
        }
    }

    /// Deletes the ends whose time is over, and tells how many. Failing is told, and no more: the rows are done either way.
    pub async fn purge(&self) -> u64 {
        let now = self.claims.clock().unix_millis().seconds();
        let mut purged = 0;
        for _ in 0..PURGES {
            match self.claims.store().purge(now, PAGE).await {
                Ok(some) => {
                    purged += u64::from(some);
                    if some < PAGE.get() {
                        break;
                    }
                }
                Err(error) => {
                    tracing::warn!(error = error_chain(&error), "not all old ends were deleted");
                    break;
                }
            }
        }
        purged
    }

    async fn sweep_row(
        &self,
        key: &ClaimKey,
        stored: Stored,
        dry_run: bool,
    ) -> Result<Resent, ResendError> {
        if dry_run {
            let now = self.claims.clock().unix_millis();
            return Ok(match self.judge(key, &stored.record, now) {
                Ok(_) => Resent::WouldBeSent,
                Err(left) => left,
            });
        }
        let marked = self
            .claims
            .rewrite(key, Some(stored), |row, owner, now| {
                let resend = self.judge(key, row, now)?;
                Ok((redrive::swept(row, owner, self.grace, now), resend))
            })
            .await;
        self.send(key, marked).await
    }

    fn judge(&self, key: &ClaimKey, row: &Record, now: UnixMillis) -> Result<Resend, Resent> {
        match redrive::ripeness(row, self.grace, self.claims.terms(), now) {
            Ok(Ripeness::Ripe) => {}
            Ok(Ripeness::Unripe | Ripeness::Ended) => return Err(Resent::Left),
            Err(obstacle) => return Err(Resent::Obstacle(obstacle)),
        }
        Resend::of(key, row, &self.contract).map_err(Resent::Obstacle)
    }

    /// Sends the event of one claim by an operator's command, which is recorded: it is given back first. `again`: also if it
    /// is done. Never [`Resent::Left`].
    ///
    /// # Errors
    ///
    /// [`ResendError::Claim`], also where there is no such claim, and [`ResendError::Outbox`].
    pub async fn redrive(&self, key: &ClaimKey, again: bool) -> Result<Resent, ResendError> {
        let marked = self
            .claims
            .rewrite(key, None, |row, owner, now| {
                let resend = redrive::may_redrive(row, again, now)
                    .and_then(|()| Resend::of(key, row, &self.contract))
                    .map_err(Resent::Obstacle)?;
                Ok((redrive::redriven(row, owner, self.grace, now), resend))
            })
            .await;
        self.send(key, marked).await
    }

    async fn send(
        &self,
        key: &ClaimKey,
        marked: Result<Result<(Record, Resend), Resent>, ClaimError>,
    ) -> Result<Resent, ResendError> {
        let (record, resend) = match marked {
            Ok(Ok(marked)) => marked,
            Ok(Err(left)) => return Ok(left),
            Err(source) => {
                let key = key.clone();
                return Err(ResendError::Claim { key, source });
            }
        };
        let redrives = record.redrives;
        let message = Message::about(key, redrives, resend.envelope(key, redrives));
        match self.outbox.send(&message).await {
            Ok(()) => Ok(Resent::Sent { redrives }),
            Err(error @ OutboxError::Refused { .. }) => Ok(Resent::Obstacle(Obstacle::Refused {
                why: error_chain(&error),
            })),
            Err(source) => {
                let key = key.clone();
                Err(ResendError::Outbox { key, source })
            }
        }
    }
}

#[cfg(test)]
mod tests;
