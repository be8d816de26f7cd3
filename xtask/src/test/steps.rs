//! What each step of the checks took.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use crate::run::{Result, run, say};

/// The steps that were taken, in order.
#[derive(Debug, Default)]
pub(super) struct Steps(Vec<(String, Duration)>);

impl Steps {
    /// Runs a program as a step.
    pub(super) fn run(&mut self, name: &str, command: &mut Command) -> Result<()> {
        self.time(name, || run(command))
    }

    /// Takes a step.
    pub(super) fn time<T>(&mut self, name: &str, step: impl FnOnce() -> Result<T>) -> Result<T> {
        let started = Instant::now();
        let result = step();
        let name = match &result {
            Ok(_) => name.to_owned(),
            Err(_) => format!("{name} (failed)"),
        };
        self.0.push((name, started.elapsed()));
        result
    }

    /// Says what they took.
    pub(super) fn tell(&self) {
        say(&self.table());
    }

    fn table(&self) -> String {
        let all: Duration = self.0.iter().map(|(_, took)| *took).sum();
        let rows = self.0.iter().map(|(name, took)| (name.as_str(), *took));
        let rows = rows.chain([("all", all)]);
        let rows: String = rows
            .map(|(name, took)| format!("\n{:>7.1}  {name}", took.as_secs_f64()))
            .collect();
        format!("\nseconds  step{rows}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_fails_is_in_the_table_too() {
        let mut steps = Steps::default();
        assert_eq!(steps.time("one", || Ok(1)), Ok(1));
        let failed: Result<()> = steps.time("two", || Err("no".to_owned()));
        assert_eq!(failed, Err("no".to_owned()));
        steps.0[0].1 = Duration::from_millis(1_500);
        steps.0[1].1 = Duration::from_secs(20);
        assert_eq!(
            steps.table(),
            "\nseconds  step\n    1.5  one\n   20.0  two (failed)\n   21.5  all"
        );
    }
}
