//! Timing in turns: what is compared runs A, B, A, B …, so that a machine that slows down slows both.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

/// How many turns each takes; the medians are told.
pub(crate) const TURNS: usize = 7;

/// How long a call takes.
pub(crate) fn time(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

/// The medians of as many measures, taken in turns after one turn that does not count.
pub(crate) fn in_turns<const N: usize>(
    mut measures: [&mut dyn FnMut() -> Duration; N],
) -> [Duration; N] {
    let mut taken: [Vec<Duration>; N] = std::array::from_fn(|_| Vec::new());
    for turn in 0..=TURNS {
        for (measure, taken) in measures.iter_mut().zip(&mut taken) {
            let took = measure();
            if turn > 0 {
                taken.push(took);
            }
        }
    }
    taken.map(|mut taken| {
        taken.sort();
        taken[TURNS / 2]
    })
}

/// The program, which `cargo xtask bench` has built as it is shipped.
pub(crate) fn program() -> PathBuf {
    let bench = std::env::current_exe().unwrap();
    let program = bench.parent().unwrap().parent().unwrap().join("firstclaim");
    assert!(
        program.exists(),
        "build it first: cargo build --release -p firstclaim"
    );
    program
}

/// Seconds that a Python peer says it took, for one of its `count` rounds.
pub(crate) fn python(arguments: &[&str]) -> Duration {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/peer.py");
    let output = Command::new("python3")
        .arg(script)
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Duration::from_secs_f64(
        String::from_utf8(output.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap(),
    )
}

/// A row of the table: a figure, what it is beside, and how many times the one is the other.
pub(crate) fn row(what: &str, figure: &str, beside: &str, ratio: f64) {
    println!("| {what} | {figure} | {beside} | {ratio:.2} |");
}

/// Nanoseconds or microseconds for each of `count`.
pub(crate) fn each(took: Duration, count: u32) -> String {
    let nanos = took.as_secs_f64() * 1e9 / f64::from(count);
    if nanos < 10_000.0 {
        format!("{nanos:.0} ns")
    } else {
        format!("{:.1} µs", nanos / 1e3)
    }
}
