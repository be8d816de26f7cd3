//! Every envelope through the built program.

use serde_json::{Value, json};
use tests::{Workbench, root};

fn file(name: &str) -> String {
    let path = root().join("tests/events").join(name);
    path.to_str().unwrap().to_owned()
}

fn bench() -> Workbench {
    Workbench::new(r#"exec = ["echo", "{uri}"]"#)
}

/// The lines that `id --json` prints for a file.
fn lines(bench: &Workbench, name: &str) -> Vec<Value> {
    let mut command = bench.command(&["id", "--json", &file(name)]);
    let output = command.env("AZURE_STORAGE_ACCOUNT", "acct").output();
    let out = String::from_utf8(output.unwrap().stdout).unwrap();
    out.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn id_tells_of_every_file_what_the_index_says() {
    let index = std::fs::read_to_string(file("index.json")).unwrap();
    let index: Vec<Value> = serde_json::from_str(&index).unwrap();
    let bench = bench();
    for row in index {
        let name = row["file"].as_str().unwrap();
        let lines = lines(&bench, name);
        let events: Vec<&Value> = lines
            .iter()
            .filter(|line| line.get("uri").is_some())
            .collect();
        let expected = row["expect"].as_array().unwrap();
        assert_eq!(events.len(), expected.len(), "{name}: {lines:?}");
        for (event, expected) in events.iter().zip(expected) {
            for field in ["provider", "account", "container", "key"] {
                let absent = Value::Null;
                assert_eq!(
                    event[field],
                    *expected.get(field).unwrap_or(&absent),
                    "{name}"
                );
            }
            let token = [&expected["version"], &expected["etag"]]
                .into_iter()
                .find(|token| !token.is_null());
            assert_eq!(event["token"].get("value"), token, "{name}");
            assert_eq!(event["job_id"].is_string(), token.is_some(), "{name}");
        }
        if let Some(reason) = row.get("skip") {
            assert_eq!(lines, [json!({"ignored": reason})], "{name}");
        }
        if let Some(error) = row.get("unreadable") {
            assert_eq!(lines, [json!({"error": error})], "{name}");
        }
    }
}

#[test]
fn a_handshake_is_counted_as_ignored() {
    let files = [
        "eventgrid_validation.http.json",
        "cloudevents_validation.http.json",
    ]
    .map(file);
    let ran = bench().run(&["run", "--store", "memory:", &files[0], &files[1]]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        ran.last_line(),
        "processed=0 skipped=0 held=0 ignored=2 failed=0 rejected=0"
    );
}

#[test]
fn a_blob_without_an_account_is_a_job_only_where_one_is_configured() {
    let name = file("webjobs_blobtrigger_queue_message.json");
    let bench = bench();
    let ran = bench.run(&["id", &name]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("storage account"), "{ran:?}");
    let mut configured = bench.command(&["run", &name]);
    let output = configured.env("AZURE_STORAGE_ACCOUNT", "acct").output();
    let out = String::from_utf8(output.unwrap().stdout).unwrap();
    assert_eq!(
        out.lines().last(),
        Some("processed=1 skipped=0 held=0 ignored=0 failed=0 rejected=0")
    );
    // The same write as Event Grid tells of it is that job's duplicate.
    let other = bench.run(&["run", &file("eventgrid_blobcreated.http.json")]);
    assert_eq!(
        other.last_line(),
        "processed=0 skipped=1 held=0 ignored=0 failed=0 rejected=0"
    );
}

/// The counts are those of the last line, whose form is given: there, what waits is no job yet.
#[test]
fn a_file_that_is_not_whole_yet_is_told_as_waiting_and_counted_as_no_job() {
    let bench = bench();
    let created = json!({
        "eventType": "Microsoft.Storage.BlobCreated",
        "topic": "/subscriptions/s/storageAccounts/acct",
        "subject": "/blobServices/default/containers/c/blobs/a.tif",
        "data": {
            "api": "CreateFile",
            "contentLength": 0,
            "eTag": "e0",
            "url": "https://acct.dfs.core.windows.net/c/a.tif",
        },
    });
    bench.write("created.json", created.to_string());
    let ran = bench.run(&["run", "--json", "created.json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [event, counts] = &lines[..] else {
        panic!("{lines:?}");
    };
    assert_eq!(event["outcome"], "waiting");
    assert_eq!(event["uri"], "azblob://acct/c/a.tif");
    assert_eq!(
        (&counts["ignored"], &counts["failed"]),
        (&1.into(), &0.into()),
        "{counts}"
    );
    assert_eq!(bench.claim()["status"], "waiting");
}
