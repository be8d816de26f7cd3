//! `firstclaim key`: shapefiles, on their own, in folders and in zips → the upload keys of their content.

use std::path::Path;

use identity_core::{
    identity::bundle::{self, Bundle, BundleError, Member, UploadKeyOptions},
    text::error_chain,
};
use serde::Serialize;
use shapefile::{Archive, Keyed, key_in_folder, key_of_shapefile};

use crate::{
    args::KeyArgs,
    failure::{Ended, Failure},
    folder::walk::{Entry, Walk, WalkError},
    output,
};

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
enum KeyError {
    /// A folder or zip that holds no shapefile, though it was named.
    #[error("there is no shapefile in it")]
    Empty,
    /// An entry of a folder cannot be told of.
    #[error(transparent)]
    Walk(#[from] WalkError),
    /// A shapefile, or the zip that it lies in.
    #[error(transparent)]
    Shapefile(#[from] shapefile::KeyError),
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
        output::line(&format!("{}  {path}", keyed.key))?;
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
            let unreadable = shapefile::KeyError::Unreadable {
                path: path_read,
                source,
            };
            tell(path, Err(unreadable.into()))
        }
        Ok(metadata) if metadata.is_dir() => keys_in_folder(path, options, tell),
        Ok(_) if is_zip(path) => match keys_in_zip(path, options, tell)? {
            0 => tell(path, Err(KeyError::Empty)),
            _ => Ok(()),
        },
        Ok(_) => tell(
            path,
            key_of_shapefile(path, options).map_err(KeyError::from),
        ),
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
            Found::Zip => told += keys_in_zip(&path, options, tell)?,
            Found::Shapefile(bundle) => {
                told += 1;
                let keyed = bundle
                    .map_err(shapefile::KeyError::from)
                    .and_then(|bundle| key_in_folder(root, &bundle, options));
                tell(&path, keyed.map_err(KeyError::from))?;
            }
        }
    }
    if told == 0 && !failed {
        tell(root, Err(KeyError::Empty))?;
    }
    Ok(())
}

/// Tells the key of every shapefile in the zip. Returns how much was told.
fn keys_in_zip(
    path: &Path,
    options: &UploadKeyOptions,
    tell: &mut Tell<'_>,
) -> Result<usize, Failure> {
    let (mut archive, layers) = match Archive::open(path) {
        Ok(opened) => opened,
        Err(error) => {
            tell(path, Err(error.into()))?;
            return Ok(1);
        }
    };
    let told = layers.len();
    for (layer, bundle) in layers {
        let keyed = bundle
            .map_err(shapefile::KeyError::from)
            .and_then(|bundle| archive.key(&bundle, options));
        let path = path.join(layer.trim_start_matches('/'));
        tell(&path, keyed.map_err(KeyError::from))?;
    }
    Ok(told)
}

fn is_zip(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("zip"))
}
