//! One argument of a command, with placeholders.
//!
//! `{word}` is a placeholder, and an unknown word an error. `{{word}}` is the text `{word}`. Every other brace stands for
//! itself, so that JSON and awk programs need no care: `{"a":{"b":1}}`, `{print $1}`.

use std::fmt;

/// A value of the job that an argument can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Placeholder {
    /// `{uri}`: the object's URI.
    Uri,
    /// `{provider}`: `s3`, `gcs`, `azure` or `file`.
    Provider,
    /// `{container}`: bucket, container or folder.
    Container,
    /// `{key}`: the object's exact key.
    Key,
    /// `{version}`: the version token's value.
    Version,
    /// `{job_id}`: 64 lower-case hex characters.
    JobId,
    /// `{attempt}`: 1, 2, 3 …
    Attempt,
    /// `{path}`: the path of a local copy of exactly the version that the event names.
    Path,
}

impl Placeholder {
    /// All placeholders, in the order in which they are listed to people.
    pub const ALL: [Self; 8] = [
        Self::Uri,
        Self::Provider,
        Self::Container,
        Self::Key,
        Self::Version,
        Self::JobId,
        Self::Attempt,
        Self::Path,
    ];

    /// The word in the braces.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Uri => "uri",
            Self::Provider => "provider",
            Self::Container => "container",
            Self::Key => "key",
            Self::Version => "version",
            Self::JobId => "job_id",
            Self::Attempt => "attempt",
            Self::Path => "path",
        }
    }

    /// The environment variable in which a job is given the same value.
    #[must_use]
    pub const fn environment(self) -> &'static str {
        match self {
            Self::Uri => "FIRSTCLAIM_JOB_URI",
            Self::Provider => "FIRSTCLAIM_JOB_PROVIDER",
            Self::Container => "FIRSTCLAIM_JOB_CONTAINER",
            Self::Key => "FIRSTCLAIM_JOB_KEY",
            Self::Version => "FIRSTCLAIM_JOB_VERSION",
            Self::JobId => "FIRSTCLAIM_JOB_ID",
            Self::Attempt => "FIRSTCLAIM_JOB_ATTEMPT",
            Self::Path => "FIRSTCLAIM_JOB_PATH",
        }
    }
}

impl fmt::Display for Placeholder {
    /// With its braces: `{uri}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}}", self.as_str())
    }
}

/// An argument of a command, taken apart into text and placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgTemplate(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Value(Placeholder),
}

/// A word in braces that is no placeholder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown placeholder {{{0}}}")]
pub struct UnknownPlaceholder(pub String);

impl ArgTemplate {
    /// Takes an argument apart.
    ///
    /// # Errors
    ///
    /// [`UnknownPlaceholder`].
    pub fn parse(text: &str) -> Result<Self, UnknownPlaceholder> {
        let mut pieces = Pieces::default();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let (before, braced) = rest.split_at(open);
            pieces.text.push_str(before);
            let opening = braced.len() - braced.trim_start_matches('{').len();
            let after = &braced[opening..];
            let word = word_at_start(after);
            let tail = &after[word.len()..];
            let closing = tail.len() - tail.trim_start_matches('}').len();
            if word.is_empty() || closing == 0 {
                pieces.text.push_str(&braced[..opening]);
                rest = after;
                continue;
            }
            // Only pairs of braces around the word count; a surplus on either side is text.
            let pairs = opening.min(closing);
            let escaped = pairs / 2;
            pieces.braces('{', opening - pairs + escaped);
            if pairs % 2 == 0 {
                pieces.text.push_str(word);
            } else {
                let known = Placeholder::ALL
                    .into_iter()
                    .find(|placeholder| placeholder.as_str() == word)
                    .ok_or_else(|| UnknownPlaceholder(word.to_owned()))?;
                pieces.value(known);
            }
            pieces.braces('}', escaped + closing - pairs);
            rest = &tail[closing..];
        }
        pieces.text.push_str(rest);
        Ok(Self(pieces.finish()))
    }

    /// The argument with each placeholder replaced by what `value` says of it.
    pub fn render<'v>(&self, value: impl Fn(Placeholder) -> &'v str) -> String {
        self.0
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.as_str(),
                Piece::Value(placeholder) => value(*placeholder),
            })
            .collect()
    }

    /// Whether the argument names this value.
    #[must_use]
    pub fn uses(&self, placeholder: Placeholder) -> bool {
        self.placeholders().any(|used| used == placeholder)
    }

    /// The value that the argument begins with: whoever chose it chose what kind of argument this is.
    #[must_use]
    pub fn first_value(&self) -> Option<Placeholder> {
        match self.0.first() {
            Some(Piece::Value(placeholder)) => Some(*placeholder),
            _ => None,
        }
    }

    /// The values that the argument names, in their order in it.
    pub fn placeholders(&self) -> impl Iterator<Item = Placeholder> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Value(placeholder) => Some(*placeholder),
        })
    }
}

impl fmt::Display for ArgTemplate {
    /// For people: each placeholder in its braces, escapes resolved.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => f.write_str(text),
            Piece::Value(placeholder) => write!(f, "{placeholder}"),
        })
    }
}

fn word_at_start(text: &str) -> &str {
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(text.len());
    let word = &text[..end];
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        ""
    } else {
        word
    }
}

#[derive(Default)]
struct Pieces {
    done: Vec<Piece>,
    text: String,
}

impl Pieces {
    fn braces(&mut self, brace: char, count: usize) {
        self.text.extend(std::iter::repeat_n(brace, count));
    }

    fn value(&mut self, placeholder: Placeholder) {
        if !self.text.is_empty() {
            self.done.push(Piece::Text(std::mem::take(&mut self.text)));
        }
        self.done.push(Piece::Value(placeholder));
    }

    fn finish(mut self) -> Vec<Piece> {
        if !self.text.is_empty() {
            self.done.push(Piece::Text(self.text));
        }
        self.done
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rendered(text: &str) -> String {
        ArgTemplate::parse(text)
            .unwrap()
            .render(|placeholder| match placeholder {
                Placeholder::Uri => "URI",
                Placeholder::Key => "{uri}",
                other => other.environment(),
            })
    }

    #[test]
    fn placeholders_are_replaced_once() {
        assert_eq!(rendered("--in={uri},{key}"), "--in=URI,{uri}");
        assert_eq!(rendered("{uri}{uri}"), "URIURI");
        for placeholder in Placeholder::ALL {
            assert!(
                ArgTemplate::parse(&placeholder.to_string())
                    .unwrap()
                    .uses(placeholder)
            );
        }
    }

    #[test]
    fn doubled_braces_around_a_word_are_single_ones() {
        assert_eq!(rendered("{{uri}}"), "{uri}");
        assert_eq!(rendered("${{HOME}}"), "${HOME}");
        assert_eq!(rendered("{{{uri}}}"), "{URI}");
        assert_eq!(rendered("{{{{uri}}}}"), "{{uri}}");
        assert_eq!(rendered("{{uri}"), "{URI");
    }

    #[test]
    fn every_other_brace_is_text() {
        for text in [
            "{",
            "}",
            "{}",
            "{{}}",
            "{ uri }",
            "{print $1}",
            r#"{"a":{"b":1}}"#,
            "{1}",
            "{uri",
            "a{b,c}",
            "}}{{",
        ] {
            assert_eq!(rendered(text), text);
        }
        assert_eq!(rendered(r#"{"key":{uri}}"#), r#"{"key":URI}"#);
    }

    #[test]
    fn an_unknown_word_is_named() {
        assert_eq!(
            ArgTemplate::parse("a{urI}"),
            Err(UnknownPlaceholder("urI".into()))
        );
        assert_eq!(
            ArgTemplate::parse("${HOME}"),
            Err(UnknownPlaceholder("HOME".into()))
        );
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic_and_text_without_braces_is_itself(text in "[a-z{}_ \u{e9}]{0,16}") {
            let parsed = ArgTemplate::parse(&text);
            if !text.contains(['{', '}']) {
                prop_assert_eq!(parsed.unwrap().to_string(), text);
            }
        }
    }
}
