//! The invariants of ARCHITECTURE.md that are about what depends on what.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use tests::root;

/// The packages below one, without what only builds or tests need.
fn below(arguments: &[&str]) -> BTreeSet<String> {
    let mut tree = Command::new(env!("CARGO"));
    tree.args([
        "tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}",
    ])
    .args(arguments);
    let output = tree.current_dir(root()).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

/// Those of the packages whose names say SDK, HTTP client, TLS or database.
fn networked(packages: &BTreeSet<String>) -> Vec<&String> {
    let words = [
        "aws",
        "google",
        "azure",
        "reqwest",
        "hyper",
        "http",
        "rustls",
        "openssl",
        "native-tls",
        "sqlx",
        "ring",
    ];
    packages
        .iter()
        .filter(|package| {
            words
                .iter()
                .any(|word| package.split(['-', '_']).any(|part| part == *word))
        })
        .collect()
}

#[test]
fn the_core_has_no_sdk_no_http_client_and_no_tls_below_it() {
    let packages = below(&["-p", "identity-core", "--all-features"]);
    assert!(
        packages.contains("sha2"),
        "cargo tree told nothing: {packages:?}"
    );
    assert_eq!(networked(&packages), Vec::<&String>::new());
}

#[test]
fn derivation_alone_needs_not_even_tokio() {
    let packages = below(&["-p", "identity-core", "--no-default-features"]);
    let gate: Vec<_> = ["tokio", "async-trait", "futures-util", "tracing"]
        .into_iter()
        .filter(|name| packages.contains(*name))
        .collect();
    assert_eq!(gate, Vec::<&str>::new());
}

#[test]
fn arrows_go_one_way() {
    let own = [
        "identity-core",
        "provider-sql",
        "host",
        "jobs",
        "firstclaim",
        "tests",
        "xtask",
    ];
    let below = |package: &str| -> Vec<_> {
        let packages = below(&["-p", package, "--all-features"]);
        own.into_iter()
            .filter(|name| *name != package && packages.contains(*name))
            .collect()
    };
    assert_eq!(below("identity-core"), Vec::<&str>::new());
    assert_eq!(below("provider-sql"), ["identity-core"]);
    assert_eq!(below("host"), ["identity-core"]);
    assert_eq!(below("jobs"), ["identity-core"]);
    assert_eq!(
        below("firstclaim"),
        ["identity-core", "provider-sql", "host", "jobs"]
    );
}

fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_core_reads_no_clock_no_randomness_no_file_and_no_environment() {
    let mut files = Vec::new();
    sources(&root().join("crates/identity-core/src"), &mut files);
    assert!(files.len() > 20, "{files:?}");
    let forbidden = [
        "SystemTime::now",
        "Instant::now",
        "getrandom",
        "std::fs",
        "std::env::",
        "TcpStream",
        "UdpSocket",
        "tokio::time::sleep",
    ];
    for file in files {
        // Tests, and the suite that stands in for a machine, may.
        let path = file.to_string_lossy().into_owned();
        if path.contains("tests") || path.contains("conformance") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for word in forbidden {
            assert!(!code.contains(word), "{path} says {word}");
        }
    }
}

#[test]
fn every_file_opens_by_saying_what_lives_in_it() {
    let mut files = Vec::new();
    for folder in ["crates", "tests", "xtask"] {
        sources(&root().join(folder), &mut files);
    }
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        assert!(
            text.starts_with("//! "),
            "{} has no opening line",
            file.display()
        );
    }
}
