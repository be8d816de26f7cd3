//! How a command ends when not all is well: the exit code, and the lines for people.

use std::{error::Error, process::ExitCode};

/// How a command ended that printed what it had to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All well: exit code 0.
    Well,
    /// Something failed or was refused, and was said on standard error: exit code 1.
    WithFailures,
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    usage: bool,
    /// The reader of the results went away: whoever did that knows it.
    quiet: bool,
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Failure {
    /// Wrong usage or configuration: exit code 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            usage: true,
            quiet: false,
            message: message.into(),
            source: None,
        }
    }

    /// Something failed: exit code 1.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self {
            usage: false,
            quiet: false,
            message: message.into(),
            source: None,
        }
    }

    /// Keeps what caused it.
    pub(crate) fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Whether there is nothing to be said.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// 1 or 2.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(if self.usage { 2 } else { 1 })
    }
}

/// Standard output could not be written to.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let quiet = error.kind() == std::io::ErrorKind::BrokenPipe;
        Self {
            quiet,
            ..Self::failed("standard output cannot be written to").because(error)
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        let mut source = self.source.as_deref().map(|source| source as &dyn Error);
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}
