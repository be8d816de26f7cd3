//! What a won claim runs ([`exec`]), and the host it runs on ([`host`]).
//!
//! Unix only: a job's processes are killed as a process group.

pub mod exec;
pub mod host;

mod fetch;
mod process;
