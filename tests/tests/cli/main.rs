//! The built program as a person runs it, on one machine.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod bad_input;
mod envelopes;
mod explain;
mod keys;
mod machine;
mod sweep;
