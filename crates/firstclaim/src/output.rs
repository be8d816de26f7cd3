//! The two places that a command writes to: results on standard output, complaints on standard error. Both take text that may
//! quote other people's, and write each line so that nothing in it is obeyed by a terminal or looks like a line of ours: no
//! caller has to think of it.

use std::io::{self, Write as _};

use comfy_table::{ContentArrangement, Table, presets::NOTHING};
use identity_core::text::escaped;

/// How much of a complaint is told, in characters: it may quote other people's text.
pub(crate) const COMPLAINT: usize = 4_096;

/// Writes a line of results: one, whatever it holds.
///
/// # Errors
///
/// [`io::Error`], of kind `BrokenPipe` if the reader has gone away (`| head`).
pub(crate) fn line(text: &str) -> io::Result<()> {
    document(&escaped(text))
}

/// Writes a table of results: a line for each row.
///
/// # Errors
///
/// As [`line()`].
pub(crate) fn table<const N: usize>(head: [&str; N], rows: Vec<[String; N]>) -> io::Result<()> {
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(head);
    for row in rows {
        table.add_row(row.each_ref().map(|cell| escaped(cell)));
    }
    document(&table.trim_fmt())
}

/// Writes lines that are this program's own, as they are.
///
/// # Errors
///
/// As [`line()`].
pub(crate) fn document(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Says how it went, where standard output has another use.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", escaped(text));
}

/// Says what is wrong. If standard error is gone there is nobody to tell.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "firstclaim: {}", complaint(text));
}

/// A complaint as it is written. It may have several lines (a contract's do), of which all but the first are indented: a line that
/// begins at the margin is ours.
fn complaint(text: &str) -> String {
    clipped(text, COMPLAINT)
        .lines()
        .map(escaped)
        .collect::<Vec<_>>()
        .join("\n    ")
}

/// The beginning of a text that may be endless, with a sign that there was more.
pub(crate) fn clipped(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_clipped_says_so() {
        assert_eq!(clipped("aéc", 2), "aé…");
        assert_eq!(clipped("aéc", 3), "aéc");
    }

    #[test]
    fn only_the_first_line_of_a_complaint_stands_at_the_margin() {
        assert_eq!(
            complaint("no such key: \"a\nfirstclaim: all well\u{1b}[2J\r\""),
            "no such key: \"a\n    firstclaim: all well\\u001b[2J\\r\""
        );
        assert_eq!(complaint(&"é".repeat(5_000)).chars().count(), COMPLAINT + 1);
    }
}
