//! The built program on a PostgreSQL server, which `cargo xtask test` starts and names in the environment.

mod crashes;
mod fencing;
mod upgrade;

use std::process::Command;

use tests::{Workbench, notification, race, record};

/// The server's URL, up to the database, which comes last.
fn server() -> String {
    let url = tests::server("TEST_POSTGRES_URL");
    url.rsplit_once('/').unwrap().0.to_owned()
}

/// What PostgreSQL's own client says.
fn psql(url: &str, sql: &str) -> String {
    let mut psql = Command::new("psql");
    psql.args([
        "--no-psqlrc",
        "--tuples-only",
        "--no-align",
        "--quiet",
        "-v",
        "ON_ERROR_STOP=1",
    ]);
    let output = psql.args(["--command", sql, url]).output();
    let output = output.unwrap_or_else(|error| {
        panic!("psql cannot be started (Debian: apt-get install postgresql-client): {error}")
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{sql}: {said}");
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

/// The URL of a database with nothing in it, which has the test's name.
fn database(name: &str) -> String {
    let server = server();
    let maintenance = format!("{server}/postgres");
    psql(&maintenance, &format!("DROP DATABASE IF EXISTS {name}"));
    psql(&maintenance, &format!("CREATE DATABASE {name}"));
    format!("{server}/{name}")
}

#[test]
fn a_hundred_processes_on_one_database_run_each_of_a_thousand_jobs_once() {
    let url = database("a_hundred_processes");
    race(100, 200, &["--store", &url]);
    let counted = "SELECT count(*), min(status), max(status), min(attempt), max(attempt) FROM firstclaim_claims";
    assert_eq!(psql(&url, counted), "1000|done|done|1|1");
}

/// PostgreSQL's texts hold no U+0000, and the keys of objects may.
#[test]
fn no_character_of_a_key_is_lost_and_no_event_comes_back_for_ever() {
    let bench = Workbench::new(r#"exec = ["true"]"#);
    let url = database("no_character_is_lost");
    let run = |event: &str| {
        bench.write("event.json", notification(&[record(event, "e1")]));
        let ran = bench.run(&["run", "--store", &url, "event.json"]);
        ran.last_line().to_owned()
    };
    let key = |status: &str| {
        let list = [
            "claims", "list", "--json", "--status", status, "--store", &url,
        ];
        let listed = bench.run(&list);
        let claim: serde_json::Value = serde_json::from_str(&listed.out).unwrap();
        claim["key"].as_str().unwrap().to_owned()
    };
    // No command can be given such a key: that is recorded, and told each time.
    for _ in 0..2 {
        let counts = "processed=0 skipped=0 held=0 ignored=0 failed=0 rejected=1";
        assert_eq!(run("a␛\0.tif"), counts);
        assert_eq!(key("rejected"), "a␛\0.tif");
    }
    for counts in ["processed=1 skipped=0", "processed=0 skipped=1"] {
        let ran = run("a␛0.tif");
        assert!(ran.starts_with(counts), "{ran}");
        assert_eq!(key("done"), "a␛0.tif");
    }
}

#[test]
fn looking_at_claims_makes_no_tables() {
    let url = database("looking");
    let bench = Workbench::new(r#"exec = ["true"]"#);
    let listed = bench.run(&["claims", "list", "--store", &url]);
    assert_eq!(listed.code, 2, "{listed:?}");
    assert!(
        listed
            .err
            .contains("there is no claim store at postgres://127.0.0.1:"),
        "{listed:?}"
    );
    assert_eq!(
        psql(
            &url,
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        ),
        "0"
    );
}

#[test]
fn a_server_that_is_not_there_is_told_without_the_password() {
    let bench = Workbench::new(r#"exec = ["true"]"#);
    bench.write("event.json", notification(&[record("a.tif", "e1")]));
    // Nobody listens on port 1.
    let ran = bench.run(&[
        "run",
        "--store",
        "postgres://u:secret@127.0.0.1:1/d",
        "event.json",
    ]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let told = "the claim store cannot be opened: postgres://127.0.0.1:1/d cannot be reached: Connection refused";
    assert!(ran.err.contains(told), "{ran:?}");
    assert!(!ran.err.contains("secret"), "{ran:?}");
}
