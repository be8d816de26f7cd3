//! `cargo xtask bench`: every speed in docs/benchmarks.md, beside its peer.

mod aws;

use std::process::Command;

use crate::{
    run::{Result, cargo, run, say, target},
    servers::postgres::{self, Disk, Tls},
};

/// Builds what is measured as it is shipped, throws up a database, and prints the table.
pub(crate) fn bench(sections: &[&str]) -> Result<()> {
    say(&machine());
    if sections == ["aws"] {
        return aws::bench();
    }
    run(&mut cargo(&[
        "build",
        "--locked",
        "--release",
        "-p",
        "firstclaim",
    ]))?;
    let server = postgres::start(Tls::Off, Disk::Waited)?;
    let mut bench = cargo(&[
        "bench",
        "--locked",
        "--quiet",
        "-p",
        "tests",
        "--features",
        "postgres",
        "--bench",
        "speed",
        "--",
    ]);
    let exports = server.exports().iter();
    run(bench
        .args(sections)
        .envs(exports.map(|(name, value)| (*name, value))))?;
    drop(server);
    if sections.is_empty() || sections.contains(&"keys") {
        without_sha_extensions()?;
    }
    Ok(())
}

/// The upload key once more on a processor without SHA instructions: our hash is built in its portable form, and
/// OpenSSL is told not to see them.
fn without_sha_extensions() -> Result<()> {
    say(
        "\nthe same without SHA extensions (sha2_backend=soft; OPENSSL_ia32cap masks bit 29 of the second word):",
    );
    let soft = target().join("without-sha-extensions");
    let flags = "--cfg sha2_backend=\"soft\"";
    let environment = |command: &mut Command| {
        command
            .env("CARGO_TARGET_DIR", &soft)
            .env("RUSTFLAGS", flags)
            .env("OPENSSL_ia32cap", ":~0x20000000");
    };
    let mut build = cargo(&["build", "--locked", "--release", "-p", "firstclaim"]);
    environment(&mut build);
    run(&mut build)?;
    let mut bench = cargo(&[
        "bench", "--locked", "--quiet", "-p", "tests", "--bench", "speed", "--", "keys",
    ]);
    environment(&mut bench);
    run(&mut bench)
}

/// What the figures are of.
fn machine() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or(": unknown processor");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let date = Command::new("date")
        .arg("+%F")
        .output()
        .map(|output| output.stdout)
        .unwrap_or_default();
    let sha = if cpu.contains("sha_ni") {
        "with"
    } else {
        "without"
    };
    format!(
        "{} · {cores} cores · {sha} SHA extensions · {}",
        model.trim_start_matches([' ', '\t', ':']),
        String::from_utf8_lossy(&date).trim()
    )
}
