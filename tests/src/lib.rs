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
mod process;
mod race;
pub mod runtime_api;
pub mod sqlite;
pub mod terraform;
mod workbench;

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

pub use events::{notification, record};
pub use process::{Ran, eventually, is_alive, is_stopped, kill};
pub use race::race;
pub use workbench::{PATIENT, Workbench, Worker};

/// The workspace's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// The program `firstclaim`, built as this test was.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let mut build = Command::new(env!("CARGO"));
        build
            .args(["build", "--quiet", "--locked", "-p", "firstclaim"])
            .current_dir(root());
        for (built, feature) in [
            (cfg!(feature = "aws"), "aws"),
            (cfg!(feature = "postgres"), "postgres"),
        ] {
            if built {
                build.args(["--features", feature]);
            }
        }
        assert!(
            build.status().unwrap().success(),
            "firstclaim could not be built"
        );
        // This test lies in `debug/deps`, the program one folder up.
        let test = std::env::current_exe().unwrap();
        test.parent().unwrap().parent().unwrap().join("firstclaim")
    })
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
