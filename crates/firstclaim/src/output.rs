//! The two places that a command writes to: results on standard output, complaints on standard error. Whatever a text says of
//! other people's, nothing that a terminal obeys gets through either.

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, Write as _},
};

/// How much of a complaint is told, in characters: it may quote other people's text.
pub(crate) const COMPLAINT: usize = 4_096;

/// Writes a line of results.
///
/// # Errors
///
/// [`io::Error`], of kind `BrokenPipe` if the reader has gone away (`| head`).
pub(crate) fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", harmless(text))?;
    out.flush()
}

/// Says how it went, where standard output has another use.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", harmless(text));
}

/// Says what is wrong. If standard error is gone there is nobody to tell.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "firstclaim: {}", harmless(text));
}

/// The text with `\uXXXX` for what a terminal obeys or hides, but for line ends and tabs. JSON stays JSON and means the same: it
/// holds such characters in its strings alone.
fn harmless(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 5);
    for character in text.chars() {
        if is_obeyed(character) {
            // A `String` takes whatever is written to it.
            let _ = write!(out, "\\u{:04x}", u32::from(character));
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// Control characters, and those that turn a line's direction: with them a name can look like another.
fn is_obeyed(character: char) -> bool {
    character.is_control() && !matches!(character, '\n' | '\t')
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
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

    #[test]
    fn nothing_that_a_terminal_obeys_gets_through() {
        assert_eq!(harmless("a\n\tb é 東"), "a\n\tb é 東");
        assert_eq!(
            harmless("\u{1b}]0;t\u{7}\r\u{7f}\u{9b}2J\u{202e}\u{2066}"),
            "\\u001b]0;t\\u0007\\u000d\\u007f\\u009b2J\\u202e\\u2066"
        );
        let value = serde_json::json!({"path": "\u{9b}2J\u{7f}\u{202e}\u{1b}"});
        let read: serde_json::Value = serde_json::from_str(&harmless(&value.to_string())).unwrap();
        assert_eq!(read, value);
    }
}
