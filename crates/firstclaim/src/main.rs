//! `firstclaim`: exactly-once jobs from at-least-once storage events, on one machine.

#[macro_use]
mod features;

mod args;
mod claims;
mod contract;
mod explain;
mod failure;
mod folder;
mod id;
mod init;
mod input;
mod key;
mod objects;
mod output;
mod queues;
mod run;
mod stores;
mod vectors;

use std::{process::ExitCode, time::Duration};

use clap::{CommandFactory as _, Parser as _};
use host::{log, settings::Settings};

use crate::{
    args::{Cli, Command},
    failure::{Ended, Failure},
};

fn main() -> ExitCode {
    if let Some(code) = init::as_first_process() {
        return code;
    }
    let exit = match start(Cli::parse()) {
        Ok(ended) => ended.exit(),
        Err(failure) => {
            if !failure.is_quiet() {
                output::complain(&failure.to_string());
            }
            failure.exit()
        }
    };
    exit.into()
}

fn start(cli: Cli) -> Result<Ended, Failure> {
    // The command line is its own source and delivers nothing late.
    let settings = Settings::of_process(&[], Duration::ZERO)
        .map_err(|error| Failure::usage("the environment cannot be used").because(error))?;
    log::start(&settings)
        .map_err(|error| Failure::usage(error.to_string()).because(error.source))?;
    match cli.command {
        Command::Id(args) => id::id(&args, &settings),
        Command::Key(args) => key::key(&args),
        Command::Vectors(args) => vectors::vectors(&args),
        Command::Completions { shell } => Ok(completions(shell)),
        Command::Explain(args) => wait_for(explain::explain(&args, &settings)),
        Command::Run(args) => wait_for(run::run(args, settings)),
        Command::Claims(args) => wait_for(claims::claims(args.command, &settings)),
    }
}

/// Runs a command that talks to a store, on a runtime of its own. The others need none.
fn wait_for(command: impl Future<Output = Result<Ended, Failure>>) -> Result<Ended, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed("the runtime cannot be started").because(error))?
        .block_on(command)
}

fn completions(shell: clap_complete::Shell) -> Ended {
    // As text first: the generator panics where standard output is closed.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "firstclaim", &mut script);
    match output::document(String::from_utf8_lossy(&script).trim_end()) {
        Ok(()) => Ended::Well,
        Err(_) => Ended::WithFailures,
    }
}
