//! The two places that a command writes to: results on standard output, complaints on standard error.

use std::io::Write as _;

/// Writes a line of results. A reader that has gone away (`| head`) ends the program quietly, as it does others.
pub(crate) fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{text}").and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

/// Says what is wrong. If standard error is gone there is nobody to tell.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "firstclaim: {text}");
}
