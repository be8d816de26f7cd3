//! The job ID: SHA-256 over what the job is, in one of three encodings. This page is their specification.
//!
//! Texts are UTF-8. URIs are in [`canonical_uri`](super::canonical_uri), canonical parameters in
//! [`params::canonical`](super::params::canonical).
//!
//! # `strict`
//!
//! ```text
//! "firstclaim/job/strict/1" 0x0A
//! LENGTH pipeline name
//! LENGTH pipeline version
//! LENGTH canonical parameters (strict)
//! LENGTH URI (strict)
//! LENGTH token
//! ```
//!
//! LENGTH is the number of bytes of the field that follows, as 8 bytes, big-endian. Nothing stands between the fields,
//! nothing after the last. The token is its kind, a colon and its value: `version-id:3sL4…`, `etag:9b2c…` (without the
//! quotes around it), `generation:1712…`, `content:` and a SHA-256 in lower-case hex. The constant fields come first, so
//! that [`Deriver`] hashes them once.
//!
//! # `reference`
//!
//! ```text
//! URI (reference) 0x1F token 0x1F canonical parameters (reference)
//! ```
//!
//! The token is its value without the quotation marks at its ends; its kind has no part. The pipeline's name has no
//! part; its version is among the parameters.
//!
//! # `ingest`
//!
//! ```text
//! bucket 0x0A key 0x0A ETag
//! ```
//!
//! S3 only. The bucket is as it stands in the event, the key is decoded once, bytes that are not UTF-8 having become
//! U+FFFD, and the ETag is without its quotes. The handler that is the scheme's model never looks at version IDs, so
//! only an ETag will do ([`Scheme::token`] chooses it). Neither pipeline nor parameters have a part.
//!
//! # What cannot be hashed
//!
//! A [`Deriver`] takes an [`ObjectVersion`] and nothing else. The parts of an event that differ between two deliveries
//! are in [`EventDetails`](crate::event::EventDetails), which it does not take:
//!
//! ```
//! use identity_core::{event::StorageEvent, identity::{Deriver, ObjectVersion}};
//! fn id(deriver: &Deriver, event: StorageEvent) -> Option<String> {
//!     let object = ObjectVersion { address: event.address, token: event.token? };
//!     Some(deriver.job_id(&object).ok()?.to_string())
//! }
//! ```
//!
//! ```compile_fail,E0308
//! use identity_core::{event::StorageEvent, identity::{Deriver, ObjectVersion}};
//! fn id(deriver: &Deriver, event: StorageEvent) -> Option<String> {
//!     Some(deriver.job_id(&event.details).ok()?.to_string())
//! }
//! ```
//!
//! ```compile_fail,E0061
//! use identity_core::{event::StorageEvent, identity::{Deriver, ObjectVersion}};
//! fn id(deriver: &Deriver, event: StorageEvent) -> Option<String> {
//!     let object = ObjectVersion { address: event.address, token: event.token? };
//!     Some(deriver.job_id(&object, &event.details.sequencer).ok()?.to_string())
//! }
//! ```

use std::{borrow::Cow, fmt};

use super::{
    ObjectVersion, Params, Provider, Refusal, Scheme, TokenKind, VersionToken,
    canonical_uri::{ReferenceUri, StrictUri},
    hex,
    params::canonical,
    short_hash::Prefix,
};

/// The line that opens `strict` material: what is hashed, under which scheme, in which revision of it.
const STRICT_HEADING: &[u8] = b"firstclaim/job/strict/1\n";
/// Between the fields of `reference` material: US-ASCII's unit separator.
const REFERENCE_SEPARATOR: &[u8] = b"\x1f";

/// A job ID: a SHA-256 digest. Its text is 64 lower-case hex characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId([u8; 32]);

impl JobId {
    /// The ID with this text, or `None` unless it is 64 lower-case hex characters.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        hex::from_hex(text).map(Self)
    }

    /// The digest's 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// 64 lower-case hex characters.
    #[must_use]
    pub fn to_hex(&self) -> String {
        hex::to_hex(&self.0)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_hex())
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobId({self})")
    }
}

impl From<JobId> for [u8; 32] {
    fn from(id: JobId) -> Self {
        id.0
    }
}

/// Derives job IDs for one contract. Made once; the part of the material that all events share is kept ready.
#[derive(Debug, Clone)]
pub struct Deriver {
    name: Box<str>,
    version: Box<str>,
    prepared: Prepared,
}

#[derive(Debug, Clone)]
enum Prepared {
    Strict {
        canonical_params: Box<str>,
        /// The heading and the three constant fields.
        constant: Prefix,
    },
    Reference {
        canonical_params: Box<str>,
    },
    Ingest,
}

impl Deriver {
    /// A deriver for the contract with these identity fields.
    ///
    /// # Errors
    ///
    /// [`Refusal::InexactInteger`] under `strict`.
    pub fn new(
        name: &str,
        version: &str,
        scheme: Scheme,
        params: &Params,
    ) -> Result<Self, Refusal> {
        let canonical_params = match scheme {
            Scheme::Strict => canonical::strict(params)?,
            Scheme::Reference => canonical::reference(params, version),
            Scheme::Ingest => String::new(),
        };
        Ok(Self::prepared(name, version, scheme, &canonical_params))
    }

    /// A deriver for a contract without parameters, which no scheme refuses.
    #[must_use]
    pub fn without_params(name: &str, version: &str, scheme: Scheme) -> Self {
        let params = Params::default();
        let canonical_params = match scheme {
            Scheme::Strict => canonical::exact(&params),
            Scheme::Reference => canonical::reference(&params, version),
            Scheme::Ingest => String::new(),
        };
        Self::prepared(name, version, scheme, &canonical_params)
    }

    fn prepared(name: &str, version: &str, scheme: Scheme, canonical_params: &str) -> Self {
        let prepared = match scheme {
            Scheme::Strict => {
                let mut constant = STRICT_HEADING.to_vec();
                for field in [name, version, canonical_params] {
                    constant.extend(length(field.len()));
                    constant.extend(field.as_bytes());
                }
                Prepared::Strict {
                    canonical_params: canonical_params.into(),
                    constant: Prefix::new(&constant),
                }
            }
            Scheme::Reference => Prepared::Reference {
                canonical_params: canonical_params.into(),
            },
            Scheme::Ingest => Prepared::Ingest,
        };
        Self {
            name: name.into(),
            version: version.into(),
            prepared,
        }
    }

    /// The scheme by which it derives.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        match self.prepared {
            Prepared::Strict { .. } => Scheme::Strict,
            Prepared::Reference { .. } => Scheme::Reference,
            Prepared::Ingest => Scheme::Ingest,
        }
    }

    /// The parameters as they are hashed; `None` under `ingest`, where they are not.
    #[must_use]
    pub fn canonical_params(&self) -> Option<&str> {
        match &self.prepared {
            Prepared::Strict {
                canonical_params, ..
            }
            | Prepared::Reference { canonical_params } => Some(canonical_params),
            Prepared::Ingest => None,
        }
    }

    /// The job ID of the contract's job on this object version.
    ///
    /// # Errors
    ///
    /// Under `strict` what [`StrictUri::of`] refuses; under `ingest` [`Refusal::ProviderOutsideIngest`] and
    /// [`Refusal::TokenOutsideIngest`]; under `reference` nothing (an [`ObjectVersion`] has a usable token).
    pub fn job_id(&self, object: &ObjectVersion) -> Result<JobId, Refusal> {
        let token = &object.token;
        match &self.prepared {
            Prepared::Strict { constant, .. } => {
                let uri = StrictUri::of(&object.address)?;
                let most = strict_len(&uri, token);
                Ok(JobId(constant.digest(most, |run| {
                    strict_fields(&uri, token, |piece| run.add(piece));
                })))
            }
            Prepared::Reference { canonical_params } => {
                let uri = ReferenceUri::of(&object.address);
                let most = uri.max_byte_len() + token.value().len() + canonical_params.len() + 2;
                Ok(JobId(Prefix::NONE.digest(most, |run| {
                    reference_fields(&uri, token, canonical_params, |piece| run.add(piece));
                })))
            }
            Prepared::Ingest => {
                let (bucket, key) = ingest_names(object)?;
                let most = bucket.len() + key.len() + token.value().len() + 2;
                Ok(JobId(Prefix::NONE.digest(most, |run| {
                    ingest_fields(bucket, &key, token, |piece| run.add(piece));
                })))
            }
        }
    }

    /// The fields that [`Deriver::job_id`] hashes, for people who ask why two IDs differ.
    ///
    /// # Errors
    ///
    /// As [`Deriver::job_id`].
    pub fn material(&self, object: &ObjectVersion) -> Result<Material, Refusal> {
        let mut bytes = Vec::new();
        let mut sink = |piece: &[u8]| bytes.extend_from_slice(piece);
        let token = &object.token;
        let fields = match &self.prepared {
            Prepared::Strict {
                canonical_params, ..
            } => {
                sink(STRICT_HEADING);
                for field in [&self.name, &self.version, canonical_params] {
                    sink(&length(field.len()));
                    sink(field.as_bytes());
                }
                strict_fields(&StrictUri::of(&object.address)?, token, sink);
                vec![
                    ("pipeline name", self.name.to_string()),
                    ("pipeline version", self.version.to_string()),
                    ("parameters", canonical_params.to_string()),
                    ("uri", StrictUri::of(&object.address)?.to_string()),
                    ("token", token.to_string()),
                ]
            }
            Prepared::Reference { canonical_params } => {
                reference_fields(
                    &ReferenceUri::of(&object.address),
                    token,
                    canonical_params,
                    sink,
                );
                vec![
                    ("uri", ReferenceUri::of(&object.address).to_string()),
                    ("token", token.unquoted().to_owned()),
                    ("parameters", canonical_params.to_string()),
                ]
            }
            Prepared::Ingest => {
                let (bucket, key) = ingest_names(object)?;
                ingest_fields(bucket, &key, token, sink);
                vec![
                    ("bucket", object.address.container.clone()),
                    ("key", object.address.key.display().into_owned()),
                    ("etag", token.value().to_owned()),
                ]
            }
        };
        Ok(Material { fields, bytes })
    }
}

/// What a job ID is the digest of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Material {
    fields: Vec<(&'static str, String)>,
    bytes: Vec<u8>,
}

impl Material {
    /// The fields in the order in which they are hashed, each with its label.
    #[must_use]
    pub fn fields(&self) -> &[(&'static str, String)] {
        &self.fields
    }

    /// Exactly the bytes whose SHA-256 the job ID is.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A field's length as it stands before the field. No text is longer than 2^64 bytes.
fn length(bytes: usize) -> [u8; 8] {
    u64::try_from(bytes).unwrap_or(u64::MAX).to_be_bytes()
}

/// How many bytes [`strict_fields`] writes.
fn strict_len(uri: &StrictUri<'_>, token: &VersionToken) -> usize {
    8 + uri.byte_len() + 8 + token.kind().tag().len() + token.value().len()
}

fn strict_fields(uri: &StrictUri<'_>, token: &VersionToken, mut sink: impl FnMut(&[u8])) {
    sink(&length(uri.byte_len()));
    uri.write(&mut sink);
    let (tag, value) = (token.kind().tag(), token.value());
    sink(&length(tag.len() + value.len()));
    sink(tag.as_bytes());
    sink(value.as_bytes());
}

fn reference_fields(
    uri: &ReferenceUri<'_>,
    token: &VersionToken,
    params: &str,
    mut sink: impl FnMut(&[u8]),
) {
    uri.write(&mut sink);
    sink(REFERENCE_SEPARATOR);
    sink(token.unquoted().as_bytes());
    sink(REFERENCE_SEPARATOR);
    sink(params.as_bytes());
}

/// Bucket and key, if the scheme knows such objects.
fn ingest_names(object: &ObjectVersion) -> Result<(&str, Cow<'_, str>), Refusal> {
    let address = &object.address;
    if address.provider != Provider::S3 {
        return Err(Refusal::ProviderOutsideIngest(address.provider));
    }
    if object.token.kind() != TokenKind::ETag {
        return Err(Refusal::TokenOutsideIngest(object.token.kind()));
    }
    Ok((&address.container, address.key.display()))
}

fn ingest_fields(bucket: &str, key: &str, token: &VersionToken, mut sink: impl FnMut(&[u8])) {
    for piece in [bucket, "\n", key, "\n", token.value()] {
        sink(piece.as_bytes());
    }
}

#[cfg(test)]
mod tests;
