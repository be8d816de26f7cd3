//! `firstclaim run`: the CLI as its own source of events, and as its own handler of them.

mod engine;
mod report;
mod sources;

use std::sync::Arc;

use host::{
    settings::Settings,
    worker::{Providers, Worker},
};
use identity_core::identity::{Scheme, pipeline::Work};

use self::{engine::Engine, report::Report, sources::Sources};
use crate::{
    args::RunArgs,
    contract,
    failure::{Ended, Failure},
    objects::ByProvider,
    queues, stores,
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
    let sources = Sources::open(&args.sources, store.files(), settings.clone())?;
    if sources.has_folders() && contract.scheme() == Scheme::Ingest {
        return Err(Failure::usage(
            "the scheme ingest derives IDs of S3 objects only: it has none for files in a folder",
        ));
    }

    let queue = match (spec.work(), &settings.dispatch_queue) {
        (Work::Dispatch, Some(destination)) => Some(queues::open(destination).await?),
        _ => None,
    };
    let objects = Arc::new(ByProvider::new(sources.objects()?));
    let providers = Providers {
        claims: store.open().await?,
        objects,
        job: jobs::of(&spec, queue, jobs::WorkingFolder::Inherited)
            .map_err(|error| Failure::usage(error.to_string()))?,
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
