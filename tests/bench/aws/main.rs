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
    clouds::{
        Cloud as _, Message,
        aws::{Aws, batch},
    },
    notification, record, root,
    runtime_api::RuntimeApi,
    server,
};

/// How many processes of each are started, after one that does not count.
const STARTS: usize = 11;
/// How many events a process is given of each kind, after some that do not count.
const EVENTS: usize = 1_000;
const UNCOUNTED: usize = 20;
/// How many messages of a queue come in one invocation: Lambda's default.
const BATCH: usize = 10;
/// What the kernel counts a process's time in, in milliseconds (USER_HZ is 100 on all of Linux).
const TICK: f64 = 10.0;

/// One of the functions.
struct Contestant {
    name: &'static str,
    program: PathBuf,
    arguments: &'static [&'static str],
    figures: Figures,
}

#[derive(Default)]
struct Figures {
    /// Seconds from a start to the first answer.
    starts: Vec<f64>,
    /// With each of the two servers.
    warm: [Warm; 2],
    /// Mebibytes at most.
    memory: f64,
}

/// What an event took with one server.
#[derive(Default)]
struct Warm {
    /// One that was done before, alone in its invocation.
    duplicate: Took,
    /// A new one, with its job.
    new: Took,
    /// As they come from a queue: one of ten that were done before.
    duplicate_of_ten: Took,
    /// One of ten new ones.
    new_of_ten: Took,
}

/// Milliseconds of an event.
#[derive(Default)]
struct Took {
    /// From its invocation to the answer, the median.
    wall: f64,
    /// Of the function's own processor time, its jobs' not counted.
    processor: f64,
    /// Of these, in the kernel.
    kernel: f64,
}

fn main() {
    let python = PathBuf::from(server("BENCH_PYTHON"));
    let contestant = |name, program, arguments| Contestant {
        name,
        program,
        arguments,
        figures: Figures::default(),
    };
    let bootstrap = PathBuf::from(server("BENCH_BOOTSTRAP"));
    // Lambda runs Python's functions by this package.
    let plain = &["-m", "awslambdaric", "plain.handler"];
    let powertools = &["-m", "awslambdaric", "powertools.handler"];
    let mut all = [
        contestant("firstclaim", bootstrap, &[]),
        contestant("Python, boto3", python.clone(), plain),
        contestant("Python, Powertools", python, powertools),
    ];
    // dynalite is fast, but leaves out what stands when a claim is refused, so that ours asks for it; moto, like DynamoDB,
    // says it at once.
    for (at, variable) in ["TEST_DYNALITE_URL", "TEST_MOTO_URL"]
        .into_iter()
        .enumerate()
    {
        let clouds: Vec<Aws> = all
            .iter()
            .map(|_| Aws::with_table_only(server(variable)))
            .collect();
        if at == 0 {
            for turn in 0..=STARTS {
                for (contestant, cloud) in all.iter_mut().zip(&clouds) {
                    let took = cold(contestant, cloud, turn);
                    if turn > 0 {
                        contestant.figures.starts.push(took.as_secs_f64());
                    }
                }
            }
        }
        for (contestant, cloud) in all.iter_mut().zip(&clouds) {
            warm(contestant, cloud, at);
        }
    }
    for contestant in &mut all {
        contestant.figures.starts.sort_by(f64::total_cmp);
    }
    print(&all);
}

/// One process: from its start until its first event is claimed, done and answered.
fn cold(contestant: &Contestant, cloud: &Aws, turn: usize) -> Duration {
    let api = RuntimeApi::start();
    let pending = api.send(&event(&format!("cold-{turn}.shp")), far());
    let started = Instant::now();
    let process = Process::start(contestant, cloud, &api);
    pending.answer().unwrap();
    let took = started.elapsed();
    drop(process);
    took
}

fn warm(contestant: &mut Contestant, cloud: &Aws, server: usize) {
    let api = RuntimeApi::start();
    let process = Process::start(contestant, cloud, &api);
    let invoke = |payload: &str| {
        let started = Instant::now();
        api.send(payload, far()).answer().unwrap();
        started.elapsed().as_secs_f64() * 1e3
    };
    for number in 0..UNCOUNTED {
        invoke(&event(&format!("first-{number}.shp")));
        invoke(&event("first-0.shp"));
    }
    let measure = |batch: usize, payload: &dyn Fn(usize) -> String| {
        let events = EVENTS as f64;
        let (processor, kernel) = process.processor_millis();
        let mut walls: Vec<f64> = (0..EVENTS / batch)
            .map(|number| invoke(&payload(number)) / batch as f64)
            .collect();
        walls.sort_by(f64::total_cmp);
        let (processor_after, kernel_after) = process.processor_millis();
        Took {
            wall: walls[walls.len() / 2],
            processor: (processor_after - processor) / events,
            kernel: (kernel_after - kernel) / events,
        }
    };
    contestant.figures.warm[server] = Warm {
        duplicate: measure(1, &|_| event("first-0.shp")),
        new: measure(1, &|number| event(&format!("{number}.shp"))),
        duplicate_of_ten: measure(BATCH, &|_| batch_of(&|at| format!("first-{at}.shp"))),
        new_of_ten: measure(BATCH, &|number| {
            batch_of(&|at| format!("{number}-{at}.shp"))
        }),
    };
    contestant.figures.memory = process.peak_mebibytes();
}

fn far() -> u64 {
    tests::runtime_api::deadline_in(Duration::from_secs(60))
}

fn event(key: &str) -> String {
    notification(&[record(key, "9f86d081884c7d659a2feaa0c55ad015")])
}

/// An invocation for a batch of a queue, whose messages tell of these objects.
fn batch_of(key: &dyn Fn(usize) -> String) -> String {
    let messages: Vec<Message> = (0..BATCH)
        .map(|at| Message::new(&format!("message-{at}"), event(&key(at))))
        .collect();
    batch("arn:aws:sqs:eu-central-1:123456789012:bench", &messages)
}

/// A function's process, killed at its end.
struct Process(Child);

impl Process {
    fn start(contestant: &Contestant, cloud: &Aws, api: &RuntimeApi) -> Self {
        let mut command = Command::new(&contestant.program);
        cloud.environment(&mut command, api);
        command
            .args(contestant.arguments)
            // Where the two in Python and what they share lie.
            .current_dir(root().join("tests/bench/aws"))
            .env("PYTHONPATH", root().join("tests/peers"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::from(
                std::fs::File::create(cloud.folder().path("log")).unwrap(),
            ));
        Self(command.spawn().unwrap())
    }

    /// Its own time on a processor, without its children's, in milliseconds; and how much of it was the kernel's.
    fn processor_millis(&self) -> (f64, f64) {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        // After the parenthesis that closes the name: the state is field 3, user and system time 14 and 15.
        let (_, rest) = stat.rsplit_once(')').unwrap();
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let [user, kernel] = [11, 12].map(|at| fields[at].parse::<f64>().unwrap() * TICK);
        (user + kernel, kernel)
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
    for (at, server) in ["dynalite", "moto"].into_iter().enumerate() {
        let rows = |event: &str, of: &dyn Fn(&Warm) -> &Took| {
            let row = |what: &str, part: &dyn Fn(&Took) -> f64| {
                row(&format!("{event}, {server}: {what}"), "ms", &|figures| {
                    part(of(&figures.warm[at]))
                });
            };
            row("time", &|took| took.wall);
            row("processor", &|took| took.processor);
            row("of that, in the kernel", &|took| took.kernel);
        };
        rows("a duplicate", &|of| &of.duplicate);
        rows("a new event", &|of| &of.new);
        rows("a duplicate in a batch of ten", &|of| &of.duplicate_of_ten);
        rows("a new event in a batch of ten", &|of| &of.new_of_ten);
    }
    row("peak memory", "MiB", &|of| of.memory);
}
