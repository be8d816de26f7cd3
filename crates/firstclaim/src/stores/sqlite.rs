//! `sqlite:PATH`: one file, shared by any number of processes.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use identity_core::claim::ClaimStore;
use provider_sql::SqliteStore;

use super::{Store, unopened};
use crate::failure::Failure;

#[derive(Debug)]
struct Sqlite {
    path: PathBuf,
}

pub(super) fn read(_: &str, path: &str) -> Result<Box<dyn Store>, Failure> {
    if path.is_empty() {
        return Err(Failure::usage(
            "the store's URL names no file: expected sqlite:PATH",
        ));
    }
    let path = PathBuf::from(path);
    Ok(Box::new(Sqlite { path }))
}

#[async_trait]
impl Store for Sqlite {
    fn files(&self) -> Vec<PathBuf> {
        let path = &self.path;
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

    async fn open(&self) -> Result<Arc<dyn ClaimStore>, Failure> {
        let store = SqliteStore::open(&self.path, SqliteStore::LOCK_WAIT).await;
        Ok(Arc::new(store.map_err(unopened)?))
    }

    async fn open_if_there(&self) -> Result<Option<Arc<dyn ClaimStore>>, Failure> {
        if !self.path.exists() {
            return Ok(None);
        }
        self.open().await.map(Some)
    }

    fn missing(&self) -> String {
        format!("there is no claim store at {}", self.path.display())
    }
}
