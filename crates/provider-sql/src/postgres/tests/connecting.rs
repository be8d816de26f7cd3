//! Connecting: databases that become ours, and those that cannot be used.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use identity_core::claim::{ClaimStore, Precondition, Status, UnixSeconds};
use sqlx::{Connection, Executor, Row};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::proxy::Proxy;
use crate::cases::chain;
use crate::columns::ClaimRow;
use crate::postgres::fixture::{Fixture, SERVER, connect, execute, open, server};
use crate::postgres::migrate::{KNOWN, STEPS};
use crate::postgres::{ConnectError, PostgresStore, PostgresUrl};
use identity_core::claim::conformance::samples::{bare, numbered_key};

async fn refusal(url: &str) -> ConnectError {
    let url = PostgresUrl::parse(url).unwrap();
    let opened = PostgresStore::connect(&url, Duration::from_secs(2), 1).await;
    opened.unwrap_err()
}

/// The server's URL as a test changes it.
fn server_with(parameters: &str) -> String {
    format!("{}?{parameters}", server(SERVER))
}

/// A name that no other test has.
async fn name() -> String {
    let url = Fixture::empty().await;
    url.rsplit_once('=').unwrap().1.to_owned()
}

#[tokio::test]
async fn a_database_becomes_ours_once_and_keeps_its_claims() {
    let url = Fixture::empty().await;
    let store = open(&url).await;
    let (key, record) = (numbered_key(1), bare(Status::Done, 1));
    let written = store
        .put(&key, &record, &Precondition::Absent)
        .await
        .unwrap();
    let read = open(&url).await.get(&key).await.unwrap().unwrap();
    assert_eq!(read.version, written);
    let rows = connect(&url)
        .await
        .fetch_all(
            "SELECT attname::text FROM pg_attribute WHERE attrelid = 'firstclaim_claims'::regclass AND attnum > 0
             ORDER BY attnum",
        )
        .await
        .unwrap();
    let names: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(names, ClaimRow::COLUMNS);
}

#[tokio::test]
async fn many_processes_that_find_a_new_database_set_it_up_once() {
    let url = Arc::new(Fixture::empty().await);
    let mut openers = JoinSet::new();
    for _ in 0..20 {
        let url = Arc::clone(&url);
        openers.spawn(async move { open(&url).await });
    }
    assert_eq!(openers.join_all().await.len(), 20);
    let mut connection = connect(&url).await;
    let row = connection.fetch_one("SELECT array_agg(version) FROM firstclaim_schema");
    assert_eq!(row.await.unwrap().get::<Vec<i32>, _>(0), [KNOWN]);
}

#[tokio::test]
async fn looking_at_a_store_makes_none() {
    let url = Fixture::empty().await;
    let parsed = PostgresUrl::parse(&url).unwrap();
    let existing = || PostgresStore::connect_existing(&parsed, PostgresStore::WAIT, 1);
    let error = existing().await.unwrap_err();
    assert!(matches!(error, ConnectError::Missing { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        format!("{parsed}: there is no claim store in this database")
    );
    open(&url).await;
    assert_eq!(existing().await.unwrap().to_string(), parsed.to_string());
}

#[tokio::test]
async fn older_tables_are_brought_up_to_date_and_newer_ones_are_refused() {
    let key = numbered_key(1);
    for version in 1..STEPS.len() {
        let url = Fixture::empty().await;
        let rows = format!(
            "CREATE TABLE firstclaim_schema (version integer NOT NULL);
             INSERT INTO firstclaim_schema VALUES ({version});
             INSERT INTO firstclaim_claims (key, status, claimed_at, expires_at)
             VALUES ('{key}', 'done', to_timestamp(5), to_timestamp(9))"
        );
        execute(&url, STEPS[..version].concat() + &rows).await;
        let parsed = PostgresUrl::parse(&url).unwrap();
        let store = PostgresStore::connect_existing(&parsed, PostgresStore::WAIT, 1)
            .await
            .unwrap();
        let read = store.get(&key).await.unwrap().unwrap();
        assert_eq!(read.record.claimed_at, UnixSeconds(5), "version {version}");
        execute(&url, "SELECT upload_key FROM ingest_ledger").await;
        let purged = store.purge(UnixSeconds(10), NonZeroU32::MAX).await;
        assert_eq!(purged.unwrap(), 1, "version {version}");
    }

    let url = Fixture::empty().await;
    let parsed = open(&url).await.to_string();
    execute(
        &url,
        format!("UPDATE firstclaim_schema SET version = {KNOWN} + 1"),
    )
    .await;
    let error = refusal(&url).await;
    assert!(matches!(error, ConnectError::Newer { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        format!(
            "{parsed} was set up by a newer version: its tables are of version {}, known are those up to {KNOWN}",
            KNOWN + 1
        )
    );
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let error = refusal(&format!("postgres://u:secret@127.0.0.1:{port}/d")).await;
    assert!(
        matches!(error, ConnectError::Unreachable { .. }),
        "{error:?}"
    );
    let told = format!("postgres://127.0.0.1:{port}/d cannot be reached: Connection refused");
    assert!(chain(&error).starts_with(&told), "{}", chain(&error));
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_not_waited_for_for_ever() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let url = PostgresUrl::parse(&format!("postgres://u@{address}/d")).unwrap();
    let opened = PostgresStore::connect(&url, Duration::from_millis(100), 1).await;
    let error = opened.unwrap_err();
    assert!(
        matches!(error, ConnectError::Unreachable { .. }),
        "{error:?}"
    );
    assert_eq!(
        chain(&error),
        format!("{url} cannot be reached: no answer within 0.1 s")
    );
}

#[tokio::test]
async fn what_speaks_another_protocol_cannot_be_used() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answering = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        client.read_u8().await.unwrap();
        client
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
    });
    let error = refusal(&format!("postgres://u@{address}/d")).await;
    assert!(matches!(error, ConnectError::Postgres { .. }), "{error:?}");
    answering.await.unwrap();
}

#[tokio::test]
async fn a_user_who_may_not_is_told_what() {
    let name = name().await;
    execute(
        &server(SERVER),
        format!("CREATE ROLE {name} LOGIN; GRANT USAGE ON SCHEMA {name} TO {name}; CREATE ROLE {name}_out NOLOGIN"),
    )
    .await;
    let error = refusal(&server_with(&format!(
        "user={name}&options[search_path]={name}"
    )))
    .await;
    assert!(matches!(error, ConnectError::Forbidden { .. }), "{error:?}");
    let told = format!(
        "the tables cannot be set up by this user: permission denied for schema {name} (SQLSTATE 42501)"
    );
    assert!(chain(&error).contains(&told), "{}", chain(&error));

    let error = refusal(&server_with(&format!("user={name}_out"))).await;
    assert!(matches!(error, ConnectError::Refused { .. }), "{error:?}");
    let told = format!(
        "does not let this user in: role \"{name}_out\" is not permitted to log in (SQLSTATE 28000)"
    );
    assert!(chain(&error).contains(&told), "{}", chain(&error));
}

#[tokio::test]
async fn a_database_that_cannot_hold_claims_is_refused() {
    let name = name().await;
    let error = refusal(&server_with(&format!("dbname={name}"))).await;
    assert!(
        matches!(error, ConnectError::NoDatabase { .. }),
        "{error:?}"
    );
    execute(
        &server(SERVER),
        format!("CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"),
    )
    .await;
    let error = refusal(&server_with(&format!("dbname={name}"))).await;
    assert!(matches!(error, ConnectError::Encoding { .. }), "{error:?}");
    assert!(
        error
            .to_string()
            .ends_with("expected a database with the encoding \"UTF8\", got \"LATIN1\"")
    );

    let url = Fixture::empty().await;
    let error = refusal(&format!("{url}&options[default_transaction_read_only]=on")).await;
    assert!(matches!(error, ConnectError::ReadOnly { .. }), "{error:?}");
}

#[tokio::test]
async fn a_full_server_is_asked_again_until_it_has_a_connection() {
    let name = name().await;
    let limited = format!("user={name}&options[search_path]={name}");
    execute(
        &server(SERVER),
        format!("CREATE ROLE {name} LOGIN CONNECTION LIMIT 1; ALTER SCHEMA {name} OWNER TO {name}"),
    )
    .await;
    let url = server_with(&limited);
    let first = connect(&url).await;
    let error = {
        let url = PostgresUrl::parse(&url).unwrap();
        PostgresStore::connect(&url, Duration::from_millis(300), 1)
            .await
            .unwrap_err()
    };
    assert!(
        matches!(error, ConnectError::Unreachable { .. }),
        "{error:?}"
    );
    assert!(
        chain(&error).contains("too many connections for role"),
        "{}",
        chain(&error)
    );
    let proxy = Proxy::start(&url).await;
    let second = tokio::spawn({
        let url = proxy.url.clone();
        async move { open(&url).await }
    });
    // Its second try says that the first was refused.
    while proxy.connections() < 2 {
        assert!(!second.is_finished(), "it did not try again");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    first.close().await.unwrap();
    second.await.unwrap();
}

#[tokio::test]
async fn sslmode_require_is_an_error_where_there_is_no_tls() {
    let error = refusal(&server_with("sslmode=require")).await;
    assert!(matches!(error, ConnectError::Insecure { .. }), "{error:?}");
    let told = "no secure connection as the URL's sslmode demands it: server does not support TLS";
    assert!(chain(&error).ends_with(told), "{}", chain(&error));
}

#[tokio::test]
async fn a_secure_connection_is_made_and_verified_as_the_url_demands() {
    let secure = server("TEST_POSTGRES_TLS_URL");
    let root = server("TEST_POSTGRES_TLS_ROOT");
    for parameters in [
        "sslmode=require".to_owned(),
        format!("sslmode=verify-ca&sslrootcert={root}"),
        format!("sslmode=verify-full&sslrootcert={root}"),
    ] {
        let mut connection = connect(&format!("{secure}?{parameters}")).await;
        let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        let row = connection.fetch_one(sql).await.unwrap();
        assert!(row.get::<bool, _>(0), "{parameters}");
    }
    open(&format!("{secure}?sslmode=require")).await;

    // Signed by nobody we know; and for 127.0.0.1, which is not localhost.
    let error = refusal(&format!("{secure}?sslmode=verify-full")).await;
    assert!(matches!(error, ConnectError::Insecure { .. }), "{error:?}");
    let text = chain(&error);
    assert!(
        text.contains("invalid peer certificate: UnknownIssuer"),
        "{text}"
    );
    let error = refusal(&format!(
        "{secure}?sslmode=verify-full&sslrootcert={root}&host=localhost"
    ))
    .await;
    assert!(matches!(error, ConnectError::Insecure { .. }), "{error:?}");
    let text = chain(&error);
    assert!(
        text.contains("certificate not valid for name \"localhost\""),
        "{text}"
    );
}
