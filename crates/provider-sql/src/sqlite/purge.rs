//! Deleting the ends whose time is over.

use std::num::NonZeroU32;

use identity_core::claim::{StoreError, UnixSeconds};

use super::SqliteStore;

/// Deletes at most `?2` rows that are done and over before `?1`, the longest over first.
///
/// One statement under the write lock, so nothing changes between looking and deleting. It reads only what it deletes, by an
/// index that SQLite has to be told (one that begins with an equality looks better to it): the lock is held no longer where
/// there are millions of other rows.
pub(super) const DELETE: &str = "DELETE FROM firstclaim_claims WHERE key IN (
    SELECT key FROM firstclaim_claims INDEXED BY firstclaim_claims_over
    WHERE status = 'done' AND expires_at < ?1 ORDER BY expires_at LIMIT ?2
) RETURNING key";

impl SqliteStore {
    pub(super) async fn delete_ended(
        &self,
        now: UnixSeconds,
        most: NonZeroU32,
    ) -> Result<u32, StoreError> {
        let deleted = self.change("deleting old ends", move |connection| {
            let mut statement = connection.prepare_cached(DELETE)?;
            let deleted = statement.query_map((now.0, most.get()), |_| Ok(()))?;
            Ok(deleted.collect::<Result<Vec<()>, _>>()?.len())
        });
        Ok(u32::try_from(deleted.await?).unwrap_or(u32::MAX)) // at most `most`
    }
}
