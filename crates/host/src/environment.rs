//! The environment variables that every program reads, declared once: name, meaning, default. The table for people is made
//! from [`VARIABLES`].

use std::ffi::OsString;

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

pub(crate) const LEASE: &str = "FIRSTCLAIM_LEASE_SECONDS";
pub(crate) const MAX_ATTEMPTS: &str = "FIRSTCLAIM_MAX_ATTEMPTS";
pub(crate) const CONCURRENCY: &str = "FIRSTCLAIM_CONCURRENCY";
pub(crate) const ALLOW: &str = "FIRSTCLAIM_ALLOW";
pub(crate) const LOG: &str = "FIRSTCLAIM_LOG";
pub(crate) const LOG_FORMAT: &str = "FIRSTCLAIM_LOG_FORMAT";
pub(crate) const TTL: &str = "DEDUP_TTL_SECONDS";
pub(crate) const TABLE: &str = "DEDUP_TABLE";
pub(crate) const AZURE_ACCOUNT: &str = "AZURE_STORAGE_ACCOUNT";
pub(crate) const S3_KEYS: &str = "FIRSTCLAIM_S3_KEYS";
pub(crate) const REDRIVE_QUEUE: &str = "FIRSTCLAIM_REDRIVE_QUEUE";
pub(crate) const SWEEP_GRACE: &str = "FIRSTCLAIM_SWEEP_GRACE_SECONDS";
pub(crate) const DISPATCH_QUEUE: &str = "FIRSTCLAIM_DISPATCH_QUEUE";
/// Read by the build scripts of handlers alone, and no reason for a program not to start where builds are made.
pub(crate) const PIPELINE: &str = "FIRSTCLAIM_PIPELINE";

/// Every variable, in the order in which people are told of them.
pub const VARIABLES: [Variable; 14] = [
    Variable {
        name: LEASE,
        default: "120",
        meaning: "how long a claim is its holder's alone unless renewed, in seconds",
    },
    Variable {
        name: MAX_ATTEMPTS,
        default: "10",
        meaning: "attempts beyond this many are rejected as exhausted; those that the machine could not begin do not count",
    },
    Variable {
        name: CONCURRENCY,
        default: "",
        meaning: "events handled side by side; by default one for each core",
    },
    Variable {
        name: ALLOW,
        default: "",
        meaning: "containers that events may name, separated by commas: `s3:bucket`, `gcs:bucket`, `azure:account/container`, \
                  `azure:account/*` or `file:folder`; without a provider, any cloud's; unset, all; set to nothing, none",
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
        meaning: "how long a done claim is kept at least, in seconds; on Lambda the default is 2764800, and the least 2419200",
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
        name: S3_KEYS,
        default: "",
        meaning: "how stores that imitate S3 write keys in their events, where it is not known: `SOURCE=form` or \
                  `SOURCE=verbatim`, separated by commas, by `eventSource`",
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
    Variable {
        name: PIPELINE,
        default: "pipeline.toml",
        meaning: "read where a handler is built, and by nothing that runs: the contract to compile in, from the workspace's root",
    },
];

/// Whether a variable of this name is read, or refused, here.
pub fn is_ours(name: &str) -> bool {
    let own = name.starts_with(PREFIX) && !name.starts_with(JOB_PREFIX);
    own || VARIABLES.iter().any(|variable| variable.name == name)
}

/// A variable that this project reads, and nobody can: it must not pass for one that is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {name} is not UTF-8: {value:?}")]
pub struct NotText {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: OsString,
}

/// The process's environment variables. What is not UTF-8 and none of ours is left out.
///
/// # Errors
///
/// [`NotText`].
pub fn variables() -> Result<Vec<(String, String)>, NotText> {
    readable(std::env::vars_os())
}

fn readable(
    all: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Vec<(String, String)>, NotText> {
    let mut variables = Vec::new();
    for (name, value) in all {
        let Ok(name) = name.into_string() else {
            continue; // none of ours, whose names are ASCII
        };
        match value.into_string() {
            Ok(value) => variables.push((name, value)),
            Err(value) if is_ours(&name) => return Err(NotText { name, value }),
            Err(_) => {}
        }
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn what_is_not_utf8_is_an_error_only_where_it_is_ours() {
        let garbled = || OsString::from_vec(vec![b'a', 0xff]);
        let read = |name: OsString| readable([(name, garbled())].into_iter());
        assert_eq!(read("PATH".into()), Ok(Vec::new()));
        assert_eq!(read(garbled()), Ok(Vec::new()));
        assert_eq!(read("FIRSTCLAIM_JOB_KEY".into()), Ok(Vec::new()));
        for name in ["FIRSTCLAIM_LOG", "FIRSTCLAIM_LOGS", TABLE] {
            let error = read(name.into()).unwrap_err();
            assert_eq!(error.name, name);
        }
    }
}
