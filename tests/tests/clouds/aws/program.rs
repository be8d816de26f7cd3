//! The built program on emulators of Amazon's services, which `cargo xtask test` starts and names in the environment, and
//! a Python handler with the published one's writes beside it.

use std::process::Command;

use aws_sdk_dynamodb::types::AttributeValue;
use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use serde_json::Value;
use tests::{
    Ran, Workbench,
    clouds::{Cloud as _, aws::Aws},
    eventually, notification, record, record_in, root, server, upgrade,
};

/// A workbench whose claims are in a table of its own.
struct Account {
    bench: Workbench,
    table: String,
}

/// How jobs are derived that a Python handler is to know, too.
const INGEST: &str = "name = 'tests'\nversion = '1'\nscheme = 'ingest'\n[job]\n";

impl Account {
    fn new(job: &str) -> Self {
        let bench = Workbench::new("");
        bench.write("pipeline.toml", format!("{INGEST}{job}\n"));
        let table = Aws::with_table_only(server("TEST_MOTO_URL")).names.table;
        Self { bench, table }
    }

    fn emulated<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .env("AWS_ENDPOINT_URL", server("TEST_MOTO_URL"))
            .env("AWS_REGION", "eu-central-1")
            .env("AWS_DEFAULT_REGION", "eu-central-1")
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
    }

    /// What the Python handler counted.
    fn handler(&self, command: &str, events: &str) -> Value {
        let mut python = Command::new(server("TEST_AWS_PYTHON"));
        python
            .arg(root().join("tests/peers/claims.py"))
            .args([&self.table, command, events])
            .current_dir(self.bench.path(""));
        let ran = Ran::from(self.emulated(&mut python).output().unwrap());
        assert_eq!(ran.code, 0, "{ran:?}");
        serde_json::from_str(ran.last_line()).unwrap_or_default()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.bench.command(arguments);
        let store = format!("dynamodb://{}", self.table);
        self.emulated(&mut command).args(["--store", &store]);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// Runs the events and says the counts.
    fn handled(&self, events: &str) -> String {
        let ran = self.run(&["run", events]);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.last_line().to_owned()
    }

    fn claims(&self, arguments: &[&str]) -> Vec<Value> {
        let mut list = vec!["claims", "list", "--json"];
        list.extend(arguments);
        let listed = self.run(&list);
        assert_eq!(listed.code, 0, "{listed:?}");
        let lines = listed.out.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn counts(processed: u32, skipped: u32) -> Value {
    serde_json::json!({"processed": processed, "skipped": skipped})
}

const NOTE: &str = r#"exec = ["sh", "-c", 'echo "$1" >> ran', "sh", "{key}"]"#;

#[test]
fn a_python_handler_and_this_program_each_skip_what_the_other_has_done() {
    let account = Account::new(NOTE);
    let [theirs, ours] = ["odd+%2B+key.shp", "b.shp"].map(|key| record(key, "e1"));
    account
        .bench
        .write("theirs.json", notification(std::slice::from_ref(&theirs)));
    account
        .bench
        .write("both.json", notification(&[theirs, ours]));

    assert_eq!(account.handler("handle", "theirs.json"), counts(1, 0));
    let told = account.handled("both.json");
    assert!(told.starts_with("processed=1 skipped=1 "), "{told}");
    assert_eq!(account.bench.read("ran"), "b.shp\n");
    assert_eq!(account.handler("handle", "both.json"), counts(0, 2));

    // Done claims are listed by a scan, whoever wrote them.
    let mut keys: Vec<_> = account
        .claims(&["--status", "done"])
        .iter()
        .map(|claim| claim["key"].as_str().unwrap().to_owned())
        .collect();
    keys.sort_unstable();
    assert_eq!(keys, ["b.shp", "odd + key.shp"]);
    assert!(account.claims(&[]).is_empty());
}

#[test]
fn a_python_handlers_unconditional_done_is_what_stands_in_the_end() {
    let wait = r#"exec = ["sh", "-c", 'touch held; while [ ! -e go ]; do sleep 0.05; done']"#;
    let account = Account::new(wait);
    account
        .bench
        .write("event.json", notification(&[record("a.shp", "e1")]));
    let mut command = account.command(&["run", "event.json"]);
    let worker = account.bench.start("worker", &mut command);
    eventually("the job runs", || account.bench.path("held").exists());
    let held = account.claims(&[]);
    assert_eq!(held[0]["status"], "processing", "{held:?}");

    account.handler("done", "event.json");
    account.bench.write("go", "");
    let ran = worker.end(&account.bench);
    // The claim ended while this program held it, and not by this program: its own end is not recorded.
    let done = account.claims(&["--status", "done"]);
    assert_eq!(done.len(), 1, "{done:?} {ran:?}");
    assert_eq!(
        (&done[0]["status"], &done[0]["attempt"]),
        (&"done".into(), &1.into())
    );
    assert_eq!(
        done[0]["expires_at"],
        Value::Null,
        "theirs sets none: {done:?}"
    );
    assert!(account.claims(&[]).is_empty());
    assert_eq!(account.handler("handle", "event.json"), counts(0, 1));
}

#[test]
fn a_claim_that_a_python_handler_left_behind_is_released_and_then_won() {
    let account = Account::new(NOTE);
    account
        .bench
        .write("event.json", notification(&[record("a.shp", "e1")]));
    assert_eq!(account.handler("claim", "event.json"), counts(1, 0));
    // It is not in the index: a listing that looks at every item finds it.
    assert!(account.claims(&[]).is_empty());
    let left = account.claims(&["--status", "processing", "--status", "done"]);
    let id = left[0]["job_id"].as_str().unwrap();
    let shown = account.run(&["claims", "show", id]);
    assert!(
        shown.code == 0 && shown.out.contains("processing"),
        "{shown:?}"
    );
    let released = account.run(&["claims", "release", id]);
    assert_eq!(released.code, 0, "{released:?}");
    assert_eq!(account.claims(&[])[0]["status"], "failed");
    let told = account.handled("event.json");
    assert!(told.starts_with("processed=1 "), "{told}");
    assert_eq!(account.handler("handle", "event.json"), counts(0, 1));
}

#[test]
fn many_processes_on_one_table_run_each_job_once() {
    let account = Account::new(NOTE);
    let records: Vec<_> = (0..100)
        .map(|at| record(&format!("{at:03}.tif"), "e1"))
        .collect();
    account.bench.write("events.json", notification(&records));
    let workers: Vec<_> = (0..6)
        .map(|worker| {
            let mut command = account.command(&["run", "--concurrency", "8", "events.json"]);
            account
                .bench
                .start(&format!("worker-{worker}"), &mut command)
        })
        .collect();
    for worker in workers {
        let ran = worker.end(&account.bench);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let ran = account.bench.read("ran");
    let mut lines: Vec<_> = ran.lines().collect();
    lines.sort_unstable();
    let expected: Vec<_> = (0..100).map(|at| format!("{at:03}.tif")).collect();
    assert_eq!(lines, expected);
}

#[test]
fn a_job_reads_exactly_the_version_that_its_event_names() {
    let account = Account::new(r#"exec = ["sh", "-c", 'cat "$1" >> read', "sh", "{path}"]"#);
    for versioned in [false, true] {
        let cloud = Aws::new("");
        if versioned {
            cloud.version_the_bucket();
        }
        let key = "a//b ü+%2B &amp; c.txt";
        let event = |(etag, version): (String, Option<String>)| {
            let encoded = "a//b+%C3%BC%2B%252B+%26amp%3B+c.txt";
            let record = record_in(&cloud.names.bucket, encoded, &etag);
            let mut record: Value = serde_json::from_str(&record).unwrap();
            record["s3"]["object"]["versionId"] = version.into();
            notification(&[record.to_string()])
        };
        let first = event(cloud.put_version(key, "first "));
        account.bench.write("first.json", first);
        assert!(account.handled("first.json").starts_with("processed=1 "));
        let second = event(cloud.put_version(key, "second "));
        account.bench.write("second.json", second);
        assert!(account.handled("second.json").starts_with("processed=1 "));
        assert!(
            account
                .handled("first.json")
                .starts_with("processed=0 skipped=1 ")
        );
    }
    assert_eq!(account.bench.read("read"), "first second first second ");
}

#[test]
fn a_table_that_is_not_there_is_told_with_what_makes_it() {
    let mut account = Account::new(NOTE);
    account.table = "no-such-table".to_owned();
    let ran = account.run(&["claims", "list"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.err
            .contains("aws dynamodb create-table --table-name no-such-table"),
        "{ran:?}"
    );
    let mut command = account.command(&["claims", "list"]);
    command
        .env_remove("AWS_REGION")
        .env_remove("AWS_DEFAULT_REGION");
    command.env("AWS_EC2_METADATA_DISABLED", "true");
    command.env("AWS_CONFIG_FILE", "/dev/null");
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("set AWS_REGION"), "{ran:?}");
}

/// An attribute as the API writes it in JSON.
fn attribute(value: &Value) -> AttributeValue {
    let (kind, value) = value.as_object().unwrap().iter().next().unwrap();
    let value = value.as_str().unwrap();
    match kind.as_str() {
        "S" => AttributeValue::S(value.to_owned()),
        "N" => AttributeValue::N(value.to_owned()),
        "B" => AttributeValue::B(BASE64.decode(value).unwrap().into()),
        other => panic!("{other}"),
    }
}

#[test]
fn a_table_of_an_earlier_version_is_read_and_used() {
    let account = Account::new("");
    let aws = Aws::with_table_only(server("TEST_MOTO_URL"));
    let items = std::fs::read_to_string(upgrade::file("dynamodb.json")).unwrap();
    let items: Vec<serde_json::Map<String, Value>> = serde_json::from_str(&items).unwrap();
    for item in items {
        let item = item
            .iter()
            .map(|(name, value)| (name.clone(), attribute(value)));
        let put = aws.dynamodb.put_item().table_name(&aws.names.table);
        aws.wait(put.set_item(Some(item.collect())).send()).unwrap();
    }
    let store = format!("dynamodb://{}", aws.names.table);
    let bench = upgrade::workbench(&store);
    upgrade::check(&bench, &store, "dynamodb.jsonl", &|command| {
        account.emulated(command);
    });
}
