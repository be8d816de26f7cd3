//! A store in a folder of its own, and the foreign program that writes to its file behind its back.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use identity_core::claim::{ClaimKey, Status};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, Executor, SqliteConnection};
use tempfile::TempDir;

use super::SqliteStore;

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

    /// Another process's store on the same file: no connection is shared.
    pub(crate) async fn another(&self, lock_wait: Duration) -> SqliteStore {
        SqliteStore::open(self.path(), lock_wait).await.unwrap()
    }

    /// The foreign program's connection: SQLite as it comes, none of our settings.
    pub(crate) async fn foreign(&self) -> SqliteConnection {
        SqliteConnectOptions::new()
            .filename(self.path())
            .connect()
            .await
            .unwrap()
    }

    /// Runs the foreign program's statement; how many rows it changed.
    pub(crate) async fn execute(&self, sql: impl Into<String>) -> u64 {
        let sql = sqlx::raw_sql(sqlx::AssertSqlSafe(sql.into()));
        let mut connection = self.foreign().await;
        let done = connection.execute(sql).await.unwrap();
        // Dropped, it would close on a thread of its own, some time later.
        connection.close().await.unwrap();
        done.rows_affected()
    }

    /// The foreign program deletes a row.
    pub(crate) async fn delete(&self, key: &ClaimKey) {
        let sql = format!("DELETE FROM firstclaim_claims WHERE key = '{key}'");
        assert_eq!(self.execute(sql).await, 1);
    }

    /// The foreign program sets a row's status and nothing else.
    pub(crate) async fn flip_status(&self, key: &ClaimKey, status: Status) {
        let sql = format!("UPDATE firstclaim_claims SET status = '{status}' WHERE key = '{key}'");
        assert_eq!(self.execute(sql).await, 1);
    }
}
