//! What a folder holds: its objects, and each entry that is none or cannot be told of.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use walkdir::WalkDir;

/// What a walk found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// An object: its key, and the file's absolute path.
    Object { key: String, path: PathBuf },
    /// No object, nor is anything below it.
    Ignored { path: PathBuf, why: Ignored },
}

/// Why an entry is no object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ignored {
    /// Its name begins with `.`, or is `__MACOSX`: left there by file managers and archivers.
    Hidden,
    /// A symbolic link to a folder.
    LinkedFolder,
    /// A pipe, socket or device.
    Special,
}

impl std::fmt::Display for Ignored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Hidden => "hidden",
            Self::LinkedFolder => "a link to a folder",
            Self::Special => "no regular file",
        })
    }
}

/// An entry that may be an object, or hold some, and that cannot be told of.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WalkError {
    /// The folder or the link cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A key is text.
    #[error("{path:?} has a name that is not UTF-8, which no key can hold: rename it")]
    NotUtf8 { path: PathBuf },
}

/// A walk through a folder: depth first, each folder's entries by the bytes of their names. Reads folders as it goes, and no
/// file.
#[derive(Debug)]
pub(crate) struct Walk {
    root: PathBuf,
    entries: walkdir::IntoIter,
}

impl Walk {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            entries: WalkDir::new(root).sort_by_file_name().into_iter(),
        }
    }

    /// What to tell of an entry; `None` for a folder that is entered.
    fn tell(&mut self, entry: walkdir::DirEntry) -> Option<Result<Entry, WalkError>> {
        let (name, mut kind) = (entry.file_name(), entry.file_type());
        let ignored = |why| {
            let path = entry.path().to_owned();
            Some(Ok(Entry::Ignored { path, why }))
        };
        if entry.depth() == 0 {
            return None;
        }
        let enters = kind.is_dir();
        if name.as_encoded_bytes().starts_with(b".") || name == "__MACOSX" {
            if enters {
                self.entries.skip_current_dir();
            }
            return ignored(Ignored::Hidden);
        }
        if name.to_str().is_none() {
            if enters {
                self.entries.skip_current_dir();
            }
            let path = entry.into_path();
            return Some(Err(WalkError::NotUtf8 { path }));
        }
        if enters {
            return None;
        }
        if kind.is_symlink() {
            match fs::metadata(entry.path()) {
                Ok(target) if target.is_dir() => return ignored(Ignored::LinkedFolder),
                Ok(target) => kind = target.file_type(),
                Err(source) => {
                    let path = entry.into_path();
                    return Some(Err(WalkError::Unreadable { path, source }));
                }
            }
        }
        if !kind.is_file() {
            return ignored(Ignored::Special);
        }
        let path = entry.into_path();
        let key = path.strip_prefix(&self.root).ok().and_then(Path::to_str);
        Some(match key {
            Some(key) => Ok(Entry::Object {
                key: key.to_owned(),
                path,
            }),
            None => Err(WalkError::NotUtf8 { path }),
        })
    }
}

impl Iterator for Walk {
    type Item = Result<Entry, WalkError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.entries.next()? {
                Ok(entry) => {
                    if let Some(told) = self.tell(entry) {
                        return Some(told);
                    }
                }
                Err(error) => {
                    let path = error.path().unwrap_or(&self.root).to_owned();
                    let source = error
                        .into_io_error()
                        .unwrap_or_else(|| io::Error::other("its links lead in a circle"));
                    return Some(Err(WalkError::Unreadable { path, source }));
                }
            }
        }
    }
}
