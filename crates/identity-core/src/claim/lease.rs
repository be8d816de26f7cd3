//! The protocol of [`machine`] driven over a store: claim, renew, end, record, release.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::{
    duplicate::Likeness,
    machine::{
        self, Answer, Ask, ClaimOutcome, Claiming, End, HolderOutcome, Holding, Recording,
        RecordingOutcome, Step, Terms,
    },
    pause,
    record::{
        ClaimKey, Owner, Reason, Record, RecordedObject, RecordedPipeline, Revision, UnixMillis,
    },
    redrive,
    store::{ClaimStore, Precondition, StoreError, Stored},
};
use crate::{
    event::Redriven,
    host::{Clock, Entropy},
};

/// Claims on one store, by one machine's clock.
#[derive(Debug, Clone)]
pub struct Claims {
    store: Arc<dyn ClaimStore>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    terms: Terms,
    /// No lease ends later than this, on the monotonic clock.
    until: Option<Duration>,
    /// How long a job is left alone after its first attempt failed; zero for not at all.
    retry: Duration,
}

/// A claim that was won: which job, and which attempt at it.
///
/// Not `Clone`: what proves that a job may run is consumed when its end is recorded.
#[derive(Debug)]
pub struct Lease {
    key: ClaimKey,
    owner: Owner,
    attempt: u32,
    held: Box<Mutex<Held>>,
}

#[derive(Debug, Clone)]
struct Held {
    stored: Stored,
    /// How many writes this holder has asked for; numbers its revisions.
    writes: u32,
    /// The lease's end as last confirmed, on the monotonic clock and counted from before the write was sent.
    confirmed_until: Duration,
    /// How long it was when it was last confirmed.
    lasts: Duration,
}

impl Lease {
    fn new(
        key: ClaimKey,
        owner: Owner,
        stored: Stored,
        writes: u32,
        (started, lasts): (Duration, Duration),
    ) -> Self {
        let attempt = stored.record.attempt;
        Self {
            key,
            owner,
            attempt,
            held: Box::new(Mutex::new(Held {
                stored,
                writes,
                confirmed_until: started + lasts,
                lasts,
            })),
        }
    }

    /// The claim's key: the job ID.
    pub fn key(&self) -> &ClaimKey {
        &self.key
    }

    /// 1, 2, 3 …: with the owner, the fencing token. A sink that remembers the highest attempt it has seen can refuse
    /// an older one.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// How often the event was sent again on purpose, by a sweep or an operator.
    pub fn redrives(&self) -> u32 {
        self.held().stored.record.redrives
    }

    /// The claim call that won.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Until when the claim is known to be held, on the scale of [`Clock::monotonic`]. Past it, somebody else may be
    /// at the job, so it must have stopped.
    pub fn confirmed_until(&self) -> Duration {
        self.held().confirmed_until
    }

    /// How long the lease was when it was last confirmed: its terms', or less if the process has to end sooner.
    pub fn lasts(&self) -> Duration {
        self.held().lasts
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        // Nothing panics while it holds the lock; if it did, what is held is still the last confirmed state.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a claim call ended.
#[derive(Debug)]
pub enum Claimed {
    /// The job is the caller's to run.
    Won(Lease),
    /// The job has ended already.
    Ended {
        /// What stands under the key.
        record: Box<Record>,
        /// How it compares with this event.
        likeness: Likeness,
    },
    /// Somebody else is at it.
    Held {
        /// What stands under the key.
        record: Box<Record>,
        /// When the lease ends if it is not renewed.
        until: UnixMillis,
        /// The lease ends later than any lease should: somebody's clock is wrong.
        suspicious: bool,
    },
    /// Another job stands under this job's ID.
    Collapsed {
        /// The other job.
        record: Box<Record>,
        /// What differs.
        differing: Vec<&'static str>,
    },
    /// Its holder went away without a word, and the caller runs other jobs, too. Nothing was written.
    Abandoned {
        /// What stands under the key.
        record: Box<Record>,
    },
}

/// Whether a holder's write took place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It did.
    Yes,
    /// The claim is no longer this holder's; nothing was written.
    LeaseLost,
}

/// Why a call could not be answered. Whatever was asked may or may not have taken place: the event is retried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// The store failed, or did not come to rest within a bounded number of questions.
    #[error("the claim store gave no answer")]
    Store(#[source] StoreError),
    /// The row changed under every attempt to write it.
    #[error("the claim {0} is written by too many at once")]
    Contended(ClaimKey),
    /// The machine's random generator failed.
    #[error("no randomness for a claim")]
    Entropy(#[source] std::io::Error),
    /// There is no claim under the key.
    #[error("there is no claim {0}")]
    Unknown(ClaimKey),
}

impl Claims {
    /// Claims in `store`.
    pub fn new(
        store: Arc<dyn ClaimStore>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        terms: Terms,
    ) -> Self {
        Self {
            store,
            clock,
            entropy,
            terms,
            until: None,
            retry: Duration::ZERO,
        }
    }

    /// The same claims, where a job that failed is left alone for about so long after its first attempt, and twice as long
    /// after each one more. The record tells until when; sweeps heed it, and so may who is told of the failure.
    #[must_use]
    pub fn retrying_after(self, retry: Duration) -> Self {
        Self { retry, ..self }
    }

    /// The same claims for a process that will be gone at `until`, on the scale of [`Clock::monotonic`]: no lease is written
    /// that ends later, and so none outlives its holder. One that is written after that ends at once.
    #[must_use]
    pub fn until(&self, until: Duration) -> Self {
        Self {
            until: Some(until),
            ..self.clone()
        }
    }

    /// The terms of a call that is made now.
    fn terms_from(&self, now: Duration) -> Terms {
        let left = self.until.map(|until| until.saturating_sub(now));
        Terms {
            lease: left.unwrap_or(Duration::MAX).min(self.terms.lease),
            ..self.terms
        }
    }

    /// The terms that every lease of this value has.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn ClaimStore> {
        &self.store
    }

    /// The clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Claims `key` for the job that `object` and `pipeline` describe. Never [`Claimed::Abandoned`].
    ///
    /// # Errors
    ///
    /// [`ClaimError`], every variant but `Unknown`: nobody may run the job on this call's account.
    pub async fn claim(
        &self,
        key: &ClaimKey,
        object: &RecordedObject,
        pipeline: &RecordedPipeline,
    ) -> Result<Claimed, ClaimError> {
        let call = |owner, terms| Claiming::new(owner, object.clone(), pipeline.clone(), terms);
        self.claim_by(key, call).await
    }

    /// [`Claims::claim`] for a process that runs other jobs beside this one: what a dead holder left is not taken over.
    ///
    /// # Errors
    ///
    /// As [`Claims::claim`].
    pub async fn claim_beside_others(
        &self,
        key: &ClaimKey,
        object: &RecordedObject,
        pipeline: &RecordedPipeline,
    ) -> Result<Claimed, ClaimError> {
        let call = |owner, terms| {
            Claiming::new(owner, object.clone(), pipeline.clone(), terms).beside_others()
        };
        self.claim_by(key, call).await
    }

    async fn claim_by(
        &self,
        key: &ClaimKey,
        call: impl FnOnce(Owner, Terms) -> Claiming,
    ) -> Result<Claimed, ClaimError> {
        let owner = self.entropy.owner().map_err(ClaimError::Entropy)?;
        let started = self.clock.monotonic();
        let terms = self.terms_from(started);
        let mut call = call(owner, terms);
        let mut conversation = Conversation::new(self, key);
        let mut step = call.start(self.clock.unix_millis());
        let outcome = loop {
            match step {
                Step::Ask(ask) => {
                    let answer = conversation.ask(ask).await?;
                    step = call.step(answer, self.clock.unix_millis());
                }
                Step::Finished(outcome) => break outcome,
            }
        };
        Ok(match outcome {
            ClaimOutcome::Won(stored) => {
                let lasts = (started, terms.lease);
                let writes = call.writes();
                Claimed::Won(Lease::new(key.clone(), owner, *stored, writes, lasts))
            }
            ClaimOutcome::Ended { record, likeness } => Claimed::Ended { record, likeness },
            ClaimOutcome::Held {
                record,
                until,
                suspicious,
            } => Claimed::Held {
                record,
                until,
                suspicious,
            },
            ClaimOutcome::Collapsed { record, differing } => {
                Claimed::Collapsed { record, differing }
            }
            ClaimOutcome::Abandoned { record } => Claimed::Abandoned { record },
            ClaimOutcome::Unclear => return Err(conversation.failure()),
        })
    }

    /// Moves the end of `lease` to a full lease from now, or to the end of this process if that is sooner.
    ///
    /// # Errors
    ///
    /// [`ClaimError::Store`] and [`ClaimError::Contended`]: not known; the lease ends when it was last confirmed to.
    pub async fn renew(&self, lease: &Lease) -> Result<Kept, ClaimError> {
        let started = self.clock.monotonic();
        let (stored, write) = next_write(lease);
        let lasts = self.terms_from(started).lease;
        let call = Holding::renew(&stored, write, lasts, self.clock.unix_millis());
        let kept = self.hold(lease, call).await?;
        if kept == Kept::Yes {
            let mut held = lease.held();
            held.confirmed_until = started + lasts;
            held.lasts = lasts;
        }
        Ok(kept)
    }

    /// Records how the attempt ended. While the store gives no answer and the lease lasts, it is asked again: a job's
    /// work is not thrown away for a store that was away for a moment.
    ///
    /// # Errors
    ///
    /// [`ClaimError::Store`] and [`ClaimError::Contended`]: not known. If it was not recorded, the claim is taken over
    /// after its lease.
    pub async fn end(&self, lease: Lease, end: End) -> Result<Kept, ClaimError> {
        self.end_until(lease, end).await.map(|(kept, _)| kept)
    }

    /// [`Claims::end`], and not before when a failed job is worth another attempt, if that is to be told.
    ///
    /// # Errors
    ///
    /// As [`Claims::end`]'s.
    pub(crate) async fn end_until(
        &self,
        lease: Lease,
        end: End,
    ) -> Result<(Kept, Option<UnixMillis>), ClaimError> {
        loop {
            let (stored, write) = next_write(&lease);
            let now = self.clock.unix_millis();
            let again = match &end {
                End::Failed { reason, .. } if *reason != Some(Reason::Interrupted) => {
                    pause::worth_trying(&stored.record, self.retry, now)
                }
                _ => None,
            };
            let mut call = Holding::end(&stored, write, end.clone(), &self.terms, now);
            if let Some(moment) = again {
                call = call.again_at(moment);
            }
            match self.hold(&lease, call).await {
                Err(ClaimError::Store(StoreError::Unavailable { .. }))
                    if self.clock.monotonic() + END_PAUSE < lease.confirmed_until() =>
                {
                    self.clock.sleep(END_PAUSE).await;
                }
                answer => return answer.map(|kept| (kept, again)),
            }
        }
    }

    async fn hold(&self, lease: &Lease, mut call: Holding) -> Result<Kept, ClaimError> {
        let mut conversation = Conversation::new(self, &lease.key);
        let mut step = call.start();
        loop {
            match step {
                Step::Ask(ask) => step = call.step(conversation.ask(ask).await?),
                Step::Finished(HolderOutcome::Written(stored)) => {
                    lease.held().stored = stored;
                    return Ok(Kept::Yes);
                }
                Step::Finished(HolderOutcome::Lost(_)) => return Ok(Kept::LeaseLost),
                Step::Finished(HolderOutcome::Unclear) => return Err(conversation.failure()),
            }
        }
    }

    /// Records what no attempt made, a rejection or a wait, unless an end stands under the key already. Returns what stands then.
    ///
    /// # Errors
    ///
    /// [`ClaimError`], every variant but `Unknown`: it may not be recorded, so what it is about must come again.
    pub async fn record(&self, key: &ClaimKey, record: Record) -> Result<Box<Record>, ClaimError> {
        let owner = self.entropy.owner().map_err(ClaimError::Entropy)?;
        let revision = Some(Revision { owner, write: 1 });
        let record = Record {
            owner: Some(owner),
            revision,
            ..record
        };
        let mut call = Recording::new(record);
        let mut conversation = Conversation::new(self, key);
        let mut step = call.start();
        loop {
            match step {
                Step::Ask(ask) => step = call.step(conversation.ask(ask).await?),
                Step::Finished(RecordingOutcome::Recorded(record)) => return Ok(record),
                Step::Finished(RecordingOutcome::Unclear) => return Err(conversation.failure()),
            }
        }
    }

    /// Gives a claim back by an operator's command: `failed`, its attempt kept, so that the next delivery runs it. A
    /// holder that still runs finds its lease lost. Returns the record before and after.
    ///
    /// # Errors
    ///
    /// [`ClaimError`], every variant.
    pub async fn release(&self, key: &ClaimKey) -> Result<(Record, Record), ClaimError> {
        let released = self.rewrite(key, None, |row, owner, now| {
            Ok::<_, Infallible>((machine::released(row, owner, now), row.clone()))
        });
        let Ok((after, before)) = released.await?;
        Ok((before, after))
    }

    /// Closes a record that never was a job once its event, sent again, is settled under another key.
    /// Whatever else stands there by then is left as it is.
    ///
    /// # Errors
    ///
    /// [`ClaimError`], every variant but `Unknown`: it may still be open, and its event be sent again.
    pub(crate) async fn close(
        &self,
        key: &ClaimKey,
        redriven: &Redriven,
    ) -> Result<(), ClaimError> {
        let sent = (redriven.redrives, &redriven.carried);
        let closed = self.rewrite(key, None, |row, owner, now| {
            redrive::closed(row, sent, owner, &self.terms, now)
                .map(|record| (record, ()))
                .ok_or(())
        });
        match closed.await {
            Ok(_) | Err(ClaimError::Unknown(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes over the row under `key`, `row` if it is known, by compare-and-swap. `change` says for the row as it stands
    /// what to write and what to tell of it, or why it is left alone; it is asked again if somebody else has written.
    pub(super) async fn rewrite<T, E>(
        &self,
        key: &ClaimKey,
        row: Option<Stored>,
        change: impl Fn(&Record, Owner, UnixMillis) -> Result<(Record, T), E> + Send + Sync,
    ) -> Result<Result<(Record, T), E>, ClaimError>
    where
        T: Send,
        E: Send,
    {
        let owner = self.entropy.owner().map_err(ClaimError::Entropy)?;
        let mut row = match row {
            Some(row) => row,
            None => self.row(key).await?,
        };
        let mut asked = None;
        for _ in 0..REWRITE_TRIES {
            let own = |revision: Revision| revision.owner == owner;
            if let Some(told) = asked.filter(|_| row.record.revision.is_some_and(own)) {
                return Ok(Ok((row.record, told))); // an earlier write of this call whose reply was lost
            }
            let (record, told) = match change(&row.record, owner, self.clock.unix_millis()) {
                Ok(changed) => changed,
                Err(left) => return Ok(Err(left)),
            };
            let when = Precondition::Unchanged(row.version);
            row = match self.store.put(key, &record, &when).await {
                Ok(_) => return Ok(Ok((record, told))),
                Err(StoreError::Conflict {
                    standing: Some(row),
                }) => *row,
                Err(StoreError::Conflict { standing: None }) => self.row(key).await?,
                Err(StoreError::Unavailable { .. }) => {
                    self.clock.sleep(FIRST_PAUSE).await;
                    self.row(key).await?
                }
                Err(error) => return Err(ClaimError::Store(error)),
            };
            asked = Some(told);
        }
        Err(ClaimError::Contended(key.clone()))
    }

    async fn row(&self, key: &ClaimKey) -> Result<Stored, ClaimError> {
        let row = self.store.get(key).await.map_err(ClaimError::Store)?;
        row.ok_or_else(|| ClaimError::Unknown(key.clone()))
    }
}

/// How often a row that somebody else writes at the same time is written over before it is given up.
const REWRITE_TRIES: u32 = 8;
const END_PAUSE: Duration = Duration::from_secs(1);

fn next_write(lease: &Lease) -> (Stored, u32) {
    let mut held = lease.held();
    held.writes += 1;
    (held.stored.clone(), held.writes)
}

/// One call's questions to the store: errors become [`Answer::Unclear`], with a pause that grows, and the last is kept.
struct Conversation<'a> {
    claims: &'a Claims,
    key: &'a ClaimKey,
    last_error: Option<StoreError>,
    errors: u32,
}

const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// After this many errors in one call the store is taken to be away: the source will deliver again.
const MAX_ERRORS: u32 = 5;

impl<'a> Conversation<'a> {
    fn new(claims: &'a Claims, key: &'a ClaimKey) -> Self {
        Self {
            claims,
            key,
            last_error: None,
            errors: 0,
        }
    }

    async fn ask(&mut self, ask: Ask) -> Result<Answer, ClaimError> {
        let error = match ask {
            Ask::Get => match self.claims.store.get(self.key).await {
                Ok(row) => return Ok(Answer::Row(row)),
                Err(error) => error,
            },
            Ask::Put { record, when } => {
                match self.claims.store.put(self.key, &record, &when).await {
                    Ok(version) => return Ok(Answer::Written(version)),
                    Err(StoreError::Conflict { standing }) => {
                        return Ok(Answer::Conflict(standing.map(|row| *row)));
                    }
                    Err(error) => error,
                }
            }
        };
        // A row that no claim can be read from does not get better by looking again.
        let hopeless = matches!(error, StoreError::Invalid { .. });
        self.errors += 1;
        if hopeless || self.errors >= MAX_ERRORS {
            return Err(ClaimError::Store(error));
        }
        self.last_error = Some(error);
        self.claims
            .clock
            .sleep(FIRST_PAUSE * 2u32.pow(self.errors))
            .await;
        Ok(Answer::Unclear)
    }

    fn failure(self) -> ClaimError {
        self.last_error.map_or_else(
            || ClaimError::Contended(self.key.clone()),
            ClaimError::Store,
        )
    }
}

#[cfg(test)]
#[cfg(feature = "conformance")]
mod tests;
