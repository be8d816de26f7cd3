//! Claims: who may run a job, decided by compare-and-swap on one row.
//!
//! The reader's way: [`record`] (what a row holds) → [`store`] (what a store can do) → [`machine`] (the protocol, pure)
//! → [`lease`] (the protocol driven over a store). [`duplicate`] tells a duplicate from two jobs with one ID;
//! [`redrive`] (pure) and [`sweep`] send again what nobody redelivers. For those who write a store: [`fields`] (record ↔ row),
//! [`open_index`] (finding open claims where there is no index by status), [`patience`] (how long a call may take).
//! [`memory`] is the smallest store; `conformance` is what every store must pass.

pub mod duplicate;
pub mod fields;
pub mod lease;
pub mod machine;
pub mod memory;
pub mod open_index;
pub mod patience;
mod pause;
pub mod record;
pub mod redrive;
pub mod store;
pub mod sweep;

#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(test)]
pub(crate) mod testing;

pub use duplicate::Likeness;
pub use lease::{ClaimError, Claimed, Claims, Kept, Lease};
pub use machine::{End, Terms};
pub use record::{
    ClaimKey, Owner, Reason, Record, RecordedObject, RecordedPipeline, Release, Revision, Status,
    UnixMillis, UnixSeconds,
};
pub use redrive::{Obstacle, Resend};
pub use store::{ClaimStore, Cursor, ListQuery, Page, Precondition, StoreError, Stored, Version};
pub use sweep::{ResendError, Resender, Resent, Swept};
