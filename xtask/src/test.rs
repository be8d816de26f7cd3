//! `cargo xtask test`: every check of the workspace, with all the set-up that it needs.

use std::{path::PathBuf, process::Command};

use crate::{
    emulators::Emulator,
    postgres::{Disk, Server, Tls},
    python,
    run::{Result, cargo, root, run, target},
};

/// How many requests the differential test asks, and with which seed: the same ones every time.
const DIFFERENTIAL: [&str; 4] = ["--seed", "1", "--count", "10000"];

/// How many bundles the comparison of upload keys makes, and with which seed.
const UPLOADS: [&str; 4] = ["--seed", "1", "--count", "200"];

/// The feature of PostgreSQL, in every package that has it.
const POSTGRES: &str = "provider-sql/postgres,firstclaim/postgres,tests/postgres";

/// Runs them all, the quick ones first. The first that fails ends it.
pub(crate) fn test() -> Result<()> {
    run(&mut cargo(&["fmt", "--all", "--check"]))?;
    run(&mut cargo(&[
        "clippy",
        "--locked",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    run(&mut cargo(&[
        "clippy",
        "--locked",
        "--workspace",
        "--all-targets",
        "--features",
        POSTGRES,
        "--",
        "-D",
        "warnings",
    ]))?;
    // Derivation alone, as another language would bind it.
    run(&mut cargo(&[
        "clippy",
        "--locked",
        "-p",
        "identity-core",
        "--no-default-features",
        "--",
        "-D",
        "warnings",
    ]))?;
    let docs = [
        "doc",
        "--locked",
        "--workspace",
        "--no-deps",
        "--document-private-items",
        "--features",
        POSTGRES,
    ];
    run(cargo(&docs).env("RUSTDOCFLAGS", "-D warnings"))?;
    let docs = [
        "doc",
        "--locked",
        "-p",
        "identity-core",
        "--no-deps",
        "--no-default-features",
    ];
    run(cargo(&docs).env("RUSTDOCFLAGS", "-D warnings"))?;
    run(&mut cargo(&["test", "--locked", "--workspace"]))?;
    postgres()?;
    aws()?;
    vectors()
}

/// What needs a PostgreSQL server. The servers are gone afterwards, whatever happens.
fn postgres() -> Result<()> {
    let plain = Server::start(Tls::Off, Disk::Ignored)?;
    let secure = Server::start(Tls::On, Disk::Ignored)?;
    let tests = [
        ["provider-sql", "--lib", "postgres::"],
        ["tests", "--test", "postgres"],
    ];
    for [package, kind, which] in tests {
        let mut test = cargo(&[
            "test",
            "--locked",
            "--features",
            "postgres",
            "-p",
            package,
            kind,
            which,
        ]);
        run(test
            .env("TEST_POSTGRES_URL", &plain.url)
            .env("TEST_POSTGRES_TLS_URL", &secure.url)
            .env("TEST_POSTGRES_TLS_ROOT", &secure.certificate))?;
    }
    Ok(())
}

/// What needs Amazon's services: the conformance suite on their tables, and the function end to end.
fn aws() -> Result<()> {
    let tests = [
        ["provider-aws", "emulators", "--lib"],
        ["tests", "aws", "--test=aws"],
    ];
    for [package, feature, which] in tests {
        // Fresh ones for each: moto keeps all that it was ever told in memory.
        let (moto, dynalite) = (Emulator::moto()?, Emulator::dynalite()?);
        let mut test = cargo(&[
            "test",
            "--locked",
            "-p",
            package,
            "--features",
            feature,
            which,
        ]);
        run(test
            .env("TEST_MOTO_URL", &moto.url)
            .env("TEST_DYNALITE_URL", &dynalite.url))?;
    }
    Ok(())
}

/// The published job IDs and upload keys, and the second implementations in Python.
fn vectors() -> Result<()> {
    let names = [
        "job_ids",
        "ingest_ids",
        "strict_ids",
        "upload_keys",
        "strict_upload_keys",
    ];
    let files: Vec<PathBuf> = names
        .map(|name| {
            root()
                .join("tests/vectors")
                .join(name)
                .with_extension("json")
        })
        .into();
    run(cargo(&[
        "run",
        "--locked",
        "--quiet",
        "-p",
        "firstclaim",
        "--",
        "vectors",
        "--data",
    ])
    .arg(root().join("tests/data/shapefiles"))
    .args(files))?;
    run(Command::new("python3")
        .arg(root().join("tests/vectors/upload.py"))
        .arg("compare")
        .args(UPLOADS)
        .arg("--ours")
        .arg(target().join("debug/firstclaim")))?;
    let python = python::environment("python", "tests/vectors/requirements.txt")?;
    run(&mut cargo(&[
        "build",
        "--locked",
        "--quiet",
        "-p",
        "tests",
        "--example",
        "derive",
    ]))?;
    let derive = target().join("debug/examples/derive");
    let script = root().join("tests/vectors/differential.py");
    run(Command::new(python)
        .arg(script)
        .args(DIFFERENTIAL)
        .arg("--ours")
        .arg(derive))
}
