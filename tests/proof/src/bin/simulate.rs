//! `simulate`: plays schedules of the simulated gate, or one of them with its log.
#![allow(clippy::print_stdout, reason = "what it prints is what it is for")]

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::Parser;
use proof::simulation::{Control, Schedule, Simulator, Summary};

/// Plays schedules of the shipped gate over simulated time, stores and faults.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many schedules.
    #[arg(long, default_value_t = 10_000)]
    schedules: u64,
    /// The seed of the first; the others count on from it.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Stop after so many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// Play this one seed and print its log.
    #[arg(long)]
    replay: Option<u64>,
    /// Put a bug beside the gate, which must then be found.
    #[arg(long, value_parser = control)]
    control: Option<Control>,
}

fn control(name: &str) -> Result<Control, String> {
    let named = Control::ALL.iter().find(|(_, known)| *known == name);
    let names: Vec<_> = Control::ALL.iter().map(|(_, name)| *name).collect();
    named
        .map(|(control, _)| *control)
        .ok_or_else(|| format!("expected one of {}", names.join(", ")))
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let simulator = Simulator::new(arguments.control)?;
    if let Some(seed) = arguments.replay {
        let schedule = simulator.play(seed, true)?;
        print_schedule(&schedule);
        return Ok(code(schedule.violation.is_none()));
    }
    let started = Instant::now();
    let limit = arguments.seconds.map(Duration::from_secs);
    let summary = simulator.play_many(arguments.seed, arguments.schedules, limit)?;
    print_summary(&summary, started.elapsed());
    Ok(code(summary.failed.is_none()))
}

fn code(well: bool) -> ExitCode {
    if well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn print_schedule(schedule: &Schedule) {
    for line in &schedule.log {
        println!("{line}");
    }
    match &schedule.violation {
        Some(what) => println!("seed {} fails: {what}", schedule.seed),
        None => println!("seed {} holds", schedule.seed),
    }
}

fn print_summary(summary: &Summary, took: Duration) {
    if let Some(failed) = &summary.failed {
        print_schedule(failed);
    }
    let seconds = took.as_secs_f64();
    for (kind, count) in &summary.faults {
        println!("fault      {count:>9}  {kind}");
    }
    for (what, count) in &summary.seen {
        println!("sometimes  {count:>9}  {what}");
    }
    println!("schedules  {:>9}", summary.schedules);
    println!("events     {:>9}", summary.events);
    println!(
        "simulated  {:>9.0} hours",
        summary.simulated.as_secs_f64() / 3600.0
    );
    println!("seconds    {seconds:>9.1}");
    #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = summary.schedules as f64 / seconds;
    println!("a second   {rate:>9.0}");
}
