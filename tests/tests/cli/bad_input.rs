//! Bad input to the program: a clear error on standard error, exit code 1 or 2, nothing half-written, never a panic.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, process::Command};

use tests::{Ran, Workbench, notification, program, record};

const ECHO: &str = r#"exec = ["echo", "{uri}"]"#;

/// The program refused, said why (each of `words`), and did not panic.
#[track_caller]
fn assert_refused(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code, code, "{ran:?}");
    assert!(
        ran.err.starts_with("firstclaim: ") || ran.err.starts_with("error: "),
        "{ran:?}"
    );
    assert!(!ran.err.contains("panicked"), "{ran:?}");
    for word in words {
        assert!(
            ran.err.contains(word),
            "standard error does not say {word:?}: {ran:?}"
        );
    }
}

/// An event that can never be a job: `id` tells why, `run` records it and tells why.
#[track_caller]
fn assert_rejected(body: &[u8], reason: &str, words: &[&str]) {
    let bench = Workbench::new(ECHO);
    bench.write("event.json", body);
    assert_refused(&bench.run(&["id", "event.json"]), 1, words);
    for _ in 0..2 {
        let ran = bench.run(&["run", "event.json"]);
        assert_refused(&ran, 1, words);
        assert_eq!(
            ran.last_line(),
            "processed=0 skipped=0 held=0 ignored=0 failed=0 rejected=1"
        );
    }
    let claim = bench.claim();
    assert_eq!(
        (claim["status"].as_str(), claim["reason"].as_str()),
        (Some("rejected"), Some(reason)),
        "{claim}"
    );
}

#[test]
fn an_empty_file() {
    assert_rejected(b"", "unreadable", &["empty"]);
}

#[test]
fn binary_garbage() {
    assert_rejected(&[0xff, 0, 0x9f, 0x92, 0x96, b'{'], "unreadable", &["UTF-8"]);
}

#[test]
fn ten_megabytes_of_brackets() {
    assert_rejected(&vec![b'['; 10 * 1024 * 1024], "unreadable", &["JSON"]);
}

#[test]
fn an_unknown_envelope() {
    assert_rejected(
        br#"{"records":[{"s3":{}}]}"#,
        "unreadable",
        &["envelope", "records"],
    );
}

#[test]
fn an_event_version_of_the_next_major() {
    let body = notification(&[record("a.tif", "e1").replace("\"2.1\"", "\"3.0\"")]);
    assert_rejected(body.as_bytes(), "unreadable", &["eventVersion", "3.0"]);
}

#[test]
fn a_token_of_two_quotes() {
    let body = notification(&[record("a.tif", "\"\"")]);
    assert_rejected(body.as_bytes(), "refused", &["quotes"]);
}

#[test]
fn a_record_without_a_token() {
    let bench = Workbench::new(ECHO);
    bench.write("event.json", notification(&[record("a.tif", "")]));
    let ran = bench.run(&["id", "--json", "event.json"]);
    assert_refused(&ran, 1, &["s3://geo-in/a.tif", "token"]);
    let line: serde_json::Value = serde_json::from_str(ran.last_line()).unwrap();
    assert!(
        line["token"].is_null() && line["job_id"].is_null() && line["uri"] == "s3://geo-in/a.tif",
        "{line}"
    );
    // This build cannot ask S3, so the event is left for one that can.
    let ran = bench.run(&["run", "event.json"]);
    assert_refused(&ran, 1, &["s3://geo-in/a.tif"]);
    assert_eq!(
        ran.last_line(),
        "processed=0 skipped=0 held=0 ignored=0 failed=1 rejected=0"
    );
    assert_eq!(bench.claims().len(), 0);
}

#[test]
fn one_bad_record_of_three_leaves_the_others_alone() {
    let bench = Workbench::new(ECHO);
    let records = [record("a.tif", "e1"), "7".to_owned(), record("b.tif", "e1")];
    bench.write("event.json", notification(&records));
    let ran = bench.run(&["run", "event.json"]);
    assert_refused(&ran, 1, &["event.json"]);
    assert_eq!(
        ran.last_line(),
        "processed=2 skipped=0 held=0 ignored=0 failed=0 rejected=1"
    );
}

/// A contract that cannot be used: nothing is done, not even a store made.
#[track_caller]
fn assert_no_contract(contract: &str, words: &[&str]) {
    let bench = Workbench::new(ECHO);
    bench.write("pipeline.toml", contract);
    bench.write("event.json", notification(&[record("a.tif", "e1")]));
    for command in ["run", "id"] {
        assert_refused(&bench.run(&[command, "event.json"]), 2, words);
    }
    assert!(!bench.path("firstclaim.db").exists());
}

const HEAD: &str = "name = 'n'\nversion = '1'\nscheme = 'strict'\n";

#[test]
fn numbers_that_cannot_be_hashed_exactly() {
    for (value, word) in [
        ("9007199254740993", "9007199254740993"),
        ("inf", "finite"),
        ("nan", "finite"),
        ("1e400", "overflow"),
    ] {
        assert_no_contract(&format!("{HEAD}[params]\nx = {value}\n"), &["x", word]);
    }
}

#[test]
fn unknown_keys_name_the_nearest_known_one() {
    assert_no_contract(&format!("{HEAD}shceme = 'x'\n"), &["shceme", "scheme"]);
    assert_no_contract(
        &format!("{HEAD}[select]\ninclud = []\n"),
        &["includ", "include"],
    );
    assert_no_contract(
        &format!("{HEAD}[job]\nexec = ['a']\ntimeout = 3\n"),
        &["timeout", "timeout_seconds"],
    );
}

#[test]
fn a_placeholder_inside_a_script() {
    assert_no_contract(
        &format!("{HEAD}[job]\nexec = ['sh', '-c', 'cat {{path}}']\n"),
        &["{path}", "\"$1\"", "FIRSTCLAIM_JOB_PATH"],
    );
    assert_no_contract(
        &format!("{HEAD}[job]\nexec = ['cat', '{{paht}}']\n"),
        &["{paht}", "path"],
    );
}

#[test]
fn a_contract_that_is_missing_or_no_toml() {
    assert_no_contract("name = ", &["pipeline.toml"]);
    let bench = Workbench::new(ECHO);
    assert_refused(
        &bench.run(&["run", "--pipeline", "none.toml", "."]),
        2,
        &["none.toml"],
    );
    std::fs::remove_file(bench.path("pipeline.toml")).unwrap();
    assert_refused(&bench.run(&["run", "."]), 2, &["--pipeline"]);
    assert_refused(&bench.run(&["id", "."]), 2, &["--scheme"]);
}

#[test]
fn stores_that_cannot_be_used() {
    let bench = Workbench::new(ECHO);
    bench.write("event.json", notification(&[record("a.tif", "e1")]));
    bench.write(
        "corrupt.db",
        "this is no database, and long enough to be looked at as one".repeat(20),
    );
    bench.write("folder/file", "");
    for (store, code, words) in [
        ("mysql://host/db", 2, ["mysql://host/db", "sqlite:PATH"]),
        ("sqlite:", 2, ["sqlite:", "sqlite:PATH"]),
        ("sqlite:corrupt.db", 1, ["corrupt.db", "database"]),
        ("sqlite:folder", 1, ["folder", "opened"]),
        ("sqlite:missing/claims.db", 1, ["missing", "opened"]),
        ("sqlite:/proc/claims.db", 1, ["/proc/claims.db", "opened"]),
    ] {
        let ran = bench.run(&["run", "--store", store, "event.json"]);
        assert_refused(&ran, code, &words);
        assert_eq!(ran.out, "", "{ran:?}");
    }
    let corrupt = bench.read("corrupt.db");
    assert!(
        corrupt.starts_with("this is no database"),
        "the file was written to"
    );
    assert_refused(
        &bench.run(&["claims", "list", "--store", "sqlite:none.db"]),
        2,
        &["none.db"],
    );
    assert!(!bench.path("none.db").exists());
}

#[test]
fn a_full_disk() {
    let bench = Workbench::new(ECHO);
    let records: Vec<_> = (0..400)
        .map(|at| record(&format!("{at}-{}.tif", "x".repeat(900)), "e1"))
        .collect();
    bench.write("events.json", notification(&records));
    // A limit on file size stands in for the disk's: writes beyond it fail, as they do on a full disk.
    let mut shell = Command::new("sh");
    shell
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 256; exec \"$0\" run events.json",
        ])
        .arg(program());
    // An end that cannot be written is tried again for as long as its lease lasts.
    let ran = Ran::from(
        shell
            .env("FIRSTCLAIM_LEASE_SECONDS", "2")
            .current_dir(bench.path("."))
            .output()
            .unwrap(),
    );
    assert_refused(&ran, 1, &["the claim store", "left"]);
    let counts: Vec<u64> = ran
        .last_line()
        .split(' ')
        .map(|count| count.split_once('=').unwrap().1.parse().unwrap())
        .collect();
    assert!(
        counts[0] > 0 && counts[4] > 0 && counts[0] + counts[4] < 400,
        "{:?}",
        ran.last_line()
    );
    // With room again, what is left is done, and what was done is not done twice.
    let ran = bench.run(&["run", "events.json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        bench
            .claims()
            .iter()
            .filter(|claim| claim["status"] == "done")
            .count(),
        400
    );
}

#[test]
fn a_file_name_that_is_not_utf8() {
    let bench = Workbench::new(ECHO);
    bench.write("in/a.tif", "a");
    std::fs::write(bench.path("in").join(OsStr::from_bytes(b"b\xff.tif")), "b").unwrap();
    let ran = bench.run(&["run", "in"]);
    assert_refused(&ran, 1, &["b\\xFF.tif", "UTF-8"]);
    assert_eq!(
        ran.last_line(),
        "processed=1 skipped=0 held=0 ignored=0 failed=1 rejected=0"
    );
}

#[test]
fn sources_that_are_not_there() {
    let bench = Workbench::new(ECHO);
    assert_refused(&bench.run(&["run", "none.json"]), 2, &["none.json"]);
    assert_refused(&bench.run(&["id", "none.json"]), 1, &["none.json"]);
    assert_refused(&bench.run(&["run"]), 2, &["FILE|DIR"]);
    assert!(!bench.path("firstclaim.db").exists());
}

#[test]
fn wrong_settings_and_arguments() {
    let bench = Workbench::new(ECHO);
    for (name, value, words) in [
        (
            "FIRSTCLAIM_LEASE_SECOND",
            "3",
            ["FIRSTCLAIM_LEASE_SECOND", "FIRSTCLAIM_LEASE_SECONDS"],
        ),
        (
            "FIRSTCLAIM_LEASE_SECONDS",
            "soon",
            ["FIRSTCLAIM_LEASE_SECONDS", "soon"],
        ),
        ("FIRSTCLAIM_LOG", "a=b=c", ["FIRSTCLAIM_LOG", "a=b=c"]),
    ] {
        let mut command = bench.command(&["claims", "list"]);
        assert_refused(
            &Ran::from(command.env(name, value).output().unwrap()),
            2,
            &words,
        );
    }
    assert_refused(&bench.run(&["claims", "show", "ABC"]), 2, &["ABC", "64"]);
    assert_refused(
        &bench.run(&["run", "--concurrency", "0", "."]),
        2,
        &["concurrency"],
    );
    assert_refused(
        &bench.run(&["vectors", "pipeline.toml"]),
        1,
        &["pipeline.toml"],
    );
    assert_refused(
        &bench.run(&["id", "--scheme", "md5", "."]),
        2,
        &["strict, reference or ingest"],
    );
}

#[test]
fn vectors_that_do_not_agree_or_are_none() {
    let bench = Workbench::new(ECHO);
    bench.write("none.json", r#"{"scheme":"ingest","vectors":[]}"#);
    assert_refused(
        &bench.run(&["vectors", "none.json"]),
        1,
        &["none.json", "no rows"],
    );
    let row = format!(
        r#"{{"bucket":"b","key":"k","etag":"t","job_id":"{}"}}"#,
        "0".repeat(64)
    );
    bench.write(
        "wrong.json",
        format!(r#"{{"scheme":"ingest","vectors":[{row}]}}"#),
    );
    let ran = bench.run(&["vectors", "wrong.json"]);
    assert_refused(&ran, 1, &["wrong.json", "expected 0000"]);
    assert_eq!(ran.last_line(), "0 passed, 1 failed");
}

#[test]
fn ingest_has_no_ids_for_files() {
    let bench = Workbench::new(ECHO);
    bench.write(
        "pipeline.toml",
        format!("{HEAD}[job]\n{ECHO}\n").replace("strict", "ingest"),
    );
    bench.write("in/a.tif", "a");
    assert_refused(&bench.run(&["run", "in"]), 2, &["ingest", "S3"]);
}

#[test]
fn a_setting_that_is_not_utf8() {
    let bench = Workbench::new(ECHO);
    let mut command = bench.command(&["claims", "list"]);
    let ran = Ran::from(
        command
            .env("FIRSTCLAIM_ALLOW", OsStr::from_bytes(b"geo\xff"))
            .output()
            .unwrap(),
    );
    assert_refused(&ran, 2, &["FIRSTCLAIM_ALLOW", "UTF-8"]);
}

#[test]
fn control_characters_in_keys_stay_in_their_line() {
    let bench = Workbench::new(ECHO);
    let key = format!("a.shp%0A{}++s3%3A//b/%1B%5B31mforged.shp", "0".repeat(64));
    bench.write(
        "event.json",
        notification(&[record(&key, "e1"), record(&key, "")]),
    );
    let ran = bench.run(&["id", "event.json"]);
    assert_eq!((ran.code, ran.out.lines().count()), (1, 1), "{ran:?}");
    assert!(
        !ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'),
        "{ran:?}"
    );
}

/// A key that would set the title, clear the screen, turn the line's direction and forge lines of ours, through every command that
/// can print it.
#[test]
fn no_command_lets_a_key_reach_the_terminal() {
    let bench = Workbench::new(r#"exec = ["false"]"#);
    let key = "a%1B%5D0%3Bt%07%0Afirstclaim%3A+all+well%0D%C2%9B2J%E2%80%AE%E2%80%A8.shp";
    bench.write("event.json", notification(&[record(key, "e1")]));
    bench.write("broken.json", "{\"\u{9b}2J\u{202e}\": 1}");
    let id = bench.run(&["id", "event.json"]);
    let id = id.out.split_whitespace().next().unwrap().to_owned();
    let commands: &[&[&str]] = &[
        &["id", "event.json"],
        &["id", "event.json", "--json"],
        &["explain", "event.json"],
        &["explain", "event.json", "--json"],
        &["explain", "broken.json"],
        &["run", "event.json", "broken.json"],
        &["run", "event.json", "--json"],
        &["claims", "list"],
        &["claims", "list", "--json"],
        &["claims", "show", &id],
        &["claims", "show", &id, "--json"],
        &["claims", "sweep", "--grace", "0"],
        &["claims", "sweep", "--grace", "0", "--dry-run"],
        &["claims", "redrive", &id],
        &["claims", "release", &id],
        &["claims", "show", "\u{1b}[2J"],
    ];
    for command in commands {
        let ran = bench.run(command);
        for text in [&ran.out, &ran.err] {
            assert!(
                !text.contains(['\u{1b}', '\u{7}', '\r', '\u{9b}', '\u{202e}', '\u{2028}']),
                "{command:?}: {ran:?}"
            );
            assert!(
                !text
                    .lines()
                    .any(|line| line.starts_with("firstclaim: all well")),
                "{command:?}: {ran:?}"
            );
        }
    }
}

#[test]
fn the_store_in_a_folder_of_objects_is_no_object() {
    let bench = Workbench::new(ECHO);
    bench.write("a.tif", "a");
    let ran = bench.run(&["run", "."]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = bench.run(&["run", "."]);
    assert!(
        ran.last_line().starts_with("processed=0 skipped=2 "),
        "{ran:?}"
    );
}

#[test]
fn two_folders_of_one_name_need_another_name() {
    let bench = Workbench::new(ECHO);
    bench.write("one/in/a.tif", "a");
    bench.write("two/in/a.tif", "a");
    assert_refused(
        &bench.run(&["run", "one/in", "two/in"]),
        2,
        &["one/in", "two/in"],
    );
    let ran = bench.run(&["run", "one/in", "other=two/in"]);
    assert!(ran.last_line().starts_with("processed=2 "), "{ran:?}");
}

#[test]
fn a_store_that_is_deleted_while_it_is_in_use() {
    let bench = Workbench::new(
        "exec = ['sh', '-c', 'touch started; while ! [ -e go ]; do sleep 0.05; done']",
    );
    bench.write("event.json", notification(&[record("a.tif", "e1")]));
    let mut command = bench.command(&["run", "event.json"]);
    let worker = bench.start("worker", command.env("FIRSTCLAIM_LEASE_SECONDS", "3"));
    tests::eventually("the job runs", || bench.path("started").exists());
    std::fs::remove_file(bench.path("firstclaim.db")).unwrap();
    bench.write("go", "");
    let ran = worker.end(&bench);
    assert_refused(&ran, 1, &["firstclaim.db", "deleted or replaced"]);
}

#[test]
fn what_is_kept_of_an_unreadable_event_is_what_the_program_says() {
    for (length, whole) in [
        (20_000, true),
        (32_767, true),
        (32_768, false),
        (1 << 20, false),
    ] {
        let bench = Workbench::new(ECHO);
        let body = format!("{{\"what\":\"{}\"}}", "x".repeat(length - 11));
        bench.write("event.json", &body);
        let explained = bench.run(&["explain", "event.json"]).out;
        let ran = bench.run(&["run", "event.json"]);
        assert_refused(
            &ran,
            1,
            &["rejected (unreadable)", "no known event envelope"],
        );
        assert_eq!(ran.err.contains("too long to be kept"), !whole, "{ran:?}");
        let claim = bench.claim();
        let kept = claim["body"].as_str().unwrap();
        assert_eq!(kept, &body[..body.len().min(32_768)]);
        let id = claim["job_id"].as_str().unwrap();
        let shown = bench.run(&["claims", "show", id]).out;
        let sent = bench.run(&["claims", "redrive", id]);
        if whole {
            assert!(explained.contains("with its bytes"), "{explained}");
            assert!(shown.contains("its body is kept here"), "{shown}");
            assert!(shown.contains("`firstclaim claims redrive"), "{shown}");
            assert_eq!(sent.code, 0, "{sent:?}");
        } else {
            assert!(explained.contains("not acknowledge it"), "{explained}");
            assert!(shown.contains("keeps it whole"), "{shown}");
            assert!(!shown.contains("claims redrive"), "{shown}");
            assert_eq!((sent.code, &*sent.out), (1, ""), "{sent:?}");
            assert!(sent.err.contains("only the first 32768 bytes"), "{sent:?}");
        }
    }
}
