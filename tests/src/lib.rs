//! What the end-to-end tests share: the built programs, what they run in, and what they are fed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[cfg(feature = "clouds")]
pub mod clouds;
pub mod crash;
mod events;
pub mod folder;
pub mod handler;
mod process;
mod programs;
mod race;
pub mod runtime_api;
pub mod sqlite;
pub mod terraform;
pub mod upgrade;
mod workbench;

use std::path::{Path, PathBuf};

pub use events::{notification, record, record_in};
pub use process::{Ran, eventually, is_alive, is_stopped, kill};
pub use programs::{build, built, program};
pub use race::race;
pub use workbench::{PATIENT, Workbench, Worker};

/// The workspace's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// What a variable names, the URL of a server most of all. A test without it fails: it must not pass by not running.
pub fn server(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!(
            "{variable} is not set: run `cargo xtask test`, which starts the servers for these tests, or \
             `cargo xtask emulators up`, which says what to set"
        )
    })
}
