//! A SQLite store's file beside the program: to look at it whatever stands still, and to keep everybody from writing.

use sqlx::{Connection as _, Executor as _, Row as _, SqliteConnection};
use tokio::runtime::{Builder, Runtime};

use crate::{Workbench, Worker, eventually, is_stopped};

/// A connection to the bench's file.
#[derive(Debug)]
pub struct SqliteFile(Runtime, SqliteConnection);

impl SqliteFile {
    /// A connection that holds nothing.
    pub fn open(bench: &Workbench) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let url = format!("sqlite:{}", bench.path("firstclaim.db").display());
        let connection = runtime.block_on(SqliteConnection::connect(&url)).unwrap();
        Self(runtime, connection)
    }

    /// With the write lock: nobody commits anything. Whoever writes now is waited for.
    pub fn locked(bench: &Workbench) -> Self {
        let mut database = Self::open(bench);
        database.execute("BEGIN IMMEDIATE");
        database
    }

    /// Gives the lock back.
    pub fn release(mut self) {
        self.execute("ROLLBACK");
    }

    fn execute(&mut self, sql: &'static str) {
        self.0.block_on(self.1.execute(sql)).unwrap();
    }

    /// The first column of a query.
    pub fn texts(&mut self, sql: &'static str) -> Vec<String> {
        let rows = self.0.block_on(self.1.fetch_all(sql)).unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

/// Freezes a worker that is not writing just then: one that stands still with the write lock keeps all others out.
pub fn freeze(bench: &Workbench, worker: &Worker) {
    let lock = SqliteFile::locked(bench);
    worker.signal("STOP");
    let process = worker.process().to_string();
    eventually("the worker stands still", || is_stopped(&process));
    lock.release();
}
