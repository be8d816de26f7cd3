//! `cargo xtask test`: every check of the workspace, with all the set-up that it needs.

use std::{path::PathBuf, process::Command};

use crate::emulators::Emulator;
use crate::postgres::{Disk, Server, Tls};
use crate::python;
use crate::run::{Result, cargo, root, run, target};

/// How many requests the differential test asks, and with which seed: the same ones every time.
const DIFFERENTIAL: [&str; 4] = ["--seed", "1", "--count", "10000"];

/// How many bundles the comparison of upload keys makes, and with which seed.
const UPLOADS: [&str; 4] = ["--seed", "1", "--count", "200"];

/// The packages that have features for servers, and those features. They are always built all together: every other choice
/// would build the AWS SDK once more, which takes minutes.
const WITH_SERVERS: [&str; 12] = [
    "-p",
    "firstclaim",
    "-p",
    "handler-lambda",
    "-p",
    "provider-aws",
    "-p",
    "provider-sql",
    "-p",
    "tests",
    "--features",
    "firstclaim/aws,firstclaim/postgres,provider-aws/emulators,provider-sql/postgres,tests/aws,tests/postgres",
];

/// All that is built without servers' features, and so without the AWS SDK.
const PLAIN: [&str; 5] = [
    "--workspace",
    "--exclude",
    "handler-lambda",
    "--exclude",
    "provider-aws",
];

/// Runs them all, the quick ones first. The first that fails ends it.
pub(crate) fn test() -> Result<()> {
    run(&mut cargo(&["fmt", "--all", "--check"]))?;
    for which in [&PLAIN[..], &WITH_SERVERS[..]] {
        let mut clippy = cargo(&["clippy", "--locked", "--all-targets"]);
        run(clippy.args(which).args(["--", "-D", "warnings"]))?;
    }
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
    for which in [&PLAIN[..], &WITH_SERVERS[..]] {
        let docs = ["doc", "--locked", "--no-deps", "--document-private-items"];
        run(cargo(&docs).args(which).env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    let docs = [
        "doc",
        "--locked",
        "-p",
        "identity-core",
        "--no-deps",
        "--no-default-features",
    ];
    run(cargo(&docs).env("RUSTDOCFLAGS", "-D warnings"))?;
    run(cargo(&["test", "--locked"])
        .args(PLAIN)
        .args(["--exclude", "proof"]))?;
    // Millions of steps: the proofs have a profile of their own.
    let proof = ["test", "--locked", "--profile", "proof", "-p", "proof"];
    run(&mut cargo(&proof))?;
    servers()?;
    vectors()
}

/// What needs a PostgreSQL server or an emulator. They are gone afterwards, whatever happens.
fn servers() -> Result<()> {
    let plain = Server::start(Tls::Off, Disk::Ignored)?;
    let secure = Server::start(Tls::On, Disk::Ignored)?;
    let moto = Emulator::moto()?;
    let dynalite = Emulator::dynalite()?;
    let mut test = cargo(&["test", "--locked"]);
    test.args(WITH_SERVERS)
        .args(["--lib", "--bins", "--test", "stores", "--test", "clouds"])
        // SQLite's were run without servers.
        .args(["--", "--skip", "sqlite::"]);
    run(test
        .env("TEST_POSTGRES_URL", &plain.url)
        .env("TEST_POSTGRES_TLS_URL", &secure.url)
        .env("TEST_POSTGRES_TLS_ROOT", &secure.certificate)
        .env("TEST_MOTO_URL", &moto.url)
        .env("TEST_DYNALITE_URL", &dynalite.url)
        .env("TEST_AWS_PYTHON", Emulator::python()?))
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
