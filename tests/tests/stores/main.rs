//! Many processes of the built program on one store: racing, frozen, killed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

// Needs a server: `cargo xtask test` starts one.
#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;
