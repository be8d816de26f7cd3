//! The shared core of firstclaim: what a job *is* (identity), what arrived (event), who may run it (claim), and
//! the one path from an event to an answer (gate).
//!
//! This crate knows no SDK, no network and no clock: stores, objects, jobs, time and randomness are traits that the
//! handlers fill. With default features off it is pure derivation, [`identity`] and [`event`]; the feature `gate`
//! brings all the rest, `conformance` the suites that stores must pass, `vectors` the reading of published answers.

pub mod event;
pub mod identity;
pub mod text;

#[cfg(feature = "gate")]
pub mod claim;
#[cfg(feature = "gate")]
pub mod gate;
#[cfg(feature = "gate")]
pub mod host;
#[cfg(feature = "gate")]
pub mod job;
#[cfg(feature = "gate")]
pub mod ledger;
#[cfg(feature = "gate")]
pub mod object;
#[cfg(feature = "gate")]
pub mod outbox;
