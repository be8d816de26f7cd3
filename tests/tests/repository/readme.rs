//! What the README and its documents say is what there is.

use std::{
    collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command,
};

use host::environment::VARIABLES;
use tests::{program, root};

fn document(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The README's blocks of this language, in order.
fn blocks(language: &str) -> Vec<String> {
    document("README.md")
        .split(&format!("```{language}\n"))
        .skip(1)
        .map(|block| block.split("```").next().unwrap().to_owned())
        .collect()
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

    /// Runs the commands of a block, in a shell that finds the program and what is in `bin`, and nothing else; what they
    /// print should be what stands below each. `…` stands for what differs from run to run, or goes on.
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
            let printed = String::from_utf8(output.stdout).unwrap();
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
fn what_the_readme_shows_is_what_happens() {
    let [samples, without_gdal, with_gdal] = blocks("console").try_into().unwrap();
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
    clone.runs(&samples);

    let own = Reader::new();
    let [contract] = blocks("toml").try_into().unwrap();
    fs::write(own.path().join("pipeline.toml"), contract).unwrap();
    fs::create_dir(own.path().join("inbox")).unwrap();
    fs::copy(
        root().join("tests/samples/scenes/oslo/harbour.geojson"),
        own.path().join("inbox/harbour.geojson"),
    )
    .unwrap();
    own.runs(&without_gdal);
    // It stands in for GDAL, and keeps what it is told.
    own.has("ogr2ogr", r#"echo "$@" > "$0.told""#);
    own.runs(&with_gdal);
    let told = fs::read_to_string(own.path().join("bin/ogr2ogr.told")).unwrap();
    assert!(
        fits(&told, "-t_srs EPSG:3857 /data/….gpkg …"),
        "the job was told {told:?}"
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
    assert!(blocks("sh").contains(&format!("{command}\n")));
    let ci = document(".ci/run");
    assert_eq!(ci.lines().last(), Some(format!("exec {command}").as_str()));
}
