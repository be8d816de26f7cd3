//! `firstclaim key`: shapefiles, on their own, in folders and in zips → the upload keys of their content.

mod archive;
mod files;
mod read_ahead;

use std::{
    io,
    path::{Path, PathBuf},
};

use identity_core::{
    identity::bundle::{
        self, Bundle, BundleError, Member, UploadKey, UploadKeyError, UploadKeyOptions,
    },
    text::error_chain,
};
use serde::Serialize;

pub(crate) use files::key_of_shapefile;

use crate::{
    args::KeyArgs,
    failure::{Ended, Failure},
    folder::walk::{Entry, Walk, WalkError},
    output,
};

/// A shapefile's key, and the names of the members that it was made from, in their order.
#[derive(Debug)]
pub(crate) struct Keyed {
    pub(crate) key: UploadKey,
    pub(crate) members: Vec<String>,
    /// Suffixes that a whole shapefile has, and this one lacks.
    missing: Vec<&'static str>,
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyError {
    /// The path names something else than what has keys.
    #[error("expected a .shp, a .zip, or a folder of them")]
    Kind,
    /// A folder or zip that holds no shapefile, though it was named.
    #[error("there is no shapefile in it")]
    Empty,
    /// A name is hashed as text.
    #[error("its name is not UTF-8, which no key can be made from: rename it")]
    NotUtf8,
    /// It is not there, or may not be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// It was written to, replaced or removed while it was hashed.
    #[error("{} changed while it was read: is it still being written?", path.display())]
    Changed { path: PathBuf },
    /// An entry of a folder cannot be told of.
    #[error(transparent)]
    Walk(#[from] WalkError),
    /// Its members are no bundle.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// Its members give no key.
    #[error(transparent)]
    Hash(#[from] UploadKeyError),
    /// A zip, or what is in it.
    #[error(transparent)]
    Archive(#[from] archive::ArchiveError),
    /// The hasher has stopped, and tells why itself.
    #[error("the hasher has stopped")]
    HasherStopped,
}

/// One line of `--json`.
#[derive(Debug, Serialize)]
struct Line<'a> {
    path: &'a str,
    key: String,
    full_digest: String,
    members: &'a [String],
}

pub(crate) fn key(args: &KeyArgs) -> Result<Ended, Failure> {
    let options = UploadKeyOptions {
        namespace: args.namespace.clone(),
        algo_version: args.algo_version,
        key_bytes: args.key_bytes,
        form: args.form,
        index_sidecars: !args.no_index,
    };
    let mut ended = Ended::Well;
    for path in &args.paths {
        keys_at(path, &options, &mut |path, keyed| {
            let path = path.display().to_string();
            match keyed {
                Ok(keyed) => print(&path, &keyed, args.json)?,
                Err(error) => {
                    output::complain(&format!("{path}: {}", error_chain(&error)));
                    ended = Ended::WithFailures;
                }
            }
            Ok(())
        })?;
    }
    Ok(ended)
}

fn print(path: &str, keyed: &Keyed, json: bool) -> Result<(), Failure> {
    for suffix in &keyed.missing {
        output::complain(&format!(
            "warning: {path}: there is no {suffix} beside it; the key is of what there is"
        ));
    }
    if !json {
        output::line(&format!(
            "{}  {}",
            keyed.key,
            output::printable(path, usize::MAX)
        ))?;
        return Ok(());
    }
    let line = Line {
        path,
        key: keyed.key.key(),
        full_digest: keyed.key.full_digest(),
        members: &keyed.members,
    };
    let text = serde_json::to_string(&line)
        .map_err(|error| Failure::failed("a line cannot be written as JSON").because(error))?;
    output::line(&text)?;
    Ok(())
}

/// Where what was found goes: the path that it is called by, and its key.
type Tell<'a> = dyn FnMut(&Path, Result<Keyed, KeyError>) -> Result<(), Failure> + 'a;

/// Tells the key of every shapefile at this path, or why there is none.
fn keys_at(path: &Path, options: &UploadKeyOptions, tell: &mut Tell<'_>) -> Result<(), Failure> {
    match path.metadata() {
        Err(source) => {
            let path_read = path.to_owned();
            let unreadable = KeyError::Unreadable {
                path: path_read,
                source,
            };
            tell(path, Err(unreadable))
        }
        Ok(metadata) if metadata.is_dir() => keys_in_folder(path, options, tell),
        Ok(_) if is_zip(path) => match archive::keys(path, options, tell)? {
            0 => tell(path, Err(KeyError::Empty)),
            _ => Ok(()),
        },
        Ok(_) => tell(path, key_of_shapefile(path, options)),
    }
}

/// What is found in a folder.
enum Found {
    Shapefile(Result<Bundle, BundleError>),
    Zip,
}

fn keys_in_folder(
    root: &Path,
    options: &UploadKeyOptions,
    tell: &mut Tell<'_>,
) -> Result<(), Failure> {
    let (mut members, mut found, mut failed) = (Vec::new(), Vec::new(), false);
    for entry in Walk::new(root) {
        match entry {
            Ok(Entry::Object { key, path }) if is_zip(&path) => found.push((key, Found::Zip)),
            Ok(Entry::Object { key, .. }) if Member::at(key.as_str()).is_some() => {
                members.push(key);
            }
            Ok(Entry::Object { .. }) => {}
            Ok(Entry::Ignored { path, why }) => {
                tracing::debug!(path = %path.display(), %why, "no object");
            }
            Err(error) => {
                // A member that cannot be told of must not go missing from its bundle without a word.
                if let WalkError::Unreadable { path, .. } = &error
                    && let Some(key) = path.strip_prefix(root).ok().and_then(Path::to_str)
                    && Member::at(key).is_some()
                {
                    members.push(key.to_owned());
                }
                failed = true;
                tell(root, Err(error.into()))?;
            }
        }
    }
    let shapefiles = bundle::members::bundles(members.iter().map(String::as_str));
    found.extend(
        shapefiles
            .into_iter()
            .map(|(key, bundle)| (key, Found::Shapefile(bundle))),
    );
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut told = 0;
    for (key, found) in found {
        let path = root.join(&key);
        match found {
            Found::Zip => told += archive::keys(&path, options, tell)?,
            Found::Shapefile(bundle) => {
                told += 1;
                let keyed = bundle
                    .map_err(KeyError::from)
                    .and_then(|bundle| files::key(root, &bundle, options));
                tell(&path, keyed)?;
            }
        }
    }
    if told == 0 && !failed {
        tell(root, Err(KeyError::Empty))?;
    }
    Ok(())
}

fn is_zip(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("zip"))
}

impl Keyed {
    fn new(key: UploadKey, bundle: &Bundle, options: &UploadKeyOptions) -> Self {
        let members = bundle.members(options.index_sidecars);
        Self {
            key,
            members: members.map(|member| member.name().to_owned()).collect(),
            missing: bundle.missing().collect(),
        }
    }
}
