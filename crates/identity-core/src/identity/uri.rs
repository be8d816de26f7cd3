//! Which object: provider, account, container and key, and the URI that names them.

use std::borrow::Cow;

use super::token::VersionToken;

/// Where an object lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Provider {
    /// Amazon S3 and compatible stores.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage.
    Azure,
    /// A folder on this machine.
    File,
}

impl Provider {
    /// Every provider.
    pub const ALL: [Self; 4] = [Self::S3, Self::Gcs, Self::Azure, Self::File];

    /// The name in outputs and records: `s3`, `gcs`, `azure`, `file`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gcs => "gcs",
            Self::Azure => "azure",
            Self::File => "file",
        }
    }

    /// The provider that [`Provider::as_str`] names, or `None`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|provider| provider.as_str() == name)
    }

    /// How its URIs begin: `s3://`, `gs://`, `azblob://`, `file://`.
    pub const fn uri_prefix(self) -> &'static str {
        match self {
            Self::S3 => "s3://",
            Self::Gcs => "gs://",
            Self::Azure => "azblob://",
            Self::File => "file://",
        }
    }

    /// The scheme of its URIs: `s3`, `gs`, `azblob`, `file`.
    pub const fn uri_scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gcs => "gs",
            Self::Azure => "azblob",
            Self::File => "file",
        }
    }

    /// The provider that [`Provider::uri_scheme`] names, or `None`.
    pub fn from_uri_scheme(scheme: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|provider| provider.uri_scheme() == scheme)
    }
}

/// An object's key twice: exact, and as it stood in the payload.
///
/// The exact key is what the store calls the object, decoded exactly once by the innermost envelope. The raw key is
/// kept for the `reference` scheme, which decodes every raw key as a form does, whether it was encoded so or not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectKey {
    exact: Exact,
    /// `None` where the payload carried the exact key.
    raw: Option<String>,
}

/// Told apart once, when the key is read: an ID is derived more often.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Exact {
    Text(String),
    /// Not UTF-8.
    Bytes(Vec<u8>),
}

impl Exact {
    fn of(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(|error| Self::Bytes(error.into_bytes()), Self::Text)
    }
}

impl ObjectKey {
    /// A key that its envelope carries as it is.
    pub fn verbatim(key: impl Into<String>) -> Self {
        Self {
            exact: Exact::Text(key.into()),
            raw: None,
        }
    }

    /// A key as its store calls it: bytes that are not UTF-8 are kept, as [`ObjectKey::decoded`] keeps them.
    pub fn from_bytes(key: impl Into<Vec<u8>>) -> Self {
        Self {
            exact: Exact::of(key.into()),
            raw: None,
        }
    }

    /// A key that its envelope carries encoded: `raw` as it stood there, `exact` decoded once.
    ///
    /// The exact key is bytes because percent-encoding can name bytes that are not UTF-8; [`ObjectKey::exact`] then
    /// says `None` and `strict` refuses the event.
    pub fn decoded(raw: impl Into<String>, exact: impl Into<Vec<u8>>) -> Self {
        let (raw, exact) = (raw.into(), exact.into());
        let raw = (raw.as_bytes() != exact.as_slice()).then_some(raw);
        Self {
            exact: Exact::of(exact),
            raw,
        }
    }

    /// The exact key, or `None` if it is not UTF-8.
    pub fn exact(&self) -> Option<&str> {
        match &self.exact {
            Exact::Text(text) => Some(text),
            Exact::Bytes(_) => None,
        }
    }

    /// The exact key's bytes.
    pub fn exact_bytes(&self) -> &[u8] {
        match &self.exact {
            Exact::Text(text) => text.as_bytes(),
            Exact::Bytes(bytes) => bytes,
        }
    }

    /// The exact key for people and logs: bytes that are not UTF-8 are shown as U+FFFD.
    pub fn display(&self) -> Cow<'_, str> {
        match &self.exact {
            Exact::Text(text) => Cow::Borrowed(text),
            Exact::Bytes(bytes) => String::from_utf8_lossy(bytes),
        }
    }

    /// The key as it stood in the payload.
    pub fn raw(&self) -> Cow<'_, str> {
        match &self.raw {
            Some(raw) => Cow::Borrowed(raw),
            None => self.display(),
        }
    }
}

/// One object, without its version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectAddress {
    /// Where it lives.
    pub provider: Provider,
    /// The Azure storage account. `None` at the other providers, whose containers are globally unique.
    pub account: Option<String>,
    /// Bucket, container, or the name of a local folder.
    pub container: String,
    /// The name within the container.
    pub key: ObjectKey,
}

impl ObjectAddress {
    /// The object of this key in the same container.
    #[must_use]
    pub fn beside(&self, key: ObjectKey) -> Self {
        Self {
            key,
            ..self.clone()
        }
    }
}

impl std::fmt::Display for ObjectAddress {
    /// The URI for people: `s3://bucket/key`, `azblob://account/container/name`. Not hashed; see
    /// [`job_id`](super::job_id) for the forms that are.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://", self.provider.uri_scheme())?;
        if let Some(account) = &self.account {
            write!(f, "{account}/")?;
        }
        write!(f, "{}/{}", self.container, self.key.display())
    }
}

/// One object at one version: all that a job ID may know of an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectVersion {
    /// Which object.
    pub address: ObjectAddress,
    /// Which bytes.
    pub token: VersionToken,
}
