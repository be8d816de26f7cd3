//! `claims sweep | run -` and `claims redrive | run -` with the real program: what was left undone is finished, once.

use std::{
    collections::BTreeSet,
    process::{Command, Stdio},
};

use serde_json::Value;
use tests::{Ran, Workbench, eventually, kill, notification, program, record};

const ONCE: &str = r#"exec = ["sh", "-c", 'echo "$FIRSTCLAIM_JOB_KEY" >> ran']"#;

/// Fails until the file `mended` is there.
const BROKEN: &str =
    r#"exec = ["sh", "-c", 'test -e mended && echo "$FIRSTCLAIM_JOB_KEY" >> ran']"#;

const SWEEP: &[&str] = &["claims", "sweep", "--grace", "0"];

/// Runs the program, and hands its standard output to `run -`.
fn piped(bench: &Workbench, arguments: &[&str]) -> (Ran, Ran) {
    let first = bench.run(arguments);
    bench.write("piped", &first.out);
    let mut run = bench.command(&["run", "-"]);
    run.stdin(std::fs::File::open(bench.path("piped")).unwrap());
    (first, Ran::from(run.output().unwrap()))
}

fn counts(processed: u32, rejected: u32) -> String {
    format!("processed={processed} skipped=0 held=0 ignored=0 failed=0 rejected={rejected}")
}

#[test]
fn a_killed_workers_job_that_nobody_delivers_again_is_finished_by_a_sweep() {
    let bench = Workbench::new(
        r#"exec = ["sh", "-c", 'echo $$ >> started; if [ "$FIRSTCLAIM_JOB_ATTEMPT" = 1 ]; then sleep 600; fi']"#,
    );
    bench.write("event.json", notification(&[record("a+b.tif", "e1")]));
    let mut run = bench.command(&["run", "event.json"]);
    let worker = bench.start("killed", run.env("FIRSTCLAIM_LEASE_SECONDS", "1"));
    eventually("the job starts", || bench.read("started").ends_with('\n'));
    worker.signal("KILL");
    std::fs::remove_file(bench.path("event.json")).unwrap();
    let claim = || bench.claim();
    eventually("its lease ends, and a sweep finds it", || {
        let (swept, ran) = piped(&bench, SWEEP);
        assert_eq!((swept.code, ran.code), (0, 0), "{swept:?} {ran:?}");
        claim()["status"] == "done"
    });
    kill("KILL", bench.read("started").lines().next().unwrap());
    let done = claim();
    assert_eq!(
        (&done["attempt"], &done["redrives"], &done["key"]),
        (&2.into(), &1.into(), &"a b.tif".into()),
        "{done}"
    );
    let (swept, ran) = piped(&bench, SWEEP);
    assert_eq!(swept.err, "sent=0 left=0 reported=0 failed=0 purged=0\n");
    assert_eq!(
        ran.last_line(),
        counts(0, 0),
        "nothing on standard input is nothing to do"
    );
}

#[test]
fn of_many_sweeps_at_once_one_sends_each_event() {
    const ROWS: usize = 40;
    let bench = Workbench::new(BROKEN);
    let records: Vec<_> = (0..ROWS)
        .map(|row| record(&format!("{row}.tif"), "e1"))
        .collect();
    bench.write("event.json", notification(&records));
    assert_eq!(bench.run(&["run", "event.json"]).code, 1);
    let sweeps: Vec<_> = (0..8)
        .map(|sweep| {
            bench.start(
                &format!("sweep{sweep}"),
                &mut bench.command(&["claims", "sweep", "--grace", "1"]),
            )
        })
        .collect();
    // What failed within the last second is left by the first round.
    for sweep in sweeps {
        assert_eq!(sweep.end(&bench).code, 0);
    }
    eventually("every row is old enough, and is sent", || {
        bench.run(&["claims", "sweep", "--grace", "1"]);
        bench.claims().iter().all(|claim| claim["redrives"] != 0)
    });
    let sweeps: Vec<_> = (0..8)
        .map(|sweep| {
            let mut command =
                bench.command(&["claims", "redrive", "--status", "failed", "--grace", "600"]);
            bench.start(&format!("redrive{sweep}"), &mut command)
        })
        .collect();
    for sweep in sweeps {
        sweep.end(&bench);
    }
    // All rows are marked for ten minutes: however many sweep, nothing is sent.
    let left = bench.run(&["claims", "sweep", "--grace", "600"]);
    assert_eq!(
        (left.out.as_str(), left.err.as_str()),
        ("", "sent=0 left=40 reported=0 failed=0 purged=0\n")
    );
    let mut sent = Vec::new();
    for sweep in 0..8 {
        sent.extend(
            bench
                .read(&format!("sweep{sweep}.out"))
                .lines()
                .map(str::to_owned),
        );
    }
    let distinct: BTreeSet<_> = sent.iter().collect();
    assert_eq!(
        distinct.len(),
        sent.len(),
        "two sweeps sent one event with one count"
    );
}

#[test]
fn a_failed_job_is_redriven_once_it_is_mended_and_a_done_one_only_on_demand() {
    let bench = Workbench::new(BROKEN);
    bench.write("event.json", notification(&[record("a.tif", "e1")]));
    assert_eq!(bench.run(&["run", "event.json"]).code, 1);
    bench.write("mended", "");
    let id = bench.claim()["job_id"].as_str().unwrap().to_owned();
    let (sent, ran) = piped(&bench, &["claims", "redrive", &id]);
    assert_eq!((sent.code, &*sent.err), (0, "sent=1 refused=0\n"));
    assert_eq!(ran.last_line(), counts(1, 0), "{ran:?}");
    let refused = bench.run(&["claims", "redrive", &id]);
    assert_eq!((refused.code, &*refused.out), (1, ""));
    assert!(refused.err.contains("--done"), "{refused:?}");
    let (_, ran) = piped(&bench, &["claims", "redrive", "--done", &id]);
    assert_eq!(ran.last_line(), counts(1, 0), "{ran:?}");
    assert_eq!(bench.read("ran"), "a.tif\na.tif\n");
    let claim = bench.claim();
    assert_eq!(
        (&claim["redrives"], &claim["released_from"]),
        (&2.into(), &"done".into()),
        "{claim}"
    );
}

#[test]
fn a_refused_event_becomes_its_job_once_it_is_allowed() {
    let bench = Workbench::new(ONCE);
    bench.write("event.json", notification(&[record("a.tif", "e1")]));
    let mut run = bench.command(&["run", "event.json"]);
    let refused = Ran::from(run.env("FIRSTCLAIM_ALLOW", "other").output().unwrap());
    assert_eq!(refused.code, 1);
    let (_, ran) = piped(&bench, &["claims", "redrive", "--status", "rejected"]);
    assert_eq!((ran.code, ran.last_line()), (0, &*counts(1, 0)), "{ran:?}");
    let told: BTreeSet<_> = bench
        .claims()
        .iter()
        .map(|claim| format!("{} {}", claim["status"], claim["reason"]))
        .collect();
    let expected = ["\"done\" \"redriven\"", "\"done\" null"];
    assert_eq!(told, expected.map(str::to_owned).into());
}

#[test]
fn an_unreadable_event_that_still_is_stays_rejected() {
    let bench = Workbench::new(ONCE);
    bench.write("event.json", "{\"x\":1}");
    assert_eq!(bench.run(&["run", "event.json"]).code, 1);
    let (_, ran) = piped(&bench, &["claims", "redrive", "--status", "rejected"]);
    assert_eq!((ran.code, ran.last_line()), (1, &*counts(0, 1)), "{ran:?}");
    let claim = bench.claim();
    assert_eq!(
        (&claim["reason"], &claim["redrives"]),
        (&"unreadable".into(), &1.into()),
        "{claim}"
    );
    // An event of which only the beginning was kept cannot be sent.
    bench.write(
        "event.json",
        format!("{{\"x\":\"{}\"}}", "y".repeat(40_000)),
    );
    bench.run(&["run", "event.json"]);
    let sent = bench.run(&["claims", "redrive", "--status", "rejected"]);
    assert_eq!((sent.code, sent.out.lines().count()), (1, 1));
    assert!(
        sent.err.contains("32768") && sent.err.ends_with("sent=1 refused=1\n"),
        "{sent:?}"
    );
}

#[test]
fn claims_of_another_version_are_told_and_not_swept() {
    let bench = Workbench::new(BROKEN);
    bench.write("event.json", notification(&[record("a.tif", "e1")]));
    bench.run(&["run", "event.json"]);
    let before = bench.claim();
    let pipeline = bench
        .read("pipeline.toml")
        .replace("version = '1'", "version = '2'");
    bench.write("pipeline.toml", pipeline);
    let swept = bench.run(SWEEP);
    assert_eq!((swept.code, &*swept.out), (0, ""));
    assert!(
        swept.err.contains("tests 1") && swept.err.ends_with("reported=1 failed=0 purged=0\n"),
        "{swept:?}"
    );
    let swept = bench.run(&[SWEEP, &["--json"]].concat());
    for line in swept.err.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    assert_eq!(bench.claim(), before);
}

#[test]
fn a_dry_run_lists_and_writes_nothing() {
    let bench = Workbench::new(BROKEN);
    bench.write("event.json", notification(&[record("a.tif", "e1")]));
    bench.run(&["run", "event.json"]);
    let before = bench.claim();
    let swept = bench.run(&[SWEEP, &["--dry-run"]].concat());
    assert!(
        swept.out.ends_with("  failed  s3://geo-in/a.tif\n"),
        "{swept:?}"
    );
    let swept = bench.run(&[SWEEP, &["--dry-run", "--json"]].concat());
    assert_eq!(serde_json::from_str::<Value>(&swept.out).unwrap(), before);
    assert_eq!(bench.claim(), before);
}

#[test]
fn an_event_that_nobody_reads_is_sent_by_the_next_sweep() {
    let bench = Workbench::new(BROKEN);
    bench.write("event.json", notification(&[record("a.tif", "e1")]));
    bench.run(&["run", "event.json"]);
    // A pipe without a reader: the shell's `true` has ended before the program writes.
    let mut pipe = Command::new("sh");
    pipe.args([
        "-c",
        r#"{ sleep 1; "$1" claims sweep --grace 0; echo $? > code; } | true"#,
        "sh",
    ])
    .arg(program())
    .current_dir(bench.path(""))
    .stderr(Stdio::null());
    pipe.status().unwrap();
    eventually("it ends", || !bench.read("code").is_empty());
    assert_eq!(bench.read("code"), "1\n");
    assert_eq!(bench.claim()["redrives"], 1);
    bench.write("mended", "");
    let (_, ran) = piped(&bench, SWEEP);
    assert_eq!(ran.last_line(), counts(1, 0), "{ran:?}");
}

#[test]
fn lines_of_a_file_are_events_of_their_own() {
    let bench = Workbench::new(ONCE);
    let event = |key: &str| notification(&[record(key, "e1")]);
    bench.write(
        "events.jsonl",
        format!("{}\n{{\n\n{}\n", event("a.tif"), event("b.tif")),
    );
    let ran = bench.run(&["run", "events.jsonl"]);
    assert_eq!((ran.code, ran.last_line()), (1, &*counts(2, 1)), "{ran:?}");
    assert_eq!(bench.run(&["id", "events.jsonl"]).out.lines().count(), 2);
    // Nothing is an event like any other that cannot be read, unless nothing was sent at all.
    let nothing = bench.run(&["id", "-"]);
    assert_eq!((nothing.code, &*nothing.out), (0, ""));
}

#[test]
fn an_azure_blob_of_0_bytes_is_recorded_and_stays_so_where_nobody_can_look() {
    let bench = Workbench::new(ONCE);
    for event in ["zero_length_openwrite", "append_blob"] {
        let file = format!("eventgrid_{event}.json");
        let text = std::fs::read(tests::root().join("tests/events").join(&file)).unwrap();
        let path = bench.write(&file, text);
        let explained = bench.run(&["explain", path.to_str().unwrap()]);
        assert!(
            explained
                .out
                .contains("record that it waits, and acknowledge it"),
            "{explained:?}"
        );
        let ran = bench.run(&["run", path.to_str().unwrap()]);
        assert_eq!(
            (ran.code, ran.last_line()),
            (0, counts(0, 0).replace("ignored=0", "ignored=1").as_str()),
            "{ran:?}"
        );
    }
    let waiting = || {
        let claims = bench.claims();
        let mut waiting: Vec<_> = claims
            .iter()
            .map(|claim| (claim["uri"].clone(), claim["status"].clone()))
            .collect();
        waiting.sort_by_key(|(uri, _)| uri.to_string());
        waiting
    };
    let expected = ["roads.shp", "tracks.csv"].map(|name| {
        let uri = format!("azblob://acct/geo-in/in/{name}");
        (Value::from(uri), Value::from("waiting"))
    });
    assert_eq!(waiting(), expected);
    let ids: Vec<_> = bench
        .claims()
        .iter()
        .map(|claim| claim["job_id"].as_str().unwrap().to_owned())
        .collect();
    let (_, ran) = piped(&bench, &["claims", "redrive", &ids[0], &ids[1]]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(waiting(), expected);
    assert_eq!(bench.read("ran"), "");
}

#[test]
fn a_pause_between_attempts_is_kept_by_the_run_and_by_sweeps_and_not_by_who_has_mended_the_job() {
    let bench = Workbench::new(&format!("{BROKEN}\nretry_seconds = 3600"));
    bench.write("event.json", notification(&[record("a.tif", "e1")]));
    let run = bench.start("pausing", &mut bench.command(&["run", "event.json"]));
    eventually("the job failed once", || {
        bench.path("firstclaim.db").exists()
            && bench
                .claims()
                .first()
                .is_some_and(|claim| claim["status"] == "failed")
    });
    let claim = bench.claim();
    assert_eq!(claim["attempt"], 1, "{claim}");
    let (failed, until) = (&claim["finished_at"], &claim["waiting_until"]);
    assert!(until.as_str() > failed.as_str(), "{claim}");
    let (swept, _) = piped(&bench, SWEEP);
    assert_eq!(swept.err, "sent=0 left=1 reported=0 failed=0 purged=0\n");
    // It is still in its pause, half an hour at least.
    run.signal("INT");
    let ran = run.end(&bench);
    assert_eq!(
        (ran.code, ran.last_line()),
        (1, counts(0, 0).replace("failed=0", "failed=1").as_str()),
        "{ran:?}"
    );
    assert_eq!(bench.claim()["attempt"], 1);
    bench.write("mended", "");
    let ran = bench.run(&["run", "event.json"]);
    assert_eq!(ran.last_line(), counts(1, 0), "{ran:?}");
}
