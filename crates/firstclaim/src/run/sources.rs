//! Where `run` takes its events from: event files, and folders in which every file is an object.

use std::path::{Path, PathBuf};

use host::settings::Settings;
use identity_core::{
    event::{Carriers, Item, Origin, ReadContext, Reading, StorageEvent},
    identity::ObjectAddress,
};

use crate::{
    failure::Failure,
    folder::{
        Folder, LocalObjects,
        walk::{Entry, Walk},
    },
    input,
};

/// The sources that the command line names, all of which are there.
#[derive(Debug)]
pub(crate) struct Sources {
    named: Vec<Source>,
    /// Files in a folder that are the claim store's, not objects.
    own: Vec<PathBuf>,
    /// What the events leave to configuration.
    settings: Settings,
}

#[derive(Debug)]
enum Source {
    File(PathBuf),
    Folder(Folder),
}

/// What a source holds.
#[derive(Debug)]
pub(crate) enum Found {
    /// An event, or what could not be read as one. The label says where it comes from.
    Item(Item, String),
    /// An entry of a folder that is no object.
    Ignored,
    /// An entry of a folder, or a file, that cannot be told.
    Failed(String),
}

impl Sources {
    /// Checks what is named. `own` are files that are never objects; `settings` say what events leave to configuration.
    pub(crate) fn open(
        paths: &[PathBuf],
        own: Vec<PathBuf>,
        settings: Settings,
    ) -> Result<Self, Failure> {
        let named = paths
            .iter()
            .map(|path| Source::open(path))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            named,
            own,
            settings,
        })
    }

    /// Whether a folder is among them.
    pub(crate) fn has_folders(&self) -> bool {
        self.named
            .iter()
            .any(|source| matches!(source, Source::Folder(_)))
    }

    /// Reads the objects of the folders.
    pub(crate) fn objects(&self) -> Result<LocalObjects, Failure> {
        let folders = self.named.iter().filter_map(|source| match source {
            Source::Folder(folder) => Some(folder.clone()),
            Source::File(_) => None,
        });
        LocalObjects::new(folders)
            .map_err(|error| Failure::usage("the folders cannot be used together").because(error))
    }

    /// Everything that the sources hold, in their order, found as it is asked for.
    pub(crate) fn find(self) -> impl Iterator<Item = Found> {
        let Self {
            named,
            own,
            settings,
        } = self;
        named
            .into_iter()
            .flat_map(move |source| -> Box<dyn Iterator<Item = Found>> {
                match source {
                    Source::File(path) => {
                        Box::new(events(&path, &settings.read_context()).into_iter())
                    }
                    Source::Folder(folder) => Box::new(objects(folder.walk(), folder, own.clone())),
                }
            })
    }
}

impl Source {
    /// A file or folder; `NAME=DIR` is a folder under another name than its own.
    fn open(path: &Path) -> Result<Self, Failure> {
        if input::is_stdin(path) {
            return Ok(Self::File(path.to_owned()));
        }
        let unusable = || Failure::usage(format!("{} cannot be used", path.display()));
        let (name, path) = match named_folder(path) {
            Some((name, folder)) if !path.exists() => (Some(name), folder),
            _ => (None, path),
        };
        let metadata = std::fs::metadata(path).map_err(|error| unusable().because(error))?;
        if metadata.is_dir() {
            let folder = Folder::open(path, name).map_err(|error| unusable().because(error))?;
            return Ok(Self::Folder(folder));
        }
        Ok(Self::File(path.to_owned()))
    }
}

fn named_folder(path: &Path) -> Option<(&str, &Path)> {
    let (name, folder) = path.to_str()?.split_once('=')?;
    let folder = Path::new(folder);
    (!name.is_empty() && !name.contains('/') && folder.is_dir()).then_some((name, folder))
}

fn events(path: &Path, context: &ReadContext<'_>) -> Vec<Found> {
    match input::events(path, context) {
        Ok(items) => items
            .into_iter()
            .map(|item| Found::Item(item, input::name(path)))
            .collect(),
        Err(failure) => vec![Found::Failed(failure.to_string())],
    }
}

fn objects(walk: Walk, folder: Folder, own: Vec<PathBuf>) -> impl Iterator<Item = Found> {
    walk.map(move |entry| match entry {
        Ok(Entry::Object { path, .. }) if own.contains(&path) => {
            tracing::debug!(path = %path.display(), "the claim store itself");
            Found::Ignored
        }
        Ok(Entry::Object { key, .. }) => {
            let address = folder.address(&key);
            let label = address.to_string();
            Found::Item(written(address), label)
        }
        Ok(Entry::Ignored { path, why }) => {
            tracing::debug!(path = %path.display(), %why, "no object");
            Found::Ignored
        }
        Err(error) => Found::Failed(identity_core::text::error_chain(&error)),
    })
}

/// The event of a file that lies in a folder. Its token is its digest, which the gate asks for once it knows that the
/// key is selected: nothing is hashed in vain.
fn written(address: ObjectAddress) -> Item {
    Item {
        carriers: Carriers::default(),
        origin: Origin::default().into(),
        redriven: None,
        reading: Reading::Event(Box::new(StorageEvent::of(address, None))),
    }
}
