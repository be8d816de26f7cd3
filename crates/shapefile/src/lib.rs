//! Shapefiles as they lie in folders and zips: which files are one, and the key of their content.
//!
//! [`key_of_shapefile`] and [`key_in_folder`] read files, [`Archive`] reads a zip as it lies there. All read a thread ahead of
//! the hasher, in a few buffers that go round, and give no key of what changed meanwhile.

mod archive;
mod error;
mod files;
mod keyed;
mod read_ahead;
mod stamp;

pub use archive::{Archive, Layer};
pub use error::{ArchiveError, KeyError};
pub use files::{key_in_folder, key_of_shapefile};
pub use keyed::Keyed;
pub use stamp::Stamp;
