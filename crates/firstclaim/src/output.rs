//! The two places that a command writes to: results on standard output, complaints on standard error.

use std::io::{self, Write as _};

/// How much of a complaint is told, in characters: it may quote other people's text.
pub(crate) const COMPLAINT: usize = 4_096;

/// Writes a line of results.
///
/// # Errors
///
/// [`io::Error`], of kind `BrokenPipe` if the reader has gone away (`| head`).
pub(crate) fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Says how it went, where standard output has another use.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Says what is wrong. If standard error is gone there is nobody to tell.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "firstclaim: {text}");
}

/// Other people's text on a terminal: in one line, without control characters, and not endless.
pub(crate) fn printable(text: &str, limit: usize) -> String {
    let mut out = String::new();
    for (at, character) in text.chars().enumerate() {
        if at >= limit {
            out.push('…');
            break;
        }
        match character {
            '\n' => out.push_str("\\n"),
            control if control.is_control() => out.extend(control.escape_default()),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_peoples_text_cannot_move_the_cursor() {
        assert_eq!(printable("a\u{1b}[2Jb\nc", 100), "a\\u{1b}[2Jb\\nc");
        assert_eq!(printable("abc", 2), "ab…");
    }
}
