//! Which arguments of a command are programs that a shell or another interpreter runs.
//!
//! An object's key is other people's text. As an argument of its own it is only text; inside a script it is a command.
//! So a contract with a placeholder inside a script is refused, behind a wrapper (`env`, `timeout 5`, `docker run IMAGE`)
//! as well. Where a wrapper's options are not known, the first word that names an interpreter is taken for one.

/// An argument that is a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Script<'a> {
    /// Which word of the command.
    pub(super) index: usize,
    /// Who runs it, as it stands in the command.
    pub(super) interpreter: &'a str,
}

/// How an interpreter takes its script.
struct Language {
    /// Its names, without folder and version number.
    names: &'static [&'static str],
    /// The one-letter options that announce a script.
    letters: &'static [char],
    /// The long options and subcommands that announce a script.
    words: &'static [&'static str],
    /// The options whose value is the next word, so that the value is not taken for the script file.
    valued: &'static [&'static str],
    /// Where the script stands.
    place: Place,
}

/// Where a script stands.
#[derive(PartialEq)]
enum Place {
    /// It is the first word that is no option, if any option announces it (`sh -ce …`, `bash -c -e …`).
    AnnouncedOperand,
    /// It is the first word that is no option, unless an option takes its place (`awk …`, `sed -e …`).
    Operand,
    /// It is the rest of the announcing option's word, or else the next word (`python -c…`, `perl -ne …`).
    Value,
    /// As [`Place::Value`], with operands before the option too (`su USER -c …`).
    ValueAnywhere,
}

const LANGUAGES: [Language; 10] = [
    Language {
        names: &[
            "sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "mksh", "pdksh", "oksh", "yash",
            "fish", "csh", "tcsh",
        ],
        letters: &['c'],
        words: &["--command"],
        valued: &[
            "-o",
            "+o",
            "-O",
            "+O",
            "--rcfile",
            "--init-file",
            "-C",
            "--init-command",
        ],
        place: Place::AnnouncedOperand,
    },
    Language {
        names: &["python", "pypy"],
        letters: &['c'],
        words: &[],
        valued: &["-W", "-X", "--check-hash-based-pycs"],
        place: Place::Value,
    },
    Language {
        names: &["perl"],
        letters: &['e', 'E'],
        words: &[],
        valued: &["-I"],
        place: Place::Value,
    },
    Language {
        names: &["ruby", "jruby"],
        letters: &['e'],
        words: &[],
        valued: &["-I", "-r", "-C", "-E", "-W"],
        place: Place::Value,
    },
    Language {
        names: &["node", "nodejs", "bun", "deno"],
        letters: &['e', 'p'],
        words: &["--eval", "--print", "eval"],
        valued: &[
            "-r",
            "--require",
            "--import",
            "--loader",
            "--experimental-loader",
            "-C",
            "--conditions",
        ],
        place: Place::Value,
    },
    Language {
        names: &["php"],
        letters: &['r', 'B', 'R', 'E'],
        words: &[
            "--run",
            "--process-begin",
            "--process-code",
            "--process-end",
        ],
        valued: &["-c", "-d", "-z"],
        place: Place::Value,
    },
    Language {
        names: &["lua", "luajit", "julia", "r", "rscript"],
        letters: &['e', 'E'],
        words: &["--eval", "--print"],
        valued: &["-l", "-L", "--project", "-p", "-t"],
        place: Place::Value,
    },
    Language {
        names: &["pwsh", "powershell"],
        letters: &['c'],
        words: &["-Command", "-command", "-EncodedCommand", "-ec"],
        valued: &[
            "-ExecutionPolicy",
            "-ex",
            "-ep",
            "-WorkingDirectory",
            "-wd",
            "-ConfigurationName",
        ],
        place: Place::Value,
    },
    Language {
        names: &[
            "awk",
            "gawk",
            "mawk",
            "nawk",
            "original-awk",
            "sed",
            "gsed",
            "jq",
        ],
        letters: &['e'],
        words: &["--expression", "--source"],
        valued: &[
            "-F",
            "-v",
            "-f",
            "--file",
            "-l",
            "--arg",
            "--argjson",
            "--from-file",
            "-L",
        ],
        place: Place::Operand,
    },
    Language {
        names: &["su", "runuser", "script", "flock"],
        letters: &['c'],
        words: &["--command", "--session-command"],
        valued: &[],
        place: Place::ValueAnywhere,
    },
];

/// Programs that run the rest of their words as a command.
const WRAPPERS: [&str; 40] = [
    "env",
    "nice",
    "ionice",
    "chrt",
    "taskset",
    "nohup",
    "setsid",
    "timeout",
    "time",
    "stdbuf",
    "unbuffer",
    "command",
    "exec",
    "busybox",
    "toybox",
    "sudo",
    "doas",
    "chroot",
    "unshare",
    "nsenter",
    "setpriv",
    "prlimit",
    "systemd-run",
    "systemd-inhibit",
    "xargs",
    "find",
    "strace",
    "valgrind",
    "tini",
    "dumb-init",
    "docker",
    "podman",
    "kubectl",
    "apptainer",
    "singularity",
    "conda",
    "mamba",
    "micromamba",
    "uv",
    "srun",
];

/// Programs that put their words together and hand them to a shell.
const JOINERS: [&str; 4] = ["ssh", "watch", "eval", "parallel"];

/// Where the arguments begin that nothing takes for options: after the first `--`, or after a shell's script, whose
/// parameters they are.
pub(super) fn options_end(command: &[&str]) -> usize {
    let dashes = command.iter().position(|word| *word == "--");
    let scripts = scripts(command).into_iter();
    let script = scripts
        .filter(|script| is_shell(&name_of(script.interpreter)))
        .map(|script| script.index)
        .min();
    let last = [dashes, script].into_iter().flatten().min();
    last.map_or(command.len(), |last| last + 1)
}

/// The arguments of this command that are scripts.
pub(super) fn scripts<'a>(command: &[&'a str]) -> Vec<Script<'a>> {
    let mut found = Vec::new();
    let Some(program) = command.first().copied() else {
        return found;
    };
    let name = name_of(program);
    if JOINERS.contains(&name.as_str()) {
        found.extend((1..command.len()).map(|index| Script {
            index,
            interpreter: program,
        }));
    } else if let Some(language) = language(&name) {
        scripts_of(language, program, command, &mut found);
        // `flock FILE sh -c …`.
        if language.place == Place::ValueAnywhere {
            inner(command, is_interpreter, &mut found);
        }
    } else if WRAPPERS.contains(&name.as_str()) {
        if name == "env" {
            split_strings(program, command, &mut found);
        }
        inner(command, is_interpreter, &mut found);
    } else {
        // Any program may be one that starts another (`gosu USER sh -c …`). But a word like `r` or `jq` is more
        // likely to be an argument here, so only shells are looked for.
        inner(command, is_shell, &mut found);
    }
    found
}

fn is_interpreter(name: &str) -> bool {
    language(name).is_some() || JOINERS.contains(&name)
}

fn is_shell(name: &str) -> bool {
    language(name).is_some_and(|language| language.place == Place::AnnouncedOperand)
}

/// The scripts of the first interpreter behind a wrapper.
fn inner<'a>(command: &[&'a str], counts: fn(&str) -> bool, found: &mut Vec<Script<'a>>) {
    let rest = command.iter().copied().enumerate().skip(1);
    for (index, word) in rest {
        if counts(&name_of(word)) {
            let scripts = scripts(&command[index..]).into_iter();
            found.extend(scripts.map(|script| Script {
                index: script.index + index,
                ..script
            }));
            return;
        }
    }
}

/// `env -S 'sh -c …'`: the value is taken apart at its blanks, which a key may hold.
fn split_strings<'a>(program: &'a str, command: &[&'a str], found: &mut Vec<Script<'a>>) {
    for (index, word) in command.iter().enumerate().skip(1) {
        let cluster = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        if word.starts_with("--split-string") || cluster.is_some_and(|rest| rest.contains('S')) {
            let both = [index, index + 1]
                .into_iter()
                .filter(|index| *index < command.len());
            found.extend(both.map(|index| Script {
                index,
                interpreter: program,
            }));
        }
    }
}

fn scripts_of<'a>(
    language: &Language,
    interpreter: &'a str,
    command: &[&'a str],
    found: &mut Vec<Script<'a>>,
) {
    let mut announced = language.place == Place::Operand;
    let mut index = 1;
    while let Some(&word) = command.get(index) {
        match language.read(word) {
            Word::Operand if language.place == Place::ValueAnywhere => {}
            Word::Operand => {
                // The script if one was announced so, else a script's file; what follows are its arguments.
                if announced {
                    found.push(Script { index, interpreter });
                }
                return;
            }
            Word::Announces { .. } if language.place == Place::AnnouncedOperand => announced = true,
            Word::Announces { attached } => {
                announced = false;
                found.push(Script { index, interpreter });
                if !attached && index + 1 < command.len() {
                    index += 1;
                    found.push(Script { index, interpreter });
                }
            }
            Word::TakesValue => index += 1,
            Word::Other => {}
        }
        index += 1;
    }
}

/// What one word of a command is to an interpreter.
enum Word {
    /// An option that announces a script; whether the script is in the same word.
    Announces { attached: bool },
    /// An option whose value is the next word.
    TakesValue,
    /// Any other option.
    Other,
    /// No option.
    Operand,
}

impl Language {
    fn read(&self, word: &str) -> Word {
        if self.words.contains(&word) {
            return Word::Announces { attached: false };
        }
        if self.valued.contains(&word) {
            return Word::TakesValue;
        }
        if word == "--" {
            return Word::Other;
        }
        if let Some((name, _)) = word.split_once('=')
            && self.words.contains(&name)
        {
            return Word::Announces { attached: true };
        }
        match word.strip_prefix(['-', '+']) {
            None | Some("") => Word::Operand,
            Some(long) if long.starts_with('-') => Word::Other,
            // Where a script may begin within the word (`-cCODE`) or after it (`-pe CODE`), both words count.
            Some(cluster) if cluster.contains(self.letters) => Word::Announces {
                attached: !cluster.ends_with(self.letters),
            },
            Some(_) => Word::Other,
        }
    }
}

fn language(name: &str) -> Option<&'static Language> {
    LANGUAGES
        .iter()
        .find(|language| language.names.contains(&name))
}

/// A program's name without its folder and version number, in lower case: `/usr/bin/python3.11` is `python`.
fn name_of(program: &str) -> String {
    let file = program.rsplit('/').next().unwrap_or(program);
    let file = file.strip_suffix(".exe").unwrap_or(file);
    file.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'))
        .to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indexes(command: &[&str]) -> Vec<usize> {
        let mut indexes: Vec<usize> = scripts(command).iter().map(|script| script.index).collect();
        indexes.sort_unstable();
        indexes.dedup();
        indexes
    }

    #[test]
    fn a_shells_script_is_its_first_operand_after_c() {
        for command in [
            &["sh", "-c", "SCRIPT", "sh", "{uri}"][..],
            &["bash", "-lc", "SCRIPT", "{uri}"],
            &["/bin/sh", "-ec", "SCRIPT"],
            &["sh", "-ce", "SCRIPT", "-c", "x"],
            &["bash-5.2", "-c", "-o", "pipefail", "SCRIPT", "{uri}"],
            &["bash", "-o", "pipefail", "-c", "SCRIPT"],
            &["zsh", "+x", "-c", "--", "SCRIPT"],
            &["fish", "--command", "SCRIPT"],
        ] {
            let expected = command.iter().position(|word| *word == "SCRIPT").unwrap();
            assert_eq!(indexes(command), [expected], "{command:?}");
        }
    }

    #[test]
    fn the_arguments_of_a_script_file_are_no_scripts() {
        for command in [
            &["sh", "job.sh", "-c", "{uri}"][..],
            &["bash", "-eu", "job.sh", "{uri}"],
            &["python3", "job.py", "-c", "{uri}"],
            &["python3", "-m", "job", "{uri}"],
            &["python", "-W", "ignore", "job.py", "-c", "{uri}"],
            &["perl", "job.pl", "-e", "{uri}"],
            &["ogr2ogr", "-sql", "{uri}", "sh", "-c"],
            &["env", "KEY={key}", "job", "{uri}"],
            &["echo", "-c", "{uri}"],
        ] {
            assert_eq!(indexes(command), [0; 0], "{command:?}");
        }
    }

    #[test]
    fn another_interpreters_script_is_its_options_value() {
        assert_eq!(indexes(&["python3.11", "-c", "SCRIPT", "{uri}"]), [1, 2]);
        assert_eq!(
            indexes(&["python", "-W", "ignore", "-Ic", "SCRIPT"]),
            [3, 4]
        );
        assert_eq!(indexes(&["python", "-cprint('{uri}')", "x"]), [1]);
        assert_eq!(indexes(&["perl", "-lane", "SCRIPT", "{uri}"]), [1, 2]);
        assert_eq!(
            indexes(&["perl", "-MFoo::Bar", "-e", "S", "-e", "S", "{uri}"]),
            [2, 3, 4, 5]
        );
        assert_eq!(indexes(&["ruby", "-e", "SCRIPT", "{uri}"]), [1, 2]);
        assert_eq!(indexes(&["node", "--eval=S", "{uri}"]), [1]);
        assert_eq!(indexes(&["node", "-pe", "S", "{uri}"]), [1, 2]);
        assert_eq!(indexes(&["deno", "eval", "S", "{uri}"]), [1, 2]);
        assert_eq!(indexes(&["Rscript", "-e", "S", "{uri}"]), [1, 2]);
        assert_eq!(indexes(&["awk", "-F", ",", "SCRIPT", "{path}"]), [3]);
        assert_eq!(indexes(&["sed", "-n", "-e", "SCRIPT", "{path}"]), [2, 3]);
    }

    #[test]
    fn wrappers_do_not_hide_a_script() {
        for command in [
            &["env", "-i", "A=1", "sh", "-c", "SCRIPT", "sh", "{uri}"][..],
            &["nice", "-n", "5", "bash", "-lc", "SCRIPT"],
            &[
                "timeout",
                "-k",
                "1",
                "5",
                "env",
                "/bin/dash",
                "-c",
                "SCRIPT",
            ],
            &[
                "docker", "run", "--rm", "image", "sh", "-c", "SCRIPT", "sh", "{uri}",
            ],
            &["busybox", "sh", "-c", "SCRIPT"],
            &["flock", "lock", "sh", "-c", "SCRIPT"],
            &["gosu", "app", "sh", "-c", "SCRIPT", "sh", "{uri}"],
            &["poetry", "run", "bash", "-ec", "SCRIPT"],
        ] {
            let expected = command.iter().position(|word| *word == "SCRIPT").unwrap();
            assert!(indexes(command).contains(&expected), "{command:?}");
            let argument = command.iter().position(|word| *word == "{uri}");
            assert!(
                !argument.is_some_and(|index| indexes(command).contains(&index)),
                "{command:?}"
            );
        }
        assert_eq!(indexes(&["env", "-S", "sh -c {uri}", "x"]), [1, 2]);
        assert_eq!(indexes(&["env", "-vSsh -c {uri}"]), [1]);
        assert_eq!(indexes(&["env", "--split-string=sh {uri}"]), [1]);
    }

    #[test]
    fn words_that_are_put_together_for_a_shell_are_scripts_all() {
        assert_eq!(indexes(&["ssh", "host", "cat", "{key}"]), [1, 2, 3]);
        assert_eq!(indexes(&["nohup", "ssh", "host", "{key}"]), [2, 3]);
        assert_eq!(indexes(&["su", "-c", "SCRIPT", "user"]), [1, 2]);
        assert_eq!(indexes(&["su", "user", "-c", "SCRIPT"]), [2, 3]);
        assert_eq!(indexes(&["flock", "lock", "-c", "SCRIPT"]), [2, 3]);
    }
}
