//! What the environment sets, read and checked once at the start.

use std::{sync::Arc, time::Duration};

use identity_core::{
    claim::{Resender, Terms},
    event::{ReadContext, S3Keys},
    gate::AllowList,
    outbox::Outbox,
    text::nearest,
};

use crate::{
    destination::Destination,
    environment::{
        ALLOW, AZURE_ACCOUNT, CONCURRENCY, DISPATCH_QUEUE, LEASE, LOG, LOG_FORMAT, MAX_ATTEMPTS,
        NotText, REDRIVE_QUEUE, S3_KEYS, SWEEP_GRACE, TABLE, TTL, VARIABLES, is_ours, variables,
    },
};

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
    /// How stores that imitate S3 write keys, where it is not known.
    pub s3_keys: S3Keys,
    /// Where a sweep sends events to; see [`Settings::open_redrive_queue`].
    pub redrive_queue: Option<Destination>,
    /// How long a sweep leaves a claim to its own source.
    pub sweep_grace: Duration,
    /// Where jobs are handed to; see [`Settings::open_dispatch_queue`].
    pub dispatch_queue: Option<Destination>,
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
    /// A variable of ours that no program can read.
    #[error(transparent)]
    NotText(#[from] NotText),
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
            s3_keys: Some(&self.s3_keys),
        }
    }

    /// Reads the settings of this process. What a program's own `defaults` say, by their variables, stands where the environment
    /// says nothing; for `longest_redelivery` see [`Settings::from_vars`].
    ///
    /// # Errors
    ///
    /// [`SettingsError`].
    pub fn of_process(
        defaults: &[(&str, &str)],
        longest_redelivery: Duration,
    ) -> Result<Self, SettingsError> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let defaults = defaults.iter().map(owned);
        Self::from_vars(defaults.chain(variables()?), longest_redelivery)
    }

    /// Reads the settings from all of a process's environment variables.
    ///
    /// `longest_redelivery` is how late the source may deliver an event again: a `done` record must be kept longer.
    ///
    /// # Errors
    ///
    /// [`SettingsError::Unknown`] and [`SettingsError::Invalid`].
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
            s3_keys: S3Keys::default(),
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

    /// The queue that a sweep sends events to, if one is set. `open` gives `None` for a kind that this program cannot send to;
    /// `known` says which it can, e.g. "the URL of an SQS queue".
    ///
    /// # Errors
    ///
    /// [`SettingsError::Invalid`] for such a kind.
    pub fn open_redrive_queue(
        &self,
        known: &str,
        open: impl FnOnce(&Destination) -> Option<Arc<dyn Outbox>>,
    ) -> Result<Option<Arc<dyn Outbox>>, SettingsError> {
        opened(REDRIVE_QUEUE, self.redrive_queue.as_ref(), known, open)
    }

    /// The queue that jobs are handed to, as [`Settings::open_redrive_queue`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn open_dispatch_queue(
        &self,
        known: &str,
        open: impl FnOnce(&Destination) -> Option<Arc<dyn Outbox>>,
    ) -> Result<Option<Arc<dyn Outbox>>, SettingsError> {
        opened(DISPATCH_QUEUE, self.dispatch_queue.as_ref(), known, open)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), SettingsError> {
        match name {
            LEASE => self.terms.lease = Duration::from_secs(number(LEASE, &value, 1, 86_400)?),
            MAX_ATTEMPTS => self.terms.max_attempts = number(MAX_ATTEMPTS, &value, 1, 1_000_000)?,
            CONCURRENCY => self.concurrency = Some(number(CONCURRENCY, &value, 1, 100_000)?),
            ALLOW => {
                let expected = "names such as `s3:bucket`, `gcs:bucket`, `azure:account/container` or `file:folder`, and no URI";
                self.allow = AllowList::parse(&value)
                    .ok()
                    .filter(|_| !value.contains("://"))
                    .ok_or_else(|| invalid(ALLOW, expected.to_owned(), value))?;
            }
            LOG => self.log = value,
            TABLE => self.dedup_table = Some(value).filter(|name| !name.is_empty()),
            AZURE_ACCOUNT => self.azure_account = Some(value).filter(|name| !name.is_empty()),
            S3_KEYS => {
                self.s3_keys = S3Keys::parse(&value)
                    .ok_or_else(|| invalid(S3_KEYS, S3Keys::EXPECTED.to_owned(), value))?;
            }
            REDRIVE_QUEUE => self.redrive_queue = destination(REDRIVE_QUEUE, &value)?,
            SWEEP_GRACE => {
                self.sweep_grace = Duration::from_secs(number(SWEEP_GRACE, &value, 1, 14 * 86_400)?)
            }
            DISPATCH_QUEUE => self.dispatch_queue = destination(DISPATCH_QUEUE, &value)?,
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

/// A destination; nothing where it is empty.
fn destination(name: &'static str, value: &str) -> Result<Option<Destination>, SettingsError> {
    if value.is_empty() {
        return Ok(None);
    }
    let parsed = Destination::parse(value);
    parsed
        .map(Some)
        .map_err(|error| invalid(name, error.expected.to_owned(), error.got))
}

/// The queue at a destination, if there is one, opened by a program that knows some kinds.
fn opened(
    name: &'static str,
    destination: Option<&Destination>,
    known: &str,
    open: impl FnOnce(&Destination) -> Option<Arc<dyn Outbox>>,
) -> Result<Option<Arc<dyn Outbox>>, SettingsError> {
    let Some(destination) = destination else {
        return Ok(None);
    };
    match open(destination) {
        Some(outbox) => Ok(Some(outbox)),
        None => Err(invalid(name, known.to_owned(), destination.to_string())),
    }
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
    use crate::environment::PIPELINE;

    const QUEUE: &str = "https://sqs.eu-central-1.amazonaws.com/123456789012/events";

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
            (S3_KEYS, "sgws:s3=form"),
            (REDRIVE_QUEUE, QUEUE),
            (SWEEP_GRACE, "11"),
            (DISPATCH_QUEUE, "pubsub://geo/jobs"),
        ])
        .unwrap();
        assert_eq!(settings.dedup_table.as_deref(), Some("jobs"));
        assert_eq!(settings.azure_account.as_deref(), Some("acct"));
        assert_eq!(settings.s3_keys, S3Keys::parse("sgws:s3=form").unwrap());
        let shown = |queue: &Option<Destination>| queue.as_ref().map(ToString::to_string);
        assert_eq!(shown(&settings.redrive_queue).as_deref(), Some(QUEUE));
        assert_eq!(settings.sweep_grace, Duration::from_secs(11));
        assert_eq!(
            shown(&settings.dispatch_queue).as_deref(),
            Some("pubsub://geo/jobs")
        );
        assert_eq!(read(&[(AZURE_ACCOUNT, "")]).unwrap().azure_account, None);
        assert_eq!(settings.terms.lease, Duration::from_secs(7));
        assert_eq!(settings.terms.max_attempts, 2);
        assert_eq!(settings.terms.done_ttl, Duration::from_secs(9));
        assert_eq!(settings.concurrency, Some(3));
        assert_eq!(settings.allow, AllowList::parse("a,b").unwrap());
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
    fn a_queue_that_this_program_cannot_send_to_is_an_error_that_names_the_variable() {
        let settings = read(&[(REDRIVE_QUEUE, "azqueue://acct/events")]).unwrap();
        let error = settings
            .open_redrive_queue("the URL of an SQS queue", |_| None)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "the environment variable FIRSTCLAIM_REDRIVE_QUEUE should be the URL of an SQS queue, got \
             \"azqueue://acct/events\""
        );
        let unset = settings.open_dispatch_queue("none", |_| None).unwrap();
        assert!(unset.is_none());
    }

    #[test]
    fn what_builds_read_is_no_error() {
        assert_eq!(read(&[(PIPELINE, "tests/pipeline.toml")]), read(&[]));
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
