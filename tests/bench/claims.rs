//! Claims a second: one worker and eight, on an empty store and on one that holds a million ends.

use std::{sync::Arc, time::Duration};

use identity_core::{
    claim::{
        ClaimKey, ClaimStore, Claimed, Claims, Owner, RecordedObject, RecordedPipeline, Terms,
        UnixMillis, conformance::host::ManualClock,
    },
    host::Entropy,
    identity::{Provider, TokenKind},
};
use provider_sql::SqliteStore;
use sha2::{Digest as _, Sha256};
use tokio::{runtime::Runtime, task::JoinSet};

use crate::timing::{each, in_turns, row, time};

/// How many claims a turn makes.
const COUNT: u32 = 1_000;
/// How many ends the full store holds.
const ENDS: u32 = 1_000_000;

/// Owners of this process alone: a count is enough.
#[derive(Debug, Default)]
struct Counted(std::sync::atomic::AtomicU64);

impl Entropy for Counted {
    fn owner(&self) -> std::io::Result<Owner> {
        Ok(Owner(
            self.0
                .fetch_add(1, std::sync::atomic::Ordering::Relaxed)
                .into(),
        ))
    }
}

fn object() -> RecordedObject {
    RecordedObject {
        provider: Provider::S3,
        account: None,
        container: "sentinel-scenes".into(),
        key: "L2A/T31UDQ/B08.tif".into(),
        raw_key: Some("L2A/T31UDQ%2FB08.tif".into()),
        token: Some((TokenKind::ETag, "9b2cf5a1c0d3e4f5".into())),
    }
}

fn pipeline() -> RecordedPipeline {
    RecordedPipeline {
        name: "scenes".into(),
        version: "3.2.0".into(),
        scheme: "strict".into(),
        params_digest: "0".repeat(64),
        contract_digest: "1".repeat(64),
    }
}

/// Lets each of these stores be one worker, which claim [`COUNT`] new keys together.
async fn claim(stores: &[Arc<dyn ClaimStore>], turn: u64) {
    let entropy = Arc::new(Counted::default());
    let clock = Arc::new(ManualClock::at(UnixMillis(1_767_323_045_000)));
    let mut workers = JoinSet::new();
    let share = COUNT / u32::try_from(stores.len()).unwrap();
    for (worker, store) in stores.iter().enumerate() {
        let claims = Claims::new(
            store.clone(),
            clock.clone(),
            entropy.clone(),
            Terms::default(),
        );
        workers.spawn(async move {
            for at in 0..share {
                let key =
                    ClaimKey::from_digest(Sha256::digest(format!("{turn} {worker} {at}")).into());
                let claimed = claims.claim(&key, &object(), &pipeline()).await.unwrap();
                assert!(matches!(claimed, Claimed::Won(_)));
            }
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker.unwrap();
    }
}

/// Measures stores that are the same but for what they hold.
fn compare(
    runtime: &Runtime,
    database: &str,
    empty: &[Arc<dyn ClaimStore>],
    full: &[Arc<dyn ClaimStore>],
) {
    let mut turn = u64::from(std::process::id()) << 32;
    for workers in [1, 8] {
        let mut measure = |stores: &[Arc<dyn ClaimStore>]| -> Duration {
            turn += 1;
            time(|| runtime.block_on(claim(&stores[..workers], turn)))
        };
        let measure = std::cell::RefCell::new(&mut measure);
        let [empty_took, full_took] = in_turns([&mut || measure.borrow_mut()(empty), &mut || {
            measure.borrow_mut()(full)
        }]);
        let per_second = |took: Duration| f64::from(COUNT) / took.as_secs_f64();
        let what = format!("claims on {database}, {workers} at once, with a million ends");
        let figure = format!(
            "{} each ({:.0}/s)",
            each(full_took, COUNT),
            per_second(full_took)
        );
        let beside = format!(
            "an empty table: {} ({:.0}/s)",
            each(empty_took, COUNT),
            per_second(empty_took)
        );
        row(
            &what,
            &figure,
            &beside,
            full_took.as_secs_f64() / empty_took.as_secs_f64(),
        );
    }
}

/// The ends that fill a store, as one statement; `hex` makes 64 random hex characters, `numbers` has that many rows.
fn fill(hex: &str, numbers: &str, time: &str) -> String {
    format!(
        "INSERT INTO firstclaim_claims (key, status, attempt, owner, revision, claimed_at, finished_at, expires_at, \
         object_provider, object_container, object_key, token_kind, token_value, pipeline_name, pipeline_version, \
         scheme, params_digest, contract_digest) \
         SELECT {hex} AS key, 'done', 1, '{owner}', '{owner}.2', {time}, {time}, {time}, 's3', 'sentinel-scenes', \
         'L2A/T31UDQ/B08.tif', 'etag', '9b2cf5a1c0d3e4f5', 'scenes', '3.2.0', 'strict', '{zeros}', '{zeros}' \
         FROM {numbers} ORDER BY key",
        owner = "f".repeat(32),
        zeros = "0".repeat(64),
    )
}

pub(crate) fn sqlite() {
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let stores = |name: &str| -> Vec<Arc<dyn ClaimStore>> {
        let path = folder.path().join(name);
        (0..8)
            .map(|_| -> Arc<dyn ClaimStore> {
                Arc::new(
                    runtime
                        .block_on(SqliteStore::open(&path, SqliteStore::LOCK_WAIT))
                        .unwrap(),
                )
            })
            .collect()
    };
    let (empty, full) = (stores("empty.db"), stores("full.db"));
    let numbers = format!(
        "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ENDS}) SELECT i FROM n)"
    );
    let sql = fill("lower(hex(randomblob(32)))", &numbers, "1767323045");
    let python = "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit(); c.execute('PRAGMA wal_checkpoint(TRUNCATE)')";
    let mut fill = std::process::Command::new("python3");
    fill.args(["-c", python])
        .arg(folder.path().join("full.db"))
        .arg(sql);
    assert!(
        fill.status().unwrap().success(),
        "the store could not be filled"
    );
    compare(&runtime, "SQLite", &empty, &full);
}

#[cfg(feature = "postgres")]
pub(crate) fn postgres() {
    use provider_sql::{PostgresStore, PostgresUrl};

    // `cargo xtask bench` starts a server and names it.
    let server = std::env::var("TEST_POSTGRES_URL").unwrap();
    let runtime = Runtime::new().unwrap();
    let psql = |database: &str, sql: &str| {
        let mut psql = std::process::Command::new("psql");
        psql.args([
            "--no-psqlrc",
            "--quiet",
            "--set",
            "ON_ERROR_STOP=1",
            "--dbname",
        ])
        .arg(url(&server, database));
        assert!(
            psql.args(["--command", sql]).status().unwrap().success(),
            "{sql}"
        );
    };
    let stores = |database: &str| -> Vec<Arc<dyn ClaimStore>> {
        psql("postgres", &format!("CREATE DATABASE {database}"));
        let url = PostgresUrl::parse(&url(&server, database)).unwrap();
        (0..8)
            .map(|_| -> Arc<dyn ClaimStore> {
                let store =
                    PostgresStore::connect(&url, PostgresStore::WAIT, PostgresStore::CONNECTIONS);
                Arc::new(runtime.block_on(store).unwrap())
            })
            .collect()
    };
    let (empty, full) = (stores("claims_few"), stores("claims_many"));
    let hex = "md5(i::text) || md5((-i)::text)";
    psql(
        "claims_many",
        &fill(
            hex,
            &format!("generate_series(1, {ENDS}) AS n(i)"),
            "to_timestamp(1767323045)",
        ),
    );
    psql("claims_many", "VACUUM ANALYZE");
    compare(&runtime, "PostgreSQL", &empty, &full);
}

/// The server's URL with another database.
#[cfg(feature = "postgres")]
fn url(server: &str, database: &str) -> String {
    let (before, _) = server.rsplit_once('/').unwrap();
    format!("{before}/{database}")
}
