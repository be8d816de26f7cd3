//! Store URLs: which claim store a command works on.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use identity_core::claim::{ClaimStore, memory::MemoryStore};
use provider_sql::SqliteStore;

use crate::failure::Failure;

/// A parsed `--store`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    /// One file, shared by any number of processes.
    Sqlite(PathBuf),
    /// This process's memory.
    Memory,
}

impl StoreUrl {
    /// Reads `sqlite:PATH` or `memory:`.
    pub(crate) fn parse(url: &str) -> Result<Self, Failure> {
        match url.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(PathBuf::from(path))),
            Some(("memory", "")) => Ok(Self::Memory),
            _ => Err(Failure::usage(format!(
                "the store {url:?} is not known: expected sqlite:PATH or memory:"
            ))),
        }
    }

    /// The files that the store is made of, by their full paths.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let Self::Sqlite(path) = self else {
            return Vec::new();
        };
        let (parent, Some(name)) = (path.parent().unwrap_or(Path::new("")), path.file_name())
        else {
            return Vec::new();
        };
        let parent = if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            parent
        };
        let Ok(parent) = parent.canonicalize() else {
            return Vec::new();
        };
        // https://www.sqlite.org/tempfiles.html
        ["", "-wal", "-shm", "-journal"]
            .iter()
            .map(|suffix| {
                let mut file = name.to_owned();
                file.push(suffix);
                parent.join(file)
            })
            .collect()
    }

    /// Opens the store, making it if there is none.
    pub(crate) async fn open(&self) -> Result<Arc<dyn ClaimStore>, Failure> {
        match self {
            Self::Sqlite(path) => open_sqlite(path).await,
            Self::Memory => Ok(Arc::new(MemoryStore::default())),
        }
    }

    /// Whether there is such a store already.
    pub(crate) fn exists(&self) -> bool {
        match self {
            Self::Sqlite(path) => path.exists(),
            Self::Memory => true,
        }
    }

    /// Opens a store that must be there: looking at claims makes no store.
    pub(crate) async fn open_existing(&self) -> Result<Arc<dyn ClaimStore>, Failure> {
        match self {
            Self::Sqlite(path) if !path.exists() => Err(Failure::usage(format!(
                "there is no claim store at {}",
                path.display()
            ))),
            Self::Sqlite(path) => open_sqlite(path).await,
            Self::Memory => Err(Failure::usage(
                "the store memory: lasts only as long as one command, so it has no claims to show",
            )),
        }
    }
}

async fn open_sqlite(path: &Path) -> Result<Arc<dyn ClaimStore>, Failure> {
    match SqliteStore::open(path, SqliteStore::LOCK_WAIT).await {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) => Err(Failure::failed("the claim store cannot be opened").because(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_its_store() {
        assert_eq!(
            StoreUrl::parse("sqlite:a/b.db").unwrap(),
            StoreUrl::Sqlite("a/b.db".into())
        );
        assert_eq!(StoreUrl::parse("memory:").unwrap(), StoreUrl::Memory);
        for url in ["", "a.db", "sqlite:", "memory:x", "mysql://x"] {
            assert!(StoreUrl::parse(url).is_err(), "{url}");
        }
    }
}
