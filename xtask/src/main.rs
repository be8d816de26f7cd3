//! `cargo xtask COMMAND`: the workspace's own commands, one file for each.

mod bench;
mod dist;
mod fuzz;
mod mutants;
mod prove;
mod python;
mod run;
mod servers;
mod test;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [SUITE]...    every check: format, clippy, rustdoc, tests, vectors (sets up what it needs under target/);
                     or those of some suites: plain sql aws
  bench [SECTION]... every speed in docs/benchmarks.md, beside its peer: ids bytes keys sqlite postgres run;
                     aws, alone: the function beside two in Python
  dist aws [ARCH]    the function of deploy/aws, for x86_64 or arm64: a zip, and the context of a container image with GDAL
  emulators up       the servers that tests need, to play with: moto, dynalite, PostgreSQL; prints what to export
  fuzz               the property tests of every parser, 100,000 cases each
  mutants [FILE]...  mistakes put into the core, or into some of its files, one by one: a test must fail for each
  prove              the claim protocol within larger bounds: millions of states, many simulated schedules";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["test", suites @ ..] => test::test(suites),
        ["bench", sections @ ..] => bench::bench(sections),
        ["dist", "aws"] => dist::aws::dist(None),
        ["dist", "aws", architecture] => dist::aws::dist(Some(architecture)),
        ["emulators", "up"] => servers::up(),
        ["fuzz"] => fuzz::fuzz(),
        ["mutants", files @ ..] => mutants::mutants(files),
        ["prove"] => prove::prove(),
        _ => {
            run::say(USAGE);
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            run::say(&format!("xtask: {what}"));
            ExitCode::FAILURE
        }
    }
}
