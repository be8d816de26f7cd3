//! The sample that keeps a job's result as a row which only its latest attempt may write.

use tests::{
    Workbench,
    crash::{self, Blow, PROCESSED, one_event},
    eventually, is_alive, root,
};

use super::{database, psql};

const ROW: &str = "SELECT count(*), min(attempt), min(object), min(body) FROM results";

#[test]
fn a_zombie_s_late_write_changes_nothing() {
    let samples = root().join("tests/samples/fencing");
    for blow in Blow::ALL {
        let url = database(&format!("upsert_{}", blow.signal().to_lowercase()));
        psql(
            &url,
            &std::fs::read_to_string(samples.join("results.sql")).unwrap(),
        );
        // The first attempt waits for `go`. The body has what SQL must not take for its own.
        let make = "\
            if [ \"$FIRSTCLAIM_JOB_ATTEMPT\" = 1 ]; then\n\
                echo \"$PPID\" > first\n\
                while ! [ -e go ]; do sleep 0.05; done\n\
            fi\n\
            echo \"it's \\\"$FIRSTCLAIM_JOB_ATTEMPT\\\"; --\"\n";
        let script = samples.join("upsert.sh");
        let job = format!("exec = ['sh', '{}', 'sh', 'make.sh']", script.display());
        let bench = Workbench::on(&job, &url);
        one_event(&bench);
        bench.write("make.sh", make);
        let start = |name: &str, lease: &str| {
            let mut run = bench.runner(None, &["event.json"]);
            run.env("RESULTS_URL", &url)
                .env("FIRSTCLAIM_LEASE_SECONDS", lease);
            bench.start(name, &mut run)
        };
        let zombie = start("zombie", crash::SHORT_LEASE);
        eventually("the first attempt starts", || {
            bench.read("first").ends_with('\n')
        });
        zombie.signal(blow.signal());
        let ran = start("successor", "120").end(&bench);
        assert_eq!((ran.code, ran.last_line()), (0, PROCESSED), "{ran:?}");
        let row = "1|2|s3://geo-in/a.tif|it's \"2\"; --";
        assert_eq!(psql(&url, ROW), row);
        bench.write("go", "");
        let script = bench.read("first").trim_end().to_owned();
        eventually("the zombie's script ends", || !is_alive(&script));
        assert_eq!(psql(&url, ROW), row, "{blow:?}: the zombie wrote");
        if blow == Blow::Stop {
            zombie.signal("CONT");
            let ran = zombie.end(&bench);
            assert_eq!((ran.code, ran.last_line()), (0, crash::SKIPPED), "{ran:?}");
        }
        assert_eq!(bench.claim()["attempt"], 2);
    }
}

#[test]
fn an_attempt_may_write_its_row_again_and_a_later_one_over_it() {
    let samples = root().join("tests/samples/fencing");
    let url = database("upsert_again");
    psql(
        &url,
        &std::fs::read_to_string(samples.join("results.sql")).unwrap(),
    );
    let write = |attempt: &str, body: &str| {
        let mut sh = std::process::Command::new("sh");
        sh.arg(samples.join("upsert.sh")).args(["echo", body]);
        sh.env("RESULTS_URL", &url)
            .env("FIRSTCLAIM_JOB_ID", "j")
            .env("FIRSTCLAIM_JOB_URI", "u")
            .env("FIRSTCLAIM_JOB_ATTEMPT", attempt);
        let output = sh.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (
            output.status.code(),
            said,
            psql(&url, "SELECT attempt, body FROM results"),
        )
    };
    let well = |row: &str| (Some(0), String::new(), row.to_owned());
    assert_eq!(write("2", "a"), well("2|a"));
    assert_eq!(write("2", "b"), well("2|b"));
    assert_eq!(write("10", "c"), well("10|c"), "attempts are numbers");
    let (code, said, row) = write("9", "d");
    assert_eq!((code, row.as_str()), (Some(1), "10|c"));
    assert!(said.contains("attempt 9 is late"), "{said}");
}
