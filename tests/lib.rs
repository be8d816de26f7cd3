//! What the end-to-end tests share: the built program, a folder to run it in, and waiting for conditions.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[cfg(feature = "aws")]
pub mod aws;
pub mod crash;
pub mod database;
pub mod lambda;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use tempfile::TempDir;

pub mod terraform;

/// The workspace's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// The program `firstclaim`, built as this test was.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let mut build = Command::new(env!("CARGO"));
        build
            .args(["build", "--quiet", "--locked", "-p", "firstclaim"])
            .current_dir(root());
        for (built, feature) in [
            (cfg!(feature = "aws"), "aws"),
            (cfg!(feature = "postgres"), "postgres"),
        ] {
            if built {
                build.args(["--features", feature]);
            }
        }
        assert!(
            build.status().unwrap().success(),
            "firstclaim could not be built"
        );
        // This test lies in `debug/deps`, the program one folder up.
        let test = std::env::current_exe().unwrap();
        test.parent().unwrap().parent().unwrap().join("firstclaim")
    })
}

/// A job that tells its attempt and its process, then waits for the file `go`, unless it is a later attempt.
pub const PATIENT: &str = r#"exec = ["sh", "-c", '''
echo "$FIRSTCLAIM_JOB_ATTEMPT $$" >> started
if [ "$FIRSTCLAIM_JOB_ATTEMPT" = 1 ]; then while ! [ -e go ]; do sleep 0.05; done; fi
echo "$FIRSTCLAIM_JOB_ATTEMPT" >> finished
''']"#;

/// What a variable names, the URL of a server most of all. A test without it fails: it must not pass by not running.
pub fn server(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!(
            "{variable} is not set: run `cargo xtask test`, which starts the servers for these tests, or \
             `cargo xtask emulators up`, which says what to set"
        )
    })
}

/// A folder with a pipeline and a store, in which the program is run.
#[derive(Debug)]
pub struct Bench {
    folder: TempDir,
    store: String,
}

impl Bench {
    /// A bench whose pipeline has this `[job]` and selects everything.
    pub fn new(job: &str) -> Self {
        Self::on(job, "sqlite:firstclaim.db")
    }

    /// The same on the store of this URL.
    pub fn on(job: &str, store: &str) -> Self {
        let bench = Self {
            folder: tempfile::tempdir().unwrap(),
            store: store.to_owned(),
        };
        bench.write(
            "pipeline.toml",
            format!("name = 'tests'\nversion = '1'\nscheme = 'strict'\n[job]\n{job}\n"),
        );
        bench
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, and the folders above it.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// A file's text; empty if there is none.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The program with these arguments, in the folder, without inherited settings.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("FIRSTCLAIM_") || name == "AZURE_STORAGE_ACCOUNT"
            {
                command.env_remove(name);
            }
        }
        command
    }

    /// `run` of these sources on the bench's store, or on another way to it.
    pub fn runner(&self, store: Option<&str>, sources: &[&str]) -> Command {
        let mut command = self.command(&["run", "--store", store.unwrap_or(&self.store)]);
        command.args(sources);
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// Starts the program; its output goes to files called `NAME.out` and `NAME.err`.
    pub fn start(&self, name: &str, command: &mut Command) -> Worker {
        let out = std::fs::File::create(self.path(&format!("{name}.out"))).unwrap();
        self.start_writing_to(name, command, out.into())
    }

    /// The same with a standard output of the caller's.
    pub fn start_writing_to(&self, name: &str, command: &mut Command, out: Stdio) -> Worker {
        let err = std::fs::File::create(self.path(&format!("{name}.err"))).unwrap();
        let child = command.stdout(out).stderr(err).spawn().unwrap();
        Worker {
            child,
            name: name.to_owned(),
        }
    }

    /// The claims, as `claims list --json` tells them.
    pub fn claims(&self) -> Vec<serde_json::Value> {
        let mut arguments = vec!["claims", "list", "--json", "--store", &self.store];
        for status in ["processing", "done", "failed", "rejected", "waiting"] {
            arguments.extend(["--status", status]);
        }
        let listed = self.run(&arguments);
        assert_eq!(listed.code, 0, "{listed:?}");
        listed
            .out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The one claim.
    pub fn claim(&self) -> serde_json::Value {
        let mut claims = self.claims();
        assert_eq!(claims.len(), 1, "{claims:?}");
        claims.remove(0)
    }
}

/// How the program ended.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; -1 if a signal killed it.
    pub code: i32,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// The last line of standard output.
    pub fn last_line(&self) -> &str {
        self.out.lines().last().unwrap_or_default()
    }
}

/// A program that runs beside the test, and is killed with it.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    name: String,
}

impl Worker {
    /// Sends it a signal, e.g. `STOP`.
    pub fn signal(&self, signal: &str) {
        kill(signal, &self.child.id().to_string());
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub fn end(mut self, bench: &Bench) -> Ran {
        let mut status = None;
        eventually(&format!("{} ends", self.name), || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        Ran {
            code: status.unwrap().code().unwrap_or(-1),
            out: bench.read(&format!("{}.out", self.name)),
            err: bench.read(&format!("{}.err", self.name)),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended already, and then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process.
pub fn kill(signal: &str, process: &str) {
    let status = Command::new("kill")
        .args([&format!("-{signal}"), process])
        .status()
        .unwrap();
    assert!(status.success(), "kill -{signal} {process}");
}

/// Whether a process is there and has not ended.
pub fn is_alive(process: &str) -> bool {
    state(process).is_some_and(|state| state != 'Z')
}

/// Whether a process is stopped, by `STOP`.
pub fn is_stopped(process: &str) -> bool {
    state(process) == Some('T')
}

/// What the system says of a process: the first letter after the parenthesis that closes its command's name.
fn state(process: &str) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Waits until something holds; only a test that fails waits to the bound.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(
            started.elapsed() < Duration::from_secs(180),
            "waited in vain: {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// An S3 record of a put, as JSON text.
pub fn record(key: &str, etag: &str) -> String {
    serde_json::json!({
        "eventVersion": "2.1", "eventSource": "aws:s3", "eventName": "ObjectCreated:Put",
        "s3": {"bucket": {"name": "geo-in"}, "object": {"key": key, "eTag": etag}},
    })
    .to_string()
}

/// A notification of these records.
pub fn notification(records: &[String]) -> String {
    format!("{{\"Records\":[{}]}}", records.join(","))
}

/// Runs `processes` of the program at once, which share the jobs of a thousand events, and checks that each job ran once.
/// Every process gets `deliveries` events, each from another one onwards, round and round.
pub fn race(processes: usize, deliveries: usize, arguments: &[&str]) {
    const EVENTS: usize = 1_000;
    let bench = Bench::new(r#"exec = ["sh", "-c", 'echo "$1" >> ran', "sh", "{job_id}"]"#);
    let workers: Vec<_> = (0..processes)
        .map(|worker| {
            let first = worker * EVENTS / processes;
            let records: Vec<_> = (first..first + deliveries)
                .map(|at| record(&format!("{}.tif", at % EVENTS), "e1"))
                .collect();
            let file = format!("events-{worker}.json");
            bench.write(&file, notification(&records));
            let mut command = bench.command(&["run", &file]);
            bench.start(&format!("worker-{worker}"), command.args(arguments))
        })
        .collect();
    let mut processed = 0;
    for worker in workers {
        let ran = worker.end(&bench);
        assert_eq!(ran.code, 0, "{ran:?}");
        let counts: Vec<usize> = ran
            .last_line()
            .split(' ')
            .map(|count| count.split_once('=').unwrap().1.parse().unwrap())
            .collect();
        assert_eq!(
            counts[0] + counts[1],
            deliveries,
            "processed and skipped: {ran:?}"
        );
        processed += counts[0];
    }
    let ran = bench.read("ran");
    let ran: Vec<_> = ran.lines().collect();
    assert_eq!((processed, ran.len()), (EVENTS, EVENTS));
    assert_eq!(ran.iter().collect::<BTreeSet<_>>().len(), EVENTS);
}
