//! What a won claim runs ([`exec`], or [`dispatch`] to a queue), and the host it runs on ([`host`]).
//!
//! Unix only: a job's processes are killed as a process group.

pub mod dispatch;
pub mod exec;
pub mod host;

mod fetch;
mod process;
