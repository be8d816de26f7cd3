//! `firstclaim`: exactly-once jobs from at-least-once storage events, on one machine.

mod args;
mod claims;
mod contract;
mod failure;
mod folder;
mod id;
mod input;
mod output;
mod run;
mod signals;
mod store_url;
mod vectors;

use std::{io::IsTerminal as _, process::ExitCode, time::Duration};

use clap::Parser as _;
use identity_core::settings::{LogFormat, Settings};
use tracing_subscriber::EnvFilter;

use crate::{
    args::{Cli, Command},
    failure::{Ended, Failure},
};

fn main() -> ExitCode {
    match start(Cli::parse()) {
        Ok(Ended::Well) => ExitCode::SUCCESS,
        Ok(Ended::WithFailures) => ExitCode::FAILURE,
        Err(failure) => {
            output::complain(&failure.to_string());
            failure.exit_code()
        }
    }
}

fn start(cli: Cli) -> Result<Ended, Failure> {
    let settings = settings()?;
    log_to_stderr(&settings)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed("the runtime cannot be started").because(error))?;
    runtime.block_on(async {
        match cli.command {
            Command::Id(args) => id::id(&args, &settings),
            Command::Run(args) => run::run(args, settings).await,
            Command::Claims(args) => claims::claims(args.command, &settings).await,
            Command::Vectors(args) => vectors::vectors(&args),
        }
    })
}

fn settings() -> Result<Settings, Failure> {
    // A variable that is not UTF-8 is none of ours: ours are looked up by their names, which are.
    let vars = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    // The command line is its own source and delivers nothing late.
    Settings::from_vars(vars, Duration::ZERO)
        .map_err(|error| Failure::usage("the environment cannot be used").because(error))
}

fn log_to_stderr(settings: &Settings) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(&settings.log).map_err(|error| {
        Failure::usage(format!(
            "FIRSTCLAIM_LOG is no log filter: {:?}",
            settings.log
        ))
        .because(error)
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match settings.log_format {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => builder.json().init(),
    }
    Ok(())
}
