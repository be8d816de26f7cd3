//! What the README and its documents say is what there is.

use std::{
    collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command,
};

use host::environment::VARIABLES;
use tests::{program, root};

fn document(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Commands that the README shows and no test runs as they stand, and why.
const NOT_RUN: [(&str, &str); 2] = [
    (
        "cargo install --locked --path crates/firstclaim",
        "it builds for minutes, from the same package, the program that all other commands are run with",
    ),
    ("cargo xtask test", "it is what runs this test"),
];

/// What a reader of the README meets, in order.
#[derive(Debug, PartialEq, Eq)]
enum Met {
    /// A fenced block, and its language.
    Block(String, String),
    /// A command in the text.
    Command(String),
}

fn met(text: &str) -> Vec<Met> {
    let mut met = Vec::new();
    // Outside of blocks and inside of them by turns.
    for (at, part) in format!("\n{text}").split("\n```").enumerate() {
        if at % 2 == 1 {
            let (language, block) = part.split_once('\n').unwrap();
            met.push(Met::Block(language.to_owned(), format!("{block}\n")));
            continue;
        }
        let spans = part.split('`').skip(1).step_by(2);
        let commands = spans.filter(|span| {
            ["firstclaim ", "cargo "]
                .iter()
                .any(|name| span.starts_with(name))
        });
        met.extend(commands.map(|span| Met::Command(span.replace('\n', " "))));
    }
    met
}

#[test]
fn the_documents_list_every_variable() {
    let rows: String = VARIABLES
        .iter()
        .map(|variable| {
            format!(
                "| `{}` | {} | {} |\n",
                variable.name, variable.default, variable.meaning
            )
        })
        .collect();
    let table = format!("| variable | default | meaning |\n|---|---|---|\n{rows}<!-- end -->");
    assert!(
        document("docs/environment.md").contains(&table),
        "the table of variables in docs/environment.md should be:\n\n{table}"
    );
}

/// A folder that the README's commands run in.
struct Reader {
    folder: tempfile::TempDir,
}

impl Reader {
    fn new() -> Self {
        let reader = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(reader.path().join("bin")).unwrap();
        reader
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// From now on there is this program in `bin`, a script.
    fn has(&self, name: &str, script: &str) {
        let program = self.path().join("bin").join(name);
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// What a command prints, in a shell that finds the program and what is in `bin`, and nothing else.
    fn prints(&self, command: &str) -> String {
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", &format!("exec 2>&1; {command}")])
            .current_dir(self.path());
        let found = format!(
            "{}:{}",
            program().parent().unwrap().display(),
            self.path().join("bin").display()
        );
        let output = shell.env_clear().env("PATH", found).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs the commands of a block; what they print should be what stands below each. `…` stands for what differs from run to
    /// run, or goes on.
    fn runs(&self, block: &str) {
        let (mut command, mut shown) = ("", BTreeMap::<_, Vec<_>>::new());
        for (number, line) in block.lines().enumerate() {
            if let Some(line) = line.strip_prefix("$ ") {
                command = line;
                shown.insert((number, command), Vec::new());
            } else {
                let (_, lines) = shown.iter_mut().next_back().unwrap();
                lines.push(line);
            }
        }
        assert!(!command.is_empty(), "no command in {block:?}");
        for ((_, command), expected) in shown {
            let printed = self.prints(command);
            let lines: Vec<_> = printed.lines().collect();
            let fit = lines.len() == expected.len()
                && lines
                    .iter()
                    .zip(&expected)
                    .all(|(line, shown)| fits(line, shown));
            assert!(
                fit,
                "{command}\nprints\n{printed}\nand the README shows\n{}",
                expected.join("\n")
            );
        }
    }

    /// Runs a command of the text, for the job that there is and for every command that the program has, where it says `ID` and
    /// `COMMAND`.
    fn runs_named(&self, command: &str) {
        let help = self.prints("firstclaim help");
        let (_, commands) = help.split_once("Commands:\n").unwrap();
        let names: Vec<_> = commands
            .lines()
            .take_while(|line| line.starts_with("  "))
            .filter(|line| !line.starts_with("   "))
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        assert!(names.contains(&"claims"), "{help}");
        for name in names {
            let mut named = command.replace("COMMAND", name);
            if command.contains(" ID") {
                let claims = self.prints("firstclaim claims list --json");
                let claim: serde_json::Value = serde_json::from_str(claims.trim()).unwrap();
                named = named.replace(" ID", &format!(" {}", claim["job_id"].as_str().unwrap()));
            }
            let printed = self.prints(&format!("{named} && echo ended well"));
            assert!(
                printed.ends_with("ended well\n"),
                "{named}\nprints\n{printed}"
            );
        }
    }
}

/// Whether a line is the one that is shown, but for the width of gaps and what `…` stands for.
fn fits(line: &str, shown: &str) -> bool {
    let even = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (line, shown) = (even(line), even(shown));
    let mut parts = shown.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    true
}

#[test]
fn what_differs_is_left_out_and_nothing_else() {
    assert!(fits(" a  b", "a b") && fits("a 17 b", "a … b") && fits("a b c d", "a … c …"));
    for (line, shown) in [
        ("a b", "a"),
        ("a", "a b"),
        ("a 17 c", "a … b"),
        ("a d", "a … c …"),
    ] {
        assert!(!fits(line, shown), "{line:?} {shown:?}");
    }
}

#[test]
fn what_is_met_is_met_in_order() {
    let text = "Run `firstclaim\nrun x`, not `run`.\n```sh\na `firstclaim b`\n```\nand `cargo c`";
    let block = Met::Block("sh".into(), "a `firstclaim b`\n".into());
    let command = |command: &str| Met::Command(command.into());
    assert_eq!(
        met(&text.replace("firstclaim\nrun", "firstclaim run")),
        [command("firstclaim run x"), block, command("cargo c")]
    );
}

/// Every command, in the order in which a person meets it: in a clone first, and then in a folder of one's own.
#[test]
fn what_the_readme_shows_is_what_happens() {
    let clone = Reader::new();
    copy(
        &root().join("tests/samples"),
        &clone.path().join("tests/samples"),
    );
    clone.has("echo", r#"echo "$@""#);
    fs::copy(
        root().join("pipeline.toml"),
        clone.path().join("pipeline.toml"),
    )
    .unwrap();
    let own = Reader::new();
    fs::create_dir(own.path().join("inbox")).unwrap();
    fs::copy(
        root().join("tests/samples/scenes/oslo/harbour.geojson"),
        own.path().join("inbox/harbour.geojson"),
    )
    .unwrap();

    let (mut reader, mut blocks_run) = (&clone, 0);
    let mut not_run = Vec::new();
    for met in met(&document("README.md")) {
        match met {
            Met::Block(language, contract) if language == "toml" => {
                fs::write(own.path().join("pipeline.toml"), contract).unwrap();
                reader = &own;
            }
            Met::Block(language, block) if language == "console" => {
                reader.runs(&block);
                blocks_run += 1;
                if blocks_run == 2 {
                    // From here on there is what stands in for GDAL, and keeps what it is told.
                    own.has("ogr2ogr", r#"echo "$@" > "$0.told""#);
                }
            }
            Met::Block(language, block) if language == "sh" => {
                let commands = block
                    .lines()
                    .map(|line| line.split('#').next().unwrap_or_default());
                not_run.extend(commands.map(|command| command.trim().to_owned()));
            }
            Met::Block(language, block) => {
                panic!("a block in {language:?} is not looked at: {block}")
            }
            Met::Command(command) => match command.strip_prefix("firstclaim ") {
                Some(_) => reader.runs_named(&command),
                None => not_run.push(command),
            },
        }
    }
    assert_eq!(blocks_run, 3);
    let told = fs::read_to_string(own.path().join("bin/ogr2ogr.told")).unwrap();
    assert!(
        fits(
            &told,
            "-if ESRI Shapefile -if GeoJSON -t_srs EPSG:3857 /data/….gpkg …"
        ),
        "the job was told {told:?}"
    );
    not_run.sort();
    not_run.dedup();
    assert_eq!(
        not_run,
        NOT_RUN.map(|(command, _)| command),
        "each needs a reason, or to be run"
    );
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn the_checks_are_run_by_the_command_that_the_readme_names() {
    let command = "cargo xtask test";
    let block = Met::Block("sh".to_owned(), format!("{command}\n"));
    assert!(met(&document("README.md")).contains(&block));
    let ci = document(".ci/run");
    assert_eq!(ci.lines().last(), Some(format!("exec {command}").as_str()));
}
