//! The gate over a memory store, with scripted jobs and objects, in simulated time.

mod bench;
mod calls;
mod dispositions;
mod envelopes;
mod lifetimes;
mod redriven;
