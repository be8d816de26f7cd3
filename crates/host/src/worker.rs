//! The worker of a process: contract, settings and a cloud's providers, put together once, with connections open before the
//! first event comes.

use std::{sync::Arc, thread::available_parallelism, time::Duration};

use identity_core::{
    claim::{ClaimKey, ClaimStore, Claims, Resender},
    event::{ReadContext, S3Keys},
    gate::{AllowList, Gate, Parts},
    host::Clock,
    identity::{
        Contract, ObjectAddress, ObjectKey, ObjectVersion, Provider, TokenKind, VersionToken,
        pipeline::JobSpec,
    },
    job::Job,
    object::ObjectStore,
    outbox::Outbox,
    text::error_chain,
};

use crate::{clock::SystemClock, entropy::OsEntropy, settings::Settings};

/// What a program brings.
#[derive(Debug)]
pub struct Providers {
    /// Where claims are kept.
    pub claims: Arc<dyn ClaimStore>,
    /// Reads objects.
    pub objects: Arc<dyn ObjectStore>,
    /// What a won claim runs.
    pub job: Arc<dyn Job>,
    /// How long it may run.
    pub max_run: Duration,
    /// Where a sweep sends events to.
    pub redrives: Option<Arc<dyn Outbox>>,
}

/// What takes deliveries to their end in this process. One serves any number of calls at once.
#[derive(Debug)]
pub struct Worker {
    gate: Gate,
    clock: Arc<dyn Clock>,
    claims: Arc<dyn ClaimStore>,
    objects: Arc<dyn ObjectStore>,
    job: Arc<dyn Job>,
    allow: AllowList,
    resender: Option<Resender>,
    concurrency: usize,
    azure_account: Option<String>,
    s3_keys: S3Keys,
}

impl Worker {
    /// Puts a worker together, with the machine's clock and randomness. Nothing is asked of anybody yet.
    #[must_use]
    pub fn new(contract: Contract, settings: Settings, providers: Providers) -> Self {
        Self::with_clock(contract, settings, providers, Arc::new(SystemClock::new()))
    }

    /// [`Worker::new`] with another clock.
    #[must_use]
    pub fn with_clock(
        contract: Contract,
        settings: Settings,
        providers: Providers,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let claims = Claims::new(
            providers.claims.clone(),
            clock.clone(),
            Arc::new(OsEntropy::new()),
            settings.terms,
        )
        .retrying_after(contract.job().and_then(JobSpec::retry).unwrap_or_default());
        let resender = providers.redrives.map(|outbox| Resender {
            claims: claims.clone(),
            contract: contract.clone(),
            outbox,
            grace: settings.sweep_grace,
        });
        let cores = || available_parallelism().map_or(1, usize::from);
        Self {
            gate: Gate::new(Parts {
                contract,
                claims,
                clock: clock.clone(),
                objects: providers.objects.clone(),
                job: providers.job.clone(),
                max_run: providers.max_run,
                allow: settings.allow.clone(),
            }),
            clock,
            claims: providers.claims,
            objects: providers.objects,
            job: providers.job,
            allow: settings.allow,
            resender,
            concurrency: settings.concurrency.unwrap_or_else(cores),
            azure_account: settings.azure_account,
            s3_keys: settings.s3_keys,
        }
    }

    /// Opens the connections that an event needs, TLS and all, but for no longer than `within`. What fails here fails again
    /// when it is needed, and then is retried: a program that does not start would be no better, so it is only told.
    ///
    /// `provider` is where the containers of the allow-list lie.
    pub async fn warm(&self, provider: Provider, within: Duration) {
        let claims = async {
            // The claim of no job: no digest is all zeros. A missing table is told, too.
            let nobody = ClaimKey::from_digest([0; 32]);
            if let Err(error) = self.claims.get(&nobody).await {
                tracing::warn!(
                    error = error_chain(&error),
                    "the claim store cannot be used"
                );
            }
        };
        let objects = async {
            if self.job.reads_objects()
                && self.objects.reads(provider)
                && let Some(nothing) = self.allowed_nothing(provider)
            {
                // No such object, or not allowed to look: either way the connection stands. A HEAD may ask twice.
                let _answer = self.objects.read(&nothing).await;
            }
        };
        let both = futures_util::future::join(claims, objects);
        tokio::select! {
            _ = both => {}
            () = self.clock.sleep(within) => {
                tracing::warn!("connections could not be opened within {within:?}");
            }
        }
    }

    /// An object that nobody has, in the first of the allowed containers.
    fn allowed_nothing(&self, provider: Provider) -> Option<ObjectVersion> {
        let (account, container) = self.allow.first_of(provider)?;
        let (kind, token) = match provider {
            Provider::Gcs => (TokenKind::Generation, "1"),
            _ => (TokenKind::ETag, "none"),
        };
        Some(ObjectVersion {
            address: ObjectAddress {
                provider,
                account: account.map(str::to_owned),
                container: container.to_owned(),
                key: ObjectKey::verbatim("firstclaim-warm"),
            },
            token: VersionToken::new(kind, token).ok()?,
        })
    }

    /// The gate, for who settles event by event.
    #[must_use]
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// What sends events again, if there is a queue for them.
    #[must_use]
    pub fn resender(&self) -> Option<&Resender> {
        self.resender.as_ref()
    }

    /// How many events are handled side by side, at least 1.
    #[must_use]
    pub fn concurrency(&self) -> usize {
        self.concurrency
    }

    /// What events leave to configuration.
    #[must_use]
    pub fn read_context(&self) -> ReadContext<'_> {
        ReadContext {
            azure_account: self.azure_account.as_deref(),
            s3_keys: Some(&self.s3_keys),
        }
    }

    /// The job, as it was brought.
    pub(crate) fn job(&self) -> &Arc<dyn Job> {
        &self.job
    }

    /// Claims nothing from now on; what runs goes on.
    pub fn drain(&self) {
        self.gate.drain();
    }

    /// Stops what runs: each job is ended as `failed`, so that the next delivery wins at once. Commands get so long at most to end
    /// by themselves.
    pub fn stop_within(&self, patience: Duration) {
        self.gate.stop_within(patience);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::testing::Bench;

    /// How long a worker that has these variables opens connections, and what is read meanwhile.
    async fn warmed(bench: &mut Bench, provider: Provider, allow: &'static str) -> Vec<String> {
        bench.variables.push(("FIRSTCLAIM_ALLOW", allow));
        let worker = bench.simulated();
        worker.warm(provider, Duration::from_secs(3)).await;
        std::mem::take(&mut *bench.objects.read.lock().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn one_claim_and_one_object_that_nobody_has_are_read() {
        let mut bench = Bench::new();
        for (provider, allow, read) in [
            (
                Provider::S3,
                "geo,other",
                "s3://geo/firstclaim-warm etag:none",
            ),
            (
                Provider::Gcs,
                "geo",
                "gs://geo/firstclaim-warm generation:1",
            ),
            (
                Provider::Azure,
                "acct/geo",
                "azblob://acct/geo/firstclaim-warm etag:none",
            ),
        ] {
            assert_eq!(warmed(&mut bench, provider, allow).await, [read]);
            let claims = std::mem::take(&mut *bench.store.read.lock().unwrap());
            assert_eq!(claims, [ClaimKey::from_digest([0; 32])]);
        }
        assert!(bench.store.records().await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn no_object_is_read_where_none_may_be_or_none_will() {
        for (provider, allow) in [
            (Provider::S3, ""),
            (Provider::S3, "acct/geo"),
            (Provider::Azure, "geo"),
            (Provider::Azure, "acct/*"),
            (Provider::File, "geo"),
        ] {
            let read = warmed(&mut Bench::new(), provider, allow).await;
            assert!(read.is_empty(), "{provider:?} {allow}: {read:?}");
        }
        let mut bench = Bench::new();
        bench.job.reads.store(false, Ordering::SeqCst);
        assert!(warmed(&mut bench, Provider::S3, "geo").await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_does_not_answer_is_not_waited_for() {
        let mut bench = Bench::new();
        bench.store.silent.store(true, Ordering::SeqCst);
        let started = tokio::time::Instant::now();
        warmed(&mut bench, Provider::S3, "geo").await;
        assert_eq!(started.elapsed(), Duration::from_secs(3));
        bench.store.silent.store(false, Ordering::SeqCst);
        bench.store.away.store(true, Ordering::SeqCst);
        warmed(&mut bench, Provider::S3, "geo").await;
        assert_eq!(started.elapsed(), Duration::from_secs(3));
    }
}
