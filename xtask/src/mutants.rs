//! `cargo xtask mutants [FILE]…`: cargo-mutants over the core. Each mutant is the core with one mistake in it, and a test
//! must fail.

use std::{path::PathBuf, process::Command};

use crate::run::{Result, cargo, run, target};

/// The version whose mutants are meant where their number is told.
const VERSION: &str = "27.1.0";

/// Mutates these files, named from the workspace's root, or all that `.cargo/mutants.toml` has.
pub(crate) fn mutants(files: &[&str]) -> Result<()> {
    let program = installed()?;
    let mut mutants = Command::new(program);
    mutants
        .args(["mutants", "--package", "identity-core", "--output"])
        .arg(target());
    for file in files {
        mutants.args(["--file", file]);
    }
    run(&mut mutants)
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
