//! The sample that publishes a file only while its attempt holds the claim, and the command it asks.

use std::process::Command;

use tests::{
    Workbench, Worker,
    crash::{self, Blow, PROCESSED, one_event},
    eventually, is_alive, kill, program, root,
    sqlite::freeze,
};

const STORE: &str = "sqlite:firstclaim.db";

/// A bench whose job publishes by the sample what this script makes; `$1` is the file to write.
fn bench(make: &str) -> Workbench {
    let script = root().join("tests/samples/fencing/publish.sh");
    let bench = Workbench::new(&format!(
        "exec = ['sh', '{}', 'out', 'sh', 'make.sh']",
        script.display()
    ));
    one_event(&bench);
    bench.write("make.sh", make);
    std::fs::create_dir(bench.path("out")).unwrap();
    bench
}

/// A run of the event, in whose job `firstclaim` is this program, unless a folder has another one of that name.
fn runner(bench: &Workbench) -> Command {
    let mut run = bench.runner(None, &["event.json"]);
    let program = program().parent().unwrap();
    let folders = [bench.path("bin"), program.to_owned()];
    let path = std::env::var_os("PATH").unwrap();
    let path = folders.into_iter().chain(std::env::split_paths(&path));
    run.env("PATH", std::env::join_paths(path).unwrap())
        .env("CLAIM_STORE", STORE);
    run
}

fn start(bench: &Workbench, name: &str, lease: &str) -> Worker {
    bench.start(name, runner(bench).env("FIRSTCLAIM_LEASE_SECONDS", lease))
}

/// What a file says that each attempt makes: its attempt. The first one waits for `go`, and tells its process.
const MAKE: &str = r#"
if [ "$FIRSTCLAIM_JOB_ATTEMPT" = 1 ]; then
    echo "$PPID" > first
    while ! [ -e go ]; do sleep 0.05; done
fi
echo "$FIRSTCLAIM_JOB_ATTEMPT" > "$1"
"#;

/// What stands under the job's own name.
fn published(bench: &Workbench) -> String {
    let job = bench.claim()["job_id"].as_str().unwrap().to_owned();
    bench.read(&format!("out/{job}"))
}

#[test]
fn a_zombie_does_not_publish_over_its_successor() {
    for blow in Blow::ALL {
        let bench = bench(MAKE);
        let zombie = start(&bench, "zombie", crash::SHORT_LEASE);
        eventually("the first attempt starts", || {
            bench.read("first").ends_with('\n')
        });
        let script = bench.read("first").trim_end().to_owned();
        match blow {
            Blow::Kill => zombie.signal("KILL"),
            Blow::Stop => freeze(&bench, &zombie),
        }
        let ran = bench.start("successor", &mut runner(&bench)).end(&bench);
        assert_eq!((ran.code, ran.last_line()), (0, PROCESSED), "{ran:?}");
        assert_eq!(published(&bench), "2\n");
        let done = bench.claim();
        // The zombie's script goes on, with nobody to stop it.
        bench.write("go", "");
        eventually("the zombie's script ends", || !is_alive(&script));
        let job = done["job_id"].as_str().unwrap();
        assert_eq!(
            bench.read(&format!("out/{job}.1")),
            "1\n",
            "it was to go on"
        );
        assert_eq!(published(&bench), "2\n", "{blow:?}");
        if blow == Blow::Stop {
            zombie.signal("CONT");
            let ran = zombie.end(&bench);
            assert_eq!((ran.code, ran.last_line()), (0, crash::SKIPPED), "{ran:?}");
        }
        assert_eq!(bench.claim(), done);
    }
}

/// What the check cannot do: the claim is lost after the answer and before the rename. The record still tells which file
/// counts, and no file is another attempt's.
#[test]
fn in_the_moment_after_the_answer_the_record_alone_tells_which_file_counts() {
    let bench = bench("echo \"$FIRSTCLAIM_JOB_ATTEMPT\" > \"$1\"");
    // The answer of the first attempt's question is on its way for long.
    let slow = format!(
        "#!/bin/sh\n{} \"$@\" || exit\n\
         if [ \"$FIRSTCLAIM_JOB_ATTEMPT\" = 1 ]; then echo $PPID > asked; while ! [ -e go ]; do sleep 0.05; done; fi\n",
        program().display()
    );
    let slow = bench.write("bin/firstclaim", slow);
    let made = Command::new("chmod").arg("+x").arg(slow).status().unwrap();
    assert!(made.success());
    let zombie = start(&bench, "zombie", crash::SHORT_LEASE);
    eventually("it asks", || bench.read("asked").ends_with('\n'));
    zombie.signal("KILL");
    let ran = bench.start("successor", &mut runner(&bench)).end(&bench);
    assert_eq!((ran.code, ran.last_line()), (0, PROCESSED), "{ran:?}");
    assert_eq!(published(&bench), "2\n");
    bench.write("go", "");
    let script = bench.read("asked").trim_end().to_owned();
    eventually("the zombie's script ends", || !is_alive(&script));
    assert_eq!(published(&bench), "1\n", "the moment was missed");
    let claim = bench.claim();
    let counts = claim["result"]["stdout"].as_str().unwrap();
    assert_eq!(bench.read(&format!("out/{counts}")), "2\n");
}

#[test]
fn who_asks_is_told_whether_it_holds_the_claim_and_why_not() {
    let bench = Workbench::new(
        r#"exec = ["sh", "-c", 'echo "$FIRSTCLAIM_JOB_ID $FIRSTCLAIM_JOB_OWNER $$" > who; while ! [ -e go ]; do sleep 0.05; done']"#,
    );
    one_event(&bench);
    let holder = start(&bench, "holder", crash::SHORT_LEASE);
    eventually("the job starts", || bench.read("who").ends_with('\n'));
    let who = bench.read("who");
    let [job, owner, process] = who.split_whitespace().collect::<Vec<_>>()[..] else {
        unreachable!("the job writes three words")
    };
    let held = |job: &str, owner: &str| bench.run(&["claims", "held", job, owner]);
    let yes = held(job, owner);
    assert_eq!(yes.code, 0, "{yes:?}");
    assert!(yes.out.starts_with("held until 20"), "{yes:?}");

    let other = "0".repeat(32);
    let no = |job: &str, owner: &str, code, why: &str| {
        let no = held(job, owner);
        assert_eq!((no.code, no.out.as_str()), (code, ""), "{no:?}");
        assert!(no.err.contains(why), "{why}: {no:?}");
    };
    no(job, &other, 1, "it is processing, as attempt 1 of another");
    no(&"0".repeat(64), owner, 1, "there is no claim 000");
    no("ABC", owner, 2, "64 lower-case");
    no(job, "ABC", 2, "\"ABC\" is no owner: expected 32 lower-case");
    let nowhere = ["claims", "held", "--store", "sqlite:none.db", job, owner];
    assert_eq!(bench.run(&nowhere).code, 2);

    // Frozen past its lease, with nobody to take over, it may lose the claim at any moment.
    freeze(&bench, &holder);
    eventually("its lease ends", || held(job, owner).code == 1);
    no(job, owner, 1, "its lease ended at 20");
    kill("KILL", process);
    bench.write("go", "");
    holder.signal("CONT");
    holder.end(&bench);
    no(job, owner, 1, "it is ");
    assert_eq!(bench.claim()["status"], "done");
}
