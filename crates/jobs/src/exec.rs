//! The job that is a command: what it is given, and what its end means.
//!
//! The command is started as it is written in the contract, by no shell, in a process group of its own, with nothing on
//! its standard input. Of our environment it inherits what the contract names, or all but credentials, and gets:
//!
//! | variable | placeholder | value |
//! |---|---|---|
//! | `FIRSTCLAIM_JOB_ID` | `{job_id}` | the job ID, 64 lower-case hex characters |
//! | `FIRSTCLAIM_JOB_URI` | `{uri}` | `s3://bucket/key`, `azblob://account/container/name`, … with the exact key |
//! | `FIRSTCLAIM_JOB_PROVIDER` | `{provider}` | `s3`, `gcs`, `azure` or `file` |
//! | `FIRSTCLAIM_JOB_ACCOUNT` | | the Azure storage account; not set elsewhere |
//! | `FIRSTCLAIM_JOB_CONTAINER` | `{container}` | bucket, container, or the folder's name |
//! | `FIRSTCLAIM_JOB_KEY` | `{key}` | the exact key |
//! | `FIRSTCLAIM_JOB_VERSION` | `{version}` | the version token's value |
//! | `FIRSTCLAIM_JOB_TOKEN` | | the version token with its kind, e.g. `etag:9b2c` |
//! | `FIRSTCLAIM_JOB_ATTEMPT` | `{attempt}` | 1, 2, 3 … |
//! | `FIRSTCLAIM_JOB_OWNER` | | who won this attempt, 32 lower-case hex characters |
//! | `FIRSTCLAIM_JOB_PIPELINE` | | the pipeline's name |
//! | `FIRSTCLAIM_JOB_PIPELINE_VERSION` | | the pipeline's version |
//! | `FIRSTCLAIM_JOB_PATH` | `{path}` | a local copy of exactly this version; set only if `{path}` is used |
//! | `TMPDIR` | | a folder for this attempt alone; whatever is left in it is removed with it |
//!
//! | its end | the job |
//! |---|---|
//! | exit code 0 | done; the last of its standard output is the result |
//! | a code in `[job] permanent` | is rejected |
//! | any other code, or a signal | failed, to be tried again |
//! | it is not there, or may not be run; no room for the copy | failed, and the attempt does not count: that is this machine's fault |
//! | no command can be given the key (NUL, not UTF-8), or the arguments are too long | is rejected |
//! | a value of the object's begins with `-`, and an argument with it, which could be taken for an option | is rejected |
//!
//! When it is to stop (the time is up, the lease ends, the worker is stopped), its process group is sent SIGTERM, and gets the
//! grace of the contract, as far as its lease and the worker's own time allow. When it ends, when the grace is over, and at once
//! when the lease is lost, its whole process group is killed. A process that leaves the group (`setsid`), or one
//! whose parent, this program, was itself killed by SIGKILL, lives on: what has an effect must be guarded with the
//! attempt.

use std::{ffi::OsString, io, os::unix::process::ExitStatusExt as _, path::Path, time::Duration};

use async_trait::async_trait;
use identity_core::{
    claim::{Lease, Record},
    identity::pipeline::{ExecSpec, Placeholder},
    job::{Job, JobContext, JobError, Output},
};
use serde_json::json;
use tokio::process::Command;

use crate::{
    fetch::fetch,
    folder::{RunFolder, WorkingFolder},
    process::{self, Ended, ProcessError, Tail},
};

/// What our variables' names begin with.
const PREFIX: &str = "FIRSTCLAIM_JOB_";

/// How much of the output goes into an error, in bytes.
const TOLD: usize = 2 * 1024;

/// A command as a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    spec: ExecSpec,
    working: WorkingFolder,
}

impl Exec {
    /// The command of a contract's `[job]`, and where it runs.
    pub fn new(spec: ExecSpec, working: WorkingFolder) -> Self {
        Self { spec, working }
    }

    fn command(&self, values: &Values<'_>, folder: &Path) -> Result<(String, Command), JobError> {
        let words = self.words(values)?;
        let mut words = words.into_iter();
        let program = words.next().unwrap_or_default();
        let mut command = match self.working {
            WorkingFolder::Inherited => Command::new(&program),
            WorkingFolder::Private => {
                // A path is this program's: from the private folder it would lead elsewhere.
                let mut command = Command::new(if program.contains('/') {
                    std::path::absolute(&program).map_err(no_folder)?
                } else {
                    program.clone().into()
                });
                command.current_dir(folder);
                command
            }
        };
        command
            .args(words)
            .env_clear()
            .envs(inherited(&self.spec, std::env::vars_os()))
            .envs(values.environment())
            .env("TMPDIR", folder);
        Ok((program, command))
    }

    /// The program and its arguments, none of which the object's name makes an option:
    /// <https://pubs.opengroup.org/onlinepubs/9799919799/basedefs/V1_chap12.html>.
    fn words(&self, values: &Values<'_>) -> Result<Vec<String>, JobError> {
        let words = self.spec.words().iter().enumerate();
        let rendered = words.map(|(index, word)| {
            let rendered = word.render(|name| values.get(name));
            match self.spec.may_be_option(index) {
                Some(value) if rendered.starts_with('-') => Err(JobError::permanent(format!(
                    "{value} begins with \"-\", and the command may take it for an option: where it takes none after \"--\", \
                     write that before it in job.exec, or \"./{value}\""
                ))),
                _ => Ok(rendered),
            }
        });
        rendered.collect()
    }

    fn outcome(&self, program: &str, ended: &Ended) -> Result<Output, JobError> {
        let how = match (ended.status.code(), ended.status.signal()) {
            (Some(0), _) => {
                return Ok(Output {
                    result: result(&ended.stdout),
                });
            }
            (Some(code), _) => format!("exited with code {code}"),
            (None, Some(signal)) => format!("was ended by signal {signal}"),
            (None, None) => format!("ended with {}", ended.status),
        };
        let message = format!("the command {program:?} {how} and {}", told(ended));
        let permanent = |code| self.spec.permanent().contains(&code);
        Err(if ended.status.code().is_some_and(permanent) {
            JobError::permanent(message)
        } else {
            JobError::retryable(message)
        })
    }
}

#[async_trait]
impl Job for Exec {
    fn reads_objects(&self) -> bool {
        self.spec.uses(Placeholder::Path)
    }

    fn grace(&self) -> Duration {
        self.spec.grace()
    }

    async fn run(&self, lease: &Lease, context: &JobContext) -> Result<Output, JobError> {
        let mut values = Values::new(lease, context)?;
        let folder = RunFolder::new().map_err(no_folder)?;
        let copy;
        if self.spec.uses(Placeholder::Path) {
            copy = fetch(&*context.objects, &context.object, folder.path()).await?;
            values.path = Some(copy.to_str().ok_or_else(|| {
                let path = copy.display();
                let message = format!("the temporary folder's path {path} is not UTF-8");
                JobError::Machine {
                    message,
                    source: None,
                }
            })?);
        }
        let (program, command) = self.command(&values, folder.path())?;
        match process::run(command, &context.stopping).await {
            Ok(ended) => self.outcome(&program, &ended),
            Err(error) => Err(process_error(&program, error)),
        }
    }
}

/// What placeholders and variables stand for.
#[derive(Debug)]
struct Values<'a> {
    lease: &'a Lease,
    context: &'a JobContext,
    uri: String,
    key: &'a str,
    attempt: String,
    path: Option<&'a str>,
}

impl<'a> Values<'a> {
    fn new(lease: &'a Lease, context: &'a JobContext) -> Result<Self, JobError> {
        let address = &context.object.address;
        let refused = |what| {
            let message = format!("the object's key {what}, so no command can be given it");
            JobError::permanent(message)
        };
        let key = address.key.exact().ok_or_else(|| refused("is not UTF-8"))?;
        let uri = address.to_string();
        if uri.contains('\0') {
            return Err(refused("or container holds a NUL character"));
        }
        Ok(Self {
            lease,
            context,
            uri,
            key,
            attempt: lease.attempt().to_string(),
            path: None,
        })
    }

    fn get(&self, placeholder: Placeholder) -> &str {
        let object = &self.context.object;
        match placeholder {
            Placeholder::Uri => &self.uri,
            Placeholder::Provider => object.address.provider.as_str(),
            Placeholder::Container => &object.address.container,
            Placeholder::Key => self.key,
            Placeholder::Version => object.token.value(),
            Placeholder::JobId => self.lease.key().as_str(),
            Placeholder::Attempt => &self.attempt,
            Placeholder::Path => self.path.unwrap_or_default(),
        }
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let object = &self.context.object;
        let mut variables = vec![
            ("FIRSTCLAIM_JOB_TOKEN", object.token.to_string()),
            ("FIRSTCLAIM_JOB_OWNER", self.lease.owner().to_string()),
            (
                "FIRSTCLAIM_JOB_PIPELINE",
                self.context.pipeline_name.to_string(),
            ),
            (
                "FIRSTCLAIM_JOB_PIPELINE_VERSION",
                self.context.pipeline_version.to_string(),
            ),
        ];
        let account = object.address.account.clone();
        variables.extend(account.map(|account| ("FIRSTCLAIM_JOB_ACCOUNT", account)));
        let given = |name: &Placeholder| *name != Placeholder::Path || self.path.is_some();
        for name in Placeholder::ALL.into_iter().filter(given) {
            variables.push((name.environment(), self.get(name).to_owned()));
        }
        variables
    }
}

/// Of these variables, those that a command inherits: none that would pass for ours.
fn inherited(
    spec: &ExecSpec,
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    variables.filter(|(name, _)| {
        let name = name.to_string_lossy();
        !name.starts_with(PREFIX) && spec.inherits(&name)
    })
}

fn no_folder(source: io::Error) -> JobError {
    JobError::Machine {
        message: "no temporary folder can be had on this machine".to_owned(),
        source: Some(Box::new(source)),
    }
}

fn process_error(program: &str, error: ProcessError) -> JobError {
    match error {
        // The same object would be given to the same command again.
        ProcessError::Start(source) if source.kind() == io::ErrorKind::ArgumentListTooLong => {
            JobError::Permanent {
                message: format!("the arguments and environment of {program:?} are too long"),
                source: Some(Box::new(source)),
            }
        }
        ProcessError::Start(source) => {
            let message = format!("the command {program:?} cannot be started on this machine");
            let is_of_arguments = source.kind() == io::ErrorKind::InvalidInput;
            let source = Some(source.into());
            if is_of_arguments {
                JobError::Retryable { message, source }
            } else {
                // No object names the program: the contract does.
                JobError::Machine { message, source }
            }
        }
        ProcessError::Watch(source) => JobError::Retryable {
            message: format!("the command {program:?} could not be watched and was killed"),
            source: Some(Box::new(source)),
        },
    }
}

/// The last of what a command said, for an error.
fn told(ended: &Ended) -> String {
    for (stream, tail) in [
        ("standard error", &ended.stderr),
        ("standard output", &ended.stdout),
    ] {
        let text = tail.text();
        let last = end_of(text.trim(), TOLD, char::len_utf8);
        if !last.is_empty() {
            return format!("wrote to {stream} last:\n{last}");
        }
    }
    "wrote nothing".to_owned()
}

/// `{"exit":0,"stdout":"…"}`, with `"truncated":true` if that is not all of it; `None` if there is nothing to tell.
fn result(stdout: &Tail) -> Option<serde_json::Value> {
    /// What stands around the text.
    const FRAME: usize = r#"{"exit":0,"stdout":"","truncated":true}"#.len();
    let text = stdout.text();
    let in_json = |c| match c {
        '"' | '\\' | '\n' | '\t' => 2,
        c => c.len_utf8(),
    };
    let last = end_of(&text, Record::MAX_RESULT_BYTES - FRAME, in_json);
    let truncated = stdout.is_cut() || last.len() < text.len();
    match (last.is_empty(), truncated) {
        (true, _) => None,
        (false, false) => Some(json!({"exit": 0, "stdout": last})),
        (false, true) => Some(json!({"exit": 0, "stdout": last, "truncated": true})),
    }
}

/// The longest end of a text whose characters cost no more than this.
fn end_of(text: &str, budget: usize, cost: impl Fn(char) -> usize) -> &str {
    let mut spent = 0;
    let fits = |&(_, c): &(usize, char)| {
        spent += cost(c);
        spent <= budget
    };
    let start = text.char_indices().rev().take_while(fits).last();
    start.map_or("", |(start, _)| &text[start..])
}

#[cfg(test)]
mod tests;
