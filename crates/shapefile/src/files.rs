//! Shapefiles in folders: which files belong to one, and reading them as one.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use identity_core::identity::bundle::{Bundle, Member, UploadKeyOptions};

use crate::{
    error::KeyError,
    keyed::Keyed,
    read_ahead::{self, Feed, FeedError},
    stamp::Stamp,
};

/// The key of the shapefile whose `.shp` is at this path, with its companions from the same folder.
///
/// # Errors
///
/// [`KeyError`]: [`KeyError::Kind`] if the path names no `.shp`, else why the bundle that it names has no key.
pub fn key_of_shapefile(path: &Path, options: &UploadKeyOptions) -> Result<Keyed, KeyError> {
    let name = path.file_name().unwrap_or_default();
    let name = name.to_str().ok_or(KeyError::NotUtf8)?;
    let folder = match path.parent() {
        Some(folder) if folder != "" => folder,
        _ => Path::new("."),
    };
    let listing = file_names(folder).map_err(unreadable(folder))?;
    match Bundle::find(name, listing.iter().map(String::as_str))? {
        Some(bundle) => key_in_folder(folder, &bundle, options),
        None => {
            fs::metadata(path).map_err(unreadable(path))?;
            Err(KeyError::Kind)
        }
    }
}

/// The names of a folder's files, in any order. Links that lead nowhere are among them: to read them will fail, and should.
fn file_names(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let is_file = if kind.is_symlink() {
            fs::metadata(entry.path()).map_or(true, |target| target.is_file())
        } else {
            kind.is_file()
        };
        // No member of a bundle whose name is text has a name that is none.
        if is_file && let Ok(name) = entry.file_name().into_string() {
            names.push(name);
        }
    }
    Ok(names)
}

/// The key of this bundle, whose paths are within `root`.
///
/// # Errors
///
/// [`KeyError::Unreadable`] and [`KeyError::Changed`] name the file; [`KeyError::Hash`].
pub fn key_in_folder(
    root: &Path,
    bundle: &Bundle,
    options: &UploadKeyOptions,
) -> Result<Keyed, KeyError> {
    let opened = Opened::all(root, bundle, options)?;
    let key = read_ahead::key(options, |feed| read(&opened, feed))?;
    Ok(Keyed::new(key, bundle, options))
}

/// A member's file, and what it was when it was opened.
#[derive(Debug)]
struct Opened<'a> {
    member: &'a Member,
    path: PathBuf,
    file: File,
    stamp: Stamp,
}

impl<'a> Opened<'a> {
    fn all(
        root: &Path,
        bundle: &'a Bundle,
        options: &UploadKeyOptions,
    ) -> Result<Vec<Self>, KeyError> {
        let members = bundle.members(options.index_sidecars);
        members
            .map(|member| {
                let path = root.join(member.path());
                let file = File::open(&path).map_err(unreadable(&path))?;
                let stamp = Stamp::of(&file.metadata().map_err(unreadable(&path))?);
                Ok(Self {
                    member,
                    path,
                    file,
                    stamp,
                })
            })
            .collect()
    }
}

/// Reads the files, which were all opened before, and looks at all of them again after: either the key is of files that
/// were there together, or there is none.
fn read<'a>(opened: &[Opened<'a>], feed: &mut Feed<'a>) -> Result<(), KeyError> {
    for Opened {
        member,
        path,
        file,
        stamp,
    } in opened
    {
        feed.member(member, stamp.len(), file)
            .map_err(|error| match error {
                FeedError::Read(source) => unreadable(path)(source),
                FeedError::Length => KeyError::Changed { path: path.clone() },
                FeedError::HasherStopped => KeyError::HasherStopped,
            })?;
    }
    opened
        .iter()
        .try_for_each(|Opened { path, stamp, .. }| unchanged(path, stamp))
}

/// The file at this path is still the one that had this stamp.
pub(crate) fn unchanged(path: &Path, stamp: &Stamp) -> Result<(), KeyError> {
    match fs::metadata(path) {
        Ok(now) if Stamp::of(&now) == *stamp => Ok(()),
        _ => Err(KeyError::Changed {
            path: path.to_owned(),
        }),
    }
}

/// Says which path could not be read.
pub(crate) fn unreadable(path: &Path) -> impl Fn(std::io::Error) -> KeyError {
    move |source| KeyError::Unreadable {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests;
