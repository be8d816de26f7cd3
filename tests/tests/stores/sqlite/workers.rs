//! Workers as processes: racing, frozen, interrupted (killed ones are in `crashes.rs`). One SQLite file, the real program, real signals.

use std::process::Command;

use tests::{
    PATIENT, Workbench, eventually, is_alive, notification, race, record,
    sqlite::{SqliteFile, freeze},
};

/// The run of the one event, whose lease ends soon once nobody renews it; it logs what becomes of events.
fn run_with_a_short_lease(bench: &Workbench) -> Command {
    let mut command = bench.command(&["run", "event.json"]);
    command
        .env("FIRSTCLAIM_LEASE_SECONDS", "2")
        .env("FIRSTCLAIM_LOG", "info");
    command
}

fn one_event(bench: &Workbench) {
    bench.write("event.json", notification(&[record("a.tif", "e1")]));
}

/// The process of the job's first attempt, once it runs.
fn first_job(bench: &Workbench) -> String {
    eventually("the first attempt starts", || {
        bench.read("started").ends_with('\n')
    });
    bench
        .read("started")
        .split_whitespace()
        .nth(1)
        .unwrap()
        .to_owned()
}

#[test]
fn twenty_processes_run_each_of_a_thousand_jobs_once() {
    race(20, 2_000, &[]);
}

#[test]
fn a_hundred_processes_run_each_of_a_thousand_jobs_once() {
    race(100, 200, &[]);
}

#[test]
fn a_hundred_processes_look_while_a_writer_stands_still() {
    let bench = Workbench::new(r#"exec = ["true"]"#);
    one_event(&bench);
    assert_eq!(bench.run(&["run", "event.json"]).code, 0);
    let done = bench.claim();
    let id = done["job_id"].as_str().unwrap();
    let lock = SqliteFile::locked(&bench);
    let looks = [
        &["claims", "list", "--status", "done"][..],
        &["claims", "show", id],
        &["explain", "event.json"],
        // All of its jobs are done: it has nothing to write.
        &["run", "event.json"],
    ];
    let looking: Vec<_> = (0..100)
        .map(|at| {
            bench.start(
                &format!("look-{at}"),
                &mut bench.command(looks[at % looks.len()]),
            )
        })
        .collect();
    for look in looking {
        let ran = look.end(&bench);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(
            ran.out.contains(id) || ran.out.contains("skipped=1"),
            "{ran:?}"
        );
    }
    // Whoever waited would have been told that the file stayed locked.
    lock.release();
    assert_eq!(bench.claim(), done);
}

#[test]
fn a_frozen_worker_finds_its_claim_lost_and_its_child_is_gone() {
    let bench = Workbench::new(PATIENT);
    one_event(&bench);
    let run = || run_with_a_short_lease(&bench);
    let frozen = bench.start("frozen", &mut run());
    let child = first_job(&bench);
    freeze(&bench, &frozen);
    let ran = bench.start("other", &mut run()).end(&bench);
    assert_eq!(ran.code, 0, "{ran:?}");
    let done = bench.claim();
    assert_eq!(
        (done["status"].as_str(), done["attempt"].as_u64()),
        (Some("done"), Some(2)),
        "{done}"
    );
    assert!(
        is_alive(&child),
        "the frozen worker's child was to outlive the takeover"
    );
    frozen.signal("CONT");
    let ran = frozen.end(&bench);
    assert_eq!(
        (ran.code, ran.last_line()),
        (
            0,
            "processed=0 skipped=1 held=0 ignored=0 failed=0 rejected=0"
        ),
        "{ran:?}"
    );
    assert!(ran.err.contains("lease-lost"), "{ran:?}");
    eventually("the child is gone", || !is_alive(&child));
    assert_eq!(bench.claim(), done, "the frozen worker changed the record");
    assert_eq!(bench.read("finished"), "2\n");
}

#[test]
fn a_frozen_worker_whose_job_ended_meanwhile_records_nothing() {
    let bench = Workbench::new(PATIENT);
    one_event(&bench);
    let run = || run_with_a_short_lease(&bench);
    let frozen = bench.start("frozen", &mut run());
    let child = first_job(&bench);
    freeze(&bench, &frozen);
    assert_eq!(bench.start("other", &mut run()).end(&bench).code, 0);
    let done = bench.claim();
    bench.write("go", "");
    eventually("the first attempt's job ends", || !is_alive(&child));
    frozen.signal("CONT");
    let ran = frozen.end(&bench);
    assert_eq!(
        ran.last_line(),
        "processed=0 skipped=1 held=0 ignored=0 failed=0 rejected=0",
        "{ran:?}"
    );
    assert_eq!(bench.claim(), done, "the frozen worker changed the record");
}

#[test]
fn a_duplicate_of_a_held_job_waits_until_it_is_done() {
    let bench = Workbench::new(PATIENT);
    one_event(&bench);
    let holder = bench.start("holder", &mut bench.command(&["run", "event.json"]));
    first_job(&bench);
    let mut command = bench.command(&["run", "event.json"]);
    let mut other = bench.start("other", command.env("FIRSTCLAIM_LOG", "info"));
    eventually("the other looks", || {
        bench.read("other.err").matches("held").count() >= 2
    });
    assert!(other.runs(), "a held duplicate was acknowledged");
    bench.write("go", "");
    assert_eq!(
        holder.end(&bench).last_line(),
        "processed=1 skipped=0 held=0 ignored=0 failed=0 rejected=0"
    );
    assert_eq!(
        other.end(&bench).last_line(),
        "processed=0 skipped=1 held=0 ignored=0 failed=0 rejected=0"
    );
}

#[test]
fn two_runs_share_the_work() {
    // A job ends only once both workers are at one: neither may wait for the other to do all.
    let bench = Workbench::new(
        r#"exec = ["sh", "-c", 'touch "at/$PPID"; while [ "$(ls at | wc -l)" -lt 2 ]; do sleep 0.05; done']"#,
    );
    std::fs::create_dir(bench.path("at")).unwrap();
    let records: Vec<_> = (0..10)
        .map(|at| record(&format!("{at}.tif"), "e1"))
        .collect();
    bench.write("events.json", notification(&records));
    let run = |name| {
        bench.start(
            name,
            &mut bench.command(&["run", "--concurrency", "1", "events.json"]),
        )
    };
    let (one, two) = (run("one"), run("two"));
    let processed = [one, two].map(|worker| {
        let ran = worker.end(&bench);
        assert_eq!(ran.code, 0, "{ran:?}");
        let count = ran.last_line().split(['=', ' ']).nth(1).unwrap();
        count.parse::<u32>().unwrap()
    });
    assert_eq!(processed.iter().sum::<u32>(), 10);
    assert!(processed.iter().all(|count| *count > 0), "{processed:?}");
}

#[test]
fn a_failed_job_is_tried_three_times_and_wins_again_at_once() {
    let bench = Workbench::new(
        r#"exec = ["sh", "-c", 'echo "$FIRSTCLAIM_JOB_ATTEMPT" >> tried; [ -e go ]']"#,
    );
    one_event(&bench);
    let ran = bench.run(&["run", "event.json"]);
    assert_eq!(
        (ran.code, ran.last_line()),
        (
            1,
            "processed=0 skipped=0 held=0 ignored=0 failed=1 rejected=0"
        ),
        "{ran:?}"
    );
    assert!(ran.err.contains("s3://geo-in/a.tif"), "{ran:?}");
    bench.write("go", "");
    let ran = bench.run(&["run", "event.json"]);
    assert_eq!(
        (ran.code, ran.last_line()),
        (
            0,
            "processed=1 skipped=0 held=0 ignored=0 failed=0 rejected=0"
        ),
        "{ran:?}"
    );
    assert_eq!(bench.read("tried"), "1\n2\n3\n4\n");
    let shown = bench.run(&["claims", "show", bench.claim()["job_id"].as_str().unwrap()]);
    assert!(shown.out.contains("skipped as a duplicate"), "{shown:?}");
}

#[test]
fn an_interrupted_run_ends_its_jobs_as_failed_and_leaves_no_child() {
    for signal in ["INT", "TERM"] {
        let bench = Workbench::new(PATIENT);
        one_event(&bench);
        let worker = bench.start("worker", &mut bench.command(&["run", "event.json"]));
        let child = first_job(&bench);
        worker.signal(signal);
        let ran = worker.end(&bench);
        assert_eq!(ran.code, 1, "{ran:?}");
        eventually("the child is gone", || !is_alive(&child));
        let claim = bench.claim();
        assert_eq!(
            (claim["status"].as_str(), claim["reason"].as_str()),
            (Some("failed"), Some("interrupted")),
            "{claim}"
        );
        let ran = bench.run(&["run", "event.json"]);
        assert_eq!(
            ran.last_line(),
            "processed=1 skipped=0 held=0 ignored=0 failed=0 rejected=0",
            "{ran:?}"
        );
    }
}

#[test]
fn a_stopped_job_may_clear_up_and_is_not_done_for_ending_well() {
    let bench = Workbench::new(
        r#"exec = ["sh", "-c", '''
trap 'echo cleared >> cleared; exit 0' TERM
if [ "$FIRSTCLAIM_JOB_ATTEMPT" -gt 2 ]; then exit 0; fi
echo "$FIRSTCLAIM_JOB_ATTEMPT $$" >> started
while :; do sleep 0.05; done
''']"#,
    );
    one_event(&bench);
    let worker = bench.start("worker", &mut bench.command(&["run", "event.json"]));
    let child = first_job(&bench);
    worker.signal("TERM");
    assert_eq!(worker.end(&bench).code, 1);
    assert_eq!(bench.read("cleared"), "cleared\n");
    assert!(!is_alive(&child));
    let claim = bench.claim();
    assert_eq!(
        (claim["status"].as_str(), claim["reason"].as_str()),
        (Some("failed"), Some("interrupted")),
        "{claim}"
    );
    // The time being up is no other than a signal.
    let contract = bench.read("pipeline.toml") + "timeout_seconds = 1\n";
    bench.write("pipeline.toml", contract);
    let ran = bench.run(&["run", "event.json"]);
    assert_eq!(
        ran.last_line(),
        "processed=1 skipped=0 held=0 ignored=0 failed=0 rejected=0",
        "{ran:?}"
    );
    assert_eq!(bench.read("cleared"), "cleared\ncleared\n");
}

#[test]
fn a_job_that_does_not_stop_is_killed_after_its_grace() {
    for grace in ["0", "1"] {
        let bench = Workbench::new(&format!(
            "grace_seconds = {grace}\ntimeout_seconds = 1\nexec = ['sh', '-c', '''trap '' TERM; echo $$ >> processes; sleep 1000 & echo $! >> processes; wait''']"
        ));
        one_event(&bench);
        let ran = bench.run(&["run", "event.json"]);
        assert!(ran.err.contains("stopped after its 1 seconds"), "{ran:?}");
        let processes = bench.read("processes");
        assert_eq!(processes.lines().count(), 6, "three tries");
        for process in processes.lines() {
            eventually("the process is gone", || !is_alive(process));
        }
    }
}

#[test]
fn a_job_that_runs_too_long_is_killed_with_its_children() {
    let bench = Workbench::new(
        "timeout_seconds = 1\nexec = [\"sh\", \"-c\", '''sleep 1000 & echo $! $$ >> processes; wait''']",
    );
    one_event(&bench);
    let ran = bench.run(&["run", "event.json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("stopped after its 1 seconds"), "{ran:?}");
    let processes = bench.read("processes");
    assert_eq!(processes.split_whitespace().count(), 6, "three tries");
    for process in processes.split_whitespace() {
        eventually("the process is gone", || !is_alive(process));
    }
}

#[test]
fn a_permanent_exit_code_rejects_and_release_gives_it_back() {
    let bench = Workbench::new(
        "permanent = [7]\nexec = [\"sh\", \"-c\", 'echo no geometry >&2; [ -e go ] || exit 7']",
    );
    one_event(&bench);
    for _ in 0..2 {
        let ran = bench.run(&["run", "event.json"]);
        assert_eq!(
            (ran.code, ran.last_line()),
            (
                1,
                "processed=0 skipped=0 held=0 ignored=0 failed=0 rejected=1"
            ),
            "{ran:?}"
        );
        assert!(ran.err.contains("no geometry"), "{ran:?}");
    }
    let claim = bench.claim();
    assert_eq!(claim["attempt"], 1, "{claim}");
    let id = claim["job_id"].as_str().unwrap();
    assert_eq!(bench.run(&["claims", "release", id]).code, 0);
    bench.write("go", "");
    let ran = bench.run(&["run", "event.json"]);
    assert_eq!(
        (ran.code, ran.last_line()),
        (
            0,
            "processed=1 skipped=0 held=0 ignored=0 failed=0 rejected=0"
        ),
        "{ran:?}"
    );
}

#[test]
fn a_run_whose_reader_goes_away_stops_its_jobs_and_records_it() {
    let bench = Workbench::new(PATIENT);
    bench.write("event.json", notification(&[record("a.tif", "e1")]));
    let ignored = "{\"Service\":\"Amazon S3\",\"Event\":\"s3:TestEvent\"}";
    bench.write("ignored.json", ignored);
    // `true` reads nothing: the line for the second event finds its reader gone, while the first one's job runs.
    let script = "\"$0\" run --json --concurrency 2 event.json ignored.json | true";
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script])
        .arg(tests::program())
        .current_dir(bench.path("."));
    assert!(shell.status().unwrap().success());
    eventually("the run has ended", || {
        let claims = bench.claims();
        claims.iter().all(|claim| claim["status"] == "failed")
    });
    for line in bench.read("started").lines() {
        let child = line.split_whitespace().nth(1).unwrap();
        eventually("the child is gone", || !is_alive(child));
    }
}

#[test]
fn a_signal_is_heard_while_a_source_is_a_pipe_that_nobody_writes_to() {
    let bench = Workbench::new(PATIENT);
    let pipe = bench.path("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    one_event(&bench);
    let worker = bench.start("worker", &mut bench.command(&["run", "event.json", "pipe"]));
    let child = first_job(&bench);
    worker.signal("TERM");
    assert_eq!(worker.end(&bench).code, 1);
    eventually("the child is gone", || !is_alive(&child));
    assert_eq!(bench.claim()["reason"], "interrupted");
}

#[test]
fn a_run_started_by_nohup_outlives_its_terminal() {
    let bench = Workbench::new(PATIENT);
    one_event(&bench);
    let mut nohup = Command::new("nohup");
    nohup
        .arg(tests::program())
        .args(["run", "event.json"])
        .current_dir(bench.path("."));
    let worker = bench.start("worker", &mut nohup);
    first_job(&bench);
    worker.signal("HUP");
    bench.write("go", "");
    assert_eq!(worker.end(&bench).code, 0);
}
