//! Every link from one document to another, or to a file, leads somewhere, and so does every path that one names.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tests::root;

/// What no document of ours lies in.
const FOREIGN: [&str; 3] = ["target", "node_modules", ".terraform"];

fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !FOREIGN.contains(&name.as_str()) && !name.starts_with(".git") {
                documents(&path, found);
            }
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The text without what is code, in which brackets are no links.
fn prose(text: &str) -> String {
    let (mut prose, mut fenced) = (String::new(), false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            prose.extend(line.split('`').step_by(2));
            prose.push('\n');
        }
    }
    prose
}

/// What its links name, and not where the web is.
fn links(text: &str) -> Vec<String> {
    prose(text)
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.to_owned())
        .filter(|target| !target.contains("://"))
        .collect()
}

/// The names of its headings in a link: in lower case, hyphens for spaces, and no other signs.
fn headings(text: &str) -> Vec<String> {
    let mut fenced = false;
    text.lines()
        .filter(|line| {
            fenced ^= line.starts_with("```");
            !fenced && line.starts_with('#')
        })
        .map(|line| {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            heading
                .chars()
                .filter(|sign| sign.is_alphanumeric() || matches!(sign, ' ' | '-' | '_'))
                .map(|sign| if sign == ' ' { '-' } else { sign })
                .collect()
        })
        .collect()
}

/// Which links of a document lead nowhere.
fn broken(document: &Path, text: &str) -> Vec<String> {
    let leads = |link: &String| {
        let (path, heading) = link.split_once('#').unwrap_or((link, ""));
        let named = if path.is_empty() {
            document.to_owned()
        } else {
            document.parent().unwrap().join(path)
        };
        let there = named.exists();
        there
            && (heading.is_empty()
                || fs::read_to_string(&named)
                    .is_ok_and(|text| headings(&text).iter().any(|known| known == heading)))
    };
    let mut broken = links(text);
    broken.retain(|link| !leads(link));
    broken
}

#[test]
fn every_link_leads_somewhere() {
    let mut found = Vec::new();
    documents(&root(), &mut found);
    assert!(found.len() > 10, "{found:?}");
    let mut seen = 0;
    for document in found {
        let text = fs::read_to_string(&document).unwrap();
        seen += links(&text).len();
        let broken = broken(&document, &text);
        assert!(broken.is_empty(), "{}: {broken:?}", document.display());
    }
    assert!(seen > 30, "only {seen} links were seen");
}

/// The paths from the root that a text names as code. A pattern names none.
fn paths(text: &str) -> Vec<&str> {
    let folders = ["crates/", "deploy/", "docs/", "tests/", "xtask/"];
    text.lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .flat_map(str::split_whitespace)
        .filter(|word| folders.iter().any(|folder| word.starts_with(folder)))
        .filter(|word| !word.contains(['*', '{', '…']))
        // The reader writes these.
        .filter(|word| !word.ends_with(".tfvars"))
        .collect()
}

#[test]
fn every_path_that_is_named_is_there() {
    let mut found = Vec::new();
    documents(&root(), &mut found);
    let mut seen = 0;
    for document in found {
        let text = fs::read_to_string(&document).unwrap();
        let named = paths(&text);
        seen += named.len();
        let gone: Vec<_> = named
            .into_iter()
            .filter(|path| !root().join(path).exists())
            .collect();
        assert!(gone.is_empty(), "{}: {gone:?}", document.display());
    }
    assert!(seen > 30, "only {seen} paths were seen");
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let text = "[a](README.md) [`b`](README.md#the-promise) [c](nowhere.md), [d](README.md#nowhere) [e](#nowhere)\n\
                `[f](code)` [g](https://example.org/nowhere)\n```\n[h](code)\n```\n";
    let broken = broken(&root().join("README.md"), text);
    assert_eq!(broken, ["nowhere.md", "README.md#nowhere", "#nowhere"]);
    let text = "`tests/a`, tests/b `cargo test tests/c` and `src/d` `tests/*.rs`";
    assert_eq!(paths(text), ["tests/a", "tests/c"]);
}
