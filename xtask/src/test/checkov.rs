//! `deploy/aws` checked by checkov: what a policy, a queue, a bucket or a table should have and lacks.
//!
//! Exceptions are in the files, each beside what it is about and with its reason.

use std::process::Command;

use crate::{
    python,
    run::{Result, describe, root, say},
};

/// Its rules come with it: nothing is fetched, and nobody is told.
const ARGUMENTS: [&str; 6] = [
    "--framework",
    "terraform",
    "--skip-download",
    "--compact",
    "--quiet",
    "--directory",
];

/// Checks the files, and fails where one of them breaks a rule, or where nothing was checked.
pub(super) fn check() -> Result<()> {
    let python = python::environment("checkov", "tests/checkov/requirements.txt")?;
    let mut checkov = Command::new(python);
    checkov
        .args(["-m", "checkov.main"])
        .args(ARGUMENTS)
        .arg(root().join("deploy/aws"));
    let line = describe(&checkov);
    say(&format!("\n$ {line}"));
    let output = checkov
        .output()
        .map_err(|error| format!("{line}: cannot be started: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    say(said.trim_end());
    if output.status.success() && passed(&said) > 0 {
        Ok(())
    } else {
        let complaint = String::from_utf8_lossy(&output.stderr);
        Err(format!("{line}: {}\n{complaint}", output.status))
    }
}

/// How many checks it says that the files have passed.
fn passed(said: &str) -> u32 {
    let count = said
        .split_once("Passed checks: ")
        .and_then(|(_, rest)| rest.split_once(','));
    count.map_or(0, |(count, _)| count.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_not_found_have_passed_nothing() {
        assert_eq!(
            passed("\nPassed checks: 128, Failed checks: 0, Skipped checks: 13\n"),
            128
        );
        assert_eq!(passed("Passed checks: 0, Failed checks: 0"), 0);
        assert_eq!(passed(""), 0);
    }
}
