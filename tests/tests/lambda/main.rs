//! The function end to end: the real binary, fed as Lambda feeds it, with a bucket, a queue and a table on emulators.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod building;
mod deliveries;
mod deployed;
mod endings;
mod envelopes;
mod races;
