//! What messages are made with: an error and its causes in one line, a text cut to what is kept of it, and the known
//! name nearest to a misspelt one.

use std::error::Error;

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
