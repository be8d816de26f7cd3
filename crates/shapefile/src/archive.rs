//! Shapefiles in zips: read from the zip as it lies there, one member after the other. Nothing is extracted.
//!
//! A member's path is the one in the zip's directory, with `\` read as `/`, as old archivers for Windows write it. Where
//! it leads is of no account. What is hashed of it is its name.
//!
//! What a hostile zip can cost: its directory may name at most 100,000 members of shapefiles; contents are inflated a buffer at
//! a time; and all of them together have at most [`MOST_INFLATION`] times the zip's own length, which no zip exceeds
//! that does not use the same bytes for several members.

use std::{
    collections::HashMap,
    fs::File,
    io::{BufReader, ErrorKind},
    path::{Path, PathBuf},
};

use identity_core::identity::bundle::{
    Bundle, BundleError, Member, UploadKeyOptions, members::bundles,
};
use zip::{
    CompressionMethod,
    read::{Config, ZipFileEntry, ZipReadOptions},
    unstable::read::ZipIterable,
};

use crate::{
    error::{ArchiveError, KeyError, MOST_MEMBERS},
    files::{unchanged, unreadable},
    keyed::Keyed,
    read_ahead::{self, FeedError},
    stamp::Stamp,
};

/// Deflate's own bound: 258 bytes from 2 bits.
const MOST_INFLATION: u64 = 1032;

/// A zip whose directory was read.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    stamp: Stamp,
    file: File,
    members: HashMap<String, ZipFileEntry<'static>>,
}

/// What the directory calls a shapefile, and its members or why they are no bundle.
pub type Layer = (String, Result<Bundle, BundleError>);

/// The members of shapefiles that the directory names.
fn members(file: &File) -> Result<Vec<(String, ZipFileEntry<'static>)>, ArchiveError> {
    let mut zip = ZipIterable::try_new(BufReader::new(file), Config::default())
        .map_err(ArchiveError::Broken)?;
    let mut members = Vec::new();
    for entry in zip.files().map_err(ArchiveError::Broken)? {
        let entry = entry.map_err(ArchiveError::Broken)?;
        let name = String::from_utf8_lossy(entry.name_raw());
        let path = name.replace('\\', "/");
        if Member::at(path.as_str()).is_none() {
            continue;
        }
        if std::str::from_utf8(entry.name_raw()).is_err() {
            return Err(ArchiveError::NotUtf8(path));
        }
        if members.len() == MOST_MEMBERS {
            return Err(ArchiveError::TooMany);
        }
        members.push((path, entry));
    }
    Ok(members)
}

impl Archive {
    /// Reads the zip's directory: the shapefiles in it, in the order of their paths.
    ///
    /// # Errors
    ///
    /// [`KeyError::Unreadable`], and [`KeyError::Archive`] where the directory cannot be read or believed.
    pub fn open(path: &Path) -> Result<(Self, Vec<Layer>), KeyError> {
        let file = File::open(path).map_err(unreadable(path))?;
        let stamp = Stamp::of(&file.metadata().map_err(unreadable(path))?);
        let entries = members(&file)?;
        let layers = bundles(entries.iter().map(|(name, _)| name.as_str()));
        let inflated = entries
            .iter()
            .fold(0_u64, |sum, (_, entry)| sum.saturating_add(entry.size()));
        if inflated > stamp.len().saturating_mul(MOST_INFLATION) {
            let length = stamp.len();
            return Err(ArchiveError::Bomb { inflated, length }.into());
        }
        let archive = Self {
            path: path.to_owned(),
            stamp,
            file,
            // Of two of one name neither is read: they are no bundle.
            members: entries.into_iter().collect(),
        };
        Ok((archive, layers))
    }

    /// The key of one of the zip's shapefiles. Each can be asked for once.
    ///
    /// # Errors
    ///
    /// [`KeyError::Archive`] names the member that cannot be read; [`KeyError::Changed`] says that the zip is not the one
    /// any more that was opened; [`KeyError::Hash`].
    pub fn key(&mut self, bundle: &Bundle, options: &UploadKeyOptions) -> Result<Keyed, KeyError> {
        let mut entries = Vec::new();
        for member in bundle.members(options.index_sidecars) {
            let path = member.path().to_owned();
            // Each member is of one bundle, so it was not taken before.
            let Some(entry) = self.members.remove(&path) else {
                return Err(ArchiveError::Member(path, ErrorKind::NotFound.into()).into());
            };
            if entry.is_symlink() {
                return Err(ArchiveError::Link(path).into());
            }
            if entry.encrypted() {
                return Err(ArchiveError::Encrypted(path).into());
            }
            let method = entry.compression();
            if !matches!(
                method,
                CompressionMethod::Stored | CompressionMethod::Deflated
            ) {
                return Err(ArchiveError::Method {
                    member: path,
                    method,
                }
                .into());
            }
            entries.push((member, entry));
        }
        let key = read_ahead::key(options, |feed| {
            let mut zip = &self.file;
            for (member, entry) in entries {
                let path = || member.path().to_owned();
                let length = entry.size();
                let content = entry
                    .with_reader(&mut zip, ZipReadOptions::new())
                    .map_err(|error| ArchiveError::Member(path(), error.into()))?;
                feed.member(member, length, content)
                    .map_err(|error| match error {
                        FeedError::Read(source) => ArchiveError::Member(path(), source).into(),
                        FeedError::Length => ArchiveError::Length(path()).into(),
                        FeedError::HasherStopped => KeyError::HasherStopped,
                    })?;
            }
            unchanged(&self.path, &self.stamp)
        })?;
        Ok(Keyed::new(key, bundle, options))
    }
}

#[cfg(test)]
mod tests;
