//! `cargo xtask prove`: the promise of the claim protocol within larger bounds than `cargo xtask test` gives it.

use crate::run::{Result, cargo, run};

/// How many schedules of the gate are simulated.
const SCHEDULES: &str = "200000";

/// Checks every configuration of the model, then simulates the gate. Both print what they did, and how long it took.
pub(crate) fn prove() -> Result<()> {
    run(cargo(&RUN).args(["model"]))?;
    run(cargo(&RUN).args(["simulate", "--", "--schedules", SCHEDULES]))
}

const RUN: [&str; 8] = [
    "run",
    "--locked",
    "--quiet",
    "--profile",
    "proof",
    "-p",
    "proof",
    "--bin",
];
