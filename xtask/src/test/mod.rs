//! `cargo xtask test [SUITE]…`: every check of the workspace, with all the set-up that it needs.

mod checkov;
mod steps;
mod suites;
mod vectors;

pub(crate) use self::suites::SUITES;

use self::{
    steps::Steps,
    suites::{Selection, Suite},
};
use crate::run::{Result, cargo};

/// Runs the suites with these names, or all of them, the quick checks first. The first that fails ends it.
pub(crate) fn test(names: &[&str]) -> Result<()> {
    let suites = suites::named(names)?;
    let mut steps = Steps::default();
    let result = check(&suites, &mut steps);
    steps.tell();
    result
}

fn check(suites: &[&'static Suite], steps: &mut Steps) -> Result<()> {
    steps.run("format", &mut cargo(&["fmt", "--all", "--check"]))?;
    let selections = suites::selections(suites);
    for selection in &selections {
        let mut clippy = cargo(&["clippy", "--locked", "--all-targets"]);
        clippy.args(&selection.words).args(["--", "-D", "warnings"]);
        steps.run(&format!("clippy {}", selection.name), &mut clippy)?;
    }
    for selection in &selections {
        // With examples, dependencies have the features that clippy has just checked them with; without, they would be
        // checked once more.
        let mut doc = cargo(&["doc", "--locked", "--no-deps", "--document-private-items"]);
        doc.args(["--lib", "--bins", "--examples"])
            .args(&selection.words)
            .env("RUSTDOCFLAGS", "-D warnings");
        steps.run(&format!("rustdoc {}", selection.name), &mut doc)?;
    }
    if suites.iter().any(|suite| suite.is_plain()) {
        derivation_alone(steps)?;
    }
    for suite in suites {
        let selection = selections
            .iter()
            .find(|selection| selection.has(suite))
            .ok_or_else(|| format!("nothing is built for {}", suite.name))?;
        run(suite, selection, steps)?;
    }
    Ok(())
}

/// The core without its features, as another language would bind it.
fn derivation_alone(steps: &mut Steps) -> Result<()> {
    let core = ["--locked", "-p", "identity-core", "--no-default-features"];
    let mut clippy = cargo(&["clippy"]);
    clippy.args(core).args(["--", "-D", "warnings"]);
    steps.run("clippy, derivation alone", &mut clippy)?;
    let mut doc = cargo(&["doc", "--no-deps"]);
    doc.args(core).env("RUSTDOCFLAGS", "-D warnings");
    steps.run("rustdoc, derivation alone", &mut doc)
}

/// Runs a suite's tests beside its servers, which are gone afterwards, whatever happens.
fn run(suite: &Suite, selection: &Selection, steps: &mut Steps) -> Result<()> {
    // What is built is the same for all suites of a selection, and the first of them takes the time.
    let mut build = cargo(&["test", "--locked", "--no-run"]);
    build.args(&selection.tested).args(suite.targets);
    steps.run(&format!("building {}", suite.name), &mut build)?;
    let servers = steps.time(&format!("servers of {}", suite.name), suite.servers)?;
    let mut test = cargo(&["test", "--locked"]);
    test.args(&selection.tested)
        .args(suite.targets)
        .arg("--")
        .args(suite.filter)
        .env("TEST_BUILD", selection.as_built(suite));
    for server in &servers {
        let exports = server.exports().iter();
        test.envs(exports.map(|(name, value)| (*name, value)));
    }
    steps.run(&format!("tests of {}", suite.name), &mut test)?;
    drop(servers);
    if suite.has_terraform() {
        steps.time("checkov", checkov::check)?;
    }
    if suite.is_plain() {
        // Millions of steps: the proofs have a profile of their own.
        let proof = ["test", "--locked", "--profile", "proof", "-p", "proof"];
        steps.run("proof", &mut cargo(&proof))?;
        steps.time("vectors", || vectors::check(selection, suite))?;
    }
    Ok(())
}
