//! `firstclaim run`: the CLI as its own source of events, and as its own handler of them.

mod engine;
mod report;
mod sources;

use std::sync::Arc;

use host::{
    settings::Settings,
    worker::{Providers, Worker},
};
use identity_core::{
    identity::{Scheme, pipeline::Work},
    outbox::Outbox,
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
    let sources = Sources::open(&args.sources, store.files(), settings.azure_account.clone())?;
    if sources.has_folders() && contract.scheme() == Scheme::Ingest {
        return Err(Failure::usage(
            "the scheme ingest derives IDs of S3 objects only: it has none for files in a folder",
        ));
    }

    let queue = match spec.work() {
        Work::Dispatch => dispatch_queue(&settings).await?,
        Work::Exec(_) => None,
    };
    let objects = Arc::new(ByProvider::new(sources.objects()?));
    let providers = Providers {
        claims: store.open().await?,
        objects,
        job: jobs::of(&spec, queue).map_err(|error| Failure::usage(error.to_string()))?,
        max_run: spec.timeout(),
        redrives: None,
    };
    let settings = Settings {
        concurrency: args.concurrency.or(settings.concurrency),
        ..settings
    };
    let worker = Worker::new(contract, settings, providers);
    let report = Report::new(args.json);
    Engine::new(&worker, report).run(sources).await
}

/// The queue that jobs are handed to, if one is set.
#[cfg(feature = "aws")]
async fn dispatch_queue(settings: &Settings) -> Result<Option<Arc<dyn Outbox>>, Failure> {
    use host::destination::Destination;

    if settings.dispatch_queue.is_none() {
        return Ok(None);
    }
    let aws = provider_aws::Aws::from_env().await;
    let aws = aws.map_err(|error| Failure::usage("the queue cannot be used").because(error))?;
    let queue = settings.open_dispatch_queue("the URL of an SQS queue", |queue| match queue {
        Destination::Sqs { url } => Some(Arc::new(aws.outbox(url))),
        Destination::PubSub { .. } | Destination::AzureQueue { .. } => None,
    });
    queue.map_err(|error| Failure::usage("the environment cannot be used").because(error))
}

/// Without a feature that brings a queue there is none.
#[cfg(not(feature = "aws"))]
async fn dispatch_queue(_: &Settings) -> Result<Option<Arc<dyn Outbox>>, Failure> {
    Err(Failure::usage(
        "the pipeline hands its jobs on (dispatch = true), and this program was built without a queue: build it with \
         `cargo build -p firstclaim --features aws`",
    ))
}
