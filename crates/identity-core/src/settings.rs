//! The environment variables that every binary reads, declared once: name, meaning, default.
//!
//! Pure: the variables are passed in. The table in the README is made from [`VARIABLES`].

use std::time::Duration;

use crate::{
    claim::{Resender, Terms},
    event::ReadContext,
    gate::AllowList,
    text::nearest,
};

/// The prefix of this project's own variables. An unknown variable with it is an error, for a misspelt setting would
/// otherwise be a silent default.
pub const PREFIX: &str = "FIRSTCLAIM_";
/// The prefix of what jobs are given; inherited ones are no settings.
pub const JOB_PREFIX: &str = "FIRSTCLAIM_JOB_";

/// One environment variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Its default, as one would write it; empty if it has none.
    pub default: &'static str,
    /// What it sets, with unit.
    pub meaning: &'static str,
}

const LEASE: &str = "FIRSTCLAIM_LEASE_SECONDS";
const MAX_ATTEMPTS: &str = "FIRSTCLAIM_MAX_ATTEMPTS";
const CONCURRENCY: &str = "FIRSTCLAIM_CONCURRENCY";
const ALLOW: &str = "FIRSTCLAIM_ALLOW";
const LOG: &str = "FIRSTCLAIM_LOG";
const LOG_FORMAT: &str = "FIRSTCLAIM_LOG_FORMAT";
const TTL: &str = "DEDUP_TTL_SECONDS";
const TABLE: &str = "DEDUP_TABLE";
const AZURE_ACCOUNT: &str = "AZURE_STORAGE_ACCOUNT";
const REDRIVE_QUEUE: &str = "FIRSTCLAIM_REDRIVE_QUEUE";
const SWEEP_GRACE: &str = "FIRSTCLAIM_SWEEP_GRACE_SECONDS";
const DISPATCH_QUEUE: &str = "FIRSTCLAIM_DISPATCH_QUEUE";

/// Every variable, in the order in which people are told of them.
pub const VARIABLES: [Variable; 12] = [
    Variable {
        name: LEASE,
        default: "120",
        meaning: "how long a claim is its holder's alone unless renewed, in seconds",
    },
    Variable {
        name: MAX_ATTEMPTS,
        default: "10",
        meaning: "attempts beyond this many are rejected as exhausted",
    },
    Variable {
        name: CONCURRENCY,
        default: "",
        meaning: "events handled side by side; by default one for each core",
    },
    Variable {
        name: ALLOW,
        default: "",
        meaning: "containers that events may name, separated by commas: `bucket`, `account/container` or `account/*`; \
                  unset, all; set to nothing, none",
    },
    Variable {
        name: LOG,
        default: "warn",
        meaning: "log filter, e.g. `info` or `identity_core=debug`; on Lambda the default is `info`",
    },
    Variable {
        name: LOG_FORMAT,
        default: "text",
        meaning: "`text` or `json`; on Lambda the default is `json`",
    },
    Variable {
        name: TTL,
        default: "1209600",
        meaning: "how long a done claim is kept at least, in seconds",
    },
    Variable {
        name: TABLE,
        default: "",
        meaning: "the DynamoDB table that the Lambda handler keeps claims in",
    },
    Variable {
        name: AZURE_ACCOUNT,
        default: "",
        meaning: "the storage account of blobs whose event names none (the blob trigger's own queue)",
    },
    Variable {
        name: REDRIVE_QUEUE,
        default: "",
        meaning: "on Lambda: URL of the SQS queue that a sweep sends events to again",
    },
    Variable {
        name: SWEEP_GRACE,
        default: "900",
        meaning: "on Lambda: how long a sweep leaves a claim to its own source, in seconds; longer than a message stays hidden",
    },
    Variable {
        name: DISPATCH_QUEUE,
        default: "",
        meaning: "URL of the SQS queue that jobs are handed to, if the pipeline says `dispatch = true`",
    },
];

/// Whether a variable of this name is read, or refused, here.
pub fn is_ours(name: &str) -> bool {
    let own = name.starts_with(PREFIX) && !name.starts_with(JOB_PREFIX);
    own || VARIABLES.iter().any(|variable| variable.name == name)
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What the environment sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Leases, attempts and how long ends are kept.
    pub terms: Terms,
    /// How many events are handled side by side; `None`: one for each core.
    pub concurrency: Option<usize>,
    /// Which containers events may name.
    pub allow: AllowList,
    /// The log filter.
    pub log: String,
    /// How log lines are written.
    pub log_format: LogFormat,
    /// The DynamoDB table of claims.
    pub dedup_table: Option<String>,
    /// The storage account of blobs whose event names none; see [`ReadContext`].
    pub azure_account: Option<String>,
    /// URL of the queue that a sweep sends events to.
    pub redrive_queue: Option<String>,
    /// How long a sweep leaves a claim to its own source.
    pub sweep_grace: Duration,
    /// URL of the queue that jobs are handed to.
    pub dispatch_queue: Option<String>,
}

/// Why the environment cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A variable with this project's prefix that it does not know.
    #[error("the environment variable {name} is not known{}", .nearest.map(|name| format!("; did you mean {name}?")).unwrap_or_default())]
    Unknown {
        /// Its name.
        name: String,
        /// The known name nearest to it.
        nearest: Option<&'static str>,
    },
    /// A value that cannot be used.
    #[error("the environment variable {name} should be {expected}, got {got:?}")]
    Invalid {
        /// Its name.
        name: &'static str,
        /// What it should be.
        expected: String,
        /// What it is.
        got: String,
    },
}

impl Settings {
    /// What events leave to configuration.
    #[must_use]
    pub fn read_context(&self) -> ReadContext<'_> {
        ReadContext {
            azure_account: self.azure_account.as_deref(),
        }
    }

    /// Reads the settings from all of a process's environment variables.
    ///
    /// `longest_redelivery` is how late the source may deliver an event again: a `done` record must be kept longer.
    ///
    /// # Errors
    ///
    /// [`SettingsError`], both variants.
    pub fn from_vars(
        vars: impl IntoIterator<Item = (String, String)>,
        longest_redelivery: Duration,
    ) -> Result<Self, SettingsError> {
        let mut settings = Self {
            terms: Terms::default(),
            concurrency: None,
            allow: AllowList::Everything,
            log: "warn".to_owned(),
            log_format: LogFormat::Text,
            dedup_table: None,
            azure_account: None,
            redrive_queue: None,
            sweep_grace: Resender::GRACE,
            dispatch_queue: None,
        };
        for (name, value) in vars {
            settings.set(&name, value)?;
        }
        let terms = &settings.terms;
        let least = longest_redelivery.max(terms.lease);
        if terms.done_ttl < least {
            let expected = format!(
                "at least {} (the longest lease or redelivery, in seconds)",
                least.as_secs()
            );
            return Err(SettingsError::Invalid {
                name: TTL,
                expected,
                got: terms.done_ttl.as_secs().to_string(),
            });
        }
        Ok(settings)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), SettingsError> {
        match name {
            LEASE => self.terms.lease = Duration::from_secs(number(LEASE, &value, 1, 86_400)?),
            MAX_ATTEMPTS => self.terms.max_attempts = number(MAX_ATTEMPTS, &value, 1, 1_000_000)?,
            CONCURRENCY => self.concurrency = Some(number(CONCURRENCY, &value, 1, 100_000)?),
            ALLOW if value.contains("://") => {
                let expected = "containers without a scheme, e.g. `bucket`".to_owned();
                return Err(invalid(ALLOW, expected, value));
            }
            ALLOW => self.allow = AllowList::parse(&value),
            LOG => self.log = value,
            TABLE => self.dedup_table = Some(value).filter(|name| !name.is_empty()),
            AZURE_ACCOUNT => self.azure_account = Some(value).filter(|name| !name.is_empty()),
            REDRIVE_QUEUE => self.redrive_queue = queue_url(REDRIVE_QUEUE, value)?,
            SWEEP_GRACE => {
                self.sweep_grace = Duration::from_secs(number(SWEEP_GRACE, &value, 1, 14 * 86_400)?)
            }
            DISPATCH_QUEUE => self.dispatch_queue = queue_url(DISPATCH_QUEUE, value)?,
            LOG_FORMAT => {
                self.log_format = match value.as_str() {
                    "text" => LogFormat::Text,
                    "json" => LogFormat::Json,
                    _ => return Err(invalid(LOG_FORMAT, "`text` or `json`".to_owned(), value)),
                }
            }
            TTL => {
                self.terms.done_ttl =
                    Duration::from_secs(number(TTL, &value, 1, 100 * 366 * 86_400)?)
            }
            _ if is_ours(name) => {
                let known = VARIABLES.map(|variable| variable.name);
                if !known.contains(&name) {
                    return Err(SettingsError::Unknown {
                        name: name.to_owned(),
                        nearest: nearest(name, known),
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn number<T: std::str::FromStr + PartialOrd + std::fmt::Display>(
    name: &'static str,
    value: &str,
    least: T,
    most: T,
) -> Result<T, SettingsError> {
    match value.parse() {
        Ok(number) if number >= least && number <= most => Ok(number),
        _ => Err(invalid(
            name,
            format!("a whole number from {least} to {most}"),
            value.to_owned(),
        )),
    }
}

/// A queue's URL; nothing where it is empty.
fn queue_url(name: &'static str, value: String) -> Result<Option<String>, SettingsError> {
    if value.is_empty() {
        return Ok(None);
    }
    if !value.starts_with("https://") && !value.starts_with("http://") {
        let expected = "the URL of an SQS queue".to_owned();
        return Err(invalid(name, expected, value));
    }
    Ok(Some(value))
}

fn invalid(name: &'static str, expected: String, got: String) -> SettingsError {
    SettingsError::Invalid {
        name,
        expected,
        got,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vars: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let vars = vars
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Settings::from_vars(vars, Duration::ZERO)
    }

    #[test]
    fn every_default_is_the_one_that_is_told() {
        let told: Vec<_> = VARIABLES
            .iter()
            .filter(|variable| !variable.default.is_empty())
            .map(|variable| (variable.name, variable.default))
            .collect();
        assert_eq!(read(&told), read(&[]));
    }

    #[test]
    fn each_variable_sets_what_it_says() {
        let settings = read(&[
            (LEASE, "7"),
            (MAX_ATTEMPTS, "2"),
            (CONCURRENCY, "3"),
            (ALLOW, "a,b"),
            (TTL, "9"),
            (TABLE, "jobs"),
            (AZURE_ACCOUNT, "acct"),
            (REDRIVE_QUEUE, "https://queue"),
            (SWEEP_GRACE, "11"),
            (DISPATCH_QUEUE, "https://jobs"),
        ])
        .unwrap();
        assert_eq!(settings.dedup_table.as_deref(), Some("jobs"));
        assert_eq!(settings.azure_account.as_deref(), Some("acct"));
        assert_eq!(settings.redrive_queue.as_deref(), Some("https://queue"));
        assert_eq!(settings.sweep_grace, Duration::from_secs(11));
        assert_eq!(settings.dispatch_queue.as_deref(), Some("https://jobs"));
        assert_eq!(read(&[(AZURE_ACCOUNT, "")]).unwrap().azure_account, None);
        assert_eq!(settings.terms.lease, Duration::from_secs(7));
        assert_eq!(settings.terms.max_attempts, 2);
        assert_eq!(settings.terms.done_ttl, Duration::from_secs(9));
        assert_eq!(settings.concurrency, Some(3));
        assert_eq!(settings.allow, AllowList::parse("a,b"));
        assert_eq!(
            read(&[(LOG_FORMAT, "json"), (LOG, "debug")])
                .unwrap()
                .log_format,
            LogFormat::Json
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (name, value) in [
            (ALLOW, "s3://geo"),
            (REDRIVE_QUEUE, "firstclaim-events"),
            (DISPATCH_QUEUE, "arn:aws:sqs:eu-central-1:123456789012:jobs"),
            (SWEEP_GRACE, "0"),
        ] {
            let error = read(&[(name, value)]).unwrap_err();
            assert!(
                matches!(&error, SettingsError::Invalid { got, .. } if got == value),
                "{error}"
            );
        }
        assert_eq!(read(&[(REDRIVE_QUEUE, "")]).unwrap().redrive_queue, None);
    }

    #[test]
    fn a_misspelt_variable_is_an_error_that_names_the_nearest() {
        let error = read(&[("FIRSTCLAIM_LEASE_SECOND", "7")]).unwrap_err();
        assert_eq!(
            error,
            SettingsError::Unknown {
                name: "FIRSTCLAIM_LEASE_SECOND".into(),
                nearest: Some(LEASE)
            }
        );
        assert!(read(&[("FIRSTCLAIM_JOB_ID", "x"), ("PATH", "/bin")]).is_ok());
    }

    #[test]
    fn a_value_out_of_range_is_an_error() {
        for (name, value) in [
            (LEASE, "0"),
            (LEASE, "1.5"),
            (MAX_ATTEMPTS, "-1"),
            (CONCURRENCY, ""),
            (LOG_FORMAT, "xml"),
        ] {
            assert!(
                matches!(read(&[(name, value)]), Err(SettingsError::Invalid { .. })),
                "{name}={value}"
            );
        }
    }

    #[test]
    fn a_done_record_must_outlive_redelivery_and_lease() {
        assert!(read(&[(TTL, "60"), (LEASE, "61")]).is_err());
        let vars = [(TTL.to_owned(), "86399".to_owned())];
        assert!(Settings::from_vars(vars, Duration::from_secs(86_400)).is_err());
    }
}
