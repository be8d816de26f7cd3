//! A test's own folder, gone with it.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder with nothing in it.
#[derive(Debug)]
pub struct Folder(TempDir);

impl Folder {
    /// Makes one.
    #[expect(
        clippy::new_without_default,
        reason = "it makes something: that is no default"
    )]
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        self.0.path()
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and the folders above it.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// A file's text; empty if there is none.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The lines of a file.
    pub fn lines(&self, name: &str) -> Vec<String> {
        self.read(name).lines().map(str::to_owned).collect()
    }
}
