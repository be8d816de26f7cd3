//! Reading objects: what the gate and jobs need of an object store. What it holds now, reads pinned to one version, and
//! what lies beside an object. `conformance` is what every store must pass.

use std::{fmt::Debug, num::NonZeroU32};

use async_trait::async_trait;
use tokio::io::AsyncRead;

use crate::{
    claim::UnixMillis,
    identity::{ObjectAddress, ObjectVersion, Provider, VersionToken},
};

#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(any(test, feature = "conformance"))]
pub mod memory;

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

/// One object of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Where it lives. The key is the exact one, [verbatim](crate::identity::ObjectKey::verbatim), whatever the listing
    /// encodes it in.
    pub address: ObjectAddress,
    /// Size in bytes.
    pub size: u64,
    /// When it was written, in Unix milliseconds of the store's clock, as exactly as the store tells; `None` if it does not.
    pub modified: Option<UnixMillis>,
    /// The token that [`ObjectStore::head`] would give, if the listing tells that very one (Cloud Storage: the generation,
    /// Azure: the ETag); otherwise `None`, and a HEAD must be asked. A listing in S3 tells the ETag and no version ID, and
    /// not whether there is one: a token from it would make two IDs of one upload. A folder's would have to be hashed.
    pub token: Option<VersionToken>,
}

/// Reads of one or more object stores.
#[async_trait]
pub trait ObjectStore: Debug + Send + Sync + 'static {
    /// Whether it can read objects of this provider at all. If not, a job that reads them is not even claimed here.
    fn reads(&self, provider: Provider) -> bool;

    /// What a reader of this object was not given, as a sentence for people, if it misses something that no waiting brings: a
    /// folder that nobody named, for one. A job that reads it is not even claimed here. `None` unless a store says so.
    fn missing(&self, _address: &ObjectAddress) -> Option<String> {
        None
    }

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

    /// The objects whose keys begin with that of `prefix`, byte for byte, and have no `/` after it: `in/roads.` lists
    /// `in/roads.shp`, not `in/Roads.shp` nor `in/roads.d/a.shp`. They come in the order of their keys' bytes, as they are
    /// now: what was written before the call is there, and what was removed is not. No object is no error; no container is.
    ///
    /// # Errors
    ///
    /// [`ObjectError::TooMany`] if there are more than `most`: a part of a listing could be taken for the whole. A store
    /// that finds the folders beside these objects on its way to them may count each of them once, too.
    /// [`ObjectError::Unavailable`]: the store cannot say, now or to these credentials.
    async fn list(
        &self,
        prefix: &ObjectAddress,
        most: NonZeroU32,
    ) -> Result<Vec<Listed>, ObjectError>;
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
    /// A listing has more objects than it may hold.
    #[error("more than {most} objects begin with {prefix}")]
    TooMany {
        /// The prefix as a URI.
        prefix: String,
        /// How many there may be.
        most: NonZeroU32,
    },
}

impl ObjectError {
    /// The store cannot tell of this object, or of what begins with it, because of `source`.
    pub fn unavailable(
        address: &ObjectAddress,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Unavailable {
            address: address.to_string(),
            source: source.into(),
        }
    }

    /// More than `most` objects begin with this one's key.
    pub fn too_many(prefix: &ObjectAddress, most: NonZeroU32) -> Self {
        Self::TooMany {
            prefix: prefix.to_string(),
            most,
        }
    }
}
