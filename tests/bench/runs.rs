//! `firstclaim run` as a whole process, beside what its jobs alone cost.

use std::{path::Path, process::Command, time::Duration};

use crate::timing::{each, in_turns, program, row, time};

/// How many events a run is given; half of them are duplicates of the other half.
const EVENTS: u32 = 10_000;

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
    let contract = "name = 'bench'\nversion = '1'\nscheme = 'strict'\n[job]\nexec = ['true']\n";
    std::fs::write(folder.path().join("pipeline.toml"), contract).unwrap();
    let run = || {
        let _ = std::fs::remove_file(folder.path().join("firstclaim.db"));
        claim_all(&program, folder.path())
    };
    let again = || claim_all(&program, folder.path());
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

fn claim_all(program: &Path, folder: &Path) -> Duration {
    time(|| {
        let output = Command::new(program)
            .args(["run", "events.json"])
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
