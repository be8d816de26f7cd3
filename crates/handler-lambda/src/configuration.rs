//! From the environment and the compiled-in contract to a handler whose connections are open: all of it while Lambda
//! initialises the function, so that the first event does not wait for it.

use std::{env, sync::Arc, time::Duration};

use host::{
    destination::Destination,
    log::{self, FilterError},
    settings::{Settings, SettingsError},
    worker::{Providers, Worker},
};
use identity_core::{
    identity::{Contract, ContractError, Provider, pipeline::Work},
    outbox::Outbox,
};
use jobs::{NoQueue, WorkingFolder, leftovers};
use provider_aws::{Aws, DynamoStore, NoRegion, TableNameError};

use crate::{emf::Metrics, invocation::Handler};

/// The contract, checked by the build script.
const PIPELINE: &str = include_str!(concat!(env!("OUT_DIR"), "/pipeline.toml"));

/// How late an event may come again: 14 days in a queue and its dead-letter queue, and, moved back from there, 14 days more,
/// since it is a new message then. The floor of `done_ttl_seconds` in `deploy/aws` is the same.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>,
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html>
const LONGEST_REDELIVERY: Duration = Duration::from_secs(28 * 24 * 60 * 60);

/// How long opening connections may take before it is left to the first event.
const WARMING: Duration = Duration::from_secs(3);

/// What differs on Lambda; whatever the environment says goes before it.
const DEFAULTS: [(&str, &str); 3] = [
    // 32 days.
    ("DEDUP_TTL_SECONDS", "2764800"),
    ("FIRSTCLAIM_LOG", "info"),
    ("FIRSTCLAIM_LOG_FORMAT", "json"),
];

/// The queues that this program can send to.
const QUEUES: &str = "the URL of an SQS queue";

const NAME: &str = "AWS_LAMBDA_FUNCTION_NAME";
const MEMORY: &str = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE";

/// Why there is no function.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigurationError {
    #[error("the environment cannot be used")]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Filter(#[from] FilterError),
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
    #[error(transparent)]
    NoQueue(#[from] NoQueue),
    #[error("the compiled-in pipeline has no [job]")]
    NoJob,
}

/// Reads everything, and opens connections.
pub(crate) async fn configure() -> Result<Handler, ConfigurationError> {
    let settings = Settings::of_process(&DEFAULTS, LONGEST_REDELIVERY)?;
    log::start(&settings)?;
    let function = check_lambda()?;
    leftovers::remove(&env::temp_dir());
    let table = settings.dedup_table.clone();
    let table = table.ok_or(ConfigurationError::NoTable)?;
    DynamoStore::check_name(&table).map_err(ConfigurationError::Table)?;
    let contract = Contract::parse(PIPELINE).map_err(ConfigurationError::Contract)?;
    let spec = contract.job().ok_or(ConfigurationError::NoJob)?;

    let aws = Aws::of_function().await.map_err(ConfigurationError::Aws)?;
    let open = |queue: &Destination| outbox(&aws, queue);
    let queue = match spec.work() {
        Work::Dispatch => settings.open_dispatch_queue(QUEUES, open)?,
        Work::Exec(_) => None,
    };
    let providers = Providers {
        claims: Arc::new(aws.claims(table)),
        objects: Arc::new(aws.objects()),
        job: jobs::of(spec, queue, WorkingFolder::Private)?,
        max_run: spec.timeout(),
        redrives: settings.open_redrive_queue(QUEUES, open)?,
    };
    let metrics = Metrics {
        function,
        pipeline: format!("{} {}", contract.name(), contract.version()),
    };
    let worker = Worker::new(contract, settings, providers);
    worker.warm(Provider::S3, WARMING).await;
    Ok(Handler {
        worker,
        sqs: aws.sqs(),
        metrics,
    })
}

/// Whether this is Lambda, whose variables the runtime's crate panics without. Returns the function's name.
fn check_lambda() -> Result<String, ConfigurationError> {
    let of_lambda = |name| env::var(name).map_err(|_| ConfigurationError::NotLambda(name));
    for name in ["AWS_LAMBDA_RUNTIME_API", "AWS_LAMBDA_FUNCTION_VERSION"] {
        of_lambda(name)?;
    }
    let megabytes = of_lambda(MEMORY)?.parse::<i32>();
    megabytes.map_err(|_| ConfigurationError::NotLambda(MEMORY))?;
    of_lambda(NAME)
}

fn outbox(aws: &Aws, destination: &Destination) -> Option<Arc<dyn Outbox>> {
    match destination {
        Destination::Sqs { url } => Some(Arc::new(aws.outbox(url))),
        Destination::PubSub { .. } | Destination::AzureQueue { .. } => None,
    }
}
