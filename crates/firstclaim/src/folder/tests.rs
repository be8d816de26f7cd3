//! Tests of local folders as an object store.

use std::{os::unix::fs::symlink, sync::Arc};

use identity_core::object::conformance;
use proptest::prelude::*;
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;

use super::{
    walk::{Entry, WalkError},
    *,
};

/// SHA-256 of nothing and of `abc` (FIPS 180-2, appendix B.1).
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// A folder named `data` with these files, in a folder with a file `secret` beside it.
fn folder(files: &[(&str, &str)]) -> (TempDir, Folder) {
    let outer = tempfile::tempdir().unwrap();
    fs::write(outer.path().join("secret"), "abc").unwrap();
    let root = outer.path().join("data");
    fs::create_dir(&root).unwrap();
    for (key, text) in files {
        let path = root.join(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let folder = Folder::open(&root, None).unwrap();
    (outer, folder)
}

fn store(folder: &Folder) -> LocalObjects {
    LocalObjects::new([folder.clone()]).unwrap()
}

fn version(folder: &Folder, key: &str, digest: &str) -> ObjectVersion {
    ObjectVersion {
        address: folder.address(key),
        token: VersionToken::new(TokenKind::Content, digest).unwrap(),
    }
}

async fn digest(folder: &Folder, key: &str) -> Option<String> {
    let head = store(folder).head(&folder.address(key)).await.unwrap();
    head.map(|head| head.token.to_string())
}

/// Why the whole stream cannot be read.
async fn read_error(folder: &Folder, object: &ObjectVersion) -> Option<ObjectError> {
    let mut stream = match store(folder).read(object).await {
        Ok(stream) => stream,
        Err(error) => return Some(error),
    };
    let error = stream.read_to_end(&mut Vec::new()).await.err()?;
    Some(*error.into_inner().unwrap().downcast().unwrap())
}

/// The walk as lines: keys, ignored paths with the reason, errors.
fn lines(folder: &Folder) -> Vec<String> {
    let relative = |path: &Path| {
        let relative = path.strip_prefix(&folder.root).unwrap();
        relative.to_string_lossy().into_owned()
    };
    folder
        .walk()
        .map(|told| match told {
            Ok(Entry::Object { key, path }) => {
                assert_eq!(path, folder.root.join(&key));
                key
            }
            Ok(Entry::Ignored { path, why }) => format!("{}: {why}", relative(&path)),
            Err(WalkError::Unreadable { path, .. }) => format!("{}: unreadable", relative(&path)),
            Err(WalkError::NotUtf8 { path }) => format!("{}: not UTF-8", relative(&path)),
        })
        .collect()
}

#[tokio::test]
async fn a_file_s_version_is_the_digest_of_its_bytes() {
    let (_outer, folder) = folder(&[("a/b c.txt", "abc"), ("empty", "")]);
    let head = store(&folder)
        .head(&folder.address("a/b c.txt"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(head.token.to_string(), format!("content:{ABC}"));
    assert_eq!(head.size, 3);
    assert_eq!(
        digest(&folder, "empty").await,
        Some(format!("content:{EMPTY}"))
    );
    assert_eq!(
        folder.address("a/b c.txt").to_string(),
        "file://data/a/b c.txt"
    );
}

/// A folder, and a program that writes files into it.
struct Written {
    _outer: TempDir,
    folder: Folder,
}

impl Written {
    fn path(&self, address: &ObjectAddress) -> PathBuf {
        let key = OsStr::from_bytes(address.key.exact_bytes());
        self.folder.root.join(key)
    }
}

#[async_trait]
impl conformance::Subject for Written {
    fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::new(store(&self.folder))
    }
    fn container(&self) -> ObjectAddress {
        self.folder.address("")
    }
    fn missing_container(&self) -> ObjectAddress {
        ObjectAddress {
            container: "nowhere".to_owned(),
            ..self.container()
        }
    }
    fn can_hold(&self, key: &[u8]) -> bool {
        !key.split(|byte| *byte == b'/')
            .any(|segment| matches!(segment, b"" | b"." | b".."))
    }
    fn page(&self) -> usize {
        100
    }
    async fn put(&self, address: &ObjectAddress, content: &[u8]) {
        let path = self.path(address);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    async fn delete(&self, address: &ObjectAddress) {
        fs::remove_file(self.path(address)).unwrap();
    }
}

#[tokio::test]
async fn a_folder_conforms() {
    let (outer, folder) = folder(&[]);
    let written = Written {
        _outer: outer,
        folder,
    };
    let failures = conformance::run(&written).await;
    assert!(failures.is_empty(), "{failures:#?}");
}

/// What a listing of this prefix has, by keys and sizes.
async fn listed(folder: &Folder, prefix: &str) -> Result<Vec<(String, u64)>, ObjectError> {
    let most = NonZeroU32::new(100).unwrap();
    let listed = store(folder).list(&folder.address(prefix), most).await?;
    let told = listed.into_iter();
    Ok(told
        .map(|entry| (entry.address.key.display().into_owned(), entry.size))
        .collect())
}

#[tokio::test]
async fn a_listing_has_what_a_head_finds_and_nothing_that_leaves_the_folder() {
    let (outer, folder) = folder(&[("in/a.shp", "abc"), ("in/a.d/inner", "x")]);
    let within = folder.root.join("in");
    symlink("a.shp", within.join("a.link")).unwrap();
    symlink("nowhere", within.join("a.dangling")).unwrap();
    symlink(&within, within.join("a.folder")).unwrap();
    symlink(&within, folder.root.join("linked")).unwrap();
    fs::write(outer.path().join("a.secret"), "abc").unwrap();
    let expected = [("in/a.link".to_owned(), 3), ("in/a.shp".to_owned(), 3)];
    assert_eq!(listed(&folder, "in/a.").await.unwrap(), expected);
    for prefix in [
        "linked/a.",
        "../a.",
        "in/../in/a.",
        "in//a.",
        "/in/a.",
        "in/a.shp/a",
        "a\0/b",
    ] {
        assert_eq!(listed(&folder, prefix).await.unwrap(), [], "{prefix:?}");
    }
    let circle = within.join("a.circle");
    symlink(&circle, &circle).unwrap();
    let told = listed(&folder, "in/a.").await;
    assert!(
        matches!(told, Err(ObjectError::Unavailable { .. })),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_folder_that_is_not_there_any_more_lists_nothing_but_an_error() {
    let (outer, folder) = folder(&[("a.shp", "abc")]);
    fs::rename(&folder.root, outer.path().join("elsewhere")).unwrap();
    let told = listed(&folder, "a.").await;
    assert!(
        matches!(told, Err(ObjectError::Unavailable { .. })),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_file_of_many_chunks_is_read_whole() {
    let text = "0123456789abcdef".repeat(3 * CHUNK / 16 + 1);
    let (_outer, folder) = folder(&[("large", &text)]);
    let head = store(&folder)
        .head(&folder.address("large"))
        .await
        .unwrap()
        .unwrap();
    let mut whole = Sha256::new();
    whole.update(&text);
    assert_eq!(head.token.value(), to_hex(&whole.finalize().into()));
    assert_eq!(head.size, text.len() as u64);

    let object = ObjectVersion {
        address: folder.address("large"),
        token: head.token,
    };
    let mut read = Vec::new();
    let mut stream = store(&folder).read(&object).await.unwrap();
    stream.read_to_end(&mut read).await.unwrap();
    assert!(read == text.as_bytes());
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
}

#[tokio::test]
async fn another_version_is_told_at_the_latest_where_the_stream_ends() {
    let (_outer, folder) = folder(&[("a", "abc")]);
    assert!(
        read_error(&folder, &version(&folder, "a", ABC))
            .await
            .is_none()
    );
    let etag = ObjectVersion {
        token: VersionToken::new(TokenKind::ETag, ABC).unwrap(),
        ..version(&folder, "a", ABC)
    };
    for object in [
        version(&folder, "a", EMPTY),
        version(&folder, "missing", ABC),
        version(&folder, "../secret", ABC),
        etag,
    ] {
        let error = read_error(&folder, &object).await;
        assert!(
            matches!(error, Some(ObjectError::Changed)),
            "{object:?}: {error:?}"
        );
    }

    // Overwritten between the opening and the end.
    let mut stream = store(&folder)
        .read(&version(&folder, "a", ABC))
        .await
        .unwrap();
    fs::write(folder.root.join("a"), "abd").unwrap();
    assert!(stream.read_to_end(&mut Vec::new()).await.is_err());
}

#[tokio::test]
async fn what_is_no_object_of_the_folder_is_not_there() {
    let (outer, folder) = folder(&[("a", "abc"), ("b/c", "abc")]);
    symlink(outer.path(), folder.root.join("out")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(folder.root.join("pipe"))
        .status();
    assert!(made.unwrap().success());
    let long = "x".repeat(300);
    for key in [
        "missing",
        "b",
        "a/c",
        "../secret",
        "b/../a",
        "b/../../secret",
        "./a",
        "/a",
        "b//c",
        "b/c/",
        "",
        "..",
        "a\0",
        "out/secret",
        "out",
        "pipe",
        &long,
    ] {
        assert_eq!(digest(&folder, key).await, None, "{key:?}");
    }
    let secret = outer.path().join("secret");
    assert_eq!(digest(&folder, secret.to_str().unwrap()).await, None);
    assert_eq!(digest(&folder, "a").await, Some(format!("content:{ABC}")));
}

#[tokio::test]
async fn a_folder_that_is_gone_does_not_say_that_its_objects_are() {
    let (outer, folder) = folder(&[("a", "abc")]);
    fs::rename(&folder.root, outer.path().join("elsewhere")).unwrap();
    let objects = store(&folder);
    let head = objects.head(&folder.address("a")).await;
    assert!(
        matches!(head, Err(ObjectError::Unavailable { .. })),
        "{head:?}"
    );
    let error = read_error(&folder, &version(&folder, "a", ABC)).await;
    assert!(
        matches!(error, Some(ObjectError::Unavailable { .. })),
        "{error:?}"
    );
}

#[tokio::test]
async fn other_stores_and_other_folders_are_not_available() {
    let (_outer, folder) = folder(&[("a", "abc")]);
    let s3 = ObjectAddress {
        provider: Provider::S3,
        ..folder.address("a")
    };
    let other = ObjectAddress {
        container: "other".into(),
        ..folder.address("a")
    };
    for (address, cause) in [
        (s3, "this build reads only files on this machine"),
        (
            other,
            "it lies in a folder called \"other\", and the folders that were given are [\"data\"]: name the folder beside \
             the events, as in `firstclaim run - other=DIR`",
        ),
    ] {
        let error = store(&folder).head(&address).await.unwrap_err();
        assert_eq!(error.to_string(), format!("{address} cannot be read"));
        assert_eq!(
            std::error::Error::source(&error).unwrap().to_string(),
            cause
        );
    }
}

#[test]
fn a_file_that_changes_while_it_is_read_has_no_digest() {
    let (_outer, folder) = folder(&[("a", "abc")]);
    let cancelled = CancellationToken::new();
    let digest = |write: Option<&str>| {
        let (file, opened) = folder.open_object(b"a").unwrap().unwrap();
        if let Some(text) = write {
            fs::write(folder.root.join("a"), text).unwrap();
        }
        settled_digest(file, &opened, &cancelled).unwrap()
    };
    assert_eq!(digest(None), Some(ABC.to_owned()));
    assert_eq!(digest(Some("abcd")), None);
    assert_eq!(digest(Some("")), None);
}

#[test]
fn a_write_is_seen_though_size_and_time_were_set_back() {
    let (_outer, folder) = folder(&[("a", "abc")]);
    let path = folder.root.join("a");
    let before = fs::metadata(&path).unwrap();
    assert!(Stamp::of(&before) == Stamp::of(&fs::metadata(&path).unwrap()));
    // Times move by the tick of the file system's clock, so the first writes may go unseen.
    let begun = std::time::Instant::now();
    while Stamp::of(&before) == Stamp::of(&fs::metadata(&path).unwrap()) {
        assert!(begun.elapsed().as_secs() < 60, "no write is seen");
        fs::write(&path, "abd").unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(before.modified().unwrap()).unwrap();
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_file_that_never_settles_cannot_be_read() {
    let (_outer, folder) = folder(&[]);
    // Its size is said to be 0, which it is not.
    symlink("/proc/self/stat", folder.root.join("stat")).unwrap();
    let error = store(&folder)
        .head(&folder.address("stat"))
        .await
        .unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("still being written"), "{cause}");
}

#[test]
fn a_digest_that_nobody_waits_for_is_given_up() {
    let (_outer, folder) = folder(&[("a", "abc")]);
    let cancelled = CancellationToken::new();
    assert!(folder.digest(b"a", &cancelled).unwrap().is_some());
    cancelled.cancel();
    let error = folder.digest(b"a", &cancelled).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::Interrupted);
}

#[test]
fn a_walk_is_sorted_and_tells_of_everything() {
    let (outer, folder) = folder(&[
        ("b.txt", ""),
        ("a/2", ""),
        ("a/10", ""),
        ("a.txt", ""),
        ("B", ""),
        ("é/ü", ""),
        (".DS_Store", ""),
        (".git/config", ""),
        ("__MACOSX/x", ""),
        ("deep/er/.keep", ""),
    ]);
    symlink(outer.path().join("secret"), folder.root.join("link")).unwrap();
    symlink(outer.path(), folder.root.join("loop")).unwrap();
    symlink("nowhere", folder.root.join("dangling")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(folder.root.join("pipe"))
        .status();
    assert!(made.unwrap().success());
    assert_eq!(
        lines(&folder),
        [
            ".DS_Store: hidden",
            ".git: hidden",
            "B",
            "__MACOSX: hidden",
            "a/10",
            "a/2",
            "a.txt",
            "b.txt",
            "dangling: unreadable",
            "deep/er/.keep: hidden",
            "link",
            "loop: a link to a folder",
            "pipe: no regular file",
            "é/ü",
        ]
    );
}

#[tokio::test]
async fn a_linked_file_is_an_object_with_the_bytes_it_points_to() {
    let (outer, folder) = folder(&[]);
    symlink(outer.path().join("secret"), folder.root.join("link")).unwrap();
    assert_eq!(
        digest(&folder, "link").await,
        Some(format!("content:{ABC}"))
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_utf_8_is_an_error_of_its_own() {
    let (_outer, folder) = folder(&[("ok", "")]);
    let name = |bytes: &[u8]| {
        folder
            .root
            .join(std::ffi::OsString::from_vec(bytes.to_vec()))
    };
    fs::write(name(b"bad\xff"), "").unwrap();
    fs::create_dir(name(b"dir\xfe")).unwrap();
    fs::write(name(b"dir\xfe/x"), "").unwrap();
    assert_eq!(
        lines(&folder),
        ["bad\u{fffd}: not UTF-8", "dir\u{fffd}: not UTF-8", "ok"]
    );
}

#[test]
fn a_folder_that_cannot_be_read_is_told_and_the_rest_is_walked() {
    let (_outer, folder) = folder(&[("a", ""), ("b/x", ""), ("c", "")]);
    let mut walk = folder.walk();
    assert!(matches!(walk.next(), Some(Ok(Entry::Object { key, .. })) if key == "a"));
    fs::remove_dir_all(folder.root.join("b")).unwrap();
    match walk.next() {
        Some(Err(WalkError::Unreadable { path, .. })) => assert_eq!(path, folder.root.join("b")),
        told => panic!("{told:?}"),
    }
    // `c` was listed with `a`; it is a file still.
    assert!(matches!(walk.next(), Some(Ok(Entry::Object { key, .. })) if key == "c"));
    assert!(walk.next().is_none());
}

#[test]
fn a_folder_has_its_own_name_or_the_given_one() {
    let (outer, folder) = folder(&[("a", "")]);
    assert_eq!(folder.name, "data");
    let dotted = Folder::open(&folder.root.join("../data/."), None).unwrap();
    assert_eq!(dotted, folder);
    let named = Folder::open(&folder.root, Some("scenes")).unwrap();
    assert_eq!(named.address("a").to_string(), "file://scenes/a");

    for (path, name) in [(&folder.root, Some("")), (&folder.root, Some("a/b"))] {
        let error = Folder::open(path, name).unwrap_err();
        assert!(matches!(error, FolderError::Name { .. }), "{error:?}");
    }
    let error = Folder::open(Path::new("/"), None).unwrap_err();
    assert!(matches!(error, FolderError::Name { .. }), "{error:?}");
    for path in ["data/a", "missing"] {
        let error = Folder::open(&outer.path().join(path), None).unwrap_err();
        assert!(matches!(error, FolderError::Unusable { .. }), "{error:?}");
    }
}

#[test]
fn two_folders_of_one_name_are_refused() {
    let (first, second) = (folder(&[]), folder(&[]));
    let error = LocalObjects::new([first.1.clone(), second.1]).unwrap_err();
    assert!(matches!(error, FolderError::SameName { .. }), "{error:?}");
    assert!(LocalObjects::new([first.1.clone(), first.1]).is_ok());
}

proptest! {
    #[test]
    fn no_key_leads_out_of_its_folder(
        segments in prop::collection::vec(
            prop_oneof![Just("..".to_owned()), Just(".".to_owned()), Just(String::new()),
                        Just("in".to_owned()), Just("out".to_owned()), "[a\\\\\0é ]{0,3}"],
            0..6)
    ) {
        let (outer, folder) = folder(&[("in/in/in/a", "")]);
        symlink(outer.path(), folder.root.join("out")).unwrap();
        symlink("../..", folder.root.join("in/out")).unwrap();
        let key = segments.join("/");
        if let Some(path) = folder.path(key.as_bytes()).unwrap() {
            // The folder that the file would be in, with every link followed.
            let parent = fs::canonicalize(path.parent().unwrap()).unwrap();
            prop_assert!(parent.starts_with(&folder.root), "{key:?}: {parent:?}");
            prop_assert_eq!(path.strip_prefix(&folder.root).unwrap().to_str(), Some(key.as_str()));
        }
    }

    #[test]
    fn every_walked_key_is_the_object_s(
        names in prop::collection::btree_set("[a-z é\\\\\n?#%+]{1,8}", 1..8)
    ) {
        let (_outer, folder) = folder(&[]);
        for name in &names {
            fs::write(folder.root.join(name), name).unwrap();
        }
        let keys = lines(&folder);
        prop_assert!(keys.iter().eq(&names));
        for key in keys {
            let found = folder.digest(key.as_bytes(), &CancellationToken::new()).unwrap();
            let mut hasher = Sha256::new();
            hasher.update(&key);
            prop_assert_eq!(found, Some((to_hex(&hasher.finalize().into()), key.len() as u64)));
        }
    }
}
