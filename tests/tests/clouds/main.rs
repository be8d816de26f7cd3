//! Handlers and the program on emulated clouds, which `cargo xtask test` starts and names in the environment.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[cfg(feature = "aws")]
mod aws;
mod scenarios;
