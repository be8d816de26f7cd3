//! How a command ends when not all is well: the exit code, and the lines for people.

use std::{error::Error, fmt, io, process::ExitCode};

use identity_core::text::error_chain;

/// What the program's exit code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// All well.
    Well = 0,
    /// Something failed or was refused, and was said on standard error.
    Failures = 1,
    /// Wrong usage or configuration, or a machine that cannot do the jobs: nothing was done for that.
    Usage = 2,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// How a command ended that printed what it had to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All well.
    Well,
    /// Something failed or was refused, and was said on standard error.
    WithFailures,
}

impl Ended {
    pub(crate) fn exit(self) -> Exit {
        match self {
            Self::Well => Exit::Well,
            Self::WithFailures => Exit::Failures,
        }
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Usage,
    Failed,
    /// The reader of the results went away. Whoever did that knows it.
    Unread,
}

impl Failure {
    fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// Wrong usage or configuration, or a machine that lacks what jobs need.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// Something failed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Kind::Failed, message)
    }

    /// Keeps what caused it.
    pub(crate) fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Whether there is nothing to be said.
    pub(crate) fn is_quiet(&self) -> bool {
        self.kind == Kind::Unread
    }

    pub(crate) fn exit(&self) -> Exit {
        match self.kind {
            Kind::Usage => Exit::Usage,
            Kind::Failed | Kind::Unread => Exit::Failures,
        }
    }
}

/// Standard output could not be written to.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::BrokenPipe => Kind::Unread,
            _ => Kind::Failed,
        };
        Self::new(kind, "standard output cannot be written to").because(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {}", error_chain(&**source)),
            None => Ok(()),
        }
    }
}
