//! Many processes that share one store.

use std::collections::BTreeSet;

use crate::{Workbench, notification, record};

/// Runs `processes` of the program at once, which share the jobs of a thousand events, and checks that each job ran once.
/// Every process gets `deliveries` events, each from another one onwards, round and round.
pub fn race(processes: usize, deliveries: usize, arguments: &[&str]) {
    const EVENTS: usize = 1_000;
    let bench = Workbench::new(r#"exec = ["sh", "-c", 'echo "$1" >> ran', "sh", "{job_id}"]"#);
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
