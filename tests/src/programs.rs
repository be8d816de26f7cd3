//! The programs that tests run, built as the tests themselves are.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use crate::root;

/// A build of one program, from the workspace's root.
///
/// `cargo xtask test` says with `TEST_BUILD` how it has built the tests: all that the program stands on is built then. By
/// itself the program has other features of its dependencies, and is built from the ground up.
pub fn build(package: &str, program: &str) -> Command {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--locked"]);
    match std::env::var("TEST_BUILD") {
        Ok(selection) => {
            build.args(selection.split_whitespace());
        }
        Err(_) => {
            build.args(["-p", package]);
            if package == "firstclaim" {
                build.args(features().into_iter().flat_map(|name| ["--features", name]));
            }
        }
    }
    // What cargo tells this test of its own package would build some dependencies anew (ring's build script looks at it).
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            build.env_remove(name);
        }
    }
    build.args(["--bin", program]).current_dir(root());
    build
}

/// The features of `firstclaim` for what these tests are built for.
fn features() -> Vec<&'static str> {
    let all = [
        (cfg!(feature = "aws"), "aws"),
        (cfg!(feature = "postgres"), "postgres"),
    ];
    all.into_iter()
        .filter_map(|(is_on, name)| is_on.then_some(name))
        .collect()
}

/// Where a program lies that was built.
pub fn built(program: &str) -> PathBuf {
    // This test lies in `debug/deps`, the program one folder up.
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join(program)
}

/// The program `firstclaim`.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let status = build("firstclaim", "firstclaim").status().unwrap();
        assert!(status.success(), "firstclaim could not be built");
        built("firstclaim")
    })
}
