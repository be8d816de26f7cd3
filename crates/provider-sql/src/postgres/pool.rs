//! A few connections to one server: lent to one task at a time, and given up at the first doubt.
//!
//! sqlx has a pool of its own, which asks the server before and after each loan whether it is there, and tells of a server
//! that refuses connections only that it waited in vain. Here a claim is one round trip, and the refusal is told.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::{ConnectOptions, PgConnection};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::PostgresUrl;
use super::error::{is_full, no_answer, says_nothing_of_others};

/// How long a connection may be idle and still be lent: what stands between us and the server (a firewall, an address
/// translation) forgets silent connections after some minutes, without telling.
const MAX_IDLE: Duration = Duration::from_secs(60);

/// How long to wait before a server that has no connection left is asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// Connections to one server.
#[derive(Debug)]
pub(crate) struct Pool {
    url: PostgresUrl,
    wait: Duration,
    permits: Semaphore,
    idle: Mutex<Vec<(PgConnection, Instant)>>,
}

impl Pool {
    /// At most `connections` connections, at least one. Everything that is asked of them is waited for at most about
    /// `wait`: here, and on the server, where a statement that nobody waits for any more would go on, and could still
    /// take effect long after its caller has looked.
    pub(crate) fn new(mut url: PostgresUrl, wait: Duration, connections: usize) -> Self {
        let millis = wait.as_millis().max(2);
        // The last settings win over those of the URL. Locks are given up first, so that the server can say so.
        url.options = url.options.options([
            ("statement_timeout", millis.to_string()),
            ("lock_timeout", (millis / 2).to_string()),
            // Another default would turn a lost race into an error, or a commit into a promise.
            ("default_transaction_isolation", "read committed".to_owned()),
            ("synchronous_commit", "on".to_owned()),
        ]);
        Self {
            url,
            wait,
            permits: Semaphore::new(connections.max(1)),
            idle: Mutex::default(),
        }
    }

    /// Does `work` within the time. If it fails in a way that says nothing good of the server, idle connections are given
    /// up, too: after a restart of the server one call fails, not one for each connection.
    pub(crate) async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, sqlx::Error>> + Send,
    ) -> Result<T, sqlx::Error> {
        let result = tokio::time::timeout(self.wait, work)
            .await
            .unwrap_or_else(|_| Err(no_answer(self.wait)));
        if let Err(error) = &result
            && !says_nothing_of_others(error)
        {
            self.idle().clear();
        }
        result
    }

    /// A connection, a new one if none is idle. To be used within [`Pool::within`].
    pub(crate) async fn lend(&self) -> Result<Lent<'_>, sqlx::Error> {
        let permit = self.permits.acquire().await;
        let permit = permit.map_err(|_| sqlx::Error::PoolClosed)?; // nothing closes it
        let idle = {
            let mut idle = self.idle();
            idle.retain(|(_, since)| since.elapsed() < MAX_IDLE);
            idle.pop()
        };
        let connection = match idle {
            Some((connection, _)) => connection,
            None => self.connect().await?,
        };
        Ok(Lent {
            connection,
            pool: self,
            permit,
        })
    }

    /// A new connection. A server that has none left has one soon, when many processes start or end at once.
    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let started = Instant::now();
        loop {
            match self.url.options.connect().await {
                Err(error) if is_full(&error) && started.elapsed() + 2 * PAUSE < self.wait => {
                    tokio::time::sleep(PAUSE).await;
                }
                result => return result,
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(PgConnection, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection on loan. Dropped without [`Lent::give_back`], on an error or with its task, it is closed.
#[derive(Debug)]
pub(crate) struct Lent<'a> {
    connection: PgConnection,
    pool: &'a Pool,
    permit: SemaphorePermit<'a>,
}

impl Lent<'_> {
    /// Leaves the connection, on which nothing is under way, to the next task.
    pub(crate) fn give_back(self) {
        self.pool.idle().push((self.connection, Instant::now()));
        drop(self.permit); // only now, so that the next task finds it
    }
}

impl Deref for Lent<'_> {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}
