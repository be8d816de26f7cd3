//! A store that an earlier version wrote, used by today's program: see `tests/upgrade/README.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::Command,
};

use serde_json::Value;

use crate::{Ran, Workbench, root};

/// What was open then and can be finished by a job that ends well, by its object's key.
const OPEN: [&str; 4] = [
    "in/fails-3.tif",
    "in/fails.tif",
    "in/killed.tif",
    "in/never-2.tif",
];

/// A file of `tests/upgrade`.
pub fn file(name: &str) -> PathBuf {
    root().join("tests/upgrade").join(name)
}

/// A folder with the contract and the events of then, and this store.
pub fn workbench(store: &str) -> Workbench {
    let bench = Workbench::on("", store);
    for name in ["pipeline.toml", "done.json", "over.json"] {
        std::fs::copy(file(name), bench.path(name)).unwrap();
    }
    bench
}

/// Checks that the store reads as it did, that what is done is skipped, and that what was open is finished, once. `said` is
/// the file of what was said of the store then; `prepare` gives the program what it needs to reach the store.
pub fn check(bench: &Workbench, store: &str, said: &str, prepare: &dyn Fn(&mut Command)) {
    let run = |arguments: &[&str]| {
        let mut command = bench.command(arguments);
        command.args(["--store", store]);
        prepare(&mut command);
        Ran::from(command.output().unwrap())
    };
    let claims = || -> BTreeMap<String, Value> {
        let mut list = vec!["claims", "list", "--json"];
        for status in ["processing", "done", "failed", "rejected", "waiting"] {
            list.extend(["--status", status]);
        }
        let listed = run(&list);
        assert_eq!(listed.code, 0, "{listed:?}");
        parse(&listed.out)
    };

    let then = parse(&std::fs::read_to_string(file(said)).unwrap());
    assert_eq!(then.len(), 12);
    let now = claims();
    assert_eq!(
        now.keys().collect::<Vec<_>>(),
        then.keys().collect::<Vec<_>>()
    );
    for (id, claim) in &then {
        for (field, value) in claim.as_object().unwrap() {
            assert_eq!(now[id][field], *value, "{field} of {claim}");
        }
        let shown = run(&["claims", "show", id]);
        assert_eq!(shown.code, 0, "{shown:?}");
    }

    // One of them was rejected, and is still.
    let ran = run(&["run", "done.json", "over.json"]);
    assert_eq!(
        ran.last_line(),
        "processed=0 skipped=2 held=0 ignored=0 failed=0 rejected=1",
        "{ran:?}"
    );

    let swept = run(&["claims", "sweep", "--grace", "0"]);
    assert_eq!(swept.code, 0, "{swept:?}");
    bench.write("swept.json", &swept.out);
    // DynamoDB deletes by itself what is over; elsewhere a sweep does.
    let is_over = |claim: &Value| claim["key"] == "in/over.tif";
    let kept = claims().values().any(is_over);
    assert_eq!(kept, store.starts_with("dynamodb:"), "{swept:?}");
    // The object of what was waiting is in a store that this program is not given.
    let ran = run(&["run", "swept.json"]);
    assert!(
        ran.last_line().starts_with("processed=4 skipped=0 held=0"),
        "{ran:?}"
    );
    let finished: BTreeSet<_> = claims()
        .into_values()
        .filter(|claim| claim["status"] == "done" && claim["redrives"] != 0)
        .map(|claim| {
            let before = &then[claim["job_id"].as_str().unwrap()];
            let attempt = |claim: &Value| claim["attempt"].as_u64().unwrap();
            assert_eq!(attempt(&claim), attempt(before) + 1, "{claim}");
            claim["key"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(finished, OPEN.map(str::to_owned).into());
}

fn parse(lines: &str) -> BTreeMap<String, Value> {
    lines
        .lines()
        .map(|line| {
            let claim: Value = serde_json::from_str(line).unwrap();
            (claim["job_id"].as_str().unwrap().to_owned(), claim)
        })
        .collect()
}
