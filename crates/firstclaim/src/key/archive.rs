//! Shapefiles in zips: read from the zip as it lies there, one member after the other. Nothing is extracted.
//!
//! A member's path is the one in the zip's directory, with `\` read as `/`, as old archivers for Windows write it. Where
//! it leads is of no account. What is hashed of it is its name.
//!
//! What a hostile zip can cost: its directory may name at most [`MOST_MEMBERS`] members; contents are inflated a buffer at
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
    result::ZipError,
    unstable::read::ZipIterable,
};

use super::{
    KeyError, Keyed, Tell,
    files::{unchanged, unreadable},
    read_ahead::{self, FeedError},
};
use crate::{failure::Failure, stamp::Stamp};

/// The most members of shapefiles that one zip may hold.
const MOST_MEMBERS: usize = 100_000;

/// Deflate's own bound: 258 bytes from 2 bits.
const MOST_INFLATION: u64 = 1032;

/// Why a zip, or a member in it, cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    /// It is no zip, or a broken one.
    #[error("it cannot be read as a zip")]
    Broken(#[source] ZipError),
    /// More members than any honest zip holds.
    #[error("it holds more than {MOST_MEMBERS} members of shapefiles")]
    TooMany,
    /// Members of which several are made of the same bytes.
    #[error("its members are {inflated} bytes, more than {length} bytes of zip can hold")]
    Bomb { inflated: u64, length: u64 },
    /// A name is hashed as text.
    #[error("it holds {0:?}, whose name is not UTF-8, which no key can be made from")]
    NotUtf8(String),
    /// Only who has the password can read it.
    #[error("{0:?} is encrypted")]
    Encrypted(String),
    /// Neither stored nor deflated.
    #[error("{member:?} is compressed by {method:?}: expected deflate, or no compression")]
    Method {
        member: String,
        method: CompressionMethod,
    },
    /// A link, whose target is not told.
    #[error("{0:?} is a link")]
    Link(String),
    /// It is broken, or longer than the directory says, or of another checksum.
    #[error("{0:?} cannot be read from the zip")]
    Member(String, #[source] std::io::Error),
    /// It is shorter than the directory says, or longer.
    #[error("{0:?} is not as long as the zip's directory says")]
    Length(String),
}

/// A zip whose directory was read.
#[derive(Debug)]
struct Archive {
    path: PathBuf,
    stamp: Stamp,
    file: File,
    members: HashMap<String, ZipFileEntry<'static>>,
}

/// Tells the key of every shapefile in the zip. Returns how much was told.
pub(super) fn keys(
    path: &Path,
    options: &UploadKeyOptions,
    tell: &mut Tell<'_>,
) -> Result<usize, Failure> {
    let (mut archive, layers) = match open(path) {
        Ok(opened) => opened,
        Err(error) => {
            tell(path, Err(error))?;
            return Ok(1);
        }
    };
    let told = layers.len();
    for (layer, bundle) in layers {
        let keyed = bundle.map_err(KeyError::from);
        let keyed = keyed.and_then(|bundle| archive.key(&bundle, options));
        tell(&path.join(layer.trim_start_matches('/')), keyed)?;
    }
    Ok(told)
}

/// What the directory calls a shapefile, and its members or why they are no bundle.
type Layer = (String, Result<Bundle, BundleError>);

/// Reads the zip's directory: the shapefiles in it, by their paths.
fn open(path: &Path) -> Result<(Archive, Vec<Layer>), KeyError> {
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
    let archive = Archive {
        path: path.to_owned(),
        stamp,
        file,
        // Of two of one name neither is read: they are no bundle.
        members: entries.into_iter().collect(),
    };
    Ok((archive, layers))
}

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
    fn key(&mut self, bundle: &Bundle, options: &UploadKeyOptions) -> Result<Keyed, KeyError> {
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
