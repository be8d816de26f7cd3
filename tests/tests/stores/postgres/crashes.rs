//! Workers killed and frozen at every point of the gate, on PostgreSQL: each job ends once.
//!
//! The worker that is struck comes by a wire that holds one write: its request, which arrives when its sender is long
//! dead, or its reply, which nobody hears.

use std::thread;

use tests::{
    PATIENT, Workbench,
    crash::{self, Blow, Point, one_event, strike, victim},
    eventually, is_alive, kill,
};
use wire::{Fault, Plan, Protocol, Request, Wire};

use super::{database, psql};

/// How often each point is struck, each time in a database of its own.
const ROUNDS: usize = 3;

/// A wire to the server of this URL, and the URL by way of it.
fn wire_to(url: &str) -> (Wire, String) {
    let (front, database) = url.rsplit_once('/').unwrap();
    let (front, server) = front.rsplit_once(['@', '/']).unwrap();
    let wire = Wire::start(server, Protocol::Postgres).unwrap();
    let user = front.trim_start_matches("postgres://");
    let at = if user.is_empty() { "" } else { "@" };
    let url = format!("postgres://{user}{at}{}/{database}", wire.address());
    (wire, url)
}

/// Strikes workers whose write for which `write` holds meets this fault.
fn struck_at(name: &str, point: Point, fault: Fault, write: fn(&Request) -> bool, finished: &str) {
    thread::scope(|scope| {
        for blow in Blow::ALL {
            for round in 0..ROUNDS {
                scope.spawn(move || {
                    let url = database(&format!("{name}_{}_{round}", blow.signal().to_lowercase()));
                    let bench = Workbench::on(PATIENT, &url);
                    one_event(&bench);
                    bench.write("go", "");
                    let (wire, by_wire) = wire_to(&url);
                    wire.arm(Plan::nth(1, fault).only(write));
                    let victim = victim(&bench, Some(&by_wire));
                    eventually("the write is held", || wire.counts().held == 1);
                    let land = || {
                        wire.release();
                        eventually("it has landed", || {
                            let counts = wire.counts();
                            counts.held == 0 && counts.replies == counts.requests
                        });
                    };
                    strike(&bench, victim, point, blow, || {}, land);
                    assert_eq!(bench.read("finished"), finished);
                    assert_eq!(wire.complaints(), Vec::<String>::new());
                });
            }
        }
    });
}

fn is_claim(request: &Request) -> bool {
    request.executes("INSERT INTO firstclaim_claims", "processing")
}

fn is_end(request: &Request) -> bool {
    request.executes("UPDATE firstclaim_claims", "done")
}

#[test]
fn a_claim_that_arrives_after_its_worker_s_death_claims_nothing() {
    let name = "before_claim";
    struck_at(
        name,
        Point::BeforeClaim,
        Fault::HoldRequest,
        is_claim,
        "1\n",
    );
}

#[test]
fn a_worker_struck_after_its_claim_is_taken_over() {
    let name = "claimed";
    struck_at(name, Point::Claimed, Fault::HoldReply, is_claim, "2\n");
}

#[test]
fn a_worker_struck_while_its_job_runs_is_taken_over() {
    thread::scope(|scope| {
        for blow in Blow::ALL {
            scope.spawn(move || {
                let url = database(&format!("running_{}", blow.signal().to_lowercase()));
                let bench = Workbench::on(PATIENT, &url);
                one_event(&bench);
                let victim = victim(&bench, None);
                eventually("the job starts", || bench.read("started").ends_with('\n'));
                let started = bench.read("started");
                let child = started.split_whitespace().nth(1).unwrap();
                strike(&bench, victim, Point::Running, blow, || {}, || {});
                assert_eq!(bench.read("finished"), "2\n");
                match blow {
                    Blow::Kill => kill("KILL", child),
                    Blow::Stop => eventually("the child is gone", || !is_alive(child)),
                }
            });
        }
    });
}

#[test]
fn an_end_that_arrives_after_the_takeover_is_refused() {
    let name = "before_end";
    struck_at(name, Point::BeforeEnd, Fault::HoldRequest, is_end, "1\n2\n");
}

#[test]
fn a_worker_struck_before_it_hears_that_its_end_is_recorded_has_ended_the_job() {
    struck_at("ended", Point::Ended, Fault::HoldReply, is_end, "1\n");
}

#[test]
fn a_storm_of_blows_ends_every_job_once() {
    let url = database("a_storm");
    let rows = || {
        let rows = psql(&url, crash::ROWS);
        rows.lines().map(str::to_owned).collect()
    };
    crash::storm(&Workbench::on(crash::GUARDED, &url), 1, rows);
}
