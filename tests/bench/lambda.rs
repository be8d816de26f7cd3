//! The function beside two in Python, as whole processes under one runtime API and on one emulated table, in turns:
//! `cargo xtask bench aws` builds and starts what this needs.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark prints, and stops at the first surprise"
)]

use std::{
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tests::{
    aws::{Cloud, server},
    lambda::RuntimeApi,
    notification, record, root,
};

/// How many processes of each are started, after one that does not count.
const STARTS: usize = 11;
/// How many events a process is given of each kind, after some that do not count.
const EVENTS: usize = 400;
const UNCOUNTED: usize = 20;
/// What the kernel counts a process's time in, in milliseconds (USER_HZ is 100 on all of Linux).
const TICK: f64 = 10.0;

/// One of the functions.
struct Contestant {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<PathBuf>,
    figures: Figures,
}

#[derive(Default)]
struct Figures {
    /// Seconds from a start to the first answer.
    starts: Vec<f64>,
    /// Of events that were done before: milliseconds each, and of processor time.
    duplicates: (f64, f64),
    /// Of new events, with their jobs.
    fresh: (f64, f64),
    /// Mebibytes at most.
    memory: f64,
}

fn main() {
    let peer = root().join("tests/bench/lambda_peer.py");
    let python = PathBuf::from(server("BENCH_PYTHON"));
    let contestant = |name, program: PathBuf, arguments| Contestant {
        name,
        program,
        arguments,
        figures: Figures::default(),
    };
    let mut all = [
        contestant(
            "firstclaim",
            PathBuf::from(server("BENCH_BOOTSTRAP")),
            Vec::new(),
        ),
        contestant(
            "Python, boto3",
            python.clone(),
            vec![peer.clone(), "plain".into()],
        ),
        contestant(
            "Python, Powertools",
            python,
            vec![peer, "powertools".into()],
        ),
    ];
    let tables = server("TEST_DYNALITE_URL");
    let clouds: Vec<Cloud> = all
        .iter()
        .map(|_| Cloud::with_table_only(tables.clone()))
        .collect();
    for turn in 0..=STARTS {
        for (contestant, cloud) in all.iter_mut().zip(&clouds) {
            let took = cold(contestant, cloud, turn);
            if turn > 0 {
                contestant.figures.starts.push(took.as_secs_f64());
            }
        }
    }
    for (contestant, cloud) in all.iter_mut().zip(&clouds) {
        warm(contestant, cloud);
    }
    for contestant in &mut all {
        contestant.figures.starts.sort_by(f64::total_cmp);
    }
    print(&all);
}

/// One process: from its start until its first event is claimed, done and answered.
fn cold(contestant: &Contestant, cloud: &Cloud, turn: usize) -> Duration {
    let api = RuntimeApi::start();
    let pending = api.send(&event(&format!("cold-{turn}.shp")), far());
    let started = Instant::now();
    let process = Process::start(contestant, cloud, &api);
    pending.answer().unwrap();
    let took = started.elapsed();
    drop(process);
    took
}

fn warm(contestant: &mut Contestant, cloud: &Cloud) {
    let api = RuntimeApi::start();
    let process = Process::start(contestant, cloud, &api);
    let invoke = |key: &str| {
        let started = Instant::now();
        api.send(&event(key), far()).answer().unwrap();
        started.elapsed()
    };
    for number in 0..UNCOUNTED {
        invoke(&format!("first-{number}.shp"));
        invoke("first-0.shp");
    }
    let measure = |key: &dyn Fn(usize) -> String| {
        let before = process.processor_millis();
        let mut took: Vec<f64> = (0..EVENTS)
            .map(|number| invoke(&key(number)).as_secs_f64() * 1e3)
            .collect();
        took.sort_by(f64::total_cmp);
        let each = (process.processor_millis() - before) / EVENTS as f64;
        (took[EVENTS / 2], each)
    };
    contestant.figures.duplicates = measure(&|_| "first-0.shp".to_owned());
    contestant.figures.fresh = measure(&|number| format!("{number}.shp"));
    contestant.figures.memory = process.peak_mebibytes();
}

fn far() -> u64 {
    tests::lambda::deadline_in(Duration::from_secs(60))
}

fn event(key: &str) -> String {
    notification(&[record(key, "9f86d081884c7d659a2feaa0c55ad015")])
}

/// A function's process, killed at its end.
struct Process(Child);

impl Process {
    fn start(contestant: &Contestant, cloud: &Cloud, api: &RuntimeApi) -> Self {
        let mut command = Command::new(&contestant.program);
        cloud.environment(&mut command, api);
        command
            .args(&contestant.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::from(
                std::fs::File::create(cloud.path("log")).unwrap(),
            ));
        Self(command.spawn().unwrap())
    }

    /// Its own time on a processor, without its children's, in milliseconds.
    fn processor_millis(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        // After the parenthesis that closes the name: the state is field 3, user and system time 14 and 15.
        let (_, rest) = stat.rsplit_once(')').unwrap();
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
        ticks * TICK
    }

    /// The most memory that it ever had.
    fn peak_mebibytes(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.unwrap().trim().trim_end_matches(" kB");
        kibibytes.parse::<f64>().unwrap() / 1024.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Whether or not it has ended, it is gone afterwards.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn print(all: &[Contestant; 3]) {
    let head: String = all.iter().map(|of| format!(" {} |", of.name)).collect();
    println!("| what |{head} ratios |\n|---|---|---|---|---|");
    let row = |what: &str, unit: &str, of: &dyn Fn(&Figures) -> f64| {
        let [ours, plain, powertools] = [0, 1, 2].map(|at| of(&all[at].figures));
        println!(
            "| {what} | {ours:.2} {unit} | {plain:.2} {unit} | {powertools:.2} {unit} | {:.1}, {:.1} |",
            plain / ours,
            powertools / ours
        );
    };
    row(
        "cold start: from the process's start to the first answer, one claim",
        "ms",
        &|of| of.starts[STARTS / 2] * 1e3,
    );
    row("a duplicate, warm", "ms", &|of| of.duplicates.0);
    row("a duplicate, processor time", "ms", &|of| of.duplicates.1);
    row(
        "a new event whose job is the process `true`, warm",
        "ms",
        &|of| of.fresh.0,
    );
    row("the same, the function's own processor time", "ms", &|of| {
        of.fresh.1
    });
    row("peak memory", "MiB", &|of| of.memory);
}
