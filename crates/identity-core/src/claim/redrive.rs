//! Sending again, pure: what a row's event was, when a sweep may send it, and the row once it is sent or closed.

use std::time::Duration;

use super::{
    machine::{Terms, released},
    record::{ClaimKey, Owner, Reason, Record, RecordedObject, Revision, Status, UnixMillis},
};
use crate::{
    event::{
        StorageEvent,
        own::{self, Carried, Sent},
    },
    identity::{
        Contract, ObjectAddress, ObjectKey, ObjectVersion, Provider, Scheme, VersionToken,
        decode::form_decode,
    },
};

/// The event of a row, as it can be sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resend {
    what: What,
    /// Whether the row never was a job, so that its event is settled under another key, and the row has to be closed.
    closes: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Event {
        event: Box<StorageEvent>,
        incomplete: bool,
    },
    Body(Vec<u8>),
}

/// Why a row's event is not sent again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Obstacle {
    /// Another program wrote it: which version of the object it is about is not known.
    #[error(
        "another program wrote it, and does not say of which version it is: have its event delivered again"
    )]
    Foreign,
    /// It belongs to another pipeline.
    #[error("it is of the pipeline {name} {version}")]
    OtherPipeline {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
    },
    /// The row's event would give another job: the contract changed under the same name and version.
    #[error(
        "under this contract its event has another job ID: the contract was changed under the same version"
    )]
    OtherId,
    /// The row does not tell exactly which object it is about.
    #[error(
        "its record does not tell exactly which object it is about: have its event delivered again"
    )]
    Inexact,
    /// `reference` refused the URL in the event, which is not kept.
    #[error(
        "the scheme reference refused it for its URL, which is not kept: have its event delivered again"
    )]
    RefusedUrl,
    /// Only the beginning of the event was kept.
    #[error(
        "only the first {} bytes of its event are kept: have it delivered again, from its dead-letter queue",
        Record::MAX_BODY_BYTES
    )]
    Cut,
    /// The lease ends later than any lease should.
    #[error("its lease ends later than any should: a clock is wrong")]
    Clock,
    /// Somebody holds it.
    #[error("somebody holds it: wait, or release it first")]
    Held,
    /// It is done, and nobody said that it should be done again.
    #[error("it is done: say that it is to be done again")]
    Done,
    /// The queue will never take its event. This is known only once the row is marked, so that it is told once a grace.
    #[error("its event cannot be sent: {why}")]
    Refused {
        /// Which queue, and why.
        why: String,
    },
}

impl Resend {
    /// The event of the row under `key`, for a worker with this contract.
    ///
    /// # Errors
    ///
    /// The [`Obstacle`] that keeps it from being told, or from being this contract's: an event that would become another
    /// job than the row's is not sent.
    pub fn of(key: &ClaimKey, record: &Record, contract: &Contract) -> Result<Self, Obstacle> {
        let pipeline = &record.pipeline;
        if pipeline.name.is_empty() {
            return Err(Obstacle::Foreign);
        }
        if (&*pipeline.name, &*pipeline.version) != (contract.name(), contract.version()) {
            return Err(Obstacle::OtherPipeline {
                name: pipeline.name.clone(),
                version: pipeline.version.clone(),
            });
        }
        let Some(object) = &record.object else {
            return match &record.body {
                None => Err(Obstacle::Foreign),
                Some(_) if record.is_cut() => Err(Obstacle::Cut),
                Some(body) => Ok(Self {
                    what: What::Body(body.clone()),
                    closes: true,
                }),
            };
        };
        let mut event = event_of(object).ok_or(Obstacle::Inexact)?;
        if is_job(key, &event, contract) {
            let (event, incomplete) = (Box::new(event), false);
            return Ok(Self {
                what: What::Event { event, incomplete },
                closes: false,
            });
        }
        if record.attempt > 0 {
            return Err(match object.token {
                None => Obstacle::Foreign,
                Some(_) => Obstacle::OtherId,
            });
        }
        // The record does not say whether the event left open what happened to the object; at the others none does.
        event.unconfirmed = object.provider == Provider::Gcs;
        let incomplete = record.status == Status::Waiting
            || record
                .released
                .is_some_and(|release| release.from == Status::Waiting);
        // The gate takes these two reasons, and a wait, only for events that `reference` does not refuse.
        let accepted =
            incomplete || matches!(record.reason, Some(Reason::NotAllowed | Reason::Collapsed));
        let in_doubt = contract.scheme() == Scheme::Reference && object.provider == Provider::Azure;
        if in_doubt && !accepted {
            return Err(Obstacle::RefusedUrl);
        }
        let event = Box::new(event);
        Ok(Self {
            what: What::Event { event, incomplete },
            closes: true,
        })
    }

    /// The envelope that sends it, the `redrives`th time.
    pub fn envelope(&self, key: &ClaimKey, redrives: u32) -> String {
        let sent = match &self.what {
            What::Event { event, incomplete } => Sent::Event {
                event,
                incomplete: *incomplete,
            },
            What::Body(body) => Sent::Body(body),
        };
        own::write(&sent, self.closes.then(|| key.as_str()), redrives)
    }
}

/// The event that a recorded object came from, as far as identity can tell; `None` if the record does not say exactly.
pub fn event_of(object: &RecordedObject) -> Option<StorageEvent> {
    let token = match &object.token {
        None => None,
        Some((kind, value)) => Some(VersionToken::new(*kind, value.clone()).ok()?),
    };
    let key = match &object.raw_key {
        None => ObjectKey::verbatim(&*object.key),
        // Only S3's keys can hold bytes that are not UTF-8, which are shown as U+FFFD: the raw key tells them.
        Some(raw) if object.provider == Provider::S3 => {
            ObjectKey::decoded(&**raw, form_decode(raw))
        }
        Some(raw) => ObjectKey::decoded(&**raw, &*object.key),
    };
    let address = ObjectAddress {
        provider: object.provider,
        account: object.account.clone(),
        container: object.container.clone(),
        key,
    };
    (RecordedObject::new(&address, token.as_ref()) == *object)
        .then(|| StorageEvent::of(address, token))
}

fn is_job(key: &ClaimKey, event: &StorageEvent, contract: &Contract) -> bool {
    let Ok(Some(token)) = event.token_for(contract.scheme()) else {
        return false;
    };
    let address = event.address.clone();
    let id = contract.deriver().job_id(&ObjectVersion { address, token });
    id.is_ok_and(|id| ClaimKey::from(id) == *key)
}

/// What a sweep does with a row, but for its [`Obstacle`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ripeness {
    /// Its event is to be sent.
    Ripe,
    /// Not yet: somebody holds it, or its own source may still deliver it.
    Unripe,
    /// It has ended.
    Ended,
}

/// Whether a sweep may send a row's event at `now`: nobody holds it, it has stood so for `grace`, and no sweep has sent it
/// since `grace`.
///
/// # Errors
///
/// [`Obstacle::Clock`]. Another time that lies ahead is not waited for: it would keep a job from being done.
pub fn ripeness(
    record: &Record,
    grace: Duration,
    terms: &Terms,
    now: UnixMillis,
) -> Result<Ripeness, Obstacle> {
    let farthest = now.plus(terms.longest_lease()).plus(grace);
    let since = match record.status {
        Status::Done | Status::Rejected => return Ok(Ripeness::Ended),
        Status::Processing if record.lease_end() > now.plus(terms.longest_lease()) => {
            return Err(Obstacle::Clock);
        }
        Status::Processing => record.lease_end(),
        Status::Failed => record.finished_at.unwrap_or(record.claimed_at).millis(),
        Status::Waiting => record.claimed_at.millis(),
    };
    let passed = |moment: UnixMillis| moment <= now || moment > farthest;
    let ripe = passed(since.plus(grace)) && record.waiting_until.is_none_or(passed);
    Ok(if ripe {
        Ripeness::Ripe
    } else {
        Ripeness::Unripe
    })
}

/// The row once a sweep is about to send its event: counted, and left alone until `grace` has passed. Status, attempt and
/// owner stay, so that a holder that was only slow can still record its end.
pub fn swept(row: &Record, owner: Owner, grace: Duration, now: UnixMillis) -> Record {
    Record {
        revision: Some(Revision { owner, write: 1 }),
        redrives: row.redrives.saturating_add(1),
        waiting_until: Some(now.plus(grace)),
        ..row.clone()
    }
}

/// The row once an operator is about to send its event: released ([`released`]), and counted. If the event is lost on its
/// way, a sweep sends it after `grace`. What waits goes on waiting.
pub fn redriven(row: &Record, owner: Owner, grace: Duration, now: UnixMillis) -> Record {
    let mut record = swept(&released(row, owner, now), owner, grace, now);
    if row.status == Status::Waiting {
        record.status = Status::Waiting;
        (record.finished_at, record.reason) = (None, None);
    }
    record
}

/// Whether an operator may send a row's event; `again` if also one that is done.
///
/// # Errors
///
/// [`Obstacle::Held`] and [`Obstacle::Done`].
pub fn may_redrive(record: &Record, again: bool, now: UnixMillis) -> Result<(), Obstacle> {
    match record.status {
        Status::Processing if record.lease_end() > now => Err(Obstacle::Held),
        Status::Done if !again => Err(Obstacle::Done),
        _ => Ok(()),
    }
}

/// The row that never was a job once its event, sent the `redrives`th time, is settled elsewhere; `None` if it is not to be
/// closed: it was a job, it has ended, was recorded again, or sent again since; or it is not of what was sent, for whoever may send an
/// event could name any record.
pub fn closed(
    row: &Record,
    (redrives, carried): (u32, &Carried),
    owner: Owner,
    terms: &Terms,
    now: UnixMillis,
) -> Option<Record> {
    let open = matches!(row.status, Status::Failed | Status::Waiting);
    (open && row.attempt == 0 && row.redrives == redrives && is_of(row, carried)).then(|| Record {
        status: Status::Done,
        owner: Some(owner),
        revision: Some(Revision { owner, write: 1 }),
        waiting_until: None,
        finished_at: Some(now.seconds()),
        expires_at: Some(now.plus(terms.done_ttl).seconds()),
        reason: Some(Reason::Redriven),
        error: Some(
            "its event was sent again, and is settled under another key or is no job".to_owned(),
        ),
        ..row.clone()
    })
}

/// Whether a row holds just this.
fn is_of(row: &Record, carried: &Carried) -> bool {
    match (carried, &row.object) {
        (Carried::Event { address, token }, Some(object)) => {
            RecordedObject::new(address, token.as_ref()) == *object
        }
        (Carried::Body(_), None) => row
            .body
            .as_deref()
            .is_some_and(|body| Carried::body(body) == *carried),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
