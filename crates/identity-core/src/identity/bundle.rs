//! Shapefile bundles: which files are one shapefile ([`members`]), and the key of what it holds ([`upload_key`]).
//!
//! A shapefile is several files of one name. An upload of it is known by all of their bytes: a corrected `.dbf` or a
//! dropped `.prj` is another upload, the same bytes in another folder, or in a zip, are the same one.

pub mod members;
pub mod upload_key;

pub use members::{Bundle, BundleError, Member};
pub use upload_key::{
    Form, KeyBytes, UploadKey, UploadKeyError, UploadKeyHasher, UploadKeyOptions,
};
