//! Writes that wait together are committed together: in one transaction, with one sync for all of them.
//!
//! A write joins a queue. Whoever finds nobody at work starts a task, which works until nobody waits. It is a task of its
//! own and none of the callers', so that one that goes away takes nobody else's write with it.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Execute as _, Executor as _, SqlStr, Sqlite};
use tokio::sync::oneshot;

use super::connection::{Lent, Patience, Slot};
use super::error::Failed;
use super::file::FileIdentity;

/// How many writes are committed together at most. Other processes wait for the lock meanwhile.
const MOST: usize = 100;

/// The one writer that this process has for a file.
#[derive(Debug)]
pub(crate) struct Writer {
    path: PathBuf,
    /// Which file the path named when it was opened.
    identity: FileIdentity,
    lock_wait: Duration,
    pub(super) slot: Slot,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// Whether a task works for those who wait.
    at_work: bool,
}

/// A write, and where its caller waits for the rows that it returns.
#[derive(Debug)]
struct Waiting {
    sql: SqlStr,
    arguments: SqliteArguments,
    patience: Patience,
    answer: oneshot::Sender<Result<Vec<SqliteRow>, Failed>>,
}

impl Writer {
    pub(crate) fn new(
        path: PathBuf,
        identity: FileIdentity,
        lock_wait: Duration,
        slot: Slot,
    ) -> Self {
        Self {
            path,
            identity,
            lock_wait,
            slot,
            queue: Mutex::default(),
        }
    }

    pub(crate) fn path(&self) -> &PathBuf {
        &self.path
    }

    /// The rows that a writing statement returns, once it is committed. On an error it is not known whether it was.
    ///
    /// A caller that goes away before its statement's turn has not written.
    pub(crate) async fn write(
        self: &Arc<Self>,
        mut query: Query<'_, Sqlite, SqliteArguments>,
    ) -> Result<Vec<SqliteRow>, Failed> {
        let arguments = query.take_arguments().map_err(sqlx::Error::Encode)?;
        let (answer, answered) = oneshot::channel();
        let waiting = Waiting {
            arguments: arguments.unwrap_or_default(),
            sql: query.sql(),
            patience: Patience::new(self.lock_wait),
            answer,
        };
        if self.queue().join(waiting) {
            tokio::spawn(Shift::begin(Arc::clone(self)).work());
        }
        answered.await.unwrap_or_else(|_| {
            let stopped = "the runtime was shut down in which this process writes";
            Err(sqlx::Error::Io(std::io::Error::other(stopped)).into())
        })
    }

    /// One transaction, of all who wait by then.
    async fn commit_together(&self) {
        let Some(mut connection) = self.begin().await else {
            return;
        };
        let mut written = Vec::new();
        while written.len() < MOST
            && let Some(waiting) = self.next()
        {
            let query = sqlx::query_with(waiting.sql.clone(), waiting.arguments.clone());
            match query.fetch_all(&mut *connection).await {
                Ok(rows) => written.push((waiting, rows)),
                Err(error) => {
                    waiting.answer(Err(error.into()));
                    // Some errors end the transaction, others do not: it is ended here, and the others write again.
                    if connection.execute("ROLLBACK").await.is_ok() {
                        connection.give_back();
                    }
                    let undone = written.into_iter().map(|(waiting, _)| waiting);
                    return self.queue().rejoin(undone);
                }
            }
        }
        match connection.execute("COMMIT").await {
            Ok(_) => {
                connection.give_back();
                for (waiting, rows) in written {
                    waiting.answer(Ok(rows));
                }
            }
            Err(error) => {
                drop(connection);
                let failed = Failed::from(error);
                for (waiting, _) in written {
                    waiting.answer(Err(failed.clone()));
                }
            }
        }
    }

    /// The connection, in a transaction that has the write lock; none once nobody waits for it any more.
    async fn begin(&self) -> Option<Lent<'_>> {
        let mut connection = loop {
            match self.connection().await {
                Ok(connection) => break connection,
                Err(error) => self.go_on_after(error.into()).await?,
            }
        };
        loop {
            match connection.execute("BEGIN IMMEDIATE").await {
                // Once more: whoever waited for the lock may have waited while the file was replaced.
                Ok(_) => match self.check_identity() {
                    Ok(()) => return Some(connection),
                    Err(error) => {
                        drop(connection);
                        self.go_on_after(error.into()).await;
                        return None;
                    }
                },
                Err(error) => self.go_on_after(error.into()).await?,
            }
        }
    }

    async fn connection(&self) -> Result<Lent<'_>, sqlx::Error> {
        self.check_identity()?;
        self.slot.lend().await
    }

    /// Whether the path still names the file that was opened. A duplicate that is found in another one is none.
    pub(super) fn check_identity(&self) -> Result<(), sqlx::Error> {
        if FileIdentity::of(&self.path).ok() == Some(self.identity) {
            return Ok(());
        }
        Err(sqlx::Error::Io(std::io::Error::other(
            "the file was deleted or replaced while it was in use: what is written to it now would be lost",
        )))
    }

    /// Answers those for whom this failure is the end, and pauses. None once nobody waits on.
    async fn go_on_after(&self, failed: Failed) -> Option<()> {
        {
            let mut queue = self.queue();
            let (waits_on, ended): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut queue.waiting)
                .into_iter()
                .partition(|waiting: &Waiting| failed.busy && waiting.waits_on());
            queue.waiting = waits_on;
            for waiting in ended {
                waiting.answer(Err(failed.clone()));
            }
            if queue.waiting.is_empty() {
                return None;
            }
        }
        Patience::pause().await;
        Some(())
    }

    /// The next write whose caller has not gone away.
    fn next(&self) -> Option<Waiting> {
        let mut queue = self.queue();
        loop {
            let waiting = queue.waiting.pop_front()?;
            if !waiting.is_gone() {
                return Some(waiting);
            }
        }
    }

    /// How many wait for their turn.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.queue().waiting.len()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing panics while it holds the lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Whether a task has to be started for it.
    fn join(&mut self, waiting: Waiting) -> bool {
        self.waiting.push_back(waiting);
        !std::mem::replace(&mut self.at_work, true)
    }

    /// Puts those who were at their turn back to the front, in their order.
    fn rejoin(&mut self, undone: impl DoubleEndedIterator<Item = Waiting>) {
        for waiting in undone.rev() {
            self.waiting.push_front(waiting);
        }
    }
}

impl Waiting {
    fn answer(self, answer: Result<Vec<SqliteRow>, Failed>) {
        // Whoever went away needs none.
        let _ = self.answer.send(answer);
    }

    /// Whether it is worth trying again for it.
    fn waits_on(&self) -> bool {
        self.patience.lasts() && !self.is_gone()
    }

    fn is_gone(&self) -> bool {
        self.answer.is_closed()
    }
}

/// The task that works for all who wait.
#[derive(Debug)]
struct Shift {
    writer: Arc<Writer>,
    over: bool,
}

impl Shift {
    fn begin(writer: Arc<Writer>) -> Self {
        Self {
            writer,
            over: false,
        }
    }

    async fn work(mut self) {
        while !self.over {
            self.writer.commit_together().await;
            let mut queue = self.writer.queue();
            // In one step: a write that comes later finds nobody at work.
            self.over = queue.waiting.is_empty();
            queue.at_work = !self.over;
        }
    }
}

impl Drop for Shift {
    /// Cut short, with its runtime: those who wait in another one are told, and the next write starts another task.
    fn drop(&mut self) {
        if !self.over {
            *self.writer.queue() = Queue::default();
        }
    }
}
