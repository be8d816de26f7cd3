//! What this machine cannot do is not the jobs' fault: a run says so and ends, no attempt is used, and nothing is lost.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;
use tests::{Ran, Workbench, notification, record};

/// Reads its object; fails until the file `mended` is there.
const READER: &str = r#"exec = ["sh", "-c", 'test -e mended && cat "$1" >> ran', "sh", "{path}"]"#;

/// Sweeps at once, and hands the events to `run -` with these arguments beside them.
fn recover(bench: &Workbench, arguments: &[&str]) -> Ran {
    let swept = bench.run(&["claims", "sweep", "--grace", "0"]);
    assert_eq!(swept.code, 0, "{swept:?}");
    bench.write("swept.json", &swept.out);
    let mut run = bench.command(&["run", "-"]);
    run.args(arguments);
    run.stdin(std::fs::File::open(bench.path("swept.json")).unwrap());
    Ran::from(run.output().unwrap())
}

fn counts(processed: u32, failed: u32) -> String {
    format!("processed={processed} skipped=0 held=0 ignored=0 failed={failed} rejected=0")
}

/// The run says this, did nothing, and ends as a wrong configuration does.
fn gave_up(ran: &Ran, why: &str) {
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.last_line().starts_with("processed=0 "), "{ran:?}");
    assert!(ran.last_line().ends_with(" rejected=0"), "{ran:?}");
    let lines: Vec<_> = ran.err.lines().collect();
    let (last, before) = lines.split_last().unwrap();
    assert!(
        last.contains("this machine could not do 3 jobs in a row"),
        "{last}"
    );
    assert!(before.iter().any(|line| line.contains(why)), "{before:?}");
}

fn attempts(claim: &Value) -> (&Value, &Value, &Value) {
    (&claim["status"], &claim["attempt"], &claim["uncounted"])
}

#[test]
fn a_folders_jobs_are_recovered_by_a_run_that_is_given_the_folder_and_kept_by_one_that_is_not() {
    let bench = Workbench::new(READER);
    bench.write("inbox/a.tif", "a");
    assert_eq!(bench.run(&["run", "inbox"]).code, 1);
    let failed = bench.claim();
    assert_eq!(attempts(&failed), (&"failed".into(), &3.into(), &0.into()));
    bench.write("mended", "");
    for other in [&[][..], &["other"]] {
        std::fs::create_dir_all(bench.path("other")).unwrap();
        for _ in 0..4 {
            let ran = recover(&bench, other);
            gave_up(&ran, "file://inbox/a.tif");
            gave_up(&ran, "`firstclaim run - inbox=DIR`");
        }
    }
    let kept = bench.claim();
    assert_eq!(attempts(&kept), attempts(&failed), "{kept}");
    let ran = recover(&bench, &["inbox=inbox"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(bench.claim()["status"], "done");
    assert_eq!(bench.read("ran"), "a");
}

#[test]
fn a_misspelt_program_uses_no_attempts_of_two_hundred_files() {
    const FILES: u32 = 200;
    let bench = Workbench::new(
        "exec = ['firstclaim-no-such-program', '{path}']\n[select]\ninclude = ['**/*.tif']",
    );
    for file in 0..FILES {
        bench.write(&format!("inbox/{file:03}.tif"), "x");
        // What is no job stands between those that are.
        bench.write(&format!("inbox/{file:03}.txt"), "x");
    }
    for run in 1..=6 {
        let ran = bench.run(&["run", "--concurrency", "2", "inbox"]);
        gave_up(&ran, "\"firstclaim-no-such-program\" cannot be started");
        assert!(
            bench.claims().len() <= 4 * run,
            "{:?}",
            bench.claims().len()
        );
    }
    for claim in bench.claims() {
        assert_eq!(
            attempts(&claim),
            (&"failed".into(), &claim["uncounted"], &claim["attempt"])
        );
        assert_eq!(claim["reason"], "unavailable");
    }
    let id = bench.claims()[0]["job_id"].as_str().unwrap().to_owned();
    let shown = bench.run(&["claims", "show", &id]).out;
    assert!(
        shown.contains("does not count") && shown.contains(" not counted)"),
        "{shown}"
    );
    let mended = bench
        .read("pipeline.toml")
        .replace("firstclaim-no-such-program", "true");
    bench.write("pipeline.toml", mended);
    let ran = bench.run(&["run", "inbox"]);
    assert_eq!(
        (ran.code, ran.last_line()),
        (
            0,
            counts(FILES, 0)
                .replace("ignored=0", "ignored=200")
                .as_str()
        ),
        "{ran:?}"
    );
}

#[test]
fn one_file_is_enough_to_find_that_nothing_can_be_done_here() {
    let bench = Workbench::new("exec = ['./job', '{path}']");
    bench.write("inbox/a.tif", "a");
    gave_up(&bench.run(&["run", "inbox"]), "\"./job\" cannot be started");
    let job = bench.write("job", "#!/no/such/interpreter\n");
    gave_up(&bench.run(&["run", "inbox"]), "ermission denied");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&job, executable).unwrap();
    gave_up(&bench.run(&["run", "inbox"]), "\"./job\" cannot be started");
    bench.write("job", "#!/bin/sh\ncat \"$1\" > ran\n");
    // The copy has nowhere to lie.
    let mut run = bench.command(&["run", "inbox"]);
    let ran = Ran::from(
        run.env("TMPDIR", bench.path("no/such/folder"))
            .output()
            .unwrap(),
    );
    gave_up(&ran, "no/such/folder");
    let claim = bench.claim();
    assert_eq!(attempts(&claim), (&"failed".into(), &12.into(), &12.into()));
    let ran = bench.run(&["run", "inbox"]);
    assert_eq!(
        (ran.code, ran.last_line()),
        (0, counts(1, 0).as_str()),
        "{ran:?}"
    );
    assert_eq!(bench.read("ran"), "a");
}

#[test]
fn an_event_of_a_cloud_that_this_build_cannot_read_is_kept_for_one_that_can() {
    let bench = Workbench::new("exec = ['cat', '{path}']");
    bench.write(
        "event.json",
        r#"{"type":"google.cloud.storage.object.v1.finalized","specversion":"1.0","id":"1","source":"//storage.googleapis.com/projects/_/buckets/geo","subject":"objects/a.tif","data":{"bucket":"geo","name":"a.tif","generation":"1"}}"#,
    );
    gave_up(
        &bench.run(&["run", "event.json"]),
        "cannot be read by this build",
    );
    assert_eq!(bench.claims(), Vec::<Value>::new());
}

#[test]
fn a_job_that_fails_by_itself_uses_its_attempts_as_ever() {
    let bench = Workbench::new("exec = ['false']");
    let records: Vec<_> = (0..5).map(|n| record(&format!("{n}.tif"), "e1")).collect();
    bench.write("event.json", notification(&records));
    let ran = bench.run(&["run", "event.json"]);
    assert_eq!(
        (ran.code, ran.last_line()),
        (1, counts(0, 5).as_str()),
        "{ran:?}"
    );
    for claim in bench.claims() {
        assert_eq!(attempts(&claim), (&"failed".into(), &3.into(), &0.into()));
    }
}
