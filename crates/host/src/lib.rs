//! The machine that a gate runs on: what every handler and the command line stand on, and no cloud's SDK.
//!
//! The reader's way: [`environment`] and [`settings`] (what is set; a [`destination`] is where messages go) → [`log`] →
//! [`worker`] (contract, settings and a cloud's providers → a gate with open connections) → [`call`] (a delivery read and
//! settled in the time that there is) and [`sweep`], until [`signals`] end it. [`clock`] and [`entropy`] are the machine's own;
//! with the feature `http`, `http` takes deliveries by HTTP.

pub mod call;
pub mod clock;
pub mod destination;
pub mod entropy;
pub mod environment;
#[cfg(feature = "http")]
pub mod http;
pub mod log;
pub mod settings;
pub mod signals;
pub mod sweep;
mod timed;
pub mod worker;

#[cfg(test)]
mod testing;
