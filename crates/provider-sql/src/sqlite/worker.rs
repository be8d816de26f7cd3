//! A thread with a connection of its own, and the work that waits for it.
//!
//! Writes that wait together are committed together: in one transaction, with one sync for all of them, and each caller is
//! answered after it. The thread is none of the callers', so that one that goes away takes nobody else's write with it.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::connection::{Options, Patience, begin_immediate, commit, roll_back};
use super::error::{Failed, is_busy};
use super::file::FileIdentity;

/// How many writes are committed together at most. Other processes wait for the lock meanwhile.
const MOST: usize = 100;

/// A file that is in use.
#[derive(Debug, Clone)]
pub(crate) struct InUse {
    /// As it was named by whoever opened it.
    pub(crate) path: PathBuf,
    /// Which file the path named then.
    pub(crate) identity: FileIdentity,
    pub(crate) options: Options,
    /// How long to wait for other processes.
    pub(crate) lock_wait: Duration,
}

impl InUse {
    /// Whether the path still names the file that was opened. A duplicate that is found in another one is none.
    fn check(&self) -> Result<(), Failed> {
        if FileIdentity::of(&self.path).ok() == Some(self.identity) {
            return Ok(());
        }
        Err(Failed::other(
            "the file was deleted or replaced while it was in use: what is written to it now would be lost",
        ))
    }
}

/// The thread, as long as somebody has this.
#[derive(Debug)]
pub(crate) struct Worker {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    file: InUse,
    queue: Mutex<Queue>,
    turn: Condvar,
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    writes: VecDeque<Box<dyn Write>>,
    /// Nothing is taken any more.
    over: bool,
}

/// Anything that is no write: it may take the connection, or leave another one.
type Task = Box<dyn FnOnce(&mut Option<Connection>) + Send>;

/// A write that waits, with its caller.
trait Write: Send {
    /// Looks, within no transaction, whether there is nothing to write. If so it can be answered.
    fn is_done(&mut self, connection: &Connection) -> rusqlite::Result<bool>;
    /// Writes, within a transaction. May be asked to do so again, in another one.
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()>;
    /// Tells the caller what became of it.
    fn answer(self: Box<Self>, committed: Result<(), Failed>);
    /// Whether the caller went away, and needs no answer.
    fn is_gone(&self) -> bool;
    /// Whether it is worth trying again for it.
    fn waits_on(&self) -> bool;
}

struct Waiting<L, F, T> {
    look: L,
    statement: F,
    /// What it is answered once that is committed.
    written: Option<T>,
    patience: Patience,
    answer: oneshot::Sender<Result<T, Failed>>,
}

impl<L, F, T> Write for Waiting<L, F, T>
where
    L: FnMut(&Connection) -> rusqlite::Result<Option<T>> + Send,
    F: FnMut(&Connection) -> rusqlite::Result<T> + Send,
    T: Send,
{
    fn is_done(&mut self, connection: &Connection) -> rusqlite::Result<bool> {
        self.written = (self.look)(connection)?;
        Ok(self.written.is_some())
    }

    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.written = Some((self.statement)(connection)?);
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), Failed>) {
        let answer = match (committed, self.written) {
            (Ok(()), Some(written)) => Ok(written),
            (Ok(()), None) => return,
            (Err(failed), _) => Err(failed),
        };
        // Whoever went away needs none.
        let _ = self.answer.send(answer);
    }

    fn is_gone(&self) -> bool {
        self.answer.is_closed()
    }

    fn waits_on(&self) -> bool {
        self.patience.lasts() && !self.is_gone()
    }
}

impl Worker {
    /// Starts the thread, with a connection if one is open already.
    pub(crate) fn start(file: InUse, connection: Option<Connection>) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            file,
            queue: Mutex::default(),
            turn: Condvar::new(),
        });
        let thread = thread::Builder::new().name("sqlite".to_owned());
        thread.spawn({
            let shared = Arc::clone(&shared);
            move || shared.work(connection)
        })?;
        Ok(Self { shared })
    }

    pub(crate) fn file(&self) -> &InUse {
        &self.shared.file
    }

    /// What a reading function finds, in one snapshot if it is one statement.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        mut read: impl FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Failed> {
        let patience = Patience::new(self.shared.file.lock_wait);
        let shared = Arc::clone(&self.shared);
        let found = self.task(move |slot| {
            loop {
                let read = shared.connection(slot).and_then(|connection| {
                    let found = read(connection)?;
                    Ok(found)
                });
                match read {
                    Err(failed) if failed.busy && patience.lasts() => Patience::pause(),
                    read => return read,
                }
            }
        });
        found.await.flatten()
    }

    /// What a writing function returns, once it is committed. On an error it is not known whether it was.
    ///
    /// What `look` finds takes its place: for that nobody waits for the lock. A caller that goes away before its turn has not
    /// written.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        look: impl FnMut(&Connection) -> rusqlite::Result<Option<T>> + Send + 'static,
        statement: impl FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Failed> {
        let (answer, answered) = oneshot::channel();
        let waiting = Waiting {
            look,
            statement,
            written: None,
            patience: Patience::new(self.shared.file.lock_wait),
            answer,
        };
        self.shared
            .add(|queue| queue.writes.push_back(Box::new(waiting)));
        answered.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Closes the connection once it is idle. It is opened again when it is needed.
    pub(crate) async fn close(&self) -> Result<(), Failed> {
        let closed = self.task(|slot| match slot.take() {
            Some(connection) => connection.close().map_err(|(_, error)| error.into()),
            None => Ok(()),
        });
        closed.await.flatten()
    }

    /// Runs a function on the thread, between writes.
    pub(super) async fn task<T: Send + 'static>(
        &self,
        task: impl FnOnce(&mut Option<Connection>) -> T + Send + 'static,
    ) -> Result<T, Failed> {
        let (answer, answered) = oneshot::channel();
        self.shared.add(|queue| {
            queue.tasks.push_back(Box::new(move |slot| {
                if !answer.is_closed() {
                    // Whoever went away since needs no answer.
                    let _ = answer.send(task(slot));
                }
            }));
        });
        answered.await.map_err(|_| stopped())
    }

    /// How many writes wait for their turn.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.shared.queue().writes.len()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.end();
    }
}

/// What happens next.
enum Turn {
    Task(Task),
    Writes,
}

impl Shared {
    fn work(&self, mut connection: Option<Connection>) {
        // However it ends: nobody may wait for an answer that does not come.
        let _end = End(self);
        while let Some(turn) = self.next_turn() {
            match turn {
                Turn::Task(task) => task(&mut connection),
                Turn::Writes => self.commit_together(&mut connection),
            }
        }
    }

    fn next_turn(&self) -> Option<Turn> {
        let mut queue = self.queue();
        loop {
            if queue.over {
                return None;
            }
            if let Some(task) = queue.tasks.pop_front() {
                return Some(Turn::Task(task));
            }
            if !queue.writes.is_empty() {
                return Some(Turn::Writes);
            }
            queue = self
                .turn
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// One transaction, of all who wait by then.
    fn commit_together(&self, slot: &mut Option<Connection>) {
        let Some(connection) = self.begin(slot) else {
            return;
        };
        let mut written = Vec::new();
        while written.len() < MOST
            && let Some(mut write) = self.next_write()
        {
            match write.run(connection) {
                Ok(()) => written.push(write),
                Err(error) => {
                    write.answer(Err(error.into()));
                    // Some errors end the transaction, others do not: it is ended here, and the others write again.
                    if roll_back(connection).is_err() {
                        *slot = None;
                    }
                    for write in written.into_iter().rev() {
                        self.queue().writes.push_front(write);
                    }
                    return;
                }
            }
        }
        let committed = commit(connection).map_err(Failed::from);
        if committed.is_err() {
            // Closed, which rolls back what may be left of it.
            *slot = None;
        }
        for write in written {
            write.answer(committed.clone());
        }
    }

    /// The connection, in a transaction that has the write lock; none once nobody waits for it any more.
    fn begin<'a>(&self, slot: &'a mut Option<Connection>) -> Option<&'a Connection> {
        loop {
            let begun = self.connection(slot).and_then(|connection| {
                self.answer_what_is_done(connection);
                if self.queue().writes.is_empty() {
                    return Ok(false);
                }
                begin_immediate(connection)?;
                Ok(true)
            });
            match begun {
                Ok(true) => break,
                Ok(false) => return None,
                Err(failed) => self.go_on_after(&failed)?,
            }
        }
        // Once more: whoever waited for the lock may have waited while the file was replaced.
        if let Err(failed) = self.file.check() {
            *slot = None;
            self.go_on_after(&failed);
        }
        slot.as_ref()
    }

    /// The connection, opened if there is none. A file that is gone is an error, not a new and empty store.
    fn connection<'a>(&self, slot: &'a mut Option<Connection>) -> Result<&'a Connection, Failed> {
        self.file.check()?;
        if slot.is_none() {
            *slot = Some(self.file.options.open()?);
        }
        slot.as_ref().ok_or_else(stopped)
    }

    /// Answers those who have nothing to write.
    fn answer_what_is_done(&self, connection: &Connection) {
        let waiting = std::mem::take(&mut self.queue().writes);
        let mut left = VecDeque::new();
        for mut write in waiting {
            match write.is_done(connection) {
                Ok(true) => write.answer(Ok(())),
                Ok(false) => left.push_back(write),
                Err(error) if is_busy(&error) => left.push_back(write),
                Err(error) => write.answer(Err(error.into())),
            }
        }
        let mut queue = self.queue();
        left.append(&mut queue.writes);
        queue.writes = left;
    }

    /// Answers those for whom this failure is the end, and pauses. None once nobody waits on.
    fn go_on_after(&self, failed: &Failed) -> Option<()> {
        {
            let mut queue = self.queue();
            let (waits_on, ended) = std::mem::take(&mut queue.writes)
                .into_iter()
                .partition(|write| failed.busy && write.waits_on());
            queue.writes = waits_on;
            let ended: VecDeque<_> = ended;
            for write in ended {
                write.answer(Err(failed.clone()));
            }
            if queue.writes.is_empty() {
                return None;
            }
        }
        Patience::pause();
        Some(())
    }

    /// The next write whose caller has not gone away.
    fn next_write(&self) -> Option<Box<dyn Write>> {
        let mut queue = self.queue();
        loop {
            let write = queue.writes.pop_front()?;
            if !write.is_gone() {
                return Some(write);
            }
        }
    }

    fn add(&self, add: impl FnOnce(&mut Queue)) {
        let mut queue = self.queue();
        // Dropped otherwise, and with it the way to its caller, who is told.
        if !queue.over {
            add(&mut queue);
            self.turn.notify_one();
        }
    }

    fn end(&self) {
        *self.queue() = Queue {
            over: true,
            ..Queue::default()
        };
        self.turn.notify_one();
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing panics while it holds the lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct End<'a>(&'a Shared);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn stopped() -> Failed {
    Failed::other("the thread that uses the file has ended")
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("tasks", &self.tasks.len())
            .field("writes", &self.writes.len())
            .field("over", &self.over)
            .finish()
    }
}
