//! Why a shapefile has no key.

use std::{io, path::PathBuf};

use identity_core::identity::bundle::{BundleError, UploadKeyError};
use zip::{CompressionMethod, result::ZipError};

/// The most members of shapefiles that one zip may hold.
pub(crate) const MOST_MEMBERS: usize = 100_000;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The path names something else than what has keys.
    #[error("expected a .shp, a .zip, or a folder of them")]
    Kind,
    /// A name is hashed as text.
    #[error("its name is not UTF-8, which no key can be made from: rename it")]
    NotUtf8,
    /// It is not there, or may not be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// Which file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// It was written to, replaced or removed while it was hashed.
    #[error("{} changed while it was read: is it still being written?", path.display())]
    Changed {
        /// Which file.
        path: PathBuf,
    },
    /// Its members are no bundle.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// Its members give no key.
    #[error(transparent)]
    Hash(#[from] UploadKeyError),
    /// A zip, or what is in it.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The hasher has stopped, and tells why itself.
    #[error("the hasher has stopped")]
    HasherStopped,
}

/// Why a zip, or a member in it, cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// It is no zip, or a broken one.
    #[error("it cannot be read as a zip")]
    Broken(#[source] ZipError),
    /// More members than any honest zip holds.
    #[error("it holds more than {MOST_MEMBERS} members of shapefiles")]
    TooMany,
    /// Members of which several are made of the same bytes.
    #[error("its members are {inflated} bytes, more than {length} bytes of zip can hold")]
    Bomb {
        /// The members' bytes, as the directory says.
        inflated: u64,
        /// The zip's bytes.
        length: u64,
    },
    /// A name is hashed as text.
    #[error("it holds {0:?}, whose name is not UTF-8, which no key can be made from")]
    NotUtf8(String),
    /// Only who has the password can read it.
    #[error("{0:?} is encrypted")]
    Encrypted(String),
    /// Neither stored nor deflated.
    #[error("{member:?} is compressed by {method:?}: expected deflate, or no compression")]
    Method {
        /// The member's path in the zip.
        member: String,
        /// What the directory says.
        method: CompressionMethod,
    },
    /// A link, whose target is not told.
    #[error("{0:?} is a link")]
    Link(String),
    /// It is broken, or longer than the directory says, or of another checksum.
    #[error("{0:?} cannot be read from the zip")]
    Member(String, #[source] io::Error),
    /// It is shorter than the directory says, or longer.
    #[error("{0:?} is not as long as the zip's directory says")]
    Length(String),
}
