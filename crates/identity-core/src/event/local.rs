//! A local file as a [`StorageEvent`]. Pure: who walks the folder and hashes the file is the caller.

use std::{
    ffi::{OsStr, OsString},
    path::{Component, Path, PathBuf},
};

use super::{EventDetails, StorageEvent, error::excerpt};
use crate::identity::{ObjectAddress, ObjectKey, Provider, Refusal, TokenKind, VersionToken};

/// The event of one file.
///
/// `folder` is the name that stands for the folder: its own or a given one, not its path. `path` leads from the folder
/// to the file, and becomes the key with `/` between its parts. `sha256` is the digest of the file's bytes, 64
/// lower-case hex characters; `size` is in bytes.
///
/// # Errors
///
/// - [`LocalFileError::FolderName`]: the folder's name is empty, holds a `/` or is not UTF-8.
/// - [`LocalFileError::NotUtf8`]: the path is not UTF-8. Two such paths could be shown alike, so none is guessed at.
/// - [`LocalFileError::NotBelowFolder`]: the path is empty or absolute, or climbs with `..`.
/// - [`LocalFileError::NotADigest`]: `sha256` is not a SHA-256 digest.
/// - [`LocalFileError::Refused`]: identity refuses the digest as a token.
pub fn event(
    folder: impl AsRef<OsStr>,
    path: impl AsRef<Path>,
    sha256: &str,
    size: Option<u64>,
) -> Result<StorageEvent, LocalFileError> {
    let folder = folder.as_ref();
    let container = match folder.to_str() {
        Some(name) if !name.is_empty() && !name.contains('/') => name.to_owned(),
        _ => {
            return Err(LocalFileError::FolderName {
                got: folder.to_owned(),
            });
        }
    };
    let is_digest = sha256.len() == 64
        && sha256
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_digest {
        return Err(LocalFileError::NotADigest {
            got: excerpt(sha256),
        });
    }
    Ok(StorageEvent {
        address: ObjectAddress {
            provider: Provider::File,
            account: None,
            container,
            key: ObjectKey::verbatim(key(path.as_ref())?),
        },
        token: Some(VersionToken::new(TokenKind::Content, sha256)?),
        etag: None,
        details: EventDetails {
            envelope: Some("local file"),
            size,
            ..EventDetails::default()
        },
        unconfirmed: false,
        refused_by_reference: None,
    })
}

fn key(path: &Path) -> Result<String, LocalFileError> {
    let got = || path.to_owned();
    let mut key = String::new();
    for component in path.components() {
        let name = match component {
            Component::Normal(name) => name,
            Component::CurDir => continue,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(LocalFileError::NotBelowFolder { got: got() });
            }
        };
        if !key.is_empty() {
            key.push('/');
        }
        key.push_str(
            name.to_str()
                .ok_or_else(|| LocalFileError::NotUtf8 { got: got() })?,
        );
    }
    if key.is_empty() {
        return Err(LocalFileError::NotBelowFolder { got: got() });
    }
    Ok(key)
}

/// Why a local file has no event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LocalFileError {
    /// The folder's name cannot stand in a URI.
    #[error("the folder's name is {got:?}, expected a name in UTF-8 without `/`")]
    FolderName {
        /// The name.
        got: OsString,
    },
    /// The path is not UTF-8.
    #[error("the path {got:?} is not UTF-8: rename the file")]
    NotUtf8 {
        /// The path.
        got: PathBuf,
    },
    /// The path does not name a file below the folder.
    #[error("the path is {got:?}, expected one that leads from the folder to a file below it")]
    NotBelowFolder {
        /// The path.
        got: PathBuf,
    },
    /// The digest is not one.
    #[error("the digest is {got:?}, expected 64 lower-case hex characters")]
    NotADigest {
        /// The text, shortened.
        got: String,
    },
    /// Identity refuses the token.
    #[error("the file is refused")]
    Refused {
        /// The reason.
        #[from]
        source: Refusal,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

    #[test]
    fn a_file_is_named_by_its_folder_its_path_and_its_content() {
        let event = event("in", "a b/./东京+%20.shp", DIGEST, Some(5)).unwrap();
        assert_eq!(event.address.to_string(), "file://in/a b/东京+%20.shp");
        assert_eq!(event.address.key.raw(), "a b/东京+%20.shp");
        assert_eq!(
            event.token.unwrap().to_string(),
            format!("content:{DIGEST}")
        );
        assert_eq!(event.details.size, Some(5));
    }

    #[cfg(unix)]
    #[test]
    fn a_name_that_is_not_utf8_is_told_as_such() {
        use std::os::unix::ffi::OsStrExt as _;
        let name = OsStr::from_bytes(b"roads\xff.shp");
        assert_eq!(
            event("in", name, DIGEST, None).unwrap_err().to_string(),
            r#"the path "roads\xFF.shp" is not UTF-8: rename the file"#
        );
        assert!(matches!(
            event(name, "roads.shp", DIGEST, None),
            Err(LocalFileError::FolderName { .. })
        ));
    }

    #[test]
    fn a_path_that_leaves_the_folder_or_names_nothing_has_no_event() {
        for path in ["", ".", "/etc/passwd", "../a", "a/../b"] {
            assert!(
                matches!(
                    event("in", path, DIGEST, None),
                    Err(LocalFileError::NotBelowFolder { .. })
                ),
                "{path}"
            );
        }
        for folder in ["", "a/b"] {
            assert!(matches!(
                event(folder, "a", DIGEST, None),
                Err(LocalFileError::FolderName { .. })
            ));
        }
    }

    #[test]
    fn only_a_sha256_digest_is_a_content_token() {
        for digest in [
            "",
            "abc",
            &DIGEST.to_uppercase(),
            &DIGEST.replace('2', "\n"),
        ] {
            assert!(matches!(
                event("in", "a", digest, None),
                Err(LocalFileError::NotADigest { .. })
            ));
        }
    }
}
