//! Reading objects: what the gate and jobs need of an object store, pinned to one version.

use std::fmt::Debug;

use async_trait::async_trait;
use tokio::io::AsyncRead;

use crate::identity::{ObjectAddress, ObjectVersion, Provider, VersionToken};

/// An object's bytes as they arrive.
pub type ObjectStream = Box<dyn AsyncRead + Send + Unpin>;

/// What a HEAD tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The version that the store holds now, by its best token.
    pub token: VersionToken,
    /// Its ETag, also where a better token is known.
    pub etag: Option<VersionToken>,
    /// Size in bytes.
    pub size: u64,
}

/// Reads of one or more object stores.
#[async_trait]
pub trait ObjectStore: Debug + Send + Sync + 'static {
    /// Whether it can read objects of this provider at all. If not, a job that reads them is not even claimed here.
    fn reads(&self, provider: Provider) -> bool;

    /// What the store holds under this address now; `None` if there is no such object.
    ///
    /// # Errors
    ///
    /// [`ObjectError::Unavailable`]: the store cannot say, now or to these credentials. The event is retried.
    async fn head(&self, address: &ObjectAddress) -> Result<Option<Head>, ObjectError>;

    /// Streams exactly this version.
    ///
    /// # Errors
    ///
    /// [`ObjectError::Changed`] if the store holds another version or none. A store that learns this only while
    /// reading ends the stream with an [`std::io::Error`] whose inner error is an [`ObjectError`].
    async fn read(&self, object: &ObjectVersion) -> Result<ObjectStream, ObjectError>;
}

/// Why an object could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// The version is no longer there: overwritten or removed (HTTP 412, 404).
    #[error("the object no longer has the version that was asked for")]
    Changed,
    /// The store did not answer, refused the credentials, or is not part of this build: the event is retried.
    #[error("{address} cannot be read")]
    Unavailable {
        /// The object's URI.
        address: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
