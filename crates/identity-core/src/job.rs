//! What a won claim runs: the job trait and its answers. The jobs themselves live in the crate `jobs`.

use std::{fmt::Debug, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::{claim::Lease, object::ObjectStore};

/// A unit of work that the gate runs once it holds the claim.
///
/// The gate cancels a job by dropping its future: on a lost lease, at the time limit, and at shutdown. Whatever the job
/// started must be gone when the drop returns (a child process is killed with its process group). A job with a
/// [grace](Self::grace) is told before, by [`JobContext::stopping`]; what it comes to then is not recorded.
#[async_trait]
pub trait Job: Debug + Send + Sync + 'static {
    /// Whether it reads the object through [`JobContext::objects`].
    fn reads_objects(&self) -> bool;

    /// For how long it may go on once it was told to stop. It gets less where its lease, or the process, ends sooner.
    fn grace(&self) -> Duration {
        Duration::ZERO
    }

    /// Does the work for the object version in `context`, as the attempt that `lease` names.
    ///
    /// # Errors
    ///
    /// [`JobError::Retryable`] and [`JobError::Permanent`] become `failed` and `rejected`; [`JobError::Unread`] and
    /// [`JobError::Machine`] become `failed` by an attempt that does not count; [`JobError::SourceChanged`] makes the gate look
    /// at the object again.
    async fn run(&self, lease: &Lease, context: &JobContext) -> Result<Output, JobError>;
}

/// What a job may read.
#[derive(Debug, Clone)]
pub struct JobContext {
    /// The object and the version that the event names: reads are pinned to it.
    pub object: crate::identity::ObjectVersion,
    /// The pipeline's name.
    pub pipeline_name: Arc<str>,
    /// The pipeline's version.
    pub pipeline_version: Arc<str>,
    /// Reads objects.
    pub objects: Arc<dyn ObjectStore>,
    /// Cancelled when the job is to stop, a [grace](Job::grace) before it is dropped.
    pub stopping: CancellationToken,
}

/// What a finished job leaves in the claim's record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// JSON for people and later steps; the record keeps at most 16 KiB of it.
    pub result: Option<serde_json::Value>,
}

/// Why a job did not finish.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// Another attempt may succeed: recorded as `failed`, and the event is delivered again.
    #[error("{message}")]
    Retryable {
        /// What happened, for the record.
        message: String,
        /// The cause.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// No attempt can succeed: recorded as `rejected`, and the event is acknowledged.
    #[error("{message}")]
    Permanent {
        /// What happened, for the record.
        message: String,
        /// The cause.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The object cannot be read now, whatever the job would make of it: its store is away, or refuses us. Recorded as
    /// `failed`, and the attempt does not count.
    #[error("{message}")]
    Unread {
        /// What happened, for the record.
        message: String,
        /// The cause.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// This machine cannot do the job, nor others like it: its program is not there, its disk is full. Recorded as `failed`,
    /// and the attempt does not count.
    #[error("{message}")]
    Machine {
        /// What happened, for the record.
        message: String,
        /// The cause.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// A pinned read found another version of the object, or none (HTTP 412, 404).
    #[error("the object no longer has the version that the event names")]
    SourceChanged,
}

impl JobError {
    /// A retryable error without a cause.
    pub fn retryable(message: impl Into<String>) -> Self {
        Self::Retryable {
            message: message.into(),
            source: None,
        }
    }

    /// A permanent error without a cause.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self::Permanent {
            message: message.into(),
            source: None,
        }
    }
}
