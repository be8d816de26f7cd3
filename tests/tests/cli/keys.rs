//! `firstclaim key` and `vectors --data`, as a person runs them.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use tests::{Ran, Workbench, root};

fn bench(files: &[(&str, &str)]) -> Workbench {
    let bench = Workbench::new("");
    for (name, text) in files {
        bench.write(name, text);
    }
    bench
}

/// The keys and the paths that were told.
fn lines(ran: &Ran) -> Vec<(&str, &str)> {
    let lines = ran.out.lines();
    lines.map(|line| line.split_once("  ").unwrap()).collect()
}

fn paths(ran: &Ran) -> Vec<&str> {
    lines(ran).into_iter().map(|(_, path)| path).collect()
}

/// Exit code 1, and standard error says each of the words.
#[track_caller]
fn assert_complains(ran: &Ran, words: &[&str]) {
    assert_eq!(ran.code, 1, "{ran:?}");
    for word in words {
        assert!(ran.err.contains(word), "{word:?} is not in {ran:?}");
    }
}

#[test]
fn without_options_the_key_is_the_published_one() {
    let bench = Workbench::new("");
    let data = root().join("tests/data/shapefiles/naturalearth_cities");
    let ran = bench.run(&[
        "key",
        data.join("naturalearth_cities.shp").to_str().unwrap(),
    ]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    let path = format!("{}/naturalearth_cities.shp", data.display());
    assert_eq!(ran.out, format!("Ez4ZsCvZxYx-Cfco  {path}\n"));
}

#[test]
fn json_tells_key_digest_and_members() {
    let bench = bench(&[
        ("a.shp", "S"),
        ("a.DBF", "D"),
        ("a.shx", "X"),
        ("a.fix", "F"),
        ("a.txt", ""),
    ]);
    let ran = bench.run(&[
        "key",
        "--json",
        "--form",
        "strict",
        "--key-bytes",
        "1",
        "--no-index",
        "a.shp",
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let line: Value = serde_json::from_str(&ran.out).unwrap();
    let digest = line["full_digest"].as_str().unwrap();
    assert_eq!(digest.len(), 64);
    assert_eq!(
        line,
        json!({"path": "a.shp", "key": line["key"], "full_digest": digest, "members": ["a.DBF", "a.shp", "a.shx"]})
    );
    assert_eq!(line["key"].as_str().unwrap().len(), 2);
}

#[test]
fn each_option_makes_another_key_and_folder_and_order_do_not() {
    let bench = bench(&[
        ("a.shp", "S"),
        ("a.shx", "X"),
        ("a.dbf", "D"),
        ("a.qix", "Q"),
        ("moved/a.qix", "Q"),
        ("moved/a.dbf", "D"),
        ("moved/a.shx", "X"),
        ("moved/a.shp", "S"),
    ]);
    let key = |options: &[&str], path: &str| {
        let ran = bench.run(&[&["key"], options, &[path]].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        lines(&ran)[0].0.to_owned()
    };
    assert_eq!(key(&[], "a.shp"), key(&[], "moved/a.shp"));
    let options: [&[&str]; 5] = [
        &[],
        &["--namespace", "staging"],
        &["--algo-version", "2"],
        &["--form", "strict"],
        &["--no-index"],
    ];
    let keys: std::collections::BTreeSet<_> = options.map(|options| key(options, "a.shp")).into();
    assert_eq!(keys.len(), options.len(), "{keys:?}");
    assert!(key(&["--key-bytes", "32"], "a.shp").starts_with(&key(&[], "a.shp")));
}

#[test]
fn a_folder_is_told_in_order_with_its_zips_and_without_what_is_hidden() {
    let bench = bench(&[
        ("in/b/roads.shp", "S"),
        ("in/b/roads.shx", ""),
        ("in/b/roads.dbf", ""),
        ("in/a.shp", "S"),
        ("in/a.shx", ""),
        ("in/a.dbf", ""),
        ("in/.trash/a.shp", "S"),
        ("in/__MACOSX/a.shp", "S"),
        ("in/a.shp.xml", ""),
        ("in/alone.dbf", ""),
    ]);
    zip(
        &bench,
        "in/b",
        "roads.zip",
        &["roads.shp", "roads.shx", "roads.dbf"],
    );
    let ran = bench.run(&["key", "in"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    assert_eq!(
        paths(&ran),
        ["in/a.shp", "in/b/roads.shp", "in/b/roads.zip/roads.shp"]
    );
    let keys: Vec<_> = lines(&ran).into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys[1], keys[2]);
    assert_ne!(keys[0], keys[1]);
}

/// Zips files of a folder, with Python's own implementation.
fn zip(bench: &Workbench, folder: &str, name: &str, files: &[&str]) {
    let status = std::process::Command::new("python3")
        .args(["-m", "zipfile", "-c", name])
        .args(files)
        .current_dir(bench.path(folder))
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn names_that_differ_in_case_only_are_both_named_and_the_others_told() {
    let bench = bench(&[
        ("in/Roads.shp", "1"),
        ("in/roads.shp", "2"),
        ("in/a.shp", "3"),
    ]);
    let ran = bench.run(&["key", "in"]);
    assert_complains(
        &ran,
        &["in/Roads.shp: ", "\"Roads.shp\"", "\"roads.shp\"", "case"],
    );
    assert_eq!(paths(&ran), ["in/a.shp"]);
}

#[test]
fn a_member_that_cannot_be_read_leaves_its_shapefile_without_a_key() {
    let bench = bench(&[("in/roads.shp", "1"), ("in/a.shp", "3")]);
    symlink("nowhere", bench.path("in/roads.dbf")).unwrap();
    let ran = bench.run(&["key", "in"]);
    assert_complains(&ran, &["in/roads.dbf cannot be read"]);
    assert_eq!(paths(&ran), ["in/a.shp"]);
}

#[test]
fn an_incomplete_shapefile_is_warned_of_and_an_optional_member_is_not_missed() {
    let bench = bench(&[("a.shp", "S"), ("a.dbf", "D")]);
    let ran = bench.run(&["key", "a.shp"]);
    assert_eq!((ran.code, lines(&ran).len()), (0, 1), "{ran:?}");
    assert!(
        ran.err.contains("warning: a.shp: there is no .shx"),
        "{ran:?}"
    );
    assert!(
        !ran.err.contains(".prj") && !ran.err.contains(".cpg"),
        "{ran:?}"
    );
}

#[test]
fn what_has_no_key_is_told_and_the_rest_goes_on() {
    let bench = bench(&[
        ("a.shp", "S"),
        ("a.dbf", "D"),
        ("a.shx", ""),
        ("b.zip", "no zip"),
        ("empty/readme", ""),
    ]);
    let ran = bench.run(&["key", "a.dbf", "gone.shp", "b.zip", "empty", "a.shp"]);
    assert_complains(
        &ran,
        &[
            "a.dbf: expected a .shp, a .zip, or a folder",
            "gone.shp: gone.shp cannot be read: No such file",
            "b.zip: it cannot be read as a zip",
            "empty: there is no shapefile in it",
        ],
    );
    assert_eq!(paths(&ran), ["a.shp"]);
}

#[test]
fn options_out_of_their_bounds_are_wrong_usage() {
    let bench = bench(&[("a.shp", "S")]);
    for (option, value) in [
        ("--key-bytes", "0"),
        ("--key-bytes", "33"),
        ("--key-bytes", "-1"),
        ("--key-bytes", "x"),
        ("--form", "ingest"),
        ("--algo-version", "-1"),
    ] {
        let option = format!("{option}={value}");
        let ran = bench.run(&["key", &option, "a.shp"]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{option}: {ran:?}");
    }
    assert_eq!(bench.run(&["key"]).code, 2);
}

#[test]
fn the_published_upload_keys_are_derived_and_every_row_is_run() {
    let bench = Workbench::new("");
    let data = root().join("tests/data/shapefiles");
    for (name, rows) in [("upload_keys", 32), ("strict_upload_keys", 24)] {
        let file = root().join("tests/vectors").join(format!("{name}.json"));
        let (data, file) = (data.to_str().unwrap(), file.to_str().unwrap());
        let ran = bench.run(&["vectors", "--data", data, file]);
        assert_eq!(
            (ran.code, ran.last_line()),
            (0, format!("{rows} passed, 0 failed").as_str()),
            "{ran:?}"
        );
        let ran = bench.run(&["vectors", file]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
        assert!(ran.err.contains("--data DIR"), "{ran:?}");

        // No file, no key: a row fails, it is not passed over.
        let ran = bench.run(&["vectors", "--data", ".", file]);
        assert_complains(
            &ran,
            &["./blockgroups cannot be read", "./odd cannot be read"],
        );
        assert_eq!(ran.last_line(), format!("0 passed, {rows} failed"));
    }
}
