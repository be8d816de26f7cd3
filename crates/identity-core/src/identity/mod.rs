//! What a job is: the object, its version, the parameters and the pipeline, and the digest over them.
//!
//! The reader's way: [`uri`] (which object) → [`token`] (which bytes) → [`params`] and [`pipeline`] (what is done with
//! them) → [`job_id`] (the digest, in three schemes). Nothing else can reach the hash: event time, request ID, message
//! ID, sequencer and delivery attempt are not parameters of anything in this module.

pub mod decode;
pub mod token;
pub mod uri;

pub use token::{TokenKind, VersionToken};
pub use uri::{ObjectAddress, ObjectKey, ObjectVersion, Provider};

/// Why identity refused an event or a contract: the reason, never the remedy of guessing.
///
/// A refused event is a recorded rejection (`rejected(refused)`), not a skipped job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The version token is the empty string.
    #[error(
        "the version token is empty: without one, a re-upload could not be told from a duplicate"
    )]
    EmptyToken,
    /// The version token consists of quotation marks only.
    #[error("the version token {0:?} is empty once its quotes are removed")]
    QuotesOnlyToken(String),
    /// The version token holds a control character, which could pass for a field boundary.
    #[error("the version token {0:?} holds a control character")]
    ControlCharacterInToken(String),
}
