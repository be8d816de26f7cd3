//! Tests of reading shapefiles in folders: which files count, and files that change or cannot be read.

use std::os::unix::{ffi::OsStrExt as _, fs::symlink};

use identity_core::identity::bundle::BundleError;
use tempfile::TempDir;

use super::*;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn key_at(folder: &TempDir, name: &str) -> Result<Keyed, KeyError> {
    key_of_shapefile(&folder.path().join(name), &UploadKeyOptions::default())
}

fn members(folder: &TempDir, name: &str) -> Vec<String> {
    key_at(folder, name).unwrap().members
}

#[test]
fn a_shapefile_is_read_with_its_companions_and_nothing_else() {
    let folder = folder(&[
        ("a.shp", "S"),
        ("a.DBF", "D"),
        ("a.qix", "Q"),
        ("b.dbf", "D"),
        ("a.shp.xml", "X"),
        ("a.1.prj", "P"),
    ]);
    fs::create_dir(folder.path().join("a.prj")).unwrap();
    let keyed = key_at(&folder, "a.shp").unwrap();
    assert_eq!(keyed.members, ["a.DBF", "a.qix", "a.shp"]);
    assert_eq!(keyed.missing, [".shx"]);

    let without = UploadKeyOptions {
        index_sidecars: false,
        ..UploadKeyOptions::default()
    };
    let keyed = key_of_shapefile(&folder.path().join("a.shp"), &without).unwrap();
    assert_eq!(keyed.members, ["a.DBF", "a.shp"]);
}

#[test]
fn a_link_to_a_file_is_that_file_and_a_dangling_one_gives_no_key() {
    let folder = folder(&[("a.shp", "S"), ("elsewhere", "D")]);
    let before = key_at(&folder, "a.shp").unwrap().key;
    symlink("elsewhere", folder.path().join("a.dbf")).unwrap();
    assert_eq!(members(&folder, "a.shp"), ["a.dbf", "a.shp"]);
    assert_ne!(key_at(&folder, "a.shp").unwrap().key, before);

    symlink("nowhere", folder.path().join("a.prj")).unwrap();
    assert!(matches!(
        key_at(&folder, "a.shp"),
        Err(KeyError::Unreadable { path, .. }) if path.ends_with("a.prj")
    ));
}

#[test]
fn what_is_no_shapefile_has_no_key() {
    let folder = folder(&[
        ("a.dbf", "D"),
        ("a.shp.xml", "X"),
        ("Roads.shp", "R"),
        ("roads.shp", "r"),
    ]);
    fs::create_dir(folder.path().join("b.shp")).unwrap();
    for name in ["a.dbf", "a.shp.xml", "b.shp"] {
        assert!(
            matches!(key_at(&folder, name), Err(KeyError::Kind)),
            "{name}"
        );
    }
    assert!(matches!(
        key_at(&folder, "a.shp"),
        Err(KeyError::Unreadable { path, .. }) if path.ends_with("a.shp")
    ));
    assert!(matches!(
        key_at(&folder, "roads.shp"),
        Err(KeyError::Bundle(BundleError::CaseClash { first, second }))
            if first == "Roads.shp" && second == "roads.shp"
    ));
    let not_utf8 = std::ffi::OsStr::from_bytes(b"a\xff.shp");
    let path = folder.path().join(not_utf8);
    fs::write(&path, "S").unwrap();
    let refused = key_of_shapefile(&path, &UploadKeyOptions::default());
    assert!(matches!(refused, Err(KeyError::NotUtf8)));
}

#[test]
fn a_file_that_is_longer_than_it_was_gives_no_key() {
    let folder = folder(&[("a.dbf", "D")]);
    // Says that it is empty, and is not.
    symlink("/proc/self/status", folder.path().join("a.shp")).unwrap();
    assert!(matches!(
        key_at(&folder, "a.shp"),
        Err(KeyError::Changed { path }) if path.ends_with("a.shp")
    ));
}

#[test]
fn a_file_that_is_replaced_or_removed_or_written_is_not_unchanged() {
    let folder = folder(&[("a.shp", "S"), ("other", "S")]);
    let path = folder.path().join("a.shp");
    let stamp = || Stamp::of(&fs::metadata(&path).unwrap());

    let before = stamp();
    unchanged(&path, &before).unwrap();
    fs::rename(folder.path().join("other"), &path).unwrap();
    assert!(matches!(
        unchanged(&path, &before),
        Err(KeyError::Changed { .. })
    ));

    let before = stamp();
    fs::write(&path, "SS").unwrap();
    assert!(unchanged(&path, &before).is_err());

    let before = stamp();
    fs::remove_file(&path).unwrap();
    assert!(unchanged(&path, &before).is_err());
}

#[test]
fn files_that_change_between_opening_and_the_end_give_no_key() {
    let folder = folder(&[("a.shp", "S"), ("a.dbf", "D"), ("other", "D")]);
    let options = UploadKeyOptions::default();
    let bundle = Bundle::find("a.shp", ["a.shp", "a.dbf"]).unwrap().unwrap();
    let opened = Opened::all(folder.path(), &bundle, &options).unwrap();
    read_ahead::key(&options, |feed| read(&opened, feed)).unwrap();

    let opened = Opened::all(folder.path(), &bundle, &options).unwrap();
    fs::rename(folder.path().join("other"), folder.path().join("a.dbf")).unwrap();
    assert!(matches!(
        read_ahead::key(&options, |feed| read(&opened, feed)),
        Err(KeyError::Changed { path }) if path.ends_with("a.dbf")
    ));
}
