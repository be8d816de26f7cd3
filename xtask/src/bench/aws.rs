//! The function as it is shipped, beside two in Python.

use crate::{
    dist, python,
    run::{Result, cargo, run},
    servers::{dynalite, moto},
};

pub(super) fn bench() -> Result<()> {
    let bootstrap = dist::aws::for_here("tests/bench/aws/pipeline.toml")?;
    let python = python::environment("bench/python", "tests/bench/aws/requirements.txt")?;
    let servers = [dynalite::start()?, moto::start()?];
    let mut bench = cargo(&[
        "run",
        "--locked",
        "--quiet",
        "-p",
        "tests",
        "--features",
        "aws",
        "--example",
        "bench_aws",
    ]);
    bench
        .env("BENCH_BOOTSTRAP", bootstrap)
        .env("BENCH_PYTHON", python);
    for server in &servers {
        let exports = server.exports().iter();
        bench.envs(exports.map(|(name, value)| (*name, value)));
    }
    run(&mut bench)
}
