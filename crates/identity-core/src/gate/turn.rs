//! Which jobs of this process may run beside each other: all, but for one whose last holder went away without a word.
//!
//! Such a job may be what ended that process (out of memory, for one), and will end this one, too. Whatever runs beside it then
//! would be interrupted with it, each time, until none of its attempts is left.

use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// Jobs take turns in the order in which they ask.
#[derive(Debug, Default)]
pub(super) struct Turns(Arc<RwLock<()>>);

/// A job's turn, as long as it has this.
#[derive(Debug)]
pub(super) enum Turn {
    BesideOthers(#[expect(dead_code, reason = "held")] OwnedRwLockReadGuard<()>),
    Alone(#[expect(dead_code, reason = "held")] OwnedRwLockWriteGuard<()>),
}

impl Turns {
    pub(super) async fn beside_others(&self) -> Turn {
        Turn::BesideOthers(Arc::clone(&self.0).read_owned().await)
    }

    /// Once no other job runs, and until this one has ended none begins.
    pub(super) async fn alone(&self) -> Turn {
        Turn::Alone(Arc::clone(&self.0).write_owned().await)
    }
}
