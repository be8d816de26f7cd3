//! What messages are made with: an error and its causes in one line, a text cut to what is kept of it, other people's text
//! made harmless, and the known name nearest to a misspelt one.

use std::{borrow::Cow, error::Error, fmt::Write as _};

/// An error and its causes, separated by colons: for records and logs, which keep no sources.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// How much of an error a record keeps, in bytes.
const MAX_ERROR_BYTES: usize = 4 * 1024;

/// The beginning of a long text, cut between characters: a message may quote other people's text.
pub fn bounded(mut text: String) -> String {
    if text.len() > MAX_ERROR_BYTES {
        text.truncate(text.floor_char_boundary(MAX_ERROR_BYTES));
        text.push('…');
    }
    text
}

/// The text in one line that a terminal only shows: line ends, tabs and whatever else it would obey or hide are written as JSON
/// writes them in a string, so that a line of JSON means the same.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 5);
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // A `String` takes whatever is written to it.
            obeyed if is_obeyed(obeyed) => {
                let _ = write!(out, "\\u{:04x}", u32::from(obeyed));
            }
            shown => out.push(shown),
        }
    }
    Cow::Owned(out)
}

/// Control characters, those that end a line in Unicode, and those that turn its direction: with them a name can look like another
/// (Unicode Standard Annex 9, section 2).
fn is_obeyed(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// The one of `known` that is most like `name`: a poor suggestion still says what there is. `None` if there are none.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    known
        .into_iter()
        .map(|word| (strsim::jaro_winkler(&name, &word.to_lowercase()), word))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found() {
        let known = ["include", "exclude"];
        assert_eq!(nearest("inclde", known), Some("include"));
        assert_eq!(nearest("EXCLUDES", known), Some("exclude"));
        assert_eq!(nearest("zzz", []), None);
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(escaped("a b é 東 \\n"), "a b é 東 \\n");
        assert_eq!(
            escaped("\u{1b}]0;t\u{7}\r\n\t\u{7f}\u{9b}2J\u{202e}\u{2066}\u{2028}\u{200f}\u{61c}"),
            "\\u001b]0;t\\u0007\\r\\n\\t\\u007f\\u009b2J\\u202e\\u2066\\u2028\\u200f\\u061c"
        );
        let value = serde_json::json!({"path": "\u{9b}2J\u{7f}\n\u{202e}\u{1b}\u{2029}"});
        let line = value.to_string();
        let line = escaped(&line);
        assert!(!line.chars().any(is_obeyed));
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&line).unwrap(),
            value
        );
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let cut = bounded("é".repeat(5_000) + "x");
        assert_eq!(
            (cut.len(), cut.chars().last()),
            (4_096 + '…'.len_utf8(), Some('…'))
        );
        assert_eq!(bounded("short".to_owned()), "short");
    }

    #[test]
    fn a_chain_names_every_cause() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer")]
        struct Outer(#[source] std::fmt::Error);
        assert_eq!(
            error_chain(&Outer(std::fmt::Error)),
            format!("outer: {}", std::fmt::Error)
        );
    }
}
