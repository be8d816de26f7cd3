//! `firstclaim run` as a whole process, beside what its jobs alone cost.

use std::{
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use crate::timing::{each, in_turns, program, row, time};

/// How many events a run is given; half of them are duplicates of the other half.
const EVENTS: u32 = 10_000;

const CONTRACT: &str = "name = 'bench'\nversion = '1'\nscheme = 'strict'\n[job]\nexec = ['true']\n";

pub(crate) fn runs() {
    let program = program();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let records: Vec<_> = (0..EVENTS)
        .map(|at| tests::record(&format!("{}.tif", at % (EVENTS / 2)), "e1"))
        .collect();
    std::fs::write(
        folder.path().join("events.json"),
        tests::notification(&records),
    )
    .unwrap();
    std::fs::write(folder.path().join("pipeline.toml"), CONTRACT).unwrap();
    let run = || {
        let _ = std::fs::remove_file(folder.path().join("firstclaim.db"));
        claim_all(&program, folder.path(), &[])
    };
    let again = || claim_all(&program, folder.path(), &[]);
    let bare = || {
        time(|| {
            (0..EVENTS / 2).for_each(|_| assert!(Command::new("true").status().unwrap().success()))
        })
    };
    let [bare, first, second] = in_turns([&mut { bare }, &mut { run }, &mut { again }]);
    let what = format!("`run` over {EVENTS} events, half of them duplicates, with a no-op job");
    let figure = format!(
        "{:.1} s ({} an event)",
        first.as_secs_f64(),
        each(first, EVENTS)
    );
    let beside = format!(
        "starting `true` {} times, one after the other: {:.1} s",
        EVENTS / 2,
        bare.as_secs_f64()
    );
    row(
        &what,
        &figure,
        &beside,
        first.as_secs_f64() / bare.as_secs_f64(),
    );
    let figure = format!(
        "{:.2} s ({} an event)",
        second.as_secs_f64(),
        each(second, EVENTS)
    );
    row(
        "the same again: all are skipped",
        &figure,
        "the first run",
        second.as_secs_f64() / first.as_secs_f64(),
    );
}

/// How many jobs are run side by side, and how many at a time.
const JOBS: u32 = 10_000;
const CONCURRENCY: usize = 8;

/// A run of many jobs beside starting the same processes at the same concurrency, each as a job is started: in a group of
/// its own, with nothing to read, and its output read.
pub(crate) fn side_by_side() {
    let program = program();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let records: Vec<_> = (0..JOBS)
        .map(|at| tests::record(&format!("{at}.tif"), "e1"))
        .collect();
    std::fs::write(
        folder.path().join("events.json"),
        tests::notification(&records),
    )
    .unwrap();
    std::fs::write(folder.path().join("pipeline.toml"), CONTRACT).unwrap();
    let concurrency = CONCURRENCY.to_string();
    let run = || {
        let _ = std::fs::remove_file(folder.path().join("firstclaim.db"));
        claim_all(&program, folder.path(), &["--concurrency", &concurrency])
    };
    let started = || time(|| start_all(JOBS, CONCURRENCY));
    let [started, run] = in_turns([&mut { started }, &mut { run }]);
    row(
        &format!("`run --concurrency {CONCURRENCY}` over {JOBS} events, with a no-op job"),
        &format!("{:.1} s ({} an event)", run.as_secs_f64(), each(run, JOBS)),
        &format!(
            "starting `true` {JOBS} times, {CONCURRENCY} at a time: {:.1} s",
            started.as_secs_f64()
        ),
        run.as_secs_f64() / started.as_secs_f64(),
    );
}

fn start_all(count: u32, at_a_time: usize) {
    let next = AtomicU32::new(0);
    let start = || {
        while next.fetch_add(1, Ordering::Relaxed) < count {
            let mut command = Command::new("true");
            let output = command.process_group(0).stdin(Stdio::null()).output();
            assert!(output.unwrap().status.success());
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(start);
        }
    });
}

fn claim_all(program: &Path, folder: &Path, arguments: &[&str]) -> Duration {
    time(|| {
        let output = Command::new(program)
            .args(["run", "events.json"])
            .args(arguments)
            .current_dir(folder)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    })
}
