//! What the README says is what there is.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use host::environment::VARIABLES;
use tests::{Bench, root};

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).unwrap()
}

/// The first block of commands after which `text` stands nowhere before.
fn first_command() -> String {
    let readme = readme();
    let block = readme
        .split("```sh\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    block.trim().to_owned()
}

#[test]
fn the_readme_lists_every_variable() {
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
        readme().contains(&table),
        "the table of variables in the README should be:\n\n{table}"
    );
}

#[test]
fn the_first_command_processes_all_and_then_skips_all() {
    let command = first_command();
    let arguments = command.strip_prefix("cargo run -p firstclaim -- ").unwrap();
    let bench = Bench::new("");
    let root = root();
    let store = format!("sqlite:{}", bench.path("store.db").display());
    let run = || {
        let mut shell = std::process::Command::new("sh");
        shell.args([
            "-c",
            &format!("exec \"$0\" {arguments} --store \"$1\""),
            tests::program().to_str().unwrap(),
            &store,
        ]);
        tests::Ran::from(shell.current_dir(&root).output().unwrap())
    };
    let first = run();
    assert_eq!(
        (first.code, first.last_line()),
        (
            0,
            "processed=5 skipped=0 held=0 ignored=0 failed=0 rejected=0"
        ),
        "{first:?}"
    );
    let second = run();
    assert_eq!(
        (second.code, second.last_line()),
        (
            0,
            "processed=0 skipped=5 held=0 ignored=0 failed=0 rejected=0"
        ),
        "{second:?}"
    );
}

#[test]
fn the_contract_in_the_readme_is_one() {
    let readme = readme();
    let toml = readme
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let contract = identity_core::identity::Contract::parse(toml).unwrap();
    assert!(contract.job().is_some());
}
