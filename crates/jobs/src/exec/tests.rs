//! Tests of the command as a job.

use std::{
    error::Error as _, io::Read as _, num::NonZeroU32, path::PathBuf, sync::Arc, time::Duration,
};

use host::clock::SystemClock;
use identity_core::{
    claim::{
        ClaimKey, Claimed, Claims, Owner, RecordedObject, RecordedPipeline, Terms,
        memory::MemoryStore,
    },
    host::Entropy,
    identity::{
        ObjectAddress, ObjectKey, ObjectVersion, Provider, TokenKind, VersionToken,
        pipeline::{Contract, Work},
    },
    object::{Head, Listed, ObjectError, ObjectStore, ObjectStream},
};
use proptest::prelude::*;
use tokio_util::sync::CancellationToken;

use super::*;

/// Far more than any of these takes; only a test that fails waits so long.
const LONG: Duration = Duration::from_secs(120);

/// A store of one object: version `v1` is the bytes `one`, and every other has gone.
#[derive(Debug)]
struct OneObject;

#[async_trait]
impl ObjectStore for OneObject {
    fn reads(&self, _: Provider) -> bool {
        true
    }

    async fn head(&self, _: &ObjectAddress) -> Result<Option<Head>, ObjectError> {
        Ok(None)
    }

    async fn read(&self, object: &ObjectVersion) -> Result<ObjectStream, ObjectError> {
        match object.token.value() {
            "v1" => Ok(Box::new(&b"one"[..])),
            _ => Err(ObjectError::Changed),
        }
    }

    async fn list(&self, _: &ObjectAddress, _: NonZeroU32) -> Result<Vec<Listed>, ObjectError> {
        panic!("the store was asked for a listing");
    }
}

/// The same owner for every claim.
#[derive(Debug)]
struct SameOwner;

impl Entropy for SameOwner {
    fn owner(&self) -> io::Result<Owner> {
        Ok(Owner(0xfeed))
    }
}

/// Attempt 1 at the job `abab…`.
async fn lease(object: &ObjectVersion) -> Lease {
    let claims = Claims::new(
        Arc::new(MemoryStore::default()),
        Arc::new(SystemClock::new()),
        Arc::new(SameOwner),
        Terms::default(),
    );
    let key = ClaimKey::from_digest([0xab; 32]);
    let recorded = RecordedObject::new(&object.address, Some(&object.token));
    let pipeline = RecordedPipeline::default();
    match claims.claim(&key, &recorded, &pipeline).await.unwrap() {
        Claimed::Won(lease) => lease,
        other => panic!("{other:?}"),
    }
}

fn context(key: ObjectKey) -> JobContext {
    JobContext {
        object: ObjectVersion {
            address: ObjectAddress {
                provider: Provider::S3,
                account: None,
                container: "tiles".into(),
                key,
            },
            token: VersionToken::new(TokenKind::VersionId, "v1").unwrap(),
        },
        pipeline_name: "scenes".into(),
        pipeline_version: "3.2.0".into(),
        objects: Arc::new(OneObject),
        stopping: CancellationToken::new(),
    }
}

/// The job of a contract whose `[job]` is this.
fn exec(job: &str) -> Exec {
    let text = format!("name = 'scenes'\nversion = '3.2.0'\nscheme = 'strict'\n[job]\n{job}");
    match Contract::parse(&text).unwrap().job().unwrap().work() {
        Work::Exec(command) => Exec::new(command.clone(), WorkingFolder::Inherited),
        other => panic!("{other:?}"),
    }
}

/// A job of `sh -c SCRIPT sh ARGUMENTS…`.
fn script(script: &str, arguments: &[&str]) -> Exec {
    let words: Vec<_> = ["sh", "-c", script, "sh"]
        .iter()
        .chain(arguments)
        .map(|word| json!(word).to_string())
        .collect();
    exec(&format!("exec = [{}]", words.join(", ")))
}

async fn run_in(exec: &Exec, context: &JobContext) -> Result<Output, JobError> {
    let lease = lease(&context.object).await;
    tokio::time::timeout(LONG, exec.run(&lease, context))
        .await
        .unwrap()
}

async fn run(exec: &Exec) -> Result<Output, JobError> {
    run_in(exec, &context(ObjectKey::verbatim("a/scene 1.tif"))).await
}

fn stdout(output: Output) -> String {
    output.result.unwrap()["stdout"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn exit_0_is_done_with_the_output_as_the_result() {
    let output = run(&script("echo out; echo err >&2", &[])).await.unwrap();
    assert_eq!(output.result, Some(json!({"exit": 0, "stdout": "out\n"})));
    let output = run(&script("echo err >&2", &[])).await.unwrap();
    assert_eq!(output.result, None);
}

#[tokio::test]
async fn each_end_is_what_the_contract_calls_it() {
    let failing = |job: &'static str| async move { run(&exec(job)).await.unwrap_err() };
    let error = failing("exec = ['sh', '-c', 'echo bad data >&2; exit 65']").await;
    assert!(matches!(error, JobError::Permanent { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the command \"sh\" exited with code 65 and wrote to standard error last:\nbad data"
    );

    let error = failing("exec = ['sh', '-c', 'echo o; exit 65']\npermanent = [3, 4]").await;
    assert!(matches!(error, JobError::Retryable { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the command \"sh\" exited with code 65 and wrote to standard output last:\no"
    );
    let error = failing("exec = ['sh', '-c', 'exit 4']\npermanent = [3, 4]").await;
    assert!(matches!(error, JobError::Permanent { .. }), "{error:?}");

    let error = failing("exec = ['sh', '-c', 'kill -KILL $$']\npermanent = [9, 137]").await;
    assert!(matches!(error, JobError::Retryable { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the command \"sh\" was ended by signal 9 and wrote nothing"
    );
}

#[tokio::test]
async fn a_command_that_cannot_be_started_is_this_machines_fault() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("no-interpreter");
    std::fs::write(&script, "#!/firstclaim/no/such/interpreter\n").unwrap();
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, all).unwrap();
    let script = script.to_str().unwrap();
    for program in ["firstclaim-no-such-program", "/", "/etc/passwd", script] {
        let error = run(&exec(&format!("exec = ['{program}']")))
            .await
            .unwrap_err();
        assert!(
            matches!(
                error,
                JobError::Machine {
                    source: Some(_),
                    ..
                }
            ),
            "{error:?}"
        );
        assert_eq!(
            error.to_string(),
            format!("the command {program:?} cannot be started on this machine")
        );
    }
}

#[tokio::test]
async fn what_no_command_can_be_given_is_rejected() {
    let long = "x".repeat(4_000_000);
    let nul = "the object's key or container holds a NUL character, so no command can be given it";
    for (key, message) in [
        (ObjectKey::verbatim("a\0b"), nul),
        (
            ObjectKey::decoded("%ff", [0xff]),
            "the object's key is not UTF-8, so no command can be given it",
        ),
        (
            ObjectKey::verbatim(long),
            "the arguments and environment of \"echo\" are too long",
        ),
    ] {
        let error = run_in(&exec("exec = ['echo', '{key}']"), &context(key)).await;
        let error = error.unwrap_err();
        assert!(matches!(error, JobError::Permanent { .. }));
        assert_eq!(error.to_string(), message);
    }
}

#[tokio::test]
async fn a_command_is_given_the_job_as_arguments_and_in_its_environment() {
    let job = script(
        r#"printf '%s\n' "$@"; env | grep '^FIRSTCLAIM_JOB_' | sort"#,
        &[
            "{uri}",
            "{provider}",
            "{container}",
            "{key}",
            "{version}",
            "{job_id}",
            "{attempt}",
            "-{key}-",
        ],
    );
    let id = "ab".repeat(32);
    let common = format!(
        "FIRSTCLAIM_JOB_ATTEMPT=1\nFIRSTCLAIM_JOB_CONTAINER=tiles\nFIRSTCLAIM_JOB_ID={id}\n\
         FIRSTCLAIM_JOB_KEY=a/$(id) 'é\nFIRSTCLAIM_JOB_OWNER=0000000000000000000000000000feed\n\
         FIRSTCLAIM_JOB_PIPELINE=scenes\nFIRSTCLAIM_JOB_PIPELINE_VERSION=3.2.0\n"
    );
    let mut context = context(ObjectKey::verbatim("a/$(id) 'é"));
    assert_eq!(
        stdout(run_in(&job, &context).await.unwrap()),
        format!(
            "s3://tiles/a/$(id) 'é\ns3\ntiles\na/$(id) 'é\nv1\n{id}\n1\n-a/$(id) 'é-\n{common}\
             FIRSTCLAIM_JOB_PROVIDER=s3\nFIRSTCLAIM_JOB_TOKEN=version-id:v1\n\
             FIRSTCLAIM_JOB_URI=s3://tiles/a/$(id) 'é\nFIRSTCLAIM_JOB_VERSION=v1\n"
        )
    );

    context.object.address.provider = Provider::Azure;
    context.object.address.account = Some("acme".into());
    let job = script("env | grep '^FIRSTCLAIM_JOB_' | sort", &[]);
    assert_eq!(
        stdout(run_in(&job, &context).await.unwrap()),
        format!(
            "FIRSTCLAIM_JOB_ACCOUNT=acme\n{common}\
             FIRSTCLAIM_JOB_PROVIDER=azure\nFIRSTCLAIM_JOB_TOKEN=version-id:v1\n\
             FIRSTCLAIM_JOB_URI=azblob://acme/tiles/a/$(id) 'é\nFIRSTCLAIM_JOB_VERSION=v1\n"
        )
    );
}

/// Runs itself once more, with variables of its own: a test cannot change its environment.
#[tokio::test]
async fn a_command_inherits_neither_credentials_nor_what_this_program_was_given_as_a_job() {
    const STALE: &str = "FIRSTCLAIM_JOB_ACCOUNT";
    if std::env::var_os(STALE).is_some() {
        let look =
            "exec = ['sh', '-c', 'echo \"<$FIRSTCLAIM_JOB_ACCOUNT$AWS_SESSION_TOKEN$OTHER>\"']";
        let seen = async |env: &str| stdout(run(&exec(&format!("{look}\n{env}"))).await.unwrap());
        assert_eq!(seen("").await, "<other>\n");
        assert_eq!(seen("env = ['AWS_*', 'FIRSTCLAIM_*']").await, "<secret>\n");
        assert_eq!(seen("env = []").await, "<>\n");
        return;
    }
    let name = "exec::tests::a_command_inherits_neither_credentials_nor_what_this_program_was_given_as_a_job";
    let again = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .envs([
            (STALE, "stale"),
            ("AWS_SESSION_TOKEN", "secret"),
            ("OTHER", "other"),
        ])
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&again.stdout);
    assert!(again.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

#[tokio::test]
async fn an_objects_name_is_no_option() {
    let context = context(ObjectKey::verbatim("--help"));
    for words in [
        "'echo', '{key}'",
        "'echo', 'x', '{key}{version}'",
        "'echo', '{key}', '--'",
    ] {
        let error = run_in(&exec(&format!("exec = [{words}]")), &context).await;
        let error = error.unwrap_err();
        assert!(matches!(error, JobError::Permanent { .. }), "{error:?}");
        assert!(
            error.to_string().starts_with("{key} begins with \"-\""),
            "{error}"
        );
    }
    for (words, said) in [
        ("'echo', './{key}'", "./--help\n"),
        ("'echo', '--in={key}'", "--in=--help\n"),
        ("'echo', '{uri}'", "s3://tiles/--help\n"),
        ("'echo', 'x', '--', '{key}'", "x -- --help\n"),
        ("'sh', '-c', 'echo \"<$1>\"', 'sh', '{key}'", "<--help>\n"),
    ] {
        let output = run_in(&exec(&format!("exec = [{words}]")), &context).await;
        assert_eq!(stdout(output.unwrap()), said);
    }
}

#[tokio::test]
async fn a_path_is_a_copy_of_the_pinned_version_and_does_not_outlive_the_job() {
    for ending in ["exit 0", "exit 1", "kill -KILL $$"] {
        let kept = tempfile::tempdir().unwrap();
        let note = kept.path().join("note");
        let look = format!(
            r#"{{ cat "$1"; echo; echo "$1"; [ "$1" = "$FIRSTCLAIM_JOB_PATH" ]; echo $?; }} >"$2"; {ending}"#
        );
        let _ = run(&script(&look, &["{path}", note.to_str().unwrap()])).await;
        let seen = std::fs::read_to_string(&note).unwrap();
        let [bytes, path, same] = seen.lines().collect::<Vec<_>>()[..] else {
            panic!("{seen}");
        };
        assert_eq!((bytes, same), ("one", "0"));
        assert!(path.ends_with("/scene 1.tif"), "{path}");
        assert!(!PathBuf::from(path).parent().unwrap().exists());
    }
}

/// As a job leaves files behind that is stopped before it can remove them.
#[tokio::test]
async fn what_a_command_leaves_in_its_temporary_folder_goes_with_it() {
    for ending in ["exit 0", "exit 1", "kill -KILL $$"] {
        let kept = tempfile::tempdir().unwrap();
        let note = kept.path().join("note");
        let leave = format!(
            r#"mkdir "$TMPDIR/deep"; mktemp -p "$TMPDIR/deep" >"$1"; mktemp >>"$1"; {ending}"#
        );
        let _ = run(&script(&leave, &[note.to_str().unwrap()])).await;
        let left = std::fs::read_to_string(&note).unwrap();
        let left: Vec<_> = left.lines().map(PathBuf::from).collect();
        let folder = left[1].parent().unwrap();
        assert_eq!(left[0].parent(), Some(&*folder.join("deep")));
        assert_ne!(folder, std::env::temp_dir());
        assert!(!folder.exists(), "{folder:?}");
    }
}

#[tokio::test]
async fn a_command_runs_where_it_is_told_and_its_program_is_found_from_here() {
    let here = std::env::current_dir().unwrap();
    let where_it_runs = async |working| {
        let mut exec = script(r#"pwd; echo "$TMPDIR""#, &[]);
        exec.working = working;
        let said = stdout(run(&exec).await.unwrap());
        let (working, temporary) = said.trim_end().split_once('\n').unwrap();
        (PathBuf::from(working), PathBuf::from(temporary))
    };
    let (working, temporary) = where_it_runs(WorkingFolder::Inherited).await;
    assert_eq!(working, here);
    assert_ne!(temporary, here);
    let (working, temporary) = where_it_runs(WorkingFolder::Private).await;
    assert_eq!(working.file_name(), temporary.file_name());

    let folder = tempfile::tempdir_in(&here).unwrap();
    let program = folder.path().join("program");
    std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
    let program = program.strip_prefix(&here).unwrap().to_str().unwrap();
    for working in [WorkingFolder::Inherited, WorkingFolder::Private] {
        let mut exec = exec(&format!("exec = ['{program}', '-c', 'echo found']"));
        exec.working = working;
        assert_eq!(stdout(run(&exec).await.unwrap()), "found\n");
    }
}

#[tokio::test]
async fn an_object_that_changed_is_never_handed_to_the_command() {
    let mut context = context(ObjectKey::verbatim("k"));
    context.object.token = VersionToken::new(TokenKind::VersionId, "v0").unwrap();
    let error = run_in(&exec("exec = ['cat', '{path}']"), &context).await;
    assert!(matches!(error, Err(JobError::SourceChanged)), "{error:?}");
    // What does not read the object does not notice.
    assert!(run_in(&exec("exec = ['true']"), &context).await.is_ok());
}

#[tokio::test]
async fn dropping_the_run_kills_the_command_and_removes_its_copy() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let hold = "exec 3>\"$2\"; echo \"$1\" >&3; sleep 1000 & wait";
    let job = script(hold, &["{path}", fifo.to_str().unwrap()]);
    let context = context(ObjectKey::verbatim("k"));
    let lease = lease(&context.object).await;

    let (begin, begun) = tokio::sync::oneshot::channel();
    let (end, over) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut file = std::fs::File::open(fifo).unwrap();
        let mut path = Vec::new();
        while !path.ends_with(b"\n") {
            let mut byte = [0];
            file.read_exact(&mut byte).unwrap();
            path.extend(byte);
        }
        let _ = begin.send(PathBuf::from(String::from_utf8(path).unwrap().trim_end()));
        let _ = end.send(file.read_to_end(&mut Vec::new()).unwrap());
    });
    let copy = tokio::select! {
        ended = job.run(&lease, &context) => panic!("it ended: {ended:?}"),
        copy = begun => copy.unwrap(),
    };
    let folder = copy.parent().unwrap().parent().unwrap();
    assert!(!folder.exists(), "{folder:?}");
    let over = tokio::time::timeout(LONG, over).await;
    assert_eq!(over.unwrap().unwrap(), 0);
}

#[test]
fn a_cause_is_kept_and_not_repeated() {
    let cause = io::Error::other("the cause");
    let error = process_error("x", ProcessError::Watch(cause));
    assert_eq!(
        error.to_string(),
        "the command \"x\" could not be watched and was killed"
    );
    assert_eq!(error.source().unwrap().to_string(), "the cause");
}

#[tokio::test]
async fn an_error_tells_the_last_2_kib() {
    let job = script(
        "head -c 100000 /dev/zero | tr '\\0' x >&2; echo end >&2; exit 1",
        &[],
    );
    let message = run(&job).await.unwrap_err().to_string();
    let (_, told) = message.split_once(":\n").unwrap();
    assert_eq!(told.len(), TOLD);
    assert!(told.ends_with("xxend"));
}

proptest! {
    #[test]
    fn a_result_fits_into_the_record_and_is_the_end_of_the_output(
        piece in "[\\x00-\\x7f\"\\\\\n\té€😀]{0,12}", times in 0usize..4000, bytes: [u8; 3]
    ) {
        let mut printed = piece.repeat(times).into_bytes();
        printed.extend(bytes);
        let mut tail = Tail::default();
        tail.push(&printed);
        let whole = tail.text();
        let result = result(&tail).unwrap();
        let size = result.to_string().len();
        prop_assert!(size <= Record::MAX_RESULT_BYTES, "{}", size);
        let kept = result["stdout"].as_str().unwrap();
        prop_assert!(whole.ends_with(kept));
        let truncated = result.get("truncated").is_some();
        prop_assert_eq!(truncated, kept != whole || printed.len() > Tail::KEPT);
        // No more is let go than must be: two bytes a character, and the frame.
        prop_assert!(!truncated || size > Record::MAX_RESULT_BYTES - 8, "{}", size);
    }
}
