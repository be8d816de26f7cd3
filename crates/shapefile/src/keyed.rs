//! A shapefile's key, and what it was made from.

use identity_core::identity::bundle::{Bundle, UploadKey, UploadKeyOptions};

/// A shapefile's key, and the names of the members that it was made from, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyed {
    /// The key.
    pub key: UploadKey,
    /// The members' names, without their folder.
    pub members: Vec<String>,
    /// Suffixes that a whole shapefile has, and this one lacks.
    pub missing: Vec<&'static str>,
}

impl Keyed {
    pub(crate) fn new(key: UploadKey, bundle: &Bundle, options: &UploadKeyOptions) -> Self {
        let members = bundle.members(options.index_sidecars);
        Self {
            key,
            members: members.map(|member| member.name().to_owned()).collect(),
            missing: bundle.missing().collect(),
        }
    }
}
