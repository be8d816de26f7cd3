//! Why a text is no pipeline contract.

use std::fmt;

use crate::identity::ParamsError;

/// Why a text is no pipeline contract: which key, what was found there, what is expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContractError {
    /// The text is not TOML.
    #[error("the contract is not TOML")]
    Syntax {
        /// Where and why.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// A key that no contract has.
    #[error("unknown key {key:?} in {}{}", Whole(.table), Nearest(.nearest.as_deref()))]
    UnknownKey {
        /// The table that it stands in; empty at the top.
        table: &'static str,
        /// The key.
        key: String,
        /// The known key that is most like it, if one is at all.
        nearest: Option<String>,
    },
    /// A key that every contract has is not there.
    #[error("the key {key:?} is missing in {}", Whole(.table))]
    MissingKey {
        /// The table that it should stand in; empty at the top.
        table: &'static str,
        /// The key.
        key: &'static str,
    },
    /// A value of another type.
    #[error("{at}: expected {expected}, got {got}")]
    WrongType {
        /// Which key, e.g. `job.exec[1]`.
        at: String,
        /// The type that it should have.
        expected: &'static str,
        /// The type that it has.
        got: &'static str,
    },
    /// A name or version of nothing but blanks.
    #[error("{key}: expected a text that is not blank")]
    Blank {
        /// Which key.
        key: &'static str,
    },
    /// An argument with U+0000, which no program can be given.
    #[error("job.exec[{index}]: expected a text without U+0000, got {got:?}")]
    NulInArgument {
        /// Which argument; the program is 0.
        index: usize,
        /// The argument.
        got: String,
    },
    /// Of the variables that a command inherits, one that none can be called.
    #[error("job.env[{index}]: expected a variable's name, or its beginning and `*`, got {got:?}")]
    NoVariable {
        /// Which of them, from 0.
        index: usize,
        /// The name.
        got: String,
    },
    /// A name or version with a control character.
    #[error("{key}: expected a text without control characters, got {got:?}")]
    ControlCharacter {
        /// Which key.
        key: &'static str,
        /// The text.
        got: String,
    },
    /// A scheme that does not exist.
    #[error("scheme: expected strict, reference or ingest, got {got:?}")]
    UnknownScheme {
        /// Its name.
        got: String,
    },
    /// Parameters that cannot be part of an identity.
    #[error("[params] cannot be part of a job ID")]
    Params(#[from] ParamsError),
    /// A pattern that is no glob.
    #[error("{at}: {pattern:?} is no glob pattern")]
    Glob {
        /// Which key, e.g. `select.include[0]`.
        at: String,
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        #[source]
        source: globset::Error,
    },
    /// A pattern that would mean something else than it looks like.
    #[error("{at}: {pattern:?}: {why}")]
    MisleadingPattern {
        /// Which key, e.g. `select.include[0]`.
        at: String,
        /// The pattern.
        pattern: String,
        /// What it would mean, and what to write.
        why: &'static str,
    },
    /// A pattern that is too long to be matched.
    #[error("{at}: {pattern:?} is too long a pattern")]
    Unmatchable {
        /// Which key, e.g. `select.include[0]`.
        at: String,
        /// The pattern.
        pattern: String,
        /// Why.
        #[source]
        source: Box<regex_automata::meta::BuildError>,
    },
    /// A number outside its range.
    #[error("{at}: expected {expected}, got {got}")]
    OutOfRange {
        /// Which key.
        at: String,
        /// The range.
        expected: &'static str,
        /// The number.
        got: i64,
    },
    /// A job that is both a command and handed on.
    #[error("[job]: expected exec or dispatch = true, got both")]
    ExecAndDispatch,
    /// A command without a program.
    #[error("job.exec: expected a program and its arguments, got {got}")]
    NoProgram {
        /// What stands there instead.
        got: &'static str,
    },
    /// `{word}` with a word that is no placeholder.
    #[error("job.exec[{index}]: unknown placeholder {{{word}}}{}; {{{{{word}}}}} is the text without a meaning", Nearest(.nearest.as_deref()))]
    UnknownPlaceholder {
        /// Which argument; the program is 0.
        index: usize,
        /// The word in the braces.
        word: String,
        /// The placeholder that is most like it, braces included, if one is at all.
        nearest: Option<String>,
    },
    /// A placeholder names the program to run.
    #[error(
        "job.exec[0]: the placeholder {placeholder} names the program, so an event would choose what is run"
    )]
    PlaceholderAsProgram {
        /// The placeholder, braces included.
        placeholder: String,
    },
    /// A placeholder inside a text that a shell or another interpreter runs.
    #[error(
        "job.exec[{index}]: the placeholder {placeholder} stands inside a script that {interpreter} runs, so an object's \
         name could be a command. Put it after the script as an argument of its own and read \"$1\", or read \
         ${environment} from the environment"
    )]
    PlaceholderInScript {
        /// Which argument; the program is 0.
        index: usize,
        /// The placeholder, braces included.
        placeholder: String,
        /// The shell or interpreter.
        interpreter: String,
        /// The environment variable that holds the same value.
        environment: &'static str,
    },
}

/// A table's name in a message.
struct Whole<'a>(&'a str);

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => f.write_str("the contract"),
            table => write!(f, "[{table}]"),
        }
    }
}

/// A suggestion at the end of a message.
struct Nearest<'a>(Option<&'a str>);

impl fmt::Display for Nearest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(nearest) => write!(f, ", the nearest known one is {nearest:?}"),
            None => Ok(()),
        }
    }
}
