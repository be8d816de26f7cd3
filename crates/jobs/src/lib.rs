//! What a won claim runs ([`exec`], or [`dispatch`] to a queue), the host it runs on ([`host`]), and what a
//! killed process left there ([`leftovers`]).
//!
//! Unix only: a job's processes are killed as a process group.

pub mod dispatch;
pub mod exec;
pub mod host;
pub mod leftovers;

mod fetch;
mod process;
