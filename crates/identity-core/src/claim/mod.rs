//! Claims: who may run a job, decided by compare-and-swap on one row.
//!
//! The reader's way: [`record`] (what a row holds) → [`store`] (what a store can do) → [`machine`] (the protocol, pure)
//! → [`lease`] (the protocol driven over a store).

pub mod record;
pub mod store;

pub use record::{
    ClaimKey, Owner, Reason, Record, RecordedObject, RecordedPipeline, Release, Revision, Status,
    UnixMillis, UnixSeconds,
};
pub use store::{ClaimStore, Cursor, ListQuery, Page, Precondition, StoreError, Stored, Version};

/// A claim that was won: which job, and which attempt at it.
///
/// Not `Clone`: what proves that a job may run is consumed when its end is recorded.
#[derive(Debug)]
pub struct Lease {
    /// The claim's key: the job ID.
    pub key: ClaimKey,
    /// 1, 2, 3 …: with the owner, the fencing token. A sink that remembers the highest attempt it has seen can refuse
    /// an older one.
    pub attempt: u32,
    /// This claim call.
    pub owner: Owner,
}
