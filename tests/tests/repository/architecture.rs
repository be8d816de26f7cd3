//! The invariants of ARCHITECTURE.md that are about what depends on what.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use tests::root;

/// The arrows that are allowed: each member of the workspace, and which others its product code may be built on. A handler
/// links the SDK of one cloud and no other; providers and jobs do not know each other.
const ARROWS: [(&str, &[&str]); 13] = [
    ("identity-core", &[]),
    ("contract-build", &["identity-core"]),
    ("host", &["identity-core"]),
    ("shapefile", &["identity-core"]),
    ("jobs", &["identity-core", "shapefile"]),
    ("provider-sql", &["identity-core"]),
    ("provider-aws", &["identity-core"]),
    (
        "handler-lambda",
        &["identity-core", "host", "jobs", "provider-aws"],
    ),
    (
        "firstclaim",
        &[
            "identity-core",
            "host",
            "shapefile",
            "jobs",
            "provider-sql",
            "provider-aws",
        ],
    ),
    // What nothing is shipped of may stand on anything but each other's insides.
    (
        "tests",
        &["identity-core", "provider-aws", "provider-sql", "wire"],
    ),
    ("proof", &["identity-core"]),
    ("wire", &[]),
    ("xtask", &[]),
];

/// What `cargo metadata` says of the workspace's members.
fn members() -> Vec<Value> {
    let output = cargo(&["metadata", "--locked", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&output).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// What cargo writes to standard output.
fn cargo(arguments: &[&str]) -> String {
    let mut cargo = Command::new(env!("CARGO"));
    let output = cargo.args(arguments).current_dir(root()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Which arrows of these members are not in the table, which members have no row, and which rows no member.
fn misplaced(members: &[Value], arrows: &[(&str, &[&str])]) -> Vec<String> {
    let name = |package: &Value| package["name"].as_str().unwrap().to_owned();
    let all: BTreeSet<String> = members.iter().map(name).collect();
    let mut wrong: Vec<String> = arrows
        .iter()
        .filter(|(row, _)| !all.contains(*row))
        .map(|(row, _)| format!("{row} is in the table and no member"))
        .collect();
    for member in members {
        let from = name(member);
        let Some((_, allowed)) = arrows.iter().find(|(row, _)| *row == from) else {
            wrong.push(format!("{from} has no row in the table"));
            continue;
        };
        for dependency in member["dependencies"].as_array().unwrap() {
            let to = name(dependency);
            // What only tests or build scripts need is in no product.
            if dependency["kind"].is_null() && all.contains(&to) && !allowed.contains(&&*to) {
                wrong.push(format!("{from} -> {to}"));
            }
        }
    }
    wrong
}

#[test]
fn arrows_go_one_way_and_every_member_has_its_place() {
    assert_eq!(misplaced(&members(), &ARROWS), Vec::<String>::new());
}

#[test]
fn a_member_without_a_place_and_an_arrow_that_is_not_allowed_are_seen() {
    let member = |name: &str, below: &[&str]| {
        let below = below
            .iter()
            .map(|name| serde_json::json!({"name": name, "kind": null}));
        serde_json::json!({"name": name, "dependencies": below.collect::<Vec<_>>()})
    };
    let members = [
        member("core", &["sha2"]),
        member("provider", &["core", "jobs"]),
        member("jobs", &["core"]),
    ];
    let arrows: [(&str, &[&str]); 3] = [("core", &[]), ("provider", &["core"]), ("gone", &[])];
    assert_eq!(
        misplaced(&members, &arrows),
        [
            "gone is in the table and no member",
            "provider -> jobs",
            "jobs has no row in the table"
        ]
    );
}

#[test]
fn a_handler_links_one_clouds_sdk() {
    let mut handlers = 0;
    for member in members() {
        let name = member["name"].as_str().unwrap();
        if !name.starts_with("handler-") {
            continue;
        }
        handlers += 1;
        let below = below(&["-p", name, "--all-features"]);
        let clouds = |package: &&String| {
            package.starts_with("provider-") && package.as_str() != "provider-sql"
        };
        let clouds: Vec<_> = below.iter().filter(clouds).collect();
        assert_eq!(clouds.len(), 1, "{name} links {clouds:?}");
    }
    assert!(handlers > 0);
}

/// The packages below one, without what only builds or tests need.
fn below(arguments: &[&str]) -> BTreeSet<String> {
    let tree = [
        "tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}",
    ];
    cargo(&[&tree, arguments].concat())
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

/// Those of the packages whose names say SDK, HTTP, RPC, TLS or database.
fn networked(packages: &BTreeSet<String>) -> Vec<&String> {
    const WORDS: [&str; 19] = [
        "aws",
        "google",
        "gcloud",
        "firestore",
        "azure",
        "reqwest",
        "hyper",
        "http",
        "h2",
        "tonic",
        "axum",
        "rustls",
        "openssl",
        "native-tls",
        "rusqlite",
        "sqlx",
        "ring",
        "mio",
        "socket2",
    ];
    let says = |package: &str, word: &str| {
        package == word || package.split(['-', '_']).any(|part| part == word)
    };
    packages
        .iter()
        .filter(|package| WORDS.iter().any(|word| says(package, word)))
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

/// The Rust files below a folder of the workspace, each by its path from that folder and with its text.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let folder = root().join(folder);
    let mut found = Vec::new();
    walk(&folder, &mut found);
    found
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            // Where the workspace lies says nothing of a file.
            (path.strip_prefix(&folder).unwrap().to_owned(), text)
        })
        .collect()
}

/// What the core must not do by itself, as paths from a crate's root.
const IMPURE: [&str; 16] = [
    "std::fs",
    "std::env",
    "std::net::TcpListener",
    "std::net::TcpStream",
    "std::net::ToSocketAddrs",
    "std::net::UdpSocket",
    "std::process",
    "std::thread",
    "std::time::SystemTime",
    "std::time::Instant",
    "std::random",
    "getrandom",
    "tokio::fs",
    "tokio::net",
    "tokio::process",
    "tokio::time",
];

/// Which of [`IMPURE`] a text names: in full, or by what it imports. Comments count for nothing.
fn impure(text: &str) -> Vec<&'static str> {
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .flat_map(str::split_whitespace)
        .map(|word| {
            if word == "use" || word == "as" {
                format!(" {word} ")
            } else {
                word.to_owned()
            }
        })
        .collect();
    let mut paths = Vec::new();
    for import in code.split(" use ").skip(1) {
        let tree = import.split(';').next().unwrap_or_default();
        expand("", tree, &mut paths);
    }
    let names = |path: &str, impure: &str| {
        path.split(" as ").next().is_some_and(|path| {
            let path = path.strip_suffix("::*").unwrap_or(path);
            // What is imported whole is named by its last part, and so is what lies in it.
            path == impure
                || path.starts_with(&format!("{impure}::"))
                || impure.starts_with(&format!("{path}::"))
        })
    };
    IMPURE
        .into_iter()
        .filter(|impure| {
            code.contains(&format!("{impure}::")) || paths.iter().any(|path| names(path, impure))
        })
        .collect()
}

/// The paths of an import tree: `std::{fs, io::{self, Read}}` is `std::fs`, `std::io` and `std::io::Read`.
fn expand(before: &str, tree: &str, paths: &mut Vec<String>) {
    let Some(open) = tree.find('{') else {
        let path = format!("{before}{tree}");
        paths.push(path.trim_end_matches("::self").to_owned());
        return;
    };
    let before = format!("{before}{}", &tree[..open]);
    let (mut depth, mut start) = (0, open + 1);
    for (at, letter) in tree.char_indices().skip_while(|(at, _)| *at <= open) {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' if depth > 0 => {}
            ',' | '}' => {
                if start < at {
                    expand(&before, &tree[start..at], paths);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

#[test]
fn the_core_reads_no_clock_no_randomness_no_file_and_no_environment() {
    let files = sources("crates/identity-core/src");
    let mut looked_at = 0;
    for (path, text) in files {
        // Tests, and the suites that stand in for a machine, may.
        let is_test = |part: &std::ffi::OsStr| {
            ["tests", "tests.rs", "conformance"]
                .iter()
                .any(|name| part == *name)
        };
        if path.iter().any(is_test) {
            continue;
        }
        looked_at += 1;
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        assert_eq!(impure(code), Vec::<&str>::new(), "{}", path.display());
    }
    assert!(looked_at > 60, "{looked_at} files");
}

#[test]
fn every_way_to_name_what_is_impure_is_seen() {
    for (text, expected) in [
        ("use std::fs;", "std::fs"),
        ("use std::{\n    fs,\n    io,\n};", "std::fs"),
        (
            "use std::{collections::{BTreeMap, HashMap}, time::{Duration, Instant}};",
            "std::time::Instant",
        ),
        ("use std::{fs::{self, File}};", "std::fs"),
        ("use std::{env as environment};", "std::env"),
        ("pub(crate) use tokio::time::*;", "tokio::time"),
        (
            "fn f() { let now = std::time::SystemTime::now(); }",
            "std::time::SystemTime",
        ),
        ("fn f() { getrandom::fill(&mut bytes) }", "getrandom"),
    ] {
        assert_eq!(impure(text), [expected], "{text}");
    }
    for text in ["use std::{net, time};", "use std::time::*;", "use tokio;"] {
        assert!(impure(text).len() > 1, "{text}");
    }
    for text in [
        "use std::{fmt, time::Duration};",
        "/// Like [`std::fs::read`].\nuse std::io;",
        "use crate::environment;",
    ] {
        assert_eq!(impure(text), Vec::<&str>::new(), "{text}");
    }
}

#[test]
fn every_file_opens_by_saying_what_lives_in_it() {
    for folder in ["crates", "tests", "xtask"] {
        for (path, text) in sources(folder) {
            assert!(
                text.starts_with("//! "),
                "{folder}/{} has no opening line",
                path.display()
            );
        }
    }
}
