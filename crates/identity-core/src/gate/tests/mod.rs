//! The gate over a memory store, with scripted jobs and objects, in simulated time.
#![allow(
    clippy::disallowed_methods,
    reason = "tokio's clock stands still here and is moved by hand"
)]

mod alone;
mod attempts;
mod bench;
mod calls;
mod dispositions;
mod envelopes;
mod lifetimes;
mod redriven;
mod told;
