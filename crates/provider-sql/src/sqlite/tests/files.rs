//! Opening: files that are ours, that become ours, and that are not.

use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use identity_core::claim::{ClaimStore, Precondition, Record, Status, UnixSeconds};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::cases::{Testbed, chain};
use crate::columns::ClaimRow;
use crate::sqlite::connection::Options;
use crate::sqlite::fixture::Fixture;
use crate::sqlite::migrate::{APPLICATION_ID, KNOWN, STEPS};
use crate::sqlite::{OpenError, SqliteStore};
use identity_core::claim::conformance::samples::{bare, numbered_key};
use identity_core::ledger::Ledger;

async fn open(path: impl AsRef<Path>) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(path, SqliteStore::LOCK_WAIT).await
}

/// Opening fails, and leaves the file and its folder as they were.
async fn refusal(path: &Path) -> OpenError {
    let names = |path: &Path| {
        let folder = fs::read_dir(path.parent().unwrap()).unwrap();
        let mut names: Vec<_> = folder.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let (bytes, before) = (fs::read(path).unwrap(), names(path));
    let error = open(path).await.unwrap_err();
    // The connection closes its files on a thread of its own.
    while names(path) != before {
        tokio::task::yield_now().await;
    }
    assert!(fs::read(path).unwrap() == bytes, "{error}");
    error
}

/// A file in which SQLite has run these statements.
fn sqlite_file(folder: &TempDir, sql: impl AsRef<str>) -> PathBuf {
    let path = folder.path().join("file.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(sql.as_ref()).unwrap();
    path
}

#[tokio::test]
async fn a_path_that_can_be_no_file_is_refused_before_sqlite_sees_it() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "").unwrap();
    let error = async |path: PathBuf| open(path).await.unwrap_err();

    let missing = error(at("no/claims.db")).await;
    assert_eq!(
        missing.to_string(),
        format!(
            "cannot create {:?}: there is no folder {:?}",
            at("no/claims.db"),
            at("no")
        )
    );
    let directory = error(folder.path().to_owned()).await;
    assert!(matches!(directory, OpenError::NotAFile { .. }));
    let device = error("/dev/null".into()).await;
    assert!(matches!(device, OpenError::NotAFile { .. }));
    let inside_a_file = error(at("file/claims.db")).await;
    assert!(matches!(inside_a_file, OpenError::Unreachable { .. }));
    for (path, why) in [("", "it is empty"), ("a\0b", "it holds a NUL character")] {
        let text = format!("{path:?} cannot be the path of a SQLite file: {why}");
        assert_eq!(error(path.into()).await.to_string(), text);
    }
    {
        use std::os::unix::ffi::OsStrExt;
        let name = std::ffi::OsStr::from_bytes(b"\xff.db");
        let error = error(folder.path().join(name)).await;
        assert!(error.to_string().ends_with("it is not UTF-8"), "{error}");
    }
}

#[test]
fn a_relative_path_is_never_read_as_a_uri_or_as_memory() {
    for name in ["file:claims.db?mode=memory", ":memory:", "claims.db"] {
        let options = Options::new(Path::new(name));
        assert_eq!(options.path().to_str().unwrap(), format!("./{name}"));
    }
    let absolute = Options::new(Path::new("/a/claims.db"));
    assert_eq!(absolute.path(), Path::new("/a/claims.db"));
}

#[tokio::test]
async fn a_new_file_and_an_empty_one_become_ours_and_keep_their_claims() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("empty.db"), "").unwrap();
    for name in ["new.db", "empty.db", "with space ?#%41.db"] {
        let path = folder.path().join(name);
        let store = open(&path).await.unwrap();
        assert_eq!(store.to_string(), format!("sqlite:{}", path.display()));
        let (key, record) = (numbered_key(1), bare(Status::Done, 1));
        let written = store.put(&key, &record, &Precondition::Absent).await;
        store.close().await.unwrap();

        let stored = open(&path).await.unwrap().get(&key).await.unwrap();
        assert_eq!(stored.unwrap().version, written.unwrap());
        assert!(path.is_file());
    }
}

#[tokio::test]
async fn the_table_has_the_columns_of_the_code() {
    let fixture = Fixture::new().await;
    let foreign = fixture.foreign();
    let sql = "SELECT name FROM pragma_table_info('firstclaim_claims')";
    let mut statement = foreign.prepare(sql).unwrap();
    let names = statement.query_map([], |row| row.get::<_, String>(0));
    let names: Vec<_> = names.unwrap().map(Result::unwrap).collect();
    assert_eq!(names, ClaimRow::COLUMNS);
    assert_eq!(names[0], "key");
    for (sql, expected) in [
        ("PRAGMA application_id", APPLICATION_ID),
        ("PRAGMA user_version", KNOWN),
    ] {
        let value: i32 = foreign.query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(value, expected);
    }
}

#[tokio::test]
async fn what_is_no_sqlite_file_is_refused_and_left_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("claims.db");
    fs::write(&path, "\n").unwrap();
    let error = refusal(&path).await;
    assert!(matches!(error, OpenError::Path { .. }), "{error:?}");
    for bytes in [
        b"xy".to_vec(),
        b"{\"not\": \"a database\"}\n".to_vec(),
        vec![0xa5; 100_000],
        b"SQLite format 3\0".to_vec(),
    ] {
        fs::write(&path, bytes).unwrap();
        let error = refusal(&path).await;
        assert!(matches!(error, OpenError::Corrupt { .. }), "{error:?}");
        assert_eq!(
            chain(&error),
            format!(
                "{path:?} is not a SQLite file, or is damaged: (code: 26) file is not a database"
            )
        );
    }
}

#[tokio::test]
async fn a_damaged_file_of_ours_is_refused_and_left_alone() {
    let fixture = Fixture::new().await;
    fixture.store.close().await.unwrap();
    let mut bytes = fs::read(fixture.path()).unwrap();
    bytes[100..].fill(0xff);
    fs::write(fixture.path(), bytes).unwrap();
    let error = refusal(&fixture.path()).await;
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error:?}");
}

#[tokio::test]
async fn a_file_of_another_application_is_refused_and_left_alone() {
    for (sql, application_id, tables) in [
        (
            "PRAGMA application_id = 0x47504b47; PRAGMA user_version = 10300;
             CREATE TABLE gpkg_contents (a); CREATE TABLE gpkg_extensions (a)",
            0x4750_4b47,
            vec!["gpkg_contents", "gpkg_extensions"],
        ),
        (
            "CREATE TABLE a (a); CREATE TABLE b (a); CREATE TABLE c (a); CREATE TABLE d (a)",
            0,
            vec!["a", "b", "c"],
        ),
        (
            "CREATE TABLE firstclaim_claims (key TEXT)",
            0,
            vec!["firstclaim_claims"],
        ),
        ("PRAGMA user_version = 1", 0, vec![]),
        ("PRAGMA application_id = -1", u32::MAX, vec![]),
        (
            "PRAGMA journal_mode = WAL; CREATE TABLE a (a)",
            0,
            vec!["a"],
        ),
    ] {
        let folder = TempDir::new().unwrap();
        let path = sqlite_file(&folder, sql);
        let error = refusal(&path).await;
        assert_eq!(
            error.to_string(),
            format!(
                "{path:?} belongs to another application: expected a new file or application_id 0x46434c4d, \
                 got application_id {application_id:#010x} and the tables {tables:?}"
            )
        );
    }
}

#[tokio::test]
async fn a_file_of_every_older_version_is_brought_up_to_date_and_keeps_its_claims() {
    let (key, record) = (numbered_key(1), bare(Status::Done, 1));
    for version in 1..STEPS.len() {
        let folder = TempDir::new().unwrap();
        let header = format!(
            "PRAGMA journal_mode = WAL; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {version};
             INSERT INTO firstclaim_claims (key, status, attempt, revision, claimed_at)
             VALUES ('{key}', 'done', 1, '{}', {})",
            record.revision.unwrap(),
            record.claimed_at.0
        );
        let path = sqlite_file(&folder, STEPS[..version].concat() + &header);
        let store = open(&path).await.unwrap();
        let read = store.get(&key).await.unwrap().unwrap();
        assert_eq!(read.record, record, "version {version}");
        assert_eq!(store.upload("k").await.unwrap(), None, "version {version}");

        let over = Record {
            expires_at: Some(UnixSeconds(5)),
            ..bare(Status::Done, 2)
        };
        let when = Precondition::Unchanged(read.version);
        store.put(&key, &over, &when).await.unwrap();
        let purged = store.purge(UnixSeconds(6), NonZeroU32::MAX).await;
        assert_eq!(purged.unwrap(), 1, "version {version}");
    }
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused_and_left_alone() {
    let fixture = Fixture::new().await;
    let newer = KNOWN + 1;
    fixture
        .execute(&format!("PRAGMA user_version = {newer}"))
        .await;
    fixture.store.close().await.unwrap();
    let error = refusal(&fixture.path()).await;
    assert_eq!(
        error.to_string(),
        format!(
            "{:?} was written by a newer version: its tables are of version {newer}, known are those up to {KNOWN}",
            fixture.path()
        )
    );
}

#[tokio::test]
async fn a_file_whose_lock_never_frees_is_not_waited_for_for_ever() {
    let fixture = Fixture::new().await;
    // Something is to be done: only for that the lock is needed.
    fixture.execute("PRAGMA user_version = 1").await;
    let foreign = fixture.foreign();
    foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = SqliteStore::open(fixture.path(), Duration::from_millis(30))
        .await
        .unwrap_err();
    assert!(matches!(error, OpenError::Busy { .. }), "{error:?}");
    assert!(chain(&error).contains("cannot be opened: the file stayed locked for 0.03 s"));
}

#[tokio::test]
async fn a_file_that_is_up_to_date_is_opened_and_read_while_others_hold_its_lock() {
    let fixture = Fixture::new().await;
    let (key, record) = (numbered_key(1), bare(Status::Done, 1));
    let absent = &Precondition::Absent;
    fixture.store.put(&key, &record, absent).await.unwrap();
    let foreign = fixture.foreign();
    foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
    for _ in 0..100 {
        // Whoever waited for the lock would get none.
        let store = fixture.patient(Duration::ZERO).await;
        assert_eq!(store.get(&key).await.unwrap().unwrap().record, record);
    }
    foreign.execute_batch("COMMIT").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_an_older_version_is_brought_up_to_date_once_by_many_who_open_it() {
    let folder = TempDir::new().unwrap();
    let header = format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1");
    let path = sqlite_file(&folder, STEPS[0].to_owned() + &header);
    let mut opening = tokio::task::JoinSet::new();
    for _ in 0..20 {
        opening.spawn(open(path.clone()));
    }
    for store in opening.join_all().await {
        assert_eq!(store.unwrap().upload("k").await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_disk_too_full_for_the_tables_leaves_a_file_that_can_still_become_ours() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("claims.db");
    let mut full = Options::new(&path);
    full.setup += "PRAGMA max_page_count = 2";
    let error = SqliteStore::open_with(&path, SqliteStore::LOCK_WAIT, full)
        .await
        .unwrap_err();
    assert!(matches!(error, OpenError::Full { .. }), "{error:?}");
    assert_eq!(
        chain(&error),
        format!(
            "{path:?} cannot be set up: there is no space left: (code: 13) database or disk is full"
        )
    );
    open(&path).await.unwrap();
}

/// Runs a test of this file again in a process of its own: `prepare` makes the process, the environment says that it is one.
fn in_a_child(test: &str, variable: &str, path: &Path, prepare: impl FnOnce(&Path) -> Command) {
    // A copy that every user can reach, wherever the project lies.
    let program = path.parent().unwrap().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let output = prepare(&program)
        .args([
            &format!("sqlite::tests::files::{test}"),
            "--exact",
            "--nocapture",
        ])
        .env(variable, path)
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test]
async fn a_file_or_folder_that_cannot_be_written_to_is_noticed_at_once() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;

    const CHILD: &str = "PROVIDER_SQL_TEST_UNWRITABLE";
    if let Some(folder) = std::env::var_os(CHILD) {
        for name in ["claims.db", "new.db", "in-use.db"] {
            let path = Path::new(&folder).join(name);
            let error = open(&path).await.unwrap_err();
            assert!(matches!(error, OpenError::NotWritable { .. }), "{error:?}");
            let text = format!("{path:?} cannot be opened for writing, in a folder that can be");
            assert!(chain(&error).starts_with(&text), "{}", chain(&error));
        }
        return;
    }

    let folder = TempDir::new().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let store = open(inner.join("claims.db")).await.unwrap();
    store.close().await.unwrap();
    // SQLite reads it without a word: its log is there already.
    let in_use = open(inner.join("in-use.db")).await.unwrap();
    in_use.get(&numbered_key(1)).await.unwrap();
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for file in fs::read_dir(&inner).unwrap() {
        mode(&file.unwrap().path(), 0o444);
    }
    mode(&inner, 0o555);
    mode(folder.path(), 0o755);
    let root = fs::metadata(&inner).unwrap().uid() == 0;
    let test = "a_file_or_folder_that_cannot_be_written_to_is_noticed_at_once";
    in_a_child(test, CHILD, &inner, |program| {
        let mut command = Command::new(program);
        if root {
            // Permissions do not bind root: the child is "nobody".
            command.uid(65_534).gid(65_534);
        }
        command
    });
    mode(&inner, 0o755); // so that it can be removed
    in_use.close().await.unwrap();
}

#[tokio::test]
async fn a_disk_that_refuses_bytes_fails_the_write_and_keeps_the_rows_before() {
    const CHILD: &str = "PROVIDER_SQL_TEST_REFUSING";
    if let Some(path) = std::env::var_os(CHILD) {
        let store = open(&path).await.unwrap();
        let mut number = 0;
        let error = loop {
            let key = numbered_key(number);
            match store
                .put(&key, &bare(Status::Done, 1), &Precondition::Absent)
                .await
            {
                Ok(_) => number += 1,
                Err(error) => break error,
            }
        };
        let text = format!("{store}: writing a claim failed: (code: 778) disk I/O error");
        assert_eq!(chain(&error), text);
        assert!(number > 0);
        for before in 0..number {
            assert!(store.get(&numbered_key(before)).await.unwrap().is_some());
        }
        assert_eq!(store.get(&numbered_key(number)).await.unwrap(), None);
        return;
    }

    let folder = TempDir::new().unwrap();
    let test = "a_disk_that_refuses_bytes_fails_the_write_and_keeps_the_rows_before";
    in_a_child(test, CHILD, &folder.path().join("claims.db"), |program| {
        // No file may grow beyond 256 blocks of 512 bytes; the signal that would end the process is ignored.
        let mut command = Command::new("sh");
        command
            .args(["-c", "trap '' XFSZ && ulimit -f 256 && exec \"$0\" \"$@\""])
            .arg(program);
        command
    });
}
