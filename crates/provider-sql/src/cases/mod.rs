//! What every database of this crate must do, as cases that each of them runs on a store of its own.

pub(crate) mod claims;
pub(crate) mod conformance;
pub(crate) mod ledger;
pub(crate) mod listing;
pub(crate) mod races;

use std::error::Error;
use std::ops::RangeInclusive;
use std::sync::Arc;

use async_trait::async_trait;
use identity_core::claim::{ClaimKey, ClaimStore, Status};
use identity_core::ledger::Ledger;

/// A store with nothing in it, and the foreign program that writes to its tables behind its back.
#[async_trait]
pub(crate) trait Testbed: Send + Sync + 'static {
    type Store: ClaimStore + Ledger;

    fn store(&self) -> &Arc<Self::Store>;

    /// Another process's store on the same rows: no connection is shared.
    async fn another(&self) -> Self::Store;

    /// Runs the foreign program's statement; how many rows it changed.
    async fn execute(&self, sql: &str) -> u64;

    /// A time, in Unix seconds, in the database's words.
    fn time(&self, seconds: i64) -> String;

    /// The times that a record can have here, in Unix seconds.
    fn times(&self) -> RangeInclusive<i64>;

    /// The foreign program deletes a row.
    async fn delete(&self, key: &ClaimKey) {
        let sql = format!("DELETE FROM firstclaim_claims WHERE key = '{key}'");
        assert_eq!(self.execute(&sql).await, 1);
    }

    /// The foreign program sets a row's status and nothing else.
    async fn flip_status(&self, key: &ClaimKey, status: Status) {
        let sql = format!("UPDATE firstclaim_claims SET status = '{status}' WHERE key = '{key}'");
        assert_eq!(self.execute(&sql).await, 1);
    }
}

/// An error and its causes, as a person is told them.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// Makes every case a test of the database whose testbed this is.
macro_rules! on {
    ($new:expr) => {
        crate::cases::on! {
            $new;
            claims {
                every_record_comes_back_as_it_was_written,
                a_row_of_another_program_is_read_and_can_be_replaced,
                what_no_claim_can_hold_is_named_by_row_and_column,
            }
            listing {
                a_claim_before_1970_is_older_than_all_others,
                a_page_is_never_larger_than_memory_likes,
                a_row_whose_key_is_none_is_named_and_can_end_a_page,
            }
            races {
                of_sixteen_connections_that_want_one_key_one_gets_it,
            }
            conformance {
                the_store_conforms,
            }
            ledger {
                an_upload_is_claimed_once_and_done_once_it_is_completed,
                a_later_attempt_of_the_same_job_goes_on_and_an_earlier_one_is_out,
                a_row_of_the_load_task_is_honoured_as_done_and_listed_as_foreign,
                a_released_upload_is_won_again_and_its_old_holder_is_out,
                other_bytes_under_the_same_key_are_a_collision_even_when_released,
                of_many_jobs_that_want_one_upload_one_gets_it,
                a_listing_of_uploads_goes_on_where_its_page_ended,
                a_holder_that_is_none_is_named_by_row_and_column,
            }
        }
    };
    ($new:expr; $($room:ident { $($case:ident,)* })*) => {$(
        mod $room {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $case() {
                crate::cases::$room::$case(&$new.await).await;
            })*
        }
    )*};
}
pub(crate) use on;
