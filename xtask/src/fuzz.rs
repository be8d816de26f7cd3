//! `cargo xtask fuzz`: the property tests of every parser, with many more cases than `cargo xtask test` gives them.

use crate::run::{Result, cargo, run};

/// How many cases each property gets.
const CASES: &str = "100000";

/// Runs them in a release build: some of them parse megabytes.
pub(crate) fn fuzz() -> Result<()> {
    // Each name is the part of the tests' paths that says what they are about.
    let properties: [&[&str]; 5] = [
        &["identity-core", "--lib", "event::tests::properties"],
        &[
            "identity-core",
            "--features",
            "vectors",
            "--lib",
            "identity::",
        ],
        &["identity-core", "--lib", "claim::redrive::tests"],
        &[
            "identity-core",
            "--features",
            "vectors",
            "--test",
            "parsers",
        ],
        &["tests", "--test", "published", "events::"],
    ];
    for which in properties {
        let mut test = cargo(&["test", "--locked", "--release", "-p"]);
        run(test.args(which).env("PROPTEST_CASES", CASES))?;
    }
    Ok(())
}
