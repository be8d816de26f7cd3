//! Workers killed and frozen at every point of the gate, on one SQLite file: each job ends once.
//!
//! A point is reached from outside: who holds the file's write lock keeps a worker from claiming or ending, a job strikes
//! its own worker before it does anything, and a worker whose standard output is full tells nobody of its end.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    process::{Command, Stdio},
    thread,
};

use tests::{
    PATIENT, Workbench, Worker,
    crash::{self, Blow, Point, SHORT_LEASE, one_event, strike, victim},
    eventually, is_alive, kill,
    sqlite::SqliteFile,
};

/// How often each point is struck, each time in a folder of its own.
const ROUNDS: usize = 3;

const STATUSES: &str = "SELECT status FROM firstclaim_claims";

fn rounds(round: impl Fn(Blow) + Sync) {
    let round = &round;
    thread::scope(|scope| {
        for blow in Blow::ALL {
            for _ in 0..ROUNDS {
                scope.spawn(move || round(blow));
            }
        }
    });
}

/// The process of the job's first attempt, once it runs.
fn first_job(bench: &Workbench) -> String {
    eventually("the first attempt starts", || {
        bench.read("started").ends_with('\n')
    });
    let started = bench.read("started");
    started.split_whitespace().nth(1).unwrap().to_owned()
}

/// Whether the process has the file open.
fn has_open(worker: &Worker, bench: &Workbench) -> bool {
    let file = bench.path("firstclaim.db").canonicalize().unwrap();
    let open = std::fs::read_dir(format!("/proc/{}/fd", worker.process()));
    open.is_ok_and(|mut open| {
        open.any(|entry| {
            let link = entry.and_then(|entry| std::fs::read_link(entry.path()));
            link.is_ok_and(|link| link == file)
        })
    })
}

#[test]
fn a_worker_struck_before_its_claim_has_claimed_nothing() {
    rounds(|blow| {
        let bench = Workbench::new(PATIENT);
        one_event(&bench);
        bench.write("go", "");
        bench.write(
            "ignored.json",
            r#"{"Service":"Amazon S3","Event":"s3:TestEvent"}"#,
        );
        assert_eq!(bench.run(&["run", "ignored.json"]).code, 0);
        let lock = SqliteFile::locked(&bench);
        let victim = victim(&bench, None);
        eventually("the victim opens the file", || has_open(&victim, &bench));
        let free = || {
            assert_eq!(lock.texts(STATUSES), Vec::<String>::new());
            lock.release();
        };
        strike(&bench, victim, Point::BeforeClaim, blow, free, || {});
        assert_eq!(bench.read("finished"), "1\n");
    });
}

#[test]
fn a_worker_struck_after_its_claim_is_taken_over() {
    // The job's first act is to strike its worker.
    let job = r#"exec = ["sh", "-c", '''
if [ "$FIRSTCLAIM_JOB_ATTEMPT" = 1 ]; then kill "-$(cat blow)" $PPID; exit 1; fi
echo "$FIRSTCLAIM_JOB_ATTEMPT" >> finished
''']"#;
    rounds(|blow| {
        let bench = Workbench::new(job);
        one_event(&bench);
        bench.write("blow", blow.signal());
        let mut victim = victim(&bench, None);
        let process = victim.process().to_string();
        eventually("the job strikes", || match blow {
            Blow::Kill => !victim.runs(),
            Blow::Stop => tests::is_stopped(&process),
        });
        assert_eq!(SqliteFile::open(&bench).texts(STATUSES), ["processing"]);
        strike(&bench, victim, Point::Claimed, blow, || {}, || {});
        assert_eq!(bench.read("finished"), "2\n");
    });
}

#[test]
fn a_worker_struck_while_its_job_runs_is_taken_over() {
    rounds(|blow| {
        let bench = Workbench::new(PATIENT);
        one_event(&bench);
        let victim = victim(&bench, None);
        let child = first_job(&bench);
        // Else it may be struck while it renews, and one that stands still with the write lock keeps all others out.
        let lock = SqliteFile::locked(&bench);
        let free = || lock.release();
        strike(&bench, victim, Point::Running, blow, free, || {});
        assert_eq!(bench.read("finished"), "2\n");
        match blow {
            // A killed worker's child lives on: hence effects that are guarded by the attempt.
            Blow::Kill => kill("KILL", &child),
            Blow::Stop => eventually("the child is gone", || !is_alive(&child)),
        }
    });
}

#[test]
fn a_worker_struck_between_its_job_s_end_and_the_record_of_it_is_taken_over() {
    rounds(|blow| {
        let bench = Workbench::new(PATIENT);
        one_event(&bench);
        let victim = victim(&bench, None);
        let child = first_job(&bench);
        let lock = SqliteFile::locked(&bench);
        bench.write("go", "");
        eventually("the job ends", || !is_alive(&child));
        let free = || {
            assert_eq!(lock.texts(STATUSES), ["processing"]);
            lock.release();
        };
        strike(&bench, victim, Point::BeforeEnd, blow, free, || {});
        assert_eq!(bench.read("finished"), "1\n2\n");
    });
}

/// A pipe that is full until somebody reads it.
fn full_pipe(bench: &Workbench) -> File {
    let path = bench.path("full");
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let open = OpenOptions::new().read(true).write(true).open(&path);
    let pipe = open.unwrap();
    let mut filler = pipe.try_clone().unwrap();
    // More than any pipe holds: what is left over waits for the reader, or for the end of the test.
    thread::spawn(move || filler.write_all(&[b'\n'; 1 << 20]));
    pipe
}

#[test]
fn a_worker_struck_after_the_record_of_the_end_has_ended_the_job() {
    rounds(|blow| {
        let bench = Workbench::new(PATIENT);
        one_event(&bench);
        bench.write("go", "");
        let mut pipe = full_pipe(&bench);
        let mut run = bench.runner(None, &["event.json"]);
        run.env("FIRSTCLAIM_LEASE_SECONDS", SHORT_LEASE);
        let full = Stdio::from(pipe.try_clone().unwrap());
        let mut victim = bench.start_writing_to("victim", &mut run, full);
        eventually("the end is recorded", || {
            bench.read("finished") == "1\n" && bench.claim()["status"] == "done"
        });
        assert!(victim.runs(), "it was to be kept from telling");
        let drain = || {
            thread::spawn(move || {
                let mut buffer = vec![0; 65_536];
                while pipe.read(&mut buffer).is_ok_and(|length| length > 0) {}
            });
        };
        strike(&bench, victim, Point::Ended, blow, || {}, drain);
        assert_eq!(bench.read("finished"), "1\n");
    });
}

#[test]
fn storms_of_blows_end_every_job_once() {
    thread::scope(|scope| {
        for seed in [1, 2] {
            scope.spawn(move || {
                let bench = Workbench::new(crash::GUARDED);
                let mut database = None;
                crash::storm(&bench, seed, || {
                    let database = database.get_or_insert_with(|| SqliteFile::open(&bench));
                    database.texts(crash::ROWS)
                });
            });
        }
    });
}
