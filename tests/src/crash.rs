//! What the crash tests of every store share: the points of the gate at which a worker is struck, what must follow, and
//! storms of blows.

use std::{collections::BTreeMap, path::Path, time::Duration};

use serde_json::Value;

use crate::{Workbench, Worker, eventually, is_alive, is_stopped, notification, record};

/// Where a worker is when it is struck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// It is about to claim.
    BeforeClaim,
    /// Its claim is committed, and its job has done nothing yet.
    Claimed,
    /// Its job runs.
    Running,
    /// Its job has ended, and its end is not recorded.
    BeforeEnd,
    /// Its end is recorded, and it has told nobody.
    Ended,
}

/// How it is struck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blow {
    /// `SIGKILL`.
    Kill,
    /// `SIGSTOP`, and `SIGCONT` once its successor is done.
    Stop,
}

impl Blow {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Kill, Self::Stop];

    /// The signal's name.
    pub fn signal(self) -> &'static str {
        match self {
            Self::Kill => "KILL",
            Self::Stop => "STOP",
        }
    }
}

/// How long a worker's lease lasts that is to be struck, in seconds. Its successors have the usual ones, so that a busy
/// machine takes none of them over.
pub const SHORT_LEASE: &str = "2";

/// The one event of these tests.
pub fn one_event(bench: &Workbench) {
    bench.write("event.json", notification(&[record("a.tif", "e1")]));
}

/// Starts the worker that is to be struck, on the bench's store or another way to it.
pub fn victim(bench: &Workbench, store: Option<&str>) -> Worker {
    let mut run = bench.runner(store, &["event.json"]);
    bench.start("victim", run.env("FIRSTCLAIM_LEASE_SECONDS", SHORT_LEASE))
}

/// Strikes a worker that is at a point, lets a successor handle the same event, and checks what both of them did: the job
/// ends once, under one attempt, and a worker that thaws afterwards changes nothing.
///
/// `free` is what has to happen before the successor can do anything; `land` lets what the victim had on its way arrive,
/// after the successor is done.
pub fn strike(
    bench: &Workbench,
    mut victim: Worker,
    point: Point,
    blow: Blow,
    free: impl FnOnce(),
    land: impl FnOnce(),
) {
    let process = victim.process().to_string();
    if victim.runs() {
        victim.signal(blow.signal());
    }
    match blow {
        Blow::Kill => eventually("the victim is gone", || !victim.runs()),
        Blow::Stop => eventually("the victim stands still", || is_stopped(&process)),
    }
    free();
    let (successor, attempt) = match point {
        Point::BeforeClaim => (PROCESSED, 1),
        Point::Claimed | Point::Running | Point::BeforeEnd => (PROCESSED, 2),
        Point::Ended => (SKIPPED, 1),
    };
    let mut run = bench.runner(None, &["event.json"]);
    let ran = bench.start("successor", &mut run).end(bench);
    assert_eq!(
        (ran.code, ran.last_line()),
        (0, successor),
        "{point:?} {blow:?}: {ran:?}"
    );
    let stands = bench.claim();
    assert_eq!(
        (stands["status"].as_str(), stands["attempt"].as_u64()),
        (Some("done"), Some(attempt)),
        "{point:?} {blow:?}: {stands}"
    );
    land();
    if blow == Blow::Stop {
        victim.signal("CONT");
        let ran = victim.end(bench);
        let told = if successor == PROCESSED {
            SKIPPED
        } else {
            PROCESSED
        };
        // Where nobody reads what it says, there is nothing to compare.
        if !ran.out.is_empty() {
            assert_eq!(ran.last_line(), told, "{point:?} thawed: {ran:?}");
        }
        assert_eq!(ran.code, 0, "{point:?} thawed: {ran:?}");
    }
    let now = bench.claim();
    assert_eq!(now, stands, "{point:?} {blow:?}: the end was changed");
}

/// The last line of a worker that did the job.
pub const PROCESSED: &str = "processed=1 skipped=0 held=0 ignored=0 failed=0 rejected=0";
/// … and of one that found it done.
pub const SKIPPED: &str = "processed=0 skipped=1 held=0 ignored=0 failed=0 rejected=0";

/// A job with an effect that its attempt guards: `sink/JOB` keeps the highest attempt that wrote to it, and refuses lower
/// ones.
pub const GUARDED: &str = r#"exec = ["sh", "-c", '''
echo "$FIRSTCLAIM_JOB_ATTEMPT $$" >> started
sleep "0.$(($$ % 3))"
exec 9> lock
flock 9
highest=$(cat "sink/$FIRSTCLAIM_JOB_ID" 2> /dev/null || echo 0)
if [ "$FIRSTCLAIM_JOB_ATTEMPT" -ge "$highest" ]; then
    echo "$FIRSTCLAIM_JOB_ATTEMPT" > "sink/.$$"
    mv "sink/.$$" "sink/$FIRSTCLAIM_JOB_ID"
else
    echo "$FIRSTCLAIM_JOB_ATTEMPT" >> refused
fi
''']"#;

/// How many jobs a storm is about.
const JOBS: usize = 40;
/// How many workers share them at a time, besides those that stand still.
const WORKERS: usize = 3;
/// How many blows a storm has at least, and at most if the jobs are still not done.
const BLOWS: std::ops::Range<usize> = 20..80;

/// What a store holds, a text a row: job, status, attempt, owner and end. It is looked at between the blows, without
/// starting a program for it.
pub const ROWS: &str = "SELECT key || ' ' || status || ' ' || attempt || ' ' || coalesce(owner, '-') || ' ' || \
                        coalesce(CAST(finished_at AS text), '-') FROM firstclaim_claims";

/// Kills and freezes workers at random while they share [`GUARDED`] jobs, each replaced by another, and then checks that
/// every job ended once, that no end was ever changed, that no event was lost, and that every sink holds what the
/// attempt wrote that is on record. One seed is one sequence of blows; what they hit is the machine's doing. `rows` are the
/// store's [`ROWS`].
pub fn storm(bench: &Workbench, seed: u64, mut rows: impl FnMut() -> Vec<String>) {
    std::fs::create_dir(bench.path("sink")).unwrap();
    let records: Vec<_> = (0..JOBS)
        .map(|at| record(&format!("{at}.tif"), "e1"))
        .collect();
    bench.write("event.json", notification(&records));
    let mut random = fastrand::Rng::with_seed(seed);
    let mut started = 0;
    let mut start = || {
        started += 1;
        let mut run = bench.runner(None, &["--concurrency", "2", "event.json"]);
        run.env("FIRSTCLAIM_LEASE_SECONDS", SHORT_LEASE)
            .env("FIRSTCLAIM_MAX_ATTEMPTS", "1000")
            .env("FIRSTCLAIM_LOG", "info")
            .env("FIRSTCLAIM_LOG_FORMAT", "json");
        bench.start(&format!("worker-{started}"), &mut run)
    };
    let mut workers: Vec<_> = (0..WORKERS).map(|_| start()).collect();
    let mut frozen: Vec<(usize, Worker)> = Vec::new();
    let mut ends = BTreeMap::new();
    // The first worker makes the store's tables; there is nothing to look at before.
    eventually("the first claims are there", || {
        bench.read("started").lines().count() >= WORKERS
    });
    for blow in 0..BLOWS.end {
        std::thread::sleep(Duration::from_millis(random.u64(0..100)));
        for (_, worker) in frozen.extract_if(.., |(until, _)| *until <= blow) {
            worker.signal("CONT");
            workers.push(worker);
        }
        let struck = workers.swap_remove(random.usize(0..workers.len()));
        if workers.len() < WORKERS {
            workers.push(start());
        }
        if random.bool() {
            struck.signal("KILL");
        } else {
            struck.signal("STOP");
            frozen.push((blow + random.usize(1..40), struck));
        }
        observe(&rows(), &mut ends);
        if blow >= BLOWS.start && ends.len() == JOBS {
            break;
        }
    }
    for (_, worker) in frozen {
        worker.signal("CONT");
        workers.push(worker);
    }
    for worker in workers {
        worker.end(bench); // some find their leases gone, and say so
    }
    // The source delivers all of it once more.
    let ran = bench.start("last", &mut bench.runner(None, &["event.json"]));
    let ran = ran.end(bench);
    assert_eq!(ran.code, 0, "seed {seed}: {ran:?}");
    eventually("the orphans have ended", || !orphans(bench));
    observe(&rows(), &mut ends);
    assert_eq!(ends.len(), JOBS, "seed {seed}: not all jobs are done");
    let told = told(bench, started);
    for (job, end) in &ends {
        let sink = bench.read(&format!("sink/{job}"));
        assert_eq!(sink, format!("{}\n", attempt(end)), "seed {seed}: {end}");
        let told = told.get(job).map_or(&[][..], Vec::as_slice);
        assert!(
            told.is_empty() || told == [attempt(end)],
            "seed {seed}: attempts {told:?} were told that they ended {job} {end}"
        );
    }
    let taken_over = ends.values().filter(|end| attempt(end) > 1);
    assert!(taken_over.count() > 0, "seed {seed}: the blows hit nothing");
}

/// The attempt of `STATUS ATTEMPT …`.
fn attempt(row: &str) -> u64 {
    row.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Looks at the claims: what has ended stays as it was seen first.
fn observe(rows: &[String], ends: &mut BTreeMap<String, String>) {
    let now: BTreeMap<_, _> = rows
        .iter()
        .map(|row| row.split_once(' ').unwrap())
        .collect();
    for (job, end) in &*ends {
        assert_eq!(now.get(job.as_str()), Some(&end.as_str()), "an end changed");
    }
    let done = now.iter().filter(|(_, row)| row.starts_with("done "));
    ends.extend(done.map(|(job, end)| ((*job).to_owned(), (*end).to_owned())));
}

/// Which attempts at each job were told that their end is recorded, by what workers logged.
fn told(bench: &Workbench, workers: usize) -> BTreeMap<String, Vec<u64>> {
    let mut told: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for worker in 1..=workers {
        for line in bench.read(&format!("worker-{worker}.err")).lines() {
            // Complaints are no JSON, and a killed worker's last line may be cut.
            let Ok(line) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            if line["outcome"] == "done" {
                let job = line["job_id"].as_str().unwrap().to_owned();
                told.entry(job)
                    .or_default()
                    .push(line["attempt"].as_u64().unwrap());
            }
        }
    }
    assert!(!told.is_empty(), "no worker told of an end");
    told
}

/// Whether a job's process is left whose worker was killed.
fn orphans(bench: &Workbench) -> bool {
    let folder = bench.path("").canonicalize().unwrap();
    let started = bench.read("started");
    let mut processes = started.lines().filter_map(|line| line.split(' ').nth(1));
    processes.any(|process| {
        // Numbers of processes come round; another one of that number runs elsewhere.
        let here = std::fs::read_link(format!("/proc/{process}/cwd"));
        is_alive(process) && here.is_ok_and(|here| here == Path::new(&folder))
    })
}
