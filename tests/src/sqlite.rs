//! A SQLite store's file beside the program: to look at it whatever stands still, and to keep everybody from writing.

use rusqlite::Connection;

use crate::{Workbench, Worker, eventually, is_stopped};

/// A connection to the bench's file.
#[derive(Debug)]
pub struct SqliteFile(Connection);

impl SqliteFile {
    /// A connection that holds nothing.
    pub fn open(bench: &Workbench) -> Self {
        Self(Connection::open(bench.path("firstclaim.db")).unwrap())
    }

    /// With the write lock: nobody commits anything. Whoever writes now is waited for.
    pub fn locked(bench: &Workbench) -> Self {
        let database = Self::open(bench);
        database.execute("BEGIN IMMEDIATE");
        database
    }

    /// Gives the lock back.
    pub fn release(self) {
        self.execute("ROLLBACK");
    }

    fn execute(&self, sql: &str) {
        self.0.execute_batch(sql).unwrap();
    }

    /// The first column of a query.
    pub fn texts(&self, sql: &str) -> Vec<String> {
        let mut statement = self.0.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
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
