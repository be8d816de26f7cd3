//! What a job is: the object, its version, the parameters and the pipeline, and the digest over them.
//!
//! The reader's way: [`uri`] (which object) → [`token`] (which bytes) → [`params`] and [`pipeline`] (what is done with
//! them) → [`job_id`] (the digest, in the three schemes of [`scheme`]). Nothing else can reach the hash: event time,
//! request ID, message ID, sequencer and delivery attempt are not parameters of anything in this module.
//!
//! [`bundle`] stands apart: the key of a shapefile's content, whatever event or folder it came by.

pub mod bundle;
pub mod canonical_uri;
pub mod decode;
pub mod event_grid_url;
pub mod hex;
pub mod job_id;
pub mod params;
pub mod pipeline;
pub mod refusal;
pub mod scheme;
pub mod token;
pub mod uri;
#[cfg(feature = "vectors")]
pub mod vectors;

mod short_hash;

pub use job_id::{Deriver, JobId, Material};
pub use params::{ParamValue, Params, ParamsError};
pub use pipeline::{Contract, ContractError, Selected};
pub use refusal::Refusal;
pub use scheme::Scheme;
pub use token::{TokenKind, VersionToken};
pub use uri::{ObjectAddress, ObjectKey, ObjectVersion, Provider};
