//! The upload key of a large bundle, as a whole process, beside the bare hash of the same bytes in memory.

use std::{
    path::Path,
    process::{Command, Output},
    time::Duration,
};

use sha2::{Digest as _, Sha256};

use crate::timing::{in_turns, program, row, time};

/// The bundle's size: the .shp has it but for two small members.
const MEGABYTES: usize = 256;

/// Runs a command and tells its peak memory in MiB, by the system's own accounting (Linux: `ru_maxrss` in KiB).
const PEAK: &str = "import resource,subprocess,sys; subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL,check=True); \
                    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss//1024)";

pub(crate) fn keys() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bytes: Vec<u8> = (0..MEGABYTES << 20)
        .map(|at| u8::try_from((at ^ (at >> 8)) & 0xff).unwrap())
        .collect();
    let path = |name: &str| folder.path().join(name);
    for (name, bytes) in [
        ("a.shp", bytes.as_slice()),
        ("a.shx", b"x"),
        ("a.dbf", b"d"),
        ("b.shp", &bytes[..1 << 20]),
        ("b.shx", b"x"),
        ("b.dbf", b"d"),
    ] {
        std::fs::write(path(name), bytes).unwrap();
    }
    let shapefile = path("a.shp");
    for form in ["reference", "strict"] {
        let key = || {
            let mut key = Command::new(program());
            succeed(key.args(["key", "--form", form]).arg(&shapefile))
        };
        let [ours, bare, openssl] = in_turns([
            &mut || time(|| drop(key())),
            &mut || time(|| drop(std::hint::black_box(Sha256::digest(&bytes).to_vec()))),
            &mut || {
                time(|| {
                    drop(succeed(
                        Command::new("openssl")
                            .args(["dgst", "-sha256"])
                            .arg(&shapefile),
                    ))
                })
            },
        ]);
        let what = format!("upload key, `{form}`, {MEGABYTES} MiB on a warm cache");
        let figure = format!(
            "{:.0} ms ({:.0} MiB/s)",
            ours.as_secs_f64() * 1e3,
            speed(ours)
        );
        let share = |other: Duration| other.as_secs_f64() / ours.as_secs_f64();
        row(
            &what,
            &figure,
            &format!(
                "the bare hash of the bytes in memory: {:.0} ms",
                bare.as_secs_f64() * 1e3
            ),
            share(bare),
        );
        row(
            &what,
            &figure,
            &format!(
                "`openssl dgst -sha256`: {:.0} ms",
                openssl.as_secs_f64() * 1e3
            ),
            share(openssl),
        );
    }
    let (large, small) = (peak(&shapefile), peak(&path("b.shp")));
    let what = format!("peak memory of `firstclaim key`, {MEGABYTES} MiB");
    row(
        &what,
        &format!("{large:.0} MiB"),
        &format!("1 MiB: {small:.0} MiB"),
        large / small,
    );
}

#[expect(clippy::cast_precision_loss, reason = "a few hundred")]
fn speed(took: Duration) -> f64 {
    MEGABYTES as f64 / took.as_secs_f64()
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn peak(shapefile: &Path) -> f64 {
    let mut python = Command::new("python3");
    let output = succeed(
        python
            .args(["-c", PEAK])
            .arg(program())
            .arg("key")
            .arg(shapefile),
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}
