//! `cargo xtask COMMAND`: the workspace's own commands, one file for each.

mod bench;
mod emulators;
mod fuzz;
mod postgres;
mod python;
mod run;
mod test;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test               every check: format, clippy, rustdoc, tests, vectors (sets up what it needs under target/)
  bench [SECTION]... every speed that the README claims, beside its peer: ids bytes keys sqlite postgres run
  emulators up       every emulator that the tests use, until Ctrl-C; says what to set
  fuzz               the property tests of every parser, 100,000 cases each";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["test"] => test::test(),
        ["bench", sections @ ..] => bench::bench(sections),
        ["emulators", "up"] => emulators::up(),
        ["fuzz"] => fuzz::fuzz(),
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
