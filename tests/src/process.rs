//! Processes: how they end, signals to them, what the system says of them, and waiting.

use std::{
    process::{Command, Output},
    time::{Duration, Instant},
};

/// How the program ended.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; -1 if a signal killed it.
    pub code: i32,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// The last line of standard output.
    pub fn last_line(&self) -> &str {
        self.out.lines().last().unwrap_or_default()
    }
}

/// Sends a signal to a process.
pub fn kill(signal: &str, process: &str) {
    let status = Command::new("kill")
        .args([&format!("-{signal}"), process])
        .status()
        .unwrap();
    assert!(status.success(), "kill -{signal} {process}");
}

/// Whether a process is there and has not ended.
pub fn is_alive(process: &str) -> bool {
    state(process).is_some_and(|state| state != 'Z')
}

/// Whether a process is stopped, by `STOP`.
pub fn is_stopped(process: &str) -> bool {
    state(process) == Some('T')
}

/// What the system says of a process: the first letter after the parenthesis that closes its command's name.
fn state(process: &str) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Waits until something holds; only a test that fails waits to the bound.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(
            started.elapsed() < Duration::from_secs(180),
            "waited in vain: {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}
