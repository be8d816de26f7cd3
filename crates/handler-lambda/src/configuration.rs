//! From the environment and the compiled-in contract to a handler whose connections are open: all of it while Lambda
//! initialises the function, so that the first event does not wait for it.

use std::{sync::Arc, thread::available_parallelism, time::Duration};

use identity_core::{
    claim::{Claims, Resender, StoreError},
    gate::{AllowList, Gate, Parts},
    host::Clock,
    identity::{
        Contract, ContractError, ObjectAddress, ObjectKey, ObjectVersion, Provider, TokenKind,
        VersionToken, pipeline::Work,
    },
    job::Job,
    object::ObjectStore,
    settings::{Settings, SettingsError},
    text::error_chain,
};
use jobs::{
    dispatch::Dispatch,
    exec::Exec,
    host::{NotText, OsEntropy, SystemClock, variables},
    leftovers,
};
use provider_aws::{Aws, DynamoStore, NoRegion, TableNameError};

use crate::{
    handler::Handler,
    logging,
    metrics::{Metrics, TimedJob},
};

/// The contract, checked by the build script.
const PIPELINE: &str = include_str!(concat!(env!("OUT_DIR"), "/pipeline.toml"));

/// How late an event may come again: a queue, and its dead-letter queue, keep messages for 14 days at most.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>
const LONGEST_REDELIVERY: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// How long opening connections may take before it is left to the first event.
const WARMING: Duration = Duration::from_secs(3);

/// What differs on Lambda from what the core says; whatever the environment says goes before it.
const DEFAULTS: [(&str, &str); 2] = [
    ("FIRSTCLAIM_LOG", "info"),
    ("FIRSTCLAIM_LOG_FORMAT", "json"),
];

/// Why there is no function.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigurationError {
    #[error("the environment cannot be used")]
    Settings(#[source] SettingsError),
    #[error(transparent)]
    NotText(#[from] NotText),
    #[error("FIRSTCLAIM_LOG is no log filter: {got:?}")]
    Filter {
        got: String,
        #[source]
        source: tracing_subscriber::filter::ParseError,
    },
    #[error("the environment variable DEDUP_TABLE should name the DynamoDB table of the claims")]
    NoTable,
    #[error("the environment variable DEDUP_TABLE cannot be used")]
    Table(#[source] TableNameError),
    #[error(
        "the environment variable {0} is missing or no such value: Lambda, or what stands for its runtime API, sets it"
    )]
    NotLambda(&'static str),
    #[error("Amazon's services cannot be reached")]
    Aws(#[source] NoRegion),
    #[error("the compiled-in pipeline cannot be used")]
    Contract(#[source] ContractError),
    #[error(
        "the compiled-in pipeline hands its jobs on (dispatch = true): FIRSTCLAIM_DISPATCH_QUEUE should be the URL of an SQS queue"
    )]
    NoDispatchQueue,
    #[error("the compiled-in pipeline has no [job]")]
    NoJob,
}

/// Reads everything, and opens connections.
pub(crate) async fn configure() -> Result<Handler, ConfigurationError> {
    let settings = settings()?;
    logging::start(&settings).map_err(|source| ConfigurationError::Filter {
        got: settings.log.clone(),
        source,
    })?;
    // The runtime's crate panics without them.
    let of_lambda = |name| std::env::var(name).map_err(|_| ConfigurationError::NotLambda(name));
    for name in [
        "AWS_LAMBDA_RUNTIME_API",
        "AWS_LAMBDA_FUNCTION_NAME",
        "AWS_LAMBDA_FUNCTION_VERSION",
    ] {
        of_lambda(name)?;
    }
    let memory = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE";
    let megabytes = of_lambda(memory)?.parse::<i32>();
    megabytes.map_err(|_| ConfigurationError::NotLambda(memory))?;
    leftovers::remove(&std::env::temp_dir());
    let table = settings.dedup_table.clone();
    let table = table.ok_or(ConfigurationError::NoTable)?;
    DynamoStore::check_name(&table).map_err(ConfigurationError::Table)?;
    let contract = Contract::parse(PIPELINE).map_err(ConfigurationError::Contract)?;
    let spec = contract.job().cloned().ok_or(ConfigurationError::NoJob)?;

    let aws = Aws::of_function().await.map_err(ConfigurationError::Aws)?;
    let store = aws.claims(table);
    let objects = Arc::new(aws.objects());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let max_run = spec.timeout();
    let job: Arc<dyn Job> = match spec.work() {
        Work::Dispatch => {
            let queue_url = settings.dispatch_queue.clone();
            let queue_url = queue_url.ok_or(ConfigurationError::NoDispatchQueue)?;
            Arc::new(Dispatch::new(Arc::new(aws.outbox(queue_url))))
        }
        Work::Exec(command) => Arc::new(Exec::new(command.clone())),
    };
    let job = Arc::new(TimedJob::new(job, clock.clone()));
    warm(&store, &*objects, &*job, &settings.allow).await;

    let metrics = Metrics {
        function: std::env::var("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default(),
        pipeline: format!("{} {}", contract.name(), contract.version()),
    };
    let claims = Claims::new(
        Arc::new(store),
        clock.clone(),
        Arc::new(OsEntropy::new()),
        settings.terms,
    );
    let resender = settings.redrive_queue.map(|queue_url| Resender {
        claims: claims.clone(),
        contract: contract.clone(),
        outbox: Arc::new(aws.outbox(queue_url)),
        grace: settings.sweep_grace,
    });
    let gate = Gate::new(Parts {
        contract,
        claims,
        clock: clock.clone(),
        objects,
        job: job.clone(),
        max_run,
        allow: settings.allow,
    });
    let concurrency = settings.concurrency;
    let concurrency = concurrency.unwrap_or_else(|| available_parallelism().map_or(1, usize::from));
    Ok(Handler {
        gate,
        clock,
        job,
        sqs: aws.sqs(),
        metrics,
        resender,
        concurrency,
        azure_account: settings.azure_account,
    })
}

fn settings() -> Result<Settings, ConfigurationError> {
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let mut vars: Vec<(String, String)> = DEFAULTS.into_iter().map(owned).collect();
    vars.extend(variables()?);
    Settings::from_vars(vars, LONGEST_REDELIVERY).map_err(ConfigurationError::Settings)
}

/// Opens the connections that an event needs, TLS and all. What fails here fails again when it is needed, and then is
/// retried: a function that does not start would be no better.
async fn warm(store: &DynamoStore, objects: &dyn ObjectStore, job: &dyn Job, allow: &AllowList) {
    let claims = async {
        if let Err(error) = store.warm().await {
            warn_of_store(&error);
        }
    };
    let reads = async {
        if job.reads_objects()
            && let AllowList::Only(buckets) = allow
            && let Some(bucket) = buckets.first()
            && let Ok(token) = VersionToken::new(TokenKind::ETag, "none")
        {
            let address = nothing_in(bucket);
            // No such object, or not allowed to look: either way the connection stands. A HEAD would ask twice.
            let _answer = objects.read(&ObjectVersion { address, token }).await;
        }
    };
    let both = futures_util::future::join(claims, reads);
    if tokio::time::timeout(WARMING, both).await.is_err() {
        tracing::warn!("connections could not be opened within {WARMING:?}");
    }
}

fn warn_of_store(error: &StoreError) {
    tracing::warn!(error = error_chain(error), "the claim store cannot be used");
}

fn nothing_in(bucket: &str) -> ObjectAddress {
    ObjectAddress {
        provider: Provider::S3,
        account: None,
        container: bucket.to_owned(),
        key: ObjectKey::verbatim("firstclaim-warm"),
    }
}
