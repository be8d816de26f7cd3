//! PostgreSQL's error codes, and what each means for whoever connects to a store or uses one.
//!
//! The codes: <https://www.postgresql.org/docs/current/errcodes-appendix.html>. This is the only place that knows them.

use std::error::Error;
use std::io;
use std::time::Duration;

use identity_core::claim::StoreError;

use super::PostgresUrl;

const TOO_MANY_CONNECTIONS: &str = "53300";
const INSUFFICIENT_PRIVILEGE: &str = "42501";
const INVALID_CATALOG_NAME: &str = "3D000";
/// The server is starting, stopping, or recovering.
const CANNOT_CONNECT_NOW: &str = "57P03";

// Classes: the first two characters of a code.
const DATA_EXCEPTION: &str = "22";
const INTEGRITY_CONSTRAINT_VIOLATION: &str = "23";
const INVALID_AUTHORIZATION: &str = "28";
const PROGRAM_LIMIT_EXCEEDED: &str = "54";
/// An operator ended the connection, or the whole server. `57014`, a statement that took too long, is of the same class.
const OPERATOR_INTERVENTION: &str = "57P";

fn code(error: &sqlx::Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}

fn is_of(error: &sqlx::Error, classes: &[&str]) -> bool {
    code(error).is_some_and(|code| classes.iter().any(|class| code.starts_with(class)))
}

/// Whether the server has no connection left for now, or is not up yet.
pub(crate) fn is_full(error: &sqlx::Error) -> bool {
    is_of(error, &[TOO_MANY_CONNECTIONS, CANNOT_CONNECT_NOW])
}

/// Whether other connections to the same server are likely to be as good as before.
pub(crate) fn says_nothing_of_others(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some() && !is_of(error, &[OPERATOR_INTERVENTION])
}

/// The server did not answer within `wait`. Whether it did what it was asked is not known.
pub(crate) fn no_answer(wait: Duration) -> sqlx::Error {
    let text = format!("no answer within {} s", wait.as_secs_f32());
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, text))
}

/// What the server said.
#[derive(Debug, thiserror::Error)]
#[error("{message} (SQLSTATE {code})")]
struct ServerError {
    message: String,
    code: String,
}

/// The cause without sqlx's shell around it, which would say the same words twice.
fn cause(error: sqlx::Error) -> Box<dyn Error + Send + Sync> {
    match error {
        sqlx::Error::Database(error) => Box::new(ServerError {
            message: error.message().to_owned(),
            code: error.code().unwrap_or_default().into_owned(),
        }),
        sqlx::Error::Io(error) => error.into(),
        sqlx::Error::Tls(error) | sqlx::Error::Configuration(error) => error,
        error => error.into(),
    }
}

/// What a failed statement means for the user of a store.
pub(crate) fn failed(store: String, doing: &'static str, error: sqlx::Error) -> StoreError {
    let misfits = [
        DATA_EXCEPTION,
        INTEGRITY_CONSTRAINT_VIOLATION,
        PROGRAM_LIMIT_EXCEEDED,
    ];
    if is_of(&error, &misfits) {
        // The same would be refused for ever. Our own types leave nothing to refuse: somebody changed the table.
        return StoreError::Invalid {
            store,
            what: doing.to_owned(),
            expected: "what the table can hold",
            got: cause(error).to_string(),
        };
    }
    StoreError::Unavailable {
        store,
        doing,
        source: cause(error),
    }
}

/// Why a PostgreSQL database cannot be used as a claim store. Nothing was written to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// There is no server, or none that answers in time, or it breaks off.
    #[error("{store} cannot be reached")]
    Unreachable {
        /// The store's URL, without user and password.
        store: String,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The URL demands a secure connection (`sslmode`), and the server has none, or one that is not to be trusted.
    #[error("{store}: no secure connection as the URL's sslmode demands it")]
    Insecure {
        /// The store's URL, without user and password.
        store: String,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The server does not let this user in: a wrong password, or a rule of its own.
    #[error("{store} does not let this user in")]
    Refused {
        /// The store's URL, without user and password.
        store: String,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The server has no such database.
    #[error("{store}: there is no such database")]
    NoDatabase {
        /// The store's URL, without user and password.
        store: String,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The user may not read, or not make or change, the tables.
    #[error("{store}: the tables cannot be set up by this user")]
    Forbidden {
        /// The store's URL, without user and password.
        store: String,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The database cannot keep every text.
    #[error("{store}: expected a database with the encoding \"UTF8\", got {got:?}")]
    Encoding {
        /// The store's URL, without user and password.
        store: String,
        /// Its encoding.
        got: String,
    },
    /// The server is a replica, or takes no writes for another reason.
    #[error("{store} takes no writes: is it a replica?")]
    ReadOnly {
        /// The store's URL, without user and password.
        store: String,
    },
    /// There is no store, and none was to be made.
    #[error("{store}: there is no claim store in this database")]
    Missing {
        /// The store's URL, without user and password.
        store: String,
    },
    /// The tables were made by a newer version of this program.
    #[error(
        "{store} was set up by a newer version: its tables are of version {got}, known are those up to {known}"
    )]
    Newer {
        /// The store's URL, without user and password.
        store: String,
        /// Their version.
        got: i32,
        /// The highest version that this program knows.
        known: i32,
    },
    /// Anything else that the server reports, or a server that is no PostgreSQL.
    #[error("{store} cannot be used")]
    Postgres {
        /// The store's URL, without user and password.
        store: String,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl ConnectError {
    /// What an error means for whoever connects.
    pub(crate) fn postgres(url: &PostgresUrl, error: sqlx::Error) -> Self {
        let store = url.to_string();
        let code = code(&error).unwrap_or_default();
        match error {
            sqlx::Error::Tls(source) => Self::Insecure { store, source },
            // rustls tells what it thinks of a certificate as an input/output error.
            sqlx::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
                Self::Insecure {
                    store,
                    source: error.into(),
                }
            }
            error @ sqlx::Error::Io(_) => Self::Unreachable {
                store,
                source: cause(error),
            },
            error if is_full(&error) => Self::Unreachable {
                store,
                source: cause(error),
            },
            error => {
                let source = cause(error);
                if code.starts_with(INVALID_AUTHORIZATION) {
                    Self::Refused { store, source }
                } else if code == INVALID_CATALOG_NAME {
                    Self::NoDatabase { store, source }
                } else if code == INSUFFICIENT_PRIVILEGE {
                    Self::Forbidden { store, source }
                } else {
                    Self::Postgres { store, source }
                }
            }
        }
    }
}
