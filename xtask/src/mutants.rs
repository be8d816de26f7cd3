//! `cargo xtask mutants [FILE]…`: cargo-mutants over the core. Each mutant is the core with one mistake in it, and a test
//! must fail.
//!
//! Twice: all of them with the tests that take a second, and what is alive then with every test of the core.

use std::{path::PathBuf, process::Command};

use crate::run::{Result, cargo, read, run, say, target};

/// The version whose mutants are meant where their number is told.
const VERSION: &str = "27.1.0";

/// Tests of the core that take longer than the others together.
const SLOW: [&str; 6] = [
    "a_list_beyond_any_batch",
    "every_character_has",
    "megabytes_of_brackets",
    "nesting_ends_at_a_bound",
    "of_many_sweeps_one",
    "of_ten_thousand_messages",
];

/// Mutates these files, named from the workspace's root, or all that `.cargo/mutants.toml` has, and says which mutants are
/// alive at the end.
pub(crate) fn mutants(files: &[&str]) -> Result<()> {
    let program = installed()?;
    let pass = |arguments: &[&str]| {
        let mut mutants = Command::new(&program);
        mutants
            .args(["mutants", "--package", "identity-core", "--output"])
            .arg(target());
        for file in files {
            mutants.args(["--file", file]);
        }
        mutants.args(arguments);
        run(&mut mutants)
    };
    let mut quick = vec!["--cargo-arg=--lib", "--", "--"];
    quick.extend(SLOW.iter().flat_map(|slow| ["--skip", slow]));
    // What is alive after the first pass is no failure yet.
    if pass(&quick).is_ok() {
        return Ok(());
    }
    // Without examples in documentation, which are compiled one by one, and the test that copies 200 MB.
    let ended = pass(&[
        "--iterate",
        "--cargo-arg=--lib",
        "--cargo-arg=--test=conformance",
        "--cargo-arg=--test=parsers",
    ]);
    let alive = read(&target().join("mutants.out/missed.txt"))?;
    say(&format!("\nalive:\n{}", String::from_utf8_lossy(&alive)));
    ended
}

/// The program, which is installed under `target` if it is not there in this version.
fn installed() -> Result<PathBuf> {
    let folder = target().join("mutants");
    let program = folder.join("bin/cargo-mutants");
    let version = Command::new(&program)
        .args(["mutants", "--version"])
        .output();
    let is_there = version.is_ok_and(|version| {
        String::from_utf8_lossy(&version.stdout).trim() == format!("cargo-mutants {VERSION}")
    });
    if !is_there {
        let mut install = cargo(&["install", "--locked", "--version", VERSION, "--root"]);
        run(install.arg(&folder).arg("cargo-mutants"))?;
    }
    Ok(program)
}
