//! A store in a folder of its own, and the foreign program that writes to its file behind its back.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;
use tempfile::TempDir;

use super::SqliteStore;
use crate::cases::Testbed;

pub(crate) struct Fixture {
    pub(crate) store: Arc<SqliteStore>,
    folder: TempDir,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let store = SqliteStore::open(folder.path().join("claims.db"), SqliteStore::LOCK_WAIT)
            .await
            .unwrap();
        Self {
            store: Arc::new(store),
            folder,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("claims.db")
    }

    /// Another process's store on the same file, which waits so long for locks.
    pub(crate) async fn patient(&self, lock_wait: Duration) -> SqliteStore {
        SqliteStore::open(self.path(), lock_wait).await.unwrap()
    }

    /// The foreign program's connection: SQLite as it comes, none of our settings.
    pub(crate) fn foreign(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }

    /// The steps of a query, as `EXPLAIN QUERY PLAN` has them.
    pub(crate) fn plan(&self, sql: &str) -> Vec<String> {
        let foreign = self.foreign();
        let mut statement = foreign.prepare(sql).unwrap();
        let steps = statement.query_map([], |row| row.get("detail"));
        steps.unwrap().map(Result::unwrap).collect()
    }
}

#[async_trait]
impl Testbed for Fixture {
    type Store = SqliteStore;

    fn store(&self) -> &Arc<SqliteStore> {
        &self.store
    }

    async fn another(&self) -> SqliteStore {
        self.patient(SqliteStore::LOCK_WAIT).await
    }

    async fn execute(&self, sql: &str) -> u64 {
        let connection = self.foreign();
        connection.execute_batch(sql).unwrap();
        connection.changes()
    }

    fn time(&self, seconds: i64) -> String {
        seconds.to_string()
    }

    fn times(&self) -> RangeInclusive<i64> {
        i64::MIN..=i64::MAX
    }
}
