//! A store in a schema of its own, on the server that the environment names, and the foreign program beside it.

use std::ops::RangeInclusive;
use std::sync::Arc;

use async_trait::async_trait;
use sqlx::{ConnectOptions, Executor, PgConnection, Row};

use super::{PostgresStore, PostgresUrl};
use crate::cases::Testbed;

/// The URL of a server whose user may do everything, from the environment. A test without it fails: it must not pass by
/// not running.
pub(crate) fn server(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!(
            "{variable} is not set: run `cargo xtask test`, which starts servers for these tests, or set it to the URL of a \
             PostgreSQL server for tests, e.g. postgres://postgres@127.0.0.1:5432/postgres"
        )
    })
}

pub(crate) const SERVER: &str = "TEST_POSTGRES_URL";

/// Runs statements on the server as it comes, none of our settings; returns what the last one changed.
pub(crate) async fn execute(url: &str, sql: impl Into<String>) -> u64 {
    let sql = sqlx::raw_sql(sqlx::AssertSqlSafe(sql.into()));
    let mut connection = connect(url).await;
    connection.execute(sql).await.unwrap().rows_affected()
}

pub(crate) async fn connect(url: &str) -> PgConnection {
    PostgresUrl::parse(url)
        .unwrap()
        .options
        .connect()
        .await
        .unwrap()
}

pub(crate) struct Fixture {
    pub(crate) store: Arc<PostgresStore>,
    pub(crate) url: String,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let url = Self::empty().await;
        let store = Arc::new(open(&url).await);
        Self { store, url }
    }

    /// The URL of a schema with nothing in it.
    pub(crate) async fn empty() -> String {
        let server = server(SERVER);
        let mut connection = connect(&server).await;
        let row = connection
            .fetch_one("SELECT 'test_' || replace(gen_random_uuid()::text, '-', '')")
            .await
            .unwrap();
        let schema: String = row.get(0);
        execute(&server, format!("CREATE SCHEMA {schema}")).await;
        let separator = if server.contains('?') { '&' } else { '?' };
        format!("{server}{separator}options[search_path]={schema}")
    }
}

/// A store with our settings.
pub(crate) async fn open(url: &str) -> PostgresStore {
    let url = PostgresUrl::parse(url).unwrap();
    PostgresStore::connect(&url, PostgresStore::WAIT, PostgresStore::CONNECTIONS)
        .await
        .unwrap()
}

#[async_trait]
impl Testbed for Fixture {
    type Store = PostgresStore;

    fn store(&self) -> &Arc<PostgresStore> {
        &self.store
    }

    async fn another(&self) -> PostgresStore {
        open(&self.url).await
    }

    async fn execute(&self, sql: &str) -> u64 {
        execute(&self.url, sql).await
    }

    fn time(&self, seconds: i64) -> String {
        format!("to_timestamp({seconds})")
    }

    fn times(&self) -> RangeInclusive<i64> {
        -210_866_803_200..=9_224_318_015_999
    }
}
