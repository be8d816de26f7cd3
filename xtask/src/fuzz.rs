//! `cargo xtask fuzz`: the property tests of every parser, with many more cases than `cargo xtask test` gives them.

use crate::run::{Result, cargo, run};

/// How many cases each property gets.
const CASES: &str = "100000";

/// Runs them in a release build: some of them parse megabytes.
pub(crate) fn fuzz() -> Result<()> {
    // Each name is the part of the tests' paths that says what they are about.
    for which in ["event::tests::properties", "identity::"] {
        let mut test = cargo(&[
            "test",
            "--locked",
            "--release",
            "-p",
            "identity-core",
            "--lib",
            which,
        ]);
        run(test.env("PROPTEST_CASES", CASES))?;
    }
    Ok(())
}
