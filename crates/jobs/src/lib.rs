//! What a won claim runs ([`exec`], or [`dispatch`] to a queue), and what a killed process left there ([`leftovers`]).
//!
//! Unix only: a job's processes are killed as a process group.

pub mod dispatch;
pub mod exec;
pub mod leftovers;

mod fetch;
mod folder;
mod process;

use std::sync::Arc;

use identity_core::{
    identity::pipeline::{JobSpec, Work},
    job::Job,
    outbox::Outbox,
};

use self::{dispatch::Dispatch, exec::Exec};

pub use self::folder::WorkingFolder;

/// A pipeline hands its jobs on, and it is not said where to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the pipeline hands its jobs on (dispatch = true): FIRSTCLAIM_DISPATCH_QUEUE should say to which queue"
)]
pub struct NoQueue;

/// The job that a contract asks for; `queue` is where jobs are handed to, if they are, and `working` where commands run.
///
/// # Errors
///
/// [`NoQueue`].
pub fn of(
    spec: &JobSpec,
    queue: Option<Arc<dyn Outbox>>,
    working: WorkingFolder,
) -> Result<Arc<dyn Job>, NoQueue> {
    Ok(match spec.work() {
        Work::Dispatch => Arc::new(Dispatch::new(queue.ok_or(NoQueue)?)),
        Work::Exec(command) => Arc::new(Exec::new(command.clone(), working)),
    })
}
