//! `firstclaim run`: the CLI as its own source of events, and as its own handler of them.

mod engine;
mod report;
mod sources;

use std::{sync::Arc, thread::available_parallelism};

use identity_core::{
    claim::Claims,
    gate::{Gate, Parts},
    host::Clock,
    identity::{Scheme, pipeline::Work},
    job::Job,
    settings::Settings,
};
use jobs::{
    exec::Exec,
    host::{OsEntropy, SystemClock},
};

use self::{engine::Engine, report::Report, sources::Sources};
use crate::{
    args::RunArgs,
    contract,
    failure::{Ended, Failure},
    objects::ByProvider,
    stores,
};

pub(crate) async fn run(args: RunArgs, settings: Settings) -> Result<Ended, Failure> {
    let contract = contract::require(&args.pipeline)?;
    let Some(spec) = contract.job().cloned() else {
        return Err(Failure::usage(
            "the pipeline has no [job]: there is nothing to run",
        ));
    };
    let store = stores::parse(&args.store.store)?;
    // Everything that can be wrong with the arguments is found before the store is touched.
    let sources = Sources::open(&args.sources, store.files(), settings.azure_account)?;
    if sources.has_folders() && contract.scheme() == Scheme::Ingest {
        return Err(Failure::usage(
            "the scheme ingest derives IDs of S3 objects only: it has none for files in a folder",
        ));
    }

    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let max_run = spec.timeout();
    let job: Arc<dyn Job> = match spec.work() {
        Work::Dispatch => dispatch(settings.dispatch_queue.as_deref()).await?,
        Work::Exec(command) => Arc::new(Exec::new(command.clone())),
    };
    let claims = Claims::new(
        store.open().await?,
        clock.clone(),
        Arc::new(OsEntropy::new()),
        settings.terms,
    );
    let objects = ByProvider::new(sources.objects()?);
    let gate = Gate::new(Parts {
        contract,
        claims,
        clock,
        objects: Arc::new(objects),
        max_run,
        job,
        allow: settings.allow,
    });

    let concurrency = args.concurrency.or(settings.concurrency);
    let concurrency = concurrency.unwrap_or_else(|| available_parallelism().map_or(1, usize::from));
    let report = Report::new(args.json);
    Engine::new(gate, concurrency, report).run(sources).await
}

/// The job that hands jobs to a queue.
#[cfg(feature = "aws")]
async fn dispatch(queue_url: Option<&str>) -> Result<Arc<dyn Job>, Failure> {
    let queue_url = queue_url.ok_or_else(|| {
        Failure::usage(
            "the pipeline hands its jobs on (dispatch = true): set FIRSTCLAIM_DISPATCH_QUEUE to the URL of an SQS queue",
        )
    })?;
    let aws = provider_aws::Aws::from_env().await;
    let aws = aws.map_err(|error| Failure::usage("the queue cannot be used").because(error))?;
    Ok(Arc::new(jobs::dispatch::Dispatch::new(Arc::new(
        aws.outbox(queue_url),
    ))))
}

/// Without a feature that brings a queue there is none.
#[cfg(not(feature = "aws"))]
async fn dispatch(_: Option<&str>) -> Result<Arc<dyn Job>, Failure> {
    Err(Failure::usage(
        "the pipeline hands its jobs on (dispatch = true), and this program was built without a queue: build it with \
         `cargo build -p firstclaim --features aws`",
    ))
}
