//! The upload key: SHA-256 over a bundle's names and bytes, in one of two encodings. This page is their specification.
//!
//! Texts are UTF-8. Members come in the order of their suffixes' bytes: `.cpg .dbf .fix .prj .qix .sbn .sbx .shp .shx`,
//! which is also the order of their lower-cased names. The four index sidecars (`.fix .qix .sbn .sbx`) are hashed or left
//! out, by choice. No folder and no time has a part.
//!
//! # `reference`
//!
//! ```text
//! namespace ":v" algorithm version ":"
//! name 0x00 content          for each member
//! ```
//!
//! The algorithm version is in decimal. The name is lower-cased as Python's `str.lower()` does it, in the Unicode of
//! Python 3.11. Nothing says where a content ends, so bytes that move from a member into the one before it, name and all,
//! give the same key; and whether index sidecars were left out is not in it: give them another algorithm version.
//!
//! # `strict`
//!
//! ```text
//! "firstclaim/upload/strict/1" 0x0A
//! LENGTH namespace
//! LENGTH algorithm version
//! LENGTH "index-sidecars:in" or "index-sidecars:out"
//! LENGTH name LENGTH content for each member
//! ```
//!
//! LENGTH is the number of bytes of the field that follows, as 8 bytes, big-endian. Nothing stands between the fields,
//! nothing after the last. The algorithm version is in decimal. Of the name, the letters A to Z are in lower case, and
//! nothing else is folded, so that no version of Unicode has a part.
//!
//! A content's length is hashed before it, so it must be known before: every store tells an object's size, a zip's
//! directory a member's. What was told is held against what came; a difference is [`UploadKeyError::Length`]. (To hash a
//! digest of each content instead would need no length, but make the reader of a stream finish a second hash a member, and
//! the layout harder to check by hand.)
//!
//! # The key
//!
//! The digest's first 1 to 32 bytes, in the alphabet of base64url (`A-Z a-z 0-9 - _`), without padding. A shorter key of
//! the same bundle is a prefix of the longer one's bytes. A truncated key tells uploads apart; it proves nothing about
//! their integrity. So the full digest is always kept beside it.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

use super::Member;
use crate::identity::{canonical_uri::lower, hex};

/// The line that opens `strict` material.
const STRICT_HEADING: &[u8] = b"firstclaim/upload/strict/1\n";

/// How a bundle is written out for its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Form {
    /// The published Python program's bytes, for ledgers that are shared with it.
    #[default]
    Reference,
    /// Every field, name and content framed by its length.
    Strict,
}

impl Form {
    /// All forms, in the order in which they are listed to people.
    pub const ALL: [Self; 2] = [Self::Reference, Self::Strict];

    /// `reference` or `strict`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::Strict => "strict",
        }
    }

    /// The form that [`Form::as_str`] names, or `None`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.as_str() == name)
    }
}

/// How many bytes of the digest a key has: 1 to 32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyBytes(u8);

impl KeyBytes {
    /// That many bytes; `None` unless there are 1 to 32.
    #[must_use]
    pub const fn new(bytes: u8) -> Option<Self> {
        match bytes {
            1..=32 => Some(Self(bytes)),
            _ => None,
        }
    }

    /// The number of bytes.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl Default for KeyBytes {
    /// 12 bytes, 16 characters.
    fn default() -> Self {
        Self(12)
    }
}

/// What an upload key depends on besides the bundle. The default is the published program's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadKeyOptions {
    /// Keeps environments and data sets apart.
    pub namespace: String,
    /// Bumped by whoever wants every key to change.
    pub algo_version: u64,
    /// How much of the digest the key is.
    pub key_bytes: KeyBytes,
    /// How the bundle is written out.
    pub form: Form,
    /// Whether `.sbn .sbx .qix .fix` are hashed: if so, a bundle that is indexed anew is another upload.
    pub index_sidecars: bool,
}

impl Default for UploadKeyOptions {
    fn default() -> Self {
        Self {
            namespace: "parcels-ingest".to_owned(),
            algo_version: 1,
            key_bytes: KeyBytes::default(),
            form: Form::default(),
            index_sidecars: true,
        }
    }
}

/// An upload key: a SHA-256 digest, and how much of it the key is. Its text is the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UploadKey {
    digest: [u8; 32],
    key_bytes: KeyBytes,
}

impl UploadKey {
    /// The key: 2 to 43 characters of base64url.
    #[must_use]
    pub fn key(&self) -> String {
        URL_SAFE_NO_PAD.encode(&self.digest[..usize::from(self.key_bytes.get())])
    }

    /// The whole digest: 64 lower-case hex characters.
    #[must_use]
    pub fn full_digest(&self) -> String {
        hex::to_hex(&self.digest)
    }
}

impl fmt::Display for UploadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key())
    }
}

/// Why members give no key. Those that come as a [`Bundle`](super::Bundle) lists them can only be of a wrong length.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UploadKeyError {
    /// A member's content is not as long as was told.
    #[error("{member:?}: expected {expected} bytes, got {}{got}", if got > expected { "at least " } else { "" })]
    Length {
        /// Its path.
        member: String,
        /// As was told, in bytes.
        expected: u64,
        /// As came, in bytes.
        got: u64,
    },
    /// Members of two stems, or not in their order, or one suffix twice.
    #[error("{next:?} cannot follow {previous:?} in a bundle")]
    Order {
        /// The path of a member.
        previous: String,
        /// The path of the one that came after it.
        next: String,
    },
    /// An index sidecar, which the options leave out.
    #[error("{0:?} is an index sidecar, and these are left out")]
    IndexSidecar(String),
    /// Content before the first member.
    #[error("content without a member")]
    NoMember,
    /// There was no `.shp` among the members.
    #[error("there is no .shp among the members")]
    NoShapes,
}

/// Hashes a bundle as it is read: each member, then its bytes in pieces of any size.
///
/// ```
/// use identity_core::identity::bundle::{Bundle, UploadKeyHasher, UploadKeyOptions};
/// let bundle = Bundle::find("in/a.shp", ["in/a.shp", "in/a.dbf"])?.ok_or("not there")?;
/// let options = UploadKeyOptions::default();
/// let mut hasher = UploadKeyHasher::new(&options);
/// for member in bundle.members(options.index_sidecars) {
///     hasher.member(member, 3)?;
///     hasher.update(b"abc")?;
/// }
/// assert_eq!(hasher.finish()?.key(), "Bnqg456TLjUa_Y6y");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct UploadKeyHasher {
    hasher: Sha256,
    form: Form,
    key_bytes: KeyBytes,
    index_sidecars: bool,
    current: Option<Current>,
    shapes_seen: bool,
}

/// The member whose content is being hashed.
#[derive(Debug, Clone)]
struct Current {
    member: Member,
    expected: u64,
    got: u64,
}

impl UploadKeyHasher {
    /// A hasher of one bundle.
    #[must_use]
    pub fn new(options: &UploadKeyOptions) -> Self {
        let UploadKeyOptions {
            namespace,
            algo_version,
            key_bytes,
            form,
            index_sidecars,
        } = options;
        let mut hasher = Sha256::new();
        match form {
            Form::Reference => hasher.update(format!("{namespace}:v{algo_version}:")),
            Form::Strict => {
                hasher.update(STRICT_HEADING);
                let choice = if *index_sidecars { "in" } else { "out" };
                framed(&mut hasher, namespace);
                framed(&mut hasher, &algo_version.to_string());
                framed(&mut hasher, &format!("index-sidecars:{choice}"));
            }
        }
        Self {
            hasher,
            form: *form,
            key_bytes: *key_bytes,
            index_sidecars: *index_sidecars,
            current: None,
            shapes_seen: false,
        }
    }

    /// Begins a member, whose content has this many bytes.
    ///
    /// # Errors
    ///
    /// [`UploadKeyError::Length`] of the member before it, [`UploadKeyError::Order`], [`UploadKeyError::IndexSidecar`].
    pub fn member(&mut self, member: &Member, length: u64) -> Result<(), UploadKeyError> {
        self.end_content()?;
        if member.is_index() && !self.index_sidecars {
            return Err(UploadKeyError::IndexSidecar(member.path().to_owned()));
        }
        if let Some(Current { member: last, .. }) = &self.current
            && (last.stem() != member.stem() || last.suffix() >= member.suffix())
        {
            return Err(UploadKeyError::Order {
                previous: last.path().to_owned(),
                next: member.path().to_owned(),
            });
        }
        match self.form {
            Form::Reference => {
                self.hasher.update(lower(member.name()).as_bytes());
                self.hasher.update(b"\0");
            }
            Form::Strict => {
                framed(&mut self.hasher, &member.name().to_ascii_lowercase());
                self.hasher.update(length.to_be_bytes());
            }
        }
        self.shapes_seen |= member.is_shapes();
        self.current = Some(Current {
            member: member.clone(),
            expected: length,
            got: 0,
        });
        Ok(())
    }

    /// Takes the next bytes of the member's content.
    ///
    /// # Errors
    ///
    /// [`UploadKeyError::Length`] if there are more than were told, [`UploadKeyError::NoMember`].
    pub fn update(&mut self, bytes: &[u8]) -> Result<(), UploadKeyError> {
        let current = self.current.as_mut().ok_or(UploadKeyError::NoMember)?;
        let more = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        current.got = current.got.saturating_add(more);
        if current.got > current.expected {
            return Err(current.wrong_length());
        }
        self.hasher.update(bytes);
        Ok(())
    }

    /// The key of the members that came.
    ///
    /// # Errors
    ///
    /// [`UploadKeyError::Length`] of the last member, [`UploadKeyError::NoShapes`].
    pub fn finish(self) -> Result<UploadKey, UploadKeyError> {
        self.end_content()?;
        if !self.shapes_seen {
            return Err(UploadKeyError::NoShapes);
        }
        Ok(UploadKey {
            digest: self.hasher.finalize().into(),
            key_bytes: self.key_bytes,
        })
    }

    fn end_content(&self) -> Result<(), UploadKeyError> {
        match &self.current {
            Some(current) if current.got != current.expected => Err(current.wrong_length()),
            _ => Ok(()),
        }
    }
}

impl Current {
    fn wrong_length(&self) -> UploadKeyError {
        UploadKeyError::Length {
            member: self.member.path().to_owned(),
            expected: self.expected,
            got: self.got,
        }
    }
}

/// A field after its length. No text is longer than 2^64 bytes.
fn framed(hasher: &mut Sha256, field: &str) {
    let length = u64::try_from(field.len()).unwrap_or(u64::MAX);
    hasher.update(length.to_be_bytes());
    hasher.update(field);
}

#[cfg(test)]
mod tests;
