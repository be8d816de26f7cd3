//! `firstclaim explain`: what it tells of an event is what `run` then does.

use tests::{Ran, Workbench, notification, record, root};

fn explained(bench: &Workbench, arguments: &[&str]) -> (Ran, serde_json::Value) {
    let ran = bench.run(&[&["explain", "--json"], arguments].concat());
    let line = ran.out.lines().next().unwrap_or("null");
    let told = serde_json::from_str(line).unwrap();
    (ran, told)
}

#[test]
fn an_event_is_told_from_its_envelope_to_what_would_be_done() {
    let bench = Workbench::new("exec = ['true']");
    let event = root().join("tests/events/sqs_sns_s3.json");
    let event = event.to_str().unwrap();
    let (ran, told) = explained(&bench, &[event]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        told["envelope"],
        "S3 notification in SNS notification in SQS message"
    );
    assert_eq!(told["key"], "uploads/東京 roads+v2 (é)/roads.2024.shp");
    assert_eq!(
        told["key_in_payload"],
        "uploads/%E6%9D%B1%E4%BA%AC+roads%2Bv2+%28%C3%A9%29/roads.2024.shp"
    );
    assert_eq!(told["decoded"], "once");
    assert_eq!(
        told["token"],
        "version-id:3HL4kqtJlcpXroDTDmJ.rmSpXd3dIbrHY"
    );
    assert_eq!(told["material_pipeline_name"], "tests");
    assert_eq!(told["run_would"], "claim it as attempt 1, and run the job");
    assert!(
        !bench.path("firstclaim.db").exists(),
        "a dry run made a store"
    );

    let derived = bench.run(&["id", "--json", event]);
    let derived: serde_json::Value = serde_json::from_str(derived.last_line()).unwrap();
    assert_eq!(told["job_id"], derived["job_id"]);
}

#[test]
fn the_store_is_asked_and_what_it_says_decides() {
    let bench = Workbench::new("exec = ['sh', '-c', '[ -e go ]']");
    bench.write("event.json", notification(&[record("a.tif", "e1")]));
    assert_eq!(bench.run(&["run", "event.json"]).code, 1);
    let (_, told) = explained(&bench, &["event.json"]);
    assert_eq!(
        told["run_would"], "claim it as attempt 4, and run the job",
        "{told}"
    );
    bench.write("go", "");
    assert_eq!(bench.run(&["run", "event.json"]).code, 0);
    let (_, told) = explained(&bench, &["event.json"]);
    assert!(
        told["claim"]
            .as_str()
            .unwrap()
            .starts_with("done, attempt 4"),
        "{told}"
    );
    assert!(
        told["run_would"]
            .as_str()
            .unwrap()
            .starts_with("not run the job"),
        "{told}"
    );
}

#[test]
fn what_is_no_job_says_so() {
    let bench = Workbench::new("exec = ['true']");
    bench.write("garbage", "garbage");
    let (ran, told) = explained(&bench, &["garbage"]);
    assert_eq!(ran.code, 1);
    assert!(
        told["run_would"].as_str().unwrap().contains("rejected"),
        "{told}"
    );
    let removed = root().join("tests/events/s3_direct_removed.json");
    let (ran, told) = explained(&bench, &[removed.to_str().unwrap()]);
    assert_eq!(
        (ran.code, told["kind"].as_str()),
        (0, Some("removed")),
        "{told}"
    );
    bench.write("tokenless.json", notification(&[record("a.tif", "")]));
    let (_, told) = explained(&bench, &["tokenless.json"]);
    assert!(told["token"].as_str().unwrap().contains("HEAD"), "{told}");
}

#[test]
fn completions_are_printed_for_every_shell() {
    let bench = Workbench::new("exec = ['true']");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = bench.run(&["completions", shell]);
        assert!(ran.code == 0 && ran.out.contains("firstclaim"), "{ran:?}");
    }
}

#[test]
fn the_picture_of_a_folder_is_no_job_unless_the_contract_wants_it() {
    let bench = Workbench::new("exec = ['true']");
    let told = |key: &str, size: u64| {
        let event = notification(&[record(key, "e1")])
            .replace(r#""eTag":"e1""#, &format!(r#""eTag":"e1","size":{size}"#));
        bench.write("event.json", event);
        let (_, told) = explained(&bench, &["event.json"]);
        let ran = bench.run(&["run", "event.json"]);
        (
            told["selected"].as_str().unwrap().to_owned(),
            ran.last_line().to_owned(),
        )
    };
    for key in ["in/", "in/sub_%24folder%24"] {
        let (selected, counts) = told(key, 0);
        assert!(selected.starts_with("no: "), "{key}: {selected}");
        assert!(
            counts.contains("processed=0") && counts.contains("ignored=1"),
            "{key}: {counts}"
        );
    }
    for (key, size) in [("in/", 1), ("in/a.shp", 0)] {
        let (selected, counts) = told(key, size);
        assert_eq!(selected, "yes", "{key}");
        assert!(counts.contains("processed=1"), "{key}: {counts}");
    }
    let contract = bench.read("pipeline.toml");
    bench.write(
        "pipeline.toml",
        format!("{contract}\n[select]\nfolders = true\n"),
    );
    let (selected, counts) = told("out/", 0);
    assert_eq!(selected, "yes");
    assert!(counts.contains("processed=1"), "{counts}");
}
