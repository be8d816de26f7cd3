//! The published job IDs and upload keys, and the second implementations in Python.

use std::{path::PathBuf, process::Command};

use super::suites::{Selection, Suite};
use crate::{
    python,
    run::{Result, cargo, root, run, target},
};

/// How many requests the differential test asks, and with which seed: the same ones every time.
const DIFFERENTIAL: [&str; 4] = ["--seed", "1", "--count", "10000"];

/// How many bundles the comparison of upload keys makes, and with which seed.
const UPLOADS: [&str; 4] = ["--seed", "1", "--count", "200"];

pub(super) fn check(selection: &Selection, suite: &Suite) -> Result<()> {
    let names = [
        "job_ids",
        "ingest_ids",
        "strict_ids",
        "upload_keys",
        "strict_upload_keys",
    ];
    let files = names.map(|name| -> PathBuf {
        let vectors = root().join("tests/vectors").join(name);
        vectors.with_extension("json")
    });
    let mut build = cargo(&["build", "--locked", "--quiet"]);
    build.args(selection.as_built(suite).split(' '));
    run(build.args(["--bin", "firstclaim", "--example", "derive"]))?;
    let program = target().join("debug/firstclaim");
    run(Command::new(&program)
        .args(["vectors", "--data"])
        .arg(root().join("tests/data/shapefiles"))
        .args(files))?;
    run(Command::new("python3")
        .arg(root().join("tests/vectors/upload.py"))
        .arg("compare")
        .args(UPLOADS)
        .arg("--ours")
        .arg(&program))?;
    let python = python::environment("python", "tests/vectors/requirements.txt")?;
    run(Command::new(python)
        .arg(root().join("tests/vectors/differential.py"))
        .args(DIFFERENTIAL)
        .arg("--ours")
        .arg(target().join("debug/examples/derive")))
}
