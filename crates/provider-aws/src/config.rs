//! The one configuration that all clients of a process share: region, credentials, connections, timeouts.

use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::retry::RetryConfig;
use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, ConfigLoader, SdkConfig};
use aws_smithy_http_client::tls::TrustStore;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use identity_core::claim::patience::{CALL, CONNECT, PAUSE, TRIES, TRY};

use crate::{DynamoStore, S3Objects, SqsOutbox, http, trust};

/// Region, credentials and connections, as the environment has them. Clients made from one value share its connections.
///
/// What is read is the SDK's own: `AWS_REGION`, `AWS_PROFILE`, `AWS_ACCESS_KEY_ID` and its like, the shared files, the
/// platform's credentials, and `AWS_ENDPOINT_URL` (or `AWS_ENDPOINT_URL_DYNAMODB`, `_S3`, `_SQS`) for emulators. See
/// <https://docs.aws.amazon.com/sdkref/latest/guide/settings-reference.html>. What `aws login`, `aws sso login` and a profile's
/// `credential_process` left is read with feature `logins`.
#[derive(Debug, Clone)]
pub struct Aws {
    config: SdkConfig,
    /// Whether S3 is somewhere else than at Amazon: there, a bucket's name is part of the path and not of the host.
    s3_elsewhere: bool,
}

/// The environment does not say which region to work in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no AWS region is known: set AWS_REGION, e.g. AWS_REGION=eu-central-1, or `region` in the profile"
)]
pub struct NoRegion;

impl Aws {
    /// Reads the environment, `HTTPS_PROXY` and its like among it. No call is made, but for the region and the credentials where only
    /// the platform knows them.
    ///
    /// # Errors
    ///
    /// [`NoRegion`].
    pub async fn from_env() -> Result<Self, NoRegion> {
        Self::load(loader_with(http::client_through_proxies())).await
    }

    /// The same on Lambda, which puts the credentials of the function's role into the environment: they are looked for
    /// nowhere else, and the system's certificate authorities are read once, so that it starts faster.
    /// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html>
    ///
    /// # Errors
    ///
    /// [`NoRegion`].
    pub async fn of_function() -> Result<Self, NoRegion> {
        let credentials = EnvironmentVariableCredentialsProvider::new();
        let loader = loader_with(http::client(trust::of_system()));
        Self::load(loader.credentials_provider(credentials)).await
    }

    async fn load(loader: ConfigLoader) -> Result<Self, NoRegion> {
        let config = loader.load().await;
        if config
            .region()
            .is_none_or(|region| region.as_ref().is_empty())
        {
            return Err(NoRegion);
        }
        let s3_elsewhere = config.endpoint_url().is_some()
            || std::env::var_os("AWS_ENDPOINT_URL_S3").is_some_and(|url| !url.is_empty());
        Ok(Self {
            config,
            s3_elsewhere,
        })
    }

    /// The region.
    #[must_use]
    pub fn region(&self) -> &str {
        self.config.region().map_or("", AsRef::as_ref)
    }

    /// A client for DynamoDB.
    #[must_use]
    pub fn dynamodb(&self) -> aws_sdk_dynamodb::Client {
        let config = aws_sdk_dynamodb::config::Builder::from(&self.config)
            .stalled_stream_protection(short_answers())
            .build();
        aws_sdk_dynamodb::Client::from_conf(config)
    }

    /// A client for S3.
    #[must_use]
    pub fn s3(&self) -> aws_sdk_s3::Client {
        let config = aws_sdk_s3::config::Builder::from(&self.config)
            .force_path_style(self.s3_elsewhere)
            .build();
        aws_sdk_s3::Client::from_conf(config)
    }

    /// A client for SQS.
    #[must_use]
    pub fn sqs(&self) -> aws_sdk_sqs::Client {
        let config = aws_sdk_sqs::config::Builder::from(&self.config)
            .stalled_stream_protection(short_answers())
            .build();
        aws_sdk_sqs::Client::from_conf(config)
    }

    /// The claims in this table.
    #[must_use]
    pub fn claims(&self, table: impl Into<String>) -> DynamoStore {
        DynamoStore::new(self.dynamodb(), table)
    }

    /// The objects that the credentials may read.
    #[must_use]
    pub fn objects(&self) -> S3Objects {
        S3Objects::new(self.s3())
    }

    /// The queue with this URL.
    #[must_use]
    pub fn outbox(&self, queue_url: impl Into<String>) -> SqsOutbox {
        SqsOutbox::new(self.sqs(), queue_url)
    }
}

/// No watch over how fast bytes come: an answer of these services is read whole, in the time that a try has.
fn short_answers() -> StalledStreamProtectionConfig {
    StalledStreamProtectionConfig::disabled()
}

/// What is ours in a configuration: connections, times and tries. [`Aws::from_env`] is what programs use; this is for
/// clients whose endpoint and credentials are not the environment's.
#[must_use]
pub fn loader() -> ConfigLoader {
    loader_with(http::client(TrustStore::default()))
}

/// The same over these connections.
pub(crate) fn loader_with(connections: SharedHttpClient) -> ConfigLoader {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT)
        .operation_attempt_timeout(TRY)
        .operation_timeout(CALL)
        .build();
    let retries = RetryConfig::standard()
        .with_max_attempts(TRIES)
        .with_initial_backoff(PAUSE);
    aws_config::defaults(BehaviorVersion::latest())
        .http_client(connections)
        .timeout_config(timeouts)
        .retry_config(retries)
}
