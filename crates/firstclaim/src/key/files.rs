//! Shapefiles in folders: which files belong to one, and reading them as one.

use std::{
    fs::{self, File},
    path::Path,
};

use identity_core::identity::bundle::{Bundle, UploadKeyOptions};

use super::{KeyError, Keyed, read_ahead};
use crate::stamp::Stamp;

/// The key of the shapefile whose `.shp` is at this path, with its companions from the same folder.
pub(crate) fn key_of_shapefile(path: &Path, options: &UploadKeyOptions) -> Result<Keyed, KeyError> {
    let name = path.file_name().unwrap_or_default();
    let name = name.to_str().ok_or(KeyError::NotUtf8)?;
    let folder = match path.parent() {
        Some(folder) if folder != "" => folder,
        _ => Path::new("."),
    };
    let listing = file_names(folder).map_err(unreadable(folder))?;
    let bundle = Bundle::find(name, listing.iter().map(String::as_str))?.ok_or(KeyError::Kind)?;
    key(folder, &bundle, options)
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
pub(super) fn key(
    root: &Path,
    bundle: &Bundle,
    options: &UploadKeyOptions,
) -> Result<Keyed, KeyError> {
    let key = read_ahead::key(options, |feed| {
        // All are opened before the first is read, and looked at again after the last: either the key is of files that were
        // all there at one moment, or there is none.
        let mut opened = Vec::new();
        for member in bundle.members(options.index_sidecars) {
            let path = root.join(member.path());
            let file = File::open(&path).map_err(unreadable(&path))?;
            let metadata = file.metadata().map_err(unreadable(&path))?;
            opened.push((member, path, file, Stamp::of(&metadata)));
        }
        for (member, path, file, stamp) in &opened {
            if !feed.member(member, stamp.len(), file, unreadable(path))? {
                return Err(KeyError::Changed { path: path.clone() });
            }
        }
        for (_, path, _, stamp) in &opened {
            unchanged(path, stamp)?;
        }
        Ok(())
    })?;
    Ok(Keyed::new(key, bundle, options))
}

/// The file at this path is still the one that had this stamp.
pub(super) fn unchanged(path: &Path, stamp: &Stamp) -> Result<(), KeyError> {
    match fs::metadata(path) {
        Ok(now) if Stamp::of(&now) == *stamp => Ok(()),
        _ => Err(KeyError::Changed {
            path: path.to_owned(),
        }),
    }
}

/// Says which path could not be read.
pub(super) fn unreadable(path: &Path) -> impl Fn(std::io::Error) -> KeyError {
    move |source| KeyError::Unreadable {
        path: path.to_owned(),
        source,
    }
}
