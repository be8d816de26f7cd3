//! The published load task's own statements, and a ledger that was there before us.

use identity_core::claim::{Kept, Owner};
use sqlx::{Executor, Row};

use crate::cases::Testbed;
use crate::postgres::fixture::{Fixture, connect, execute, open};
use identity_core::claim::conformance::samples::numbered_key;
use identity_core::ledger::{Holder, Ledger, Uncompleted, Upload, UploadClaim, UploadState};

/// As printed, but for the parameters: Python's driver writes `%s`, the server reads `$1` and `$2`.
const INSERT: &str = "INSERT INTO ingest_ledger (upload_key, source_path) VALUES ($1, $2) \
    ON CONFLICT (upload_key) DO NOTHING RETURNING upload_key";

/// As printed.
const STUCK: &str = "
SELECT upload_key, source_path, claimed_at, completed_at
FROM   ingest_ledger
WHERE  completed_at IS NULL
  AND  claimed_at < now() - interval '2 hours'
ORDER  BY claimed_at;
";

fn upload(key: &str) -> Upload {
    Upload {
        key: key.to_owned(),
        full_digest: "a1".repeat(32),
        source_path: "/inbox/parcels.shp".to_owned(),
    }
}

fn holder() -> Holder {
    Holder {
        job: numbered_key(1),
        owner: Owner(7),
        attempt: 1,
    }
}

async fn stuck(url: &str) -> Vec<String> {
    let rows = connect(url)
        .await
        .fetch_all(sqlx::raw_sql(STUCK))
        .await
        .unwrap();
    rows.iter().map(|row| row.get("upload_key")).collect()
}

#[tokio::test]
async fn the_published_statements_run_as_printed() {
    let fixture = Fixture::new().await;
    let mut task = connect(&fixture.url).await;
    for won in [true, false] {
        let row = sqlx::query(INSERT).bind("theirs").bind("/inbox/a.shp");
        let row = row.fetch_optional(&mut task).await.unwrap();
        assert_eq!(row.is_some(), won);
    }
    let store = &fixture.store;
    for key in ["ours", "completed"] {
        let claimed = store.claim_upload(&upload(key), &holder()).await.unwrap();
        assert_eq!(claimed, UploadClaim::Won);
        let row = sqlx::query(INSERT).bind(key).bind("/inbox/a.shp");
        assert!(row.fetch_optional(&mut task).await.unwrap().is_none());
    }
    let completed = store.complete_upload("completed", &holder()).await;
    assert_eq!(completed.unwrap(), Kept::Yes);
    assert_eq!(stuck(&fixture.url).await, Vec::<String>::new());

    // Three hours later: ours is stuck until it is completed, theirs for ever, for that task completes nothing.
    let later = "UPDATE ingest_ledger SET claimed_at = claimed_at - interval '3 hours'";
    assert_eq!(fixture.execute(later).await, 3);
    assert_eq!(stuck(&fixture.url).await, ["theirs", "ours"]);
    store.complete_upload("ours", &holder()).await.unwrap();
    assert_eq!(stuck(&fixture.url).await, ["theirs"]);
    let page = store.uploads(Uncompleted::Foreign, 10, None).await.unwrap();
    assert_eq!(page.entries[0].state(), UploadState::Foreign);
    let again = store
        .claim_upload(&upload("theirs"), &holder())
        .await
        .unwrap();
    assert_eq!(again, UploadClaim::Done(page.entries[0].clone()));
}

#[tokio::test]
async fn a_ledger_that_was_there_before_keeps_its_rows_and_its_types() {
    for (made, claimed_at) in [
        (
            "CREATE TABLE ingest_ledger (id serial PRIMARY KEY, upload_key varchar(64) NOT NULL UNIQUE, source_path text,
                 claimed_at timestamp DEFAULT now(), completed_at timestamp)",
            "timestamp '2026-01-02 03:04:05.678901'",
        ),
        (
            "CREATE TABLE ingest_ledger (upload_key text PRIMARY KEY, source_path text NOT NULL,
                 claimed_at timestamptz NOT NULL DEFAULT now())",
            "timestamptz '2026-01-02 03:04:05.678901Z'",
        ),
    ] {
        let url = Fixture::empty().await;
        let rows = format!(
            "{made}; INSERT INTO ingest_ledger (upload_key, source_path, claimed_at)
             VALUES ('b', '/b.shp', {claimed_at}), ('a', '/a.shp', {claimed_at}), ('c', '/c.shp', {claimed_at})"
        );
        execute(&url, rows).await;
        let store = open(&url).await;
        // Between two rows of the same microsecond a page can end.
        let page = store.uploads(Uncompleted::Foreign, 2, None).await.unwrap();
        let rest = store.uploads(Uncompleted::Foreign, 2, page.next.as_ref());
        let rest = rest.await.unwrap();
        assert_eq!(rest.next, None);
        let entries: Vec<_> = page.entries.into_iter().chain(rest.entries).collect();
        let keys: Vec<_> = entries.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["a", "b", "c"]);
        assert_eq!(entries[0].claimed_at.unwrap().0, 1_767_323_045);

        let answer = store.claim_upload(&upload("a"), &holder()).await.unwrap();
        assert_eq!(answer, UploadClaim::Done(entries[0].clone()));
        store.release_upload("a").await.unwrap().unwrap();
        let answer = store.claim_upload(&upload("a"), &holder()).await.unwrap();
        assert_eq!(answer, UploadClaim::Won);
        let kept = store.complete_upload("a", &holder()).await.unwrap();
        assert_eq!(kept, Kept::Yes);
    }
}
