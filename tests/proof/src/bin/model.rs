//! Checks every configuration of the model, and every broken one, and prints what it found.

use std::{io::Write as _, process::ExitCode};

use proof::model::{Control, LARGE, SMALL, SOMETIMES, check, counterexample};

fn main() -> std::io::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let mut sound = true;
    let (mut states, mut seen) = (0, Vec::new());
    writeln!(out, "{:>9}  {:>5}  {:>7}", "states", "depth", "seconds")?;
    for bounds in SMALL.iter().chain(LARGE) {
        let report = check(bounds);
        let seconds = report.took.as_secs_f64();
        writeln!(
            out,
            "{:>9}  {:>5}  {seconds:>7.1}  {}",
            report.states, report.depth, bounds.name
        )?;
        if let Some(found) = report.found {
            writeln!(out, "{found}")?;
            sound = false;
        } else if report.states != bounds.states {
            writeln!(out, "the number of states is pinned at {}", bounds.states)?;
            sound = false;
        }
        states += report.states;
        seen.extend(report.seen);
    }
    writeln!(out, "{states:>9}  in all")?;
    for (name, _) in SOMETIMES {
        if !seen.contains(&name) {
            writeln!(out, "never seen: {name}")?;
            sound = false;
        }
    }
    for control in Control::ALL {
        let found = counterexample(control.bounds(), control).found;
        let text = found.map_or_else(
            || {
                sound = false;
                "nothing is found".to_owned()
            },
            |found| found.to_string(),
        );
        writeln!(out, "\nbroken on purpose: {}\n{text}", control.as_str())?;
    }
    Ok(if sound {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
