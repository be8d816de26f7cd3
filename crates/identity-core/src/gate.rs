//! The gate: event in → identity → claim → job → end recorded → disposition out. All handlers and the CLI share it.
//!
//! [`Gate::settle`] is the one path. Its table of answers is [`Outcome::disposition`]; a won claim's life is in
//! `gate/supervise.rs`; what is recorded without an attempt in `gate/rejection.rs`, and closed in `gate/redriven.rs`; whole
//! deliveries are answered in `gate/batch.rs`.

mod allow;
mod batch;
mod counts;
mod groups;
mod outcome;
mod redriven;
mod rejection;
mod supervise;
#[cfg(test)]
mod tests;
mod turn;
mod wanted;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use self::turn::{Turn, Turns};
pub use self::{
    allow::{AllowList, Allowed, UnknownProvider},
    batch::ItemAnswer,
    counts::Counts,
    outcome::{Disposition, NoJob, Outcome, Part},
};
use crate::{
    claim::{
        ClaimError, ClaimKey, Claimed, Claims, Lease, Likeness, Reason, Record, RecordedObject,
        RecordedPipeline, StoreError,
    },
    event::{Ignored, Item, Reading, StorageEvent},
    host::Clock,
    identity::{Contract, ObjectAddress, ObjectVersion, VersionToken},
    job::{Job, JobContext, JobError, Output},
    object::{Head, ObjectError, ObjectStore},
    text::error_chain,
};

/// What a gate is made of.
#[derive(Debug)]
pub struct Parts {
    /// The pipeline contract.
    pub contract: Contract,
    /// Claims, with their store and terms.
    pub claims: Claims,
    /// The clock that leases and run times are measured by.
    pub clock: Arc<dyn Clock>,
    /// Reads objects.
    pub objects: Arc<dyn ObjectStore>,
    /// The job.
    pub job: Arc<dyn Job>,
    /// After this time a job is stopped.
    pub max_run: Duration,
    /// Which containers events may name.
    pub allow: AllowList,
}

/// The one way from an event to an answer. Cloning gives another handle to the same gate.
#[derive(Debug, Clone)]
pub struct Gate {
    inner: Arc<Inner>,
    claims: Claims,
    job: Arc<dyn Job>,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Inner {
    parts: Parts,
    pipeline: RecordedPipeline,
    context: (Arc<str>, Arc<str>),
    /// Whether it was said that the contract changed: once is enough.
    told_of_change: AtomicBool,
    /// Whether nothing is claimed any more.
    draining: AtomicBool,
    /// How long jobs have at most once they are told to stop, in milliseconds.
    patience: AtomicU64,
    /// Which jobs may run beside each other.
    turns: Turns,
}

/// What became of one event, for logs, counts and answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The claim it is about: a job ID, or the key of a recorded rejection.
    pub key: Option<ClaimKey>,
    /// The object's URI for people.
    pub uri: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
}

/// An event on its way to a claim.
enum Prepared {
    /// A job to claim.
    Job(Box<(ClaimKey, ObjectVersion)>),
    /// Decided without a claim.
    Settled(Settled),
}

/// Nothing is claimed any more.
#[derive(Debug)]
struct Stopping;

impl Gate {
    /// A gate made of `parts`.
    pub fn new(parts: Parts) -> Self {
        let contract = &parts.contract;
        let pipeline = RecordedPipeline {
            name: contract.name().to_owned(),
            version: contract.version().to_owned(),
            scheme: contract.scheme().as_str().to_owned(),
            params_digest: contract.params().digest(),
            contract_digest: contract.digest().to_owned(),
        };
        let context = (contract.name().into(), contract.version().into());
        Self {
            claims: parts.claims.clone(),
            job: parts.job.clone(),
            stop: CancellationToken::new(),
            inner: Arc::new(Inner {
                parts,
                pipeline,
                context,
                told_of_change: AtomicBool::new(false),
                draining: AtomicBool::new(false),
                patience: AtomicU64::new(u64::MAX),
                turns: Turns::default(),
            }),
        }
    }

    /// Claims nothing from now on, in no call; jobs that run go on.
    pub fn drain(&self) {
        self.inner.draining.store(true, Ordering::Relaxed);
    }

    /// Stops every running job: each is ended as `failed`, so that the next delivery wins at once; one with a
    /// [grace](Job::grace) is told first. Nothing is claimed from then on.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// [`Gate::stop`], where jobs get no longer than this to end by themselves, whatever their grace is.
    pub fn stop_within(&self, patience: Duration) {
        let millis = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        self.inner.patience.store(millis, Ordering::Relaxed);
        self.stop();
    }

    /// The same gate for one call into this process, after which it may be gone or frozen: its leases end with the call at
    /// the latest, at `until` on the scale of [`Clock::monotonic`]. Stopping it stops what it runs; it is stopped when this one is.
    #[must_use]
    pub fn for_call(&self, until: Option<Duration>) -> Self {
        Self {
            inner: self.inner.clone(),
            claims: until.map_or_else(|| self.claims.clone(), |until| self.claims.until(until)),
            job: self.job.clone(),
            stop: self.stop.child_token(),
        }
    }

    /// The same gate with another job around, or in the place of, its own.
    #[must_use]
    pub fn with_job(&self, job: Arc<dyn Job>) -> Self {
        Self {
            job,
            ..self.clone()
        }
    }

    /// Takes one reading of a delivery to its outcome.
    ///
    /// Dropping the returned future stops its job; the claim is then ended as `failed` by a task that outlives it.
    pub async fn settle(&self, item: &Item) -> Settled {
        let started = self.clock().monotonic();
        let settled = match self.prepare(item).await {
            Prepared::Settled(settled) => settled,
            Prepared::Job(job) => self.claim_and_run(*job, 0).await,
        };
        self.finish(item, settled, started).await
    }

    /// What every settled event comes to: the record that it was sent again from is closed, and the log told.
    async fn finish(&self, item: &Item, mut settled: Settled, started: Duration) -> Settled {
        if let Some(redriven) = &item.redriven {
            settled = self.close(redriven, settled).await;
        }
        let took = self.clock().monotonic().saturating_sub(started);
        let Settled { key, uri, outcome } = &settled;
        tracing::info!(
            job_id = key.as_ref().map(ClaimKey::as_str),
            uri,
            message_id = item.origin.message_id,
            outcome = outcome.as_str(),
            reason = outcome.reason(),
            attempt = outcome.attempt(),
            millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            error = outcome.error(),
            "event"
        );
        settled
    }

    /// Everything before the claim: may this event be a job, of which version, under which ID?
    async fn prepare(&self, item: &Item) -> Prepared {
        if let Reading::Event(event) | Reading::Incomplete(event) = &item.reading
            && let Some(unreadable) = event.too_long()
        {
            return self.unreadable(&unreadable).await;
        }
        let event = match &item.reading {
            Reading::Event(event) => event,
            Reading::Ignored(kind) => return ignored(None, NoJob::Kind(*kind)),
            Reading::Incomplete(event) if item.redriven.is_some() => {
                return self.look_again(event).await;
            }
            Reading::Incomplete(event) => return self.incomplete(event).await,
            // Whoever received it gives the answer; there is no job in it.
            Reading::Reply(_) => return ignored(None, NoJob::Kind(Ignored::Handshake)),
            Reading::Unreadable(unreadable) => return self.unreadable(unreadable).await,
        };
        if !self.inner.parts.allow.allows(&event.address) {
            // What the scheme refuses is told so: once it is allowed, its record must not pass for a whole event.
            if let Err(refusal) = event.token_for(self.contract().scheme()) {
                return self
                    .refuse(event, Reason::Refused, error_chain(&refusal))
                    .await;
            }
            let error = format!(
                "{} lies in a container that is not on the allow-list",
                event.address
            );
            return self.refuse(event, Reason::NotAllowed, error).await;
        }
        match self.unwanted(event).await {
            Ok(None) => {}
            Ok(Some(why)) => return ignored(Some(&event.address), why),
            Err(error) => return unavailable(&event.address, &error),
        }
        let objects = &self.inner.parts.objects;
        if self.job.reads_objects() && !objects.reads(event.address.provider) {
            let error = format!(
                "{} cannot be read by this build, and the job reads it",
                event.address
            );
            return missing(&event.address, error);
        }
        if self.job.reads_objects()
            && let Some(error) = objects.missing(&event.address)
        {
            return missing(&event.address, error);
        }
        let token = match event.token_for(self.contract().scheme()) {
            Ok(Some(token)) if !event.unconfirmed => token,
            Ok(told) => match self.head(&event.address).await {
                Ok(Some(now)) if told.is_none_or(|told| told == now) => now,
                // What the event was about is gone: a removal, or a write that was overwritten by one with an event
                // of its own.
                Ok(_) if event.unconfirmed => {
                    return ignored(Some(&event.address), NoJob::Kind(Ignored::Removed));
                }
                Ok(_) => return ignored(Some(&event.address), NoJob::Gone),
                Err(error) => return unavailable(&event.address, &error),
            },
            Err(refusal) => {
                return self
                    .refuse(event, Reason::Refused, error_chain(&refusal))
                    .await;
            }
        };
        self.job_of(event, token).await
    }

    /// The job of this version of an event's object.
    async fn job_of(&self, event: &StorageEvent, token: VersionToken) -> Prepared {
        let object = ObjectVersion {
            address: event.address.clone(),
            token,
        };
        match self.contract().deriver().job_id(&object) {
            Ok(id) => Prepared::Job(Box::new((ClaimKey::from(id), object))),
            Err(refusal) => {
                self.refuse(event, Reason::Refused, error_chain(&refusal))
                    .await
            }
        }
    }

    async fn claim_and_run(
        &self,
        (key, object): (ClaimKey, ObjectVersion),
        followed: u32,
    ) -> Settled {
        let recorded = RecordedObject::new(&object.address, Some(&object.token));
        let uri = Some(object.address.to_string());
        let (claimed, turn) = match self.claim_in_turn(&key, &recorded, followed).await {
            Ok(claimed) => claimed,
            // A claim now would be an attempt spent on nothing.
            Err(Stopping) => {
                let error = "the worker is being stopped".to_owned();
                return Settled {
                    key: Some(key),
                    uri,
                    outcome: Outcome::Unavailable {
                        part: Part::Process,
                        error,
                    },
                };
            }
        };
        let outcome = match claimed {
            Ok(Claimed::Won(lease)) => {
                // A process that is killed leaves at least this.
                tracing::info!(job_id = %key, uri, attempt = lease.attempt(), "claimed");
                self.run(lease, object, followed, turn).await
            }
            Ok(Claimed::Ended { record, likeness }) => {
                self.ended(&key, &record, &likeness, &recorded)
            }
            Ok(Claimed::Held {
                until, suspicious, ..
            }) => {
                if suspicious {
                    tracing::warn!(job_id = %key, until = until.0, "a lease ends later than any should: a clock is wrong");
                }
                Outcome::Held { until }
            }
            Ok(Claimed::Collapsed { record, differing }) => {
                return self.collapsed(&key, &record, &differing, recorded).await;
            }
            // Only for one that runs beside others, which has been asked for again since.
            Ok(Claimed::Abandoned { record }) => Outcome::Held {
                until: record.lease_end(),
            },
            Err(error) => Outcome::Unavailable {
                part: part_of(&error),
                error: error_chain(&error),
            },
        };
        Settled {
            key: Some(key),
            uri,
            outcome,
        }
    }

    /// Claims a job once it may run: beside others, or alone if its holder went away without a word. The turn lasts as long
    /// as the job.
    async fn claim_in_turn(
        &self,
        key: &ClaimKey,
        recorded: &RecordedObject,
        followed: u32,
    ) -> Result<(Result<Claimed, ClaimError>, Option<Turn>), Stopping> {
        let (claims, pipeline) = (self.claims(), &self.inner.pipeline);
        if followed > 0 {
            // It runs in the turn of the job that it follows.
            self.goes_on()?;
            return Ok((claims.claim(key, recorded, pipeline).await, None));
        }
        let turn = self.turn(self.inner.turns.beside_others()).await?;
        let claimed = claims.claim_beside_others(key, recorded, pipeline).await;
        if !matches!(claimed, Ok(Claimed::Abandoned { .. })) {
            return Ok((claimed, Some(turn)));
        }
        drop(turn);
        tracing::warn!(job_id = %key, "its holder went away without a word: it is run alone");
        let turn = self.turn(self.inner.turns.alone()).await?;
        Ok((claims.claim(key, recorded, pipeline).await, Some(turn)))
    }

    /// A turn, unless the process is to stop before it comes.
    async fn turn(&self, turn: impl Future<Output = Turn>) -> Result<Turn, Stopping> {
        let turn = self.stop.run_until_cancelled(turn).await;
        let turn = turn.ok_or(Stopping)?;
        self.goes_on()?;
        Ok(turn)
    }

    fn goes_on(&self) -> Result<(), Stopping> {
        if self.stop.is_cancelled() || self.inner.draining.load(Ordering::Relaxed) {
            return Err(Stopping);
        }
        Ok(())
    }

    fn ended(
        &self,
        key: &ClaimKey,
        record: &Record,
        likeness: &Likeness,
        event: &RecordedObject,
    ) -> Outcome {
        match (likeness, &record.object) {
            (Likeness::Folded, Some(recorded)) => {
                tracing::warn!(job_id = %key, recorded = %recorded, event = %event, "two spellings, one job under this scheme");
            }
            (
                Likeness::Same {
                    contract_changed: true,
                },
                _,
            ) if !self.inner.told_of_change.swap(true, Ordering::Relaxed) => {
                tracing::warn!(job_id = %key, version = self.inner.pipeline.version,
                    "the pipeline's contract changed under the same version: what is done stays as it was done");
            }
            _ => {}
        }
        Outcome::of_ended(record)
    }

    /// Runs a won claim in a task of its own, so that its end is recorded even if the caller goes away.
    async fn run(
        &self,
        lease: Lease,
        object: ObjectVersion,
        followed: u32,
        turn: Option<Turn>,
    ) -> Outcome {
        let stop = self.stop.child_token();
        let _stop_when_dropped = stop.clone().drop_guard();
        let life = supervise::supervise(self.clone(), lease, object, stop, followed);
        let life = async move {
            let outcome = life.await;
            drop(turn);
            outcome
        };
        match tokio::spawn(life.in_current_span()).await {
            Ok(outcome) => outcome,
            Err(error) => Outcome::Unavailable {
                part: Part::Process,
                error: format!("the job's supervisor ended: {}", error_chain(&error)),
            },
        }
    }

    /// Claims and runs the job of another version of an object. Boxed, for it may come here again.
    fn run_object(
        &self,
        object: ObjectVersion,
        followed: u32,
    ) -> BoxFuture<'_, (Option<ClaimKey>, Outcome)> {
        Box::pin(async move {
            match self.contract().deriver().job_id(&object) {
                Ok(id) => {
                    let key = ClaimKey::from(id);
                    let settled = self.claim_and_run((key, object), followed).await;
                    (settled.key, settled.outcome)
                }
                Err(refusal) => (
                    None,
                    Outcome::Rejected {
                        reason: Reason::Refused,
                        error: error_chain(&refusal),
                    },
                ),
            }
        })
    }

    async fn run_job(
        &self,
        lease: &Lease,
        object: &ObjectVersion,
        stopping: CancellationToken,
    ) -> Result<Output, JobError> {
        let (pipeline_name, pipeline_version) = self.inner.context.clone();
        let objects = self.inner.parts.objects.clone();
        let context = JobContext {
            object: object.clone(),
            pipeline_name,
            pipeline_version,
            objects,
            stopping,
        };
        self.job.run(lease, &context).await
    }

    /// The version that the object store holds now, by the token that the scheme hashes; where the store has none of
    /// that kind, by its best one, which identity then refuses.
    async fn head(&self, address: &ObjectAddress) -> Result<Option<VersionToken>, ObjectError> {
        let head = self.inner.parts.objects.head(address).await?;
        Ok(head.map(|head| self.token_of(head)))
    }

    fn token_of(&self, Head { token, etag, .. }: Head) -> VersionToken {
        let scheme = self.contract().scheme();
        let chosen = scheme.token(Some(&token), etag.as_ref()).cloned();
        chosen.unwrap_or(token)
    }

    fn contract(&self) -> &Contract {
        &self.inner.parts.contract
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.parts.clock
    }

    fn max_run(&self) -> Duration {
        self.inner.parts.max_run
    }
}

fn ignored(address: Option<&ObjectAddress>, reason: NoJob) -> Prepared {
    let uri = address.map(ToString::to_string);
    Prepared::Settled(Settled {
        key: None,
        uri,
        outcome: Outcome::Ignored(reason),
    })
}

/// What this machine was not given: no waiting brings it.
fn missing(address: &ObjectAddress, error: String) -> Prepared {
    let part = Part::Machine;
    Prepared::Settled(Settled {
        key: None,
        uri: Some(address.to_string()),
        outcome: Outcome::Unavailable { part, error },
    })
}

fn unavailable(address: &ObjectAddress, error: &ObjectError) -> Prepared {
    let outcome = Outcome::Unavailable {
        part: Part::ObjectStore,
        error: error_chain(error),
    };
    Prepared::Settled(Settled {
        key: None,
        uri: Some(address.to_string()),
        outcome,
    })
}

/// Which part failed a claim call: a row that cannot be read concerns its own event alone.
fn part_of(error: &ClaimError) -> Part {
    match error {
        ClaimError::Store(StoreError::Unavailable { .. }) => Part::ClaimStore,
        ClaimError::Entropy(_) => Part::Process,
        _ => Part::Claim,
    }
}
