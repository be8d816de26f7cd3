//! `firstclaim run`: the CLI as its own source of events, and as its own handler of them.

mod engine;
#[cfg(feature = "aws")]
mod objects;
mod report;
mod sources;

use std::{sync::Arc, thread::available_parallelism};

use identity_core::{
    claim::Claims,
    gate::{Gate, Parts},
    host::Clock,
    identity::Scheme,
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
    store_url::StoreUrl,
};

pub(crate) async fn run(args: RunArgs, settings: Settings) -> Result<Ended, Failure> {
    let contract = contract::require(&args.pipeline)?;
    let Some(spec) = contract.job().cloned() else {
        return Err(Failure::usage(
            "the pipeline has no [job]: there is nothing to run",
        ));
    };
    let store_url = StoreUrl::parse(&args.store.store)?;
    // Everything that can be wrong with the arguments is found before the store is touched.
    let sources = Sources::open(&args.sources, store_url.files(), settings.azure_account)?;
    if sources.has_folders() && contract.scheme() == Scheme::Ingest {
        return Err(Failure::usage(
            "the scheme ingest derives IDs of S3 objects only: it has none for files in a folder",
        ));
    }

    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let job = Exec::new(spec);
    let claims = Claims::new(
        store_url.open().await?,
        clock.clone(),
        Arc::new(OsEntropy::new()),
        settings.terms,
    );
    let objects = sources.objects()?;
    #[cfg(feature = "aws")]
    let objects = objects::Objects::new(objects);
    let gate = Gate::new(Parts {
        contract,
        claims,
        clock,
        objects: Arc::new(objects),
        max_run: job.timeout(),
        job: Arc::new(job),
        allow: settings.allow,
    });

    let concurrency = args.concurrency.or(settings.concurrency);
    let concurrency = concurrency.unwrap_or_else(|| available_parallelism().map_or(1, usize::from));
    let report = Report::new(args.json);
    Engine::new(gate, concurrency, report).run(sources).await
}
