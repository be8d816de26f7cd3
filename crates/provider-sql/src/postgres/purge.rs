//! Deleting the ends whose time is over.

use std::num::NonZeroU32;

use identity_core::claim::{StoreError, UnixSeconds};

use super::PostgresStore;
use super::values::Seconds;

/// Deletes at most `$2` rows that are done and over before `$1`, the longest over first.
///
/// An array, so that the rows are chosen once: a subquery of `IN` may be run again for each row. It reads only what it deletes, from the index `firstclaim_claims_over`. A row that another transaction is at is passed
/// over; one that is locked here is looked at again as it then stands, so that what changed meanwhile is left alone.
pub(super) const DELETE: &str = "DELETE FROM firstclaim_claims WHERE key = ANY (ARRAY (
    SELECT key FROM firstclaim_claims WHERE status = 'done' AND expires_at < $1 ORDER BY expires_at LIMIT $2
    FOR UPDATE SKIP LOCKED
)) RETURNING key";

impl PostgresStore {
    pub(super) async fn delete_ended(
        &self,
        now: UnixSeconds,
        most: NonZeroU32,
    ) -> Result<u32, StoreError> {
        let query = sqlx::query(DELETE)
            .bind(Seconds(now.0).as_bound())
            .bind(i64::from(most.get()));
        let deleted = self.rows("deleting old ends", query).await?;
        Ok(u32::try_from(deleted.len()).unwrap_or(u32::MAX)) // at most `most`
    }
}
