//! How long jobs run: a job around a job, which notes each run when it ends.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use identity_core::{
    claim::{ClaimKey, Lease},
    host::Clock,
    job::{Job, JobContext, JobError, Output},
};

/// A run that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The claim that it was for.
    pub key: ClaimKey,
    /// Which attempt it was.
    pub attempt: u32,
    /// How long it ran.
    pub took: Duration,
}

/// A job whose runs are timed, those that were stopped, too.
#[derive(Debug)]
pub(crate) struct TimedJob {
    job: Arc<dyn Job>,
    clock: Arc<dyn Clock>,
    runs: Mutex<Vec<Run>>,
}

impl TimedJob {
    /// This job, timed.
    pub(crate) fn new(job: Arc<dyn Job>, clock: Arc<dyn Clock>) -> Self {
        Self {
            job,
            clock,
            runs: Mutex::default(),
        }
    }

    /// The runs that have ended since this was asked last.
    pub(crate) fn take(&self) -> Vec<Run> {
        std::mem::take(&mut self.runs.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Notes a run when it ends or is dropped.
struct Running<'a> {
    of: &'a TimedJob,
    lease: &'a Lease,
    started: Duration,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let run = Run {
            key: self.lease.key().clone(),
            attempt: self.lease.attempt(),
            took: self.of.clock.monotonic().saturating_sub(self.started),
        };
        let mut runs = self.of.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.push(run);
    }
}

#[async_trait]
impl Job for TimedJob {
    fn reads_objects(&self) -> bool {
        self.job.reads_objects()
    }

    fn grace(&self) -> Duration {
        self.job.grace()
    }

    async fn run(&self, lease: &Lease, context: &JobContext) -> Result<Output, JobError> {
        let _running = Running {
            of: self,
            lease,
            started: self.clock.monotonic(),
        };
        self.job.run(lease, context).await
    }
}
