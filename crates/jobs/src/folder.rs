//! A folder that one run of a command has for itself: what it leaves there goes with it.

use std::{fs, io, path::Path};

use tempfile::TempDir;

use crate::leftovers;

/// Where a command runs, and so what its relative paths mean. Its temporary folder (`TMPDIR`) is private to the run anyhow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkingFolder {
    /// Where this program runs: a contract's relative paths are those of whoever started it.
    Inherited,
    /// In the run's private folder. Where functions run, theirs can often not be written to, and outlives the run.
    Private,
}

/// A folder that only this user may enter, until this is dropped.
#[derive(Debug)]
pub(crate) struct RunFolder(TempDir);

impl RunFolder {
    /// A fresh one in this process's temporary folder.
    pub(crate) fn new() -> io::Result<Self> {
        let mut folder = tempfile::Builder::new();
        folder.prefix(&leftovers::prefix()).tempdir().map(Self)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // A process that was just killed may still finish the one call it is in, and so put a file into a folder that is
        // being emptied. It makes no second one.
        let removed = fs::remove_dir_all(self.path()).or_else(|_| fs::remove_dir_all(self.path()));
        if let Err(error) = removed
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(folder = %self.path().display(), %error, "a temporary folder stays behind");
        }
    }
}
