//! What a won claim runs: a command, the exit codes that mean "never again", and a time limit; or that it is handed on.

use std::time::Duration;

use toml::Table;

use super::{
    environment::Inherited,
    error::ContractError,
    script,
    table::Section,
    template::{ArgTemplate, Placeholder, UnknownPlaceholder},
};
use crate::text::nearest;

/// The exit codes that reject a job unless the contract says otherwise: `EX_DATAERR` of `sysexits.h`.
const DEFAULT_PERMANENT: [i32; 1] = [65];
/// As long as a container gets from most who stop it.
const DEFAULT_GRACE_SECONDS: u64 = 10;
/// An hour.
const DEFAULT_TIMEOUT_SECONDS: u64 = 3_600;

/// The `[job]` of a contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSpec {
    work: Work,
    timeout_seconds: u64,
    retry_seconds: Option<u64>,
}

/// What is done for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// A command is run.
    Exec(ExecSpec),
    /// The job is handed to a queue, for other workers to do.
    Dispatch,
}

/// A command, and what its exit codes mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecSpec {
    words: Vec<ArgTemplate>,
    /// How many words may be taken for options.
    options_end: usize,
    permanent: Vec<i32>,
    inherited: Inherited,
    grace_seconds: u64,
}

impl JobSpec {
    pub(super) fn from_toml(table: &Table) -> Result<Self, ContractError> {
        let known = [
            "exec",
            "dispatch",
            "env",
            "permanent",
            "timeout_seconds",
            "retry_seconds",
            "grace_seconds",
        ];
        let section = Section::new("job", table, &known)?;
        let dispatch = section.boolean("dispatch")?.unwrap_or(false);
        let words = match section.strings("exec")? {
            Some(_) if dispatch => return Err(ContractError::ExecAndDispatch),
            Some(words) => Some((command(&words)?, script::options_end(&words))),
            None if dispatch => None,
            None => return Err(section.missing("exec")),
        };
        // Checked beside `dispatch`, too, where no command ends with any of them.
        let permanent = match section.integers("permanent")? {
            Some(codes) => exit_codes(&codes)?,
            None => DEFAULT_PERMANENT.to_vec(),
        };
        let inherited = match section.strings("env")? {
            Some(names) => Inherited::only(&names)?,
            None => Inherited::default(),
        };
        let grace_seconds = match section.integer("grace_seconds")? {
            Some(seconds) => grace(seconds)?,
            None => DEFAULT_GRACE_SECONDS,
        };
        Ok(Self {
            work: match words {
                Some((words, options_end)) => Work::Exec(ExecSpec {
                    words,
                    options_end,
                    permanent,
                    inherited,
                    grace_seconds,
                }),
                None => Work::Dispatch,
            },
            timeout_seconds: match section.integer("timeout_seconds")? {
                Some(seconds) => timeout(seconds)?,
                None => DEFAULT_TIMEOUT_SECONDS,
            },
            retry_seconds: section.integer("retry_seconds")?.map(retry).transpose()?,
        })
    }

    /// What is done for the job.
    #[must_use]
    pub fn work(&self) -> &Work {
        &self.work
    }

    /// How long a job that failed is left alone after its first attempt, and twice as long after each one more; `None` if the
    /// contract leaves that to whoever tries again.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        self.retry_seconds.map(Duration::from_secs)
    }

    /// How long one attempt may run. Whoever runs it keeps this limit, by dropping the run.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds)
    }
}

impl ExecSpec {
    /// The program and its arguments: at least the program.
    #[must_use]
    pub fn words(&self) -> &[ArgTemplate] {
        &self.words
    }

    /// The value of the job that the program may take for an option, if it begins with `-`: the one with which this word
    /// begins, if nothing tells the program that options are over.
    #[must_use]
    pub fn may_be_option(&self, index: usize) -> Option<Placeholder> {
        let word = self.words.get(index).filter(|_| index < self.options_end);
        word.and_then(ArgTemplate::first_value)
    }

    /// Whether the command inherits this variable of the environment.
    #[must_use]
    pub fn inherits(&self, name: &str) -> bool {
        self.inherited.has(name)
    }

    /// The exit codes with which the command says that no attempt can succeed: the job is rejected.
    #[must_use]
    pub fn permanent(&self) -> &[i32] {
        &self.permanent
    }

    /// For how long the command may go on after SIGTERM, before it is killed.
    #[must_use]
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.grace_seconds)
    }

    /// Whether any argument names this value.
    #[must_use]
    pub fn uses(&self, placeholder: Placeholder) -> bool {
        self.words.iter().any(|argument| argument.uses(placeholder))
    }
}

fn command(words: &[&str]) -> Result<Vec<ArgTemplate>, ContractError> {
    let mut templates = Vec::with_capacity(words.len());
    for (index, word) in words.iter().enumerate() {
        if word.contains('\0') {
            let got = (*word).to_owned();
            return Err(ContractError::NulInArgument { index, got });
        }
        templates.push(
            ArgTemplate::parse(word).map_err(|UnknownPlaceholder(word)| {
                let known = Placeholder::ALL.map(Placeholder::as_str);
                ContractError::UnknownPlaceholder {
                    index,
                    nearest: nearest(&word, known).map(|known| format!("{{{known}}}")),
                    word,
                }
            })?,
        );
    }
    match templates.first() {
        None => {
            return Err(ContractError::NoProgram {
                got: "an empty list",
            });
        }
        Some(_) if words[0].is_empty() => {
            return Err(ContractError::NoProgram {
                got: "an empty program name",
            });
        }
        Some(program) => {
            if let Some(placeholder) = program.placeholders().next() {
                return Err(ContractError::PlaceholderAsProgram {
                    placeholder: placeholder.to_string(),
                });
            }
        }
    }
    for script::Script { index, interpreter } in script::scripts(words) {
        if let Some(placeholder) = templates[index].placeholders().next() {
            return Err(ContractError::PlaceholderInScript {
                index,
                placeholder: placeholder.to_string(),
                interpreter: interpreter.to_owned(),
                environment: placeholder.environment(),
            });
        }
    }
    Ok(templates)
}

fn exit_codes(codes: &[i64]) -> Result<Vec<i32>, ContractError> {
    codes
        .iter()
        .enumerate()
        .map(|(index, &code)| match i32::try_from(code) {
            Ok(code @ 1..=255) => Ok(code),
            _ => Err(ContractError::OutOfRange {
                at: format!("job.permanent[{index}]"),
                expected: "an exit code from 1 to 255 (0 is success)",
                got: code,
            }),
        })
        .collect()
}

fn timeout(seconds: i64) -> Result<u64, ContractError> {
    match u64::try_from(seconds) {
        Ok(seconds @ 1..) => Ok(seconds),
        _ => Err(ContractError::OutOfRange {
            at: "job.timeout_seconds".to_owned(),
            expected: "at least 1",
            got: seconds,
        }),
    }
}

fn grace(seconds: i64) -> Result<u64, ContractError> {
    match u64::try_from(seconds) {
        Ok(seconds @ 0..=3_600) => Ok(seconds),
        _ => Err(ContractError::OutOfRange {
            at: "job.grace_seconds".to_owned(),
            expected: "0 to 3600",
            got: seconds,
        }),
    }
}

/// An hour is the longest pause there is.
fn retry(seconds: i64) -> Result<u64, ContractError> {
    match u64::try_from(seconds) {
        Ok(seconds @ 1..=3_600) => Ok(seconds),
        _ => Err(ContractError::OutOfRange {
            at: "job.retry_seconds".to_owned(),
            expected: "1 to 3600",
            got: seconds,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(toml: &str) -> Result<JobSpec, ContractError> {
        JobSpec::from_toml(&toml.parse().unwrap())
    }

    fn exec(toml: &str) -> ExecSpec {
        match job(toml).unwrap().work() {
            Work::Exec(exec) => exec.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_job_leaves_out_has_a_default() {
        let toml = "exec = ['echo', '{uri}', '{path}']";
        assert_eq!(job(toml).unwrap().timeout(), Duration::from_secs(3_600));
        assert_eq!(job(toml).unwrap().retry(), None);
        let pausing = job(&format!("{toml}\nretry_seconds = 30")).unwrap();
        assert_eq!(pausing.retry(), Some(Duration::from_secs(30)));
        let exec = exec(toml);
        assert_eq!(exec.permanent(), [65]);
        assert_eq!(exec.grace(), Duration::from_secs(10));
        assert!(exec.uses(Placeholder::Path));
        assert!(!exec.uses(Placeholder::Key));
    }

    #[test]
    fn a_job_is_a_command_or_handed_on() {
        let handed_on = job("dispatch = true\ntimeout_seconds = 5").unwrap();
        assert_eq!(handed_on.work(), &Work::Dispatch);
        assert_eq!(handed_on.timeout(), Duration::from_secs(5));
        let command = exec("exec = ['x']\ndispatch = false");
        assert_eq!(command.words().len(), 1);
        let both = job("exec = ['x']\ndispatch = true").unwrap_err();
        assert!(matches!(both, ContractError::ExecAndDispatch), "{both}");
        let neither = job("dispatch = false").unwrap_err();
        assert!(matches!(
            neither,
            ContractError::MissingKey { key: "exec", .. }
        ));
        let text = job("dispatch = 'yes'").unwrap_err().to_string();
        assert_eq!(text, "job.dispatch: expected true or false, got a string");
    }

    #[test]
    fn numbers_outside_their_range_are_named() {
        for (toml, at) in [
            ("permanent = [65, 0]", "job.permanent[1]"),
            ("permanent = [256]", "job.permanent[0]"),
            ("permanent = [4294967361]", "job.permanent[0]"),
            ("timeout_seconds = 0", "job.timeout_seconds"),
            ("timeout_seconds = -1", "job.timeout_seconds"),
            ("retry_seconds = 0", "job.retry_seconds"),
            ("grace_seconds = -1", "job.grace_seconds"),
            ("grace_seconds = 3601", "job.grace_seconds"),
            ("retry_seconds = 3601", "job.retry_seconds"),
        ] {
            let error = job(&format!("exec = ['x']\n{toml}")).unwrap_err();
            assert!(
                matches!(&error, ContractError::OutOfRange { at: named, .. } if named == at),
                "{toml}: {error}"
            );
        }
    }

    #[test]
    fn a_command_needs_a_program_of_its_own() {
        assert!(matches!(
            job("exec = []"),
            Err(ContractError::NoProgram { .. })
        ));
        assert!(matches!(
            job("exec = ['']"),
            Err(ContractError::NoProgram { .. })
        ));
        assert!(matches!(
            job("permanent = []"),
            Err(ContractError::MissingKey {
                table: "job",
                key: "exec"
            })
        ));
        let error = job("exec = ['bin/{key}']").unwrap_err();
        assert!(
            matches!(error, ContractError::PlaceholderAsProgram { placeholder } if placeholder == "{key}")
        );
    }

    #[test]
    fn an_argument_that_no_program_can_be_given_is_an_error() {
        let error = job(r#"exec = ["echo", "a\u0000b"]"#).unwrap_err();
        assert!(matches!(
            error,
            ContractError::NulInArgument { index: 1, .. }
        ));
    }

    #[test]
    fn an_unknown_placeholder_names_the_nearest() {
        let error = job("exec = ['echo', '{jobid}']").unwrap_err();
        assert_eq!(
            error.to_string(),
            "job.exec[1]: unknown placeholder {jobid}, the nearest known one is \"{job_id}\"; {{jobid}} is the text \
             without a meaning"
        );
    }

    #[test]
    fn a_value_may_be_an_option_until_something_says_that_there_are_no_more() {
        for (words, expected) in [
            ("'ls', '{key}'", &[(1, Placeholder::Key)][..]),
            (
                "'ls', '{container}/{key}', '-o{key}', './{key}'",
                &[(1, Placeholder::Container)],
            ),
            ("'ls', '--', '{key}'", &[]),
            ("'ls', '{key}', '--', '{key}'", &[(1, Placeholder::Key)]),
            ("'sh', '-c', 'ls \"$1\"', 'sh', '{key}'", &[]),
            ("'gosu', 'me', 'bash', '-c', 'ls', 'bash', '{key}'", &[]),
            // Perl goes on looking for options after its script.
            ("'perl', '-e', '1', '{key}'", &[(3, Placeholder::Key)]),
        ] {
            let exec = exec(&format!("exec = [{words}]"));
            let found: Vec<_> = (0..exec.words().len())
                .filter_map(|index| Some((index, exec.may_be_option(index)?)))
                .collect();
            assert_eq!(found, expected, "{words}");
        }
    }

    #[test]
    fn a_command_inherits_what_the_contract_names_or_all_but_credentials() {
        let all = exec("exec = ['x']");
        assert!(all.inherits("DB_PASSWORD") && !all.inherits("AWS_SESSION_TOKEN"));
        let named = exec("exec = ['x']\nenv = ['AWS_*', 'DB_PASSWORD']");
        assert!(named.inherits("DB_PASSWORD") && named.inherits("AWS_SESSION_TOKEN"));
        assert!(!named.inherits("OTHER"));
        let error = job("exec = ['x']\nenv = ['A=B']").unwrap_err();
        assert!(error.to_string().starts_with("job.env[0]: "), "{error}");
    }

    #[test]
    fn a_placeholder_inside_a_script_names_the_two_ways_out() {
        let error = job("exec = ['sh', '-c', 'cat {key}']")
            .unwrap_err()
            .to_string();
        for way in [
            "job.exec[2]",
            "{key}",
            "sh",
            "\"$1\"",
            "$FIRSTCLAIM_JOB_KEY",
        ] {
            assert!(error.contains(way), "{error}");
        }
        assert!(job("exec = ['sh', '-c', 'cat \"$1\"', 'sh', '{key}']").is_ok());
    }
}
