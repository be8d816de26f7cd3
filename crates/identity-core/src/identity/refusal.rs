//! Why identity refuses: one variant for each reason, none of which is worked around.

use super::{Provider, TokenKind};

/// Why identity refused an event or a contract: the reason, never the remedy of guessing.
///
/// A refused event is a recorded rejection (`rejected(refused)`), not a skipped job. A refused contract does not build.
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

    /// `strict`: the object has no name.
    #[error("the object's key is empty")]
    EmptyKey,
    /// `strict`: the object's key is not UTF-8. `reference` and `ingest` put U+FFFD for what is not.
    #[error("the object's key {0:?} is not UTF-8")]
    KeyNotUtf8(String),
    /// `strict`: the bucket, container or account has no name.
    #[error("the {0} has no name")]
    EmptyName(&'static str),
    /// `strict`: the bucket, container or account holds a slash, so that its URI could name another object.
    #[error("the {what} {name:?} holds a slash")]
    SlashInName {
        /// `bucket`, `container`, `account` or `folder`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// `strict`: an Azure container without its account: every account may have a container of that name.
    #[error("the storage account of the Azure container {container:?} is not known")]
    MissingAccount {
        /// The container.
        container: String,
    },
    /// `strict`: an account at a provider whose containers have none.
    #[error("{} has no storage accounts, got {account:?}", provider.as_str())]
    UnexpectedAccount {
        /// The provider.
        provider: Provider,
        /// The account.
        account: String,
    },

    /// `ingest` knows S3 only.
    #[error("the scheme ingest derives IDs of s3 objects only, got {}", .0.as_str())]
    ProviderOutsideIngest(Provider),
    /// `ingest` hashes ETags only, also in a bucket with versioning.
    #[error("the scheme ingest hashes etag tokens only, got a {} token", .0.as_str())]
    TokenOutsideIngest(TokenKind),
    /// `reference`: a URL that Python's `urlparse` refuses.
    #[error("the blob's URL {url:?} cannot be read: {reason}")]
    UnreadableUrl {
        /// The URL.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },

    /// A parameter has the name under which the `reference` scheme hashes the pipeline version.
    #[error(
        "the parameter name _pipeline_version is taken: the pipeline version is hashed under it"
    )]
    ReservedParameter,
    /// A parameter is infinite or not a number; also a number in JSON that is too large for a double.
    #[error("the parameter {at} is no finite number: got {got}")]
    NonFiniteParameter {
        /// Where it stands, e.g. `window.x[2]`.
        at: String,
        /// As it was written.
        got: String,
    },
    /// A parameter is a TOML date or time, which JSON and so the canonical forms cannot hold.
    #[error("the parameter {at} is a date: got {got}, expected a string in quotes")]
    DateParameter {
        /// Where it stands.
        at: String,
        /// As it was written.
        got: String,
    },
    /// `strict`: an integer that a double cannot hold exactly, so that RFC 8785 could not keep it apart from its neighbours.
    #[error(
        "the parameter {at} is the integer {got}: the scheme strict takes integers from \
         -9007199254740991 to 9007199254740991; write it as a string"
    )]
    InexactInteger {
        /// Where it stands.
        at: String,
        /// Its decimal digits.
        got: String,
    },
}
