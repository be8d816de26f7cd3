//! Tests of shapefiles in zips: what is found, and zips that lie.

use std::{fs, io::Write as _};

use identity_core::text::error_chain;
use tempfile::TempDir;
use zip::write::{SimpleFileOptions, ZipWriter};

use super::*;

const DEFLATED: CompressionMethod = CompressionMethod::Deflated;
const STORED: CompressionMethod = CompressionMethod::Stored;

/// A zip of these entries; a name that ends in a slash is a folder's.
fn zip_of(entries: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut zip = ZipWriter::new(&mut bytes);
    for (name, content) in entries {
        let options = SimpleFileOptions::default().compression_method(method);
        if name.ends_with('/') {
            zip.add_directory(*name, options).unwrap();
        } else {
            zip.start_file(*name, options).unwrap();
            zip.write_all(content).unwrap();
        }
    }
    zip.finish().unwrap();
    bytes.into_inner()
}

/// Where the directory's entry of this name begins.
fn directory_entry(zip: &[u8], name: &str) -> usize {
    (0..zip.len())
        .find(|&at| {
            zip[at..].starts_with(b"PK\x01\x02") && zip[at + 46..].starts_with(name.as_bytes())
        })
        .unwrap()
}

/// Writes over a field of the directory's entry of this name.
fn patched(mut zip: Vec<u8>, name: &str, offset: usize, bytes: &[u8]) -> Vec<u8> {
    let at = directory_entry(&zip, name) + offset;
    zip[at..at + bytes.len()].copy_from_slice(bytes);
    zip
}

/// What is told of a zip: the paths within it, and the members or the error.
fn told(zip: &[u8]) -> Vec<(String, Result<Vec<String>, String>)> {
    let folder = tempfile::tempdir().unwrap();
    told_in(&folder, zip)
}

fn told_in(folder: &TempDir, zip: &[u8]) -> Vec<(String, Result<Vec<String>, String>)> {
    let path = folder.path().join("up.zip");
    fs::write(&path, zip).unwrap();
    let text = |error: KeyError| error_chain(&error);
    let (mut archive, layers) = match Archive::open(&path) {
        Ok(opened) => opened,
        Err(error) => return vec![(String::new(), Err(text(error)))],
    };
    let told = layers.into_iter().map(|(layer, bundle)| {
        let keyed = bundle
            .map_err(KeyError::from)
            .and_then(|bundle| archive.key(&bundle, &UploadKeyOptions::default()));
        (layer, keyed.map(|keyed| keyed.members).map_err(text))
    });
    told.collect()
}

/// The error that stands for the whole zip, or for its only shapefile.
fn refusal(zip: &[u8]) -> String {
    let mut told = told(zip);
    assert_eq!(told.len(), 1, "{told:?}");
    told.remove(0).1.unwrap_err()
}

const ROADS: [(&str, &[u8]); 3] = [
    ("roads.shp", b"shapes"),
    ("roads.dbf", b"table"),
    ("roads.shx", b""),
];

#[test]
fn a_zip_has_the_key_of_its_unzipped_members() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in ROADS {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let options = UploadKeyOptions::default();
    let loose = crate::key_of_shapefile(&folder.path().join("roads.shp"), &options).unwrap();
    for method in [STORED, DEFLATED] {
        let path = folder.path().join("roads.zip");
        fs::write(&path, zip_of(&ROADS, method)).unwrap();
        let (mut archive, layers) = Archive::open(&path).unwrap();
        let [(layer, bundle)] = &layers[..] else {
            panic!("{layers:?}");
        };
        assert_eq!(layer, "roads.shp");
        let keyed = archive.key(bundle.as_ref().unwrap(), &options).unwrap();
        assert_eq!(keyed, loose);
    }
}

#[test]
fn layers_are_told_one_by_one_and_what_archivers_add_is_left_out() {
    let zip = zip_of(
        &[
            ("data/", b""),
            ("data/roads.shp", b"1"),
            ("__MACOSX/data/._roads.shp", b"1"),
            ("data/.DS_Store", b""),
            ("data/roads.shp.xml", b""),
            ("other/deep/rivers.DBF", b"2"),
            ("other/deep/rivers.shp", b"2"),
            ("lakes.shp", b"3"),
            ("readme.txt", b"4"),
        ],
        DEFLATED,
    );
    let members = |names: &[&str]| Ok(names.iter().map(|&name| name.to_owned()).collect());
    assert_eq!(
        told(&zip),
        [
            ("data/roads.shp".to_owned(), members(&["roads.shp"])),
            ("lakes.shp".to_owned(), members(&["lakes.shp"])),
            (
                "other/deep/rivers.shp".to_owned(),
                members(&["rivers.DBF", "rivers.shp"])
            ),
        ]
    );
    assert_eq!(told(&zip_of(&[("readme.txt", b"4")], STORED)), []);
}

#[test]
fn backslashes_part_folders() {
    let zip = zip_of(
        &[("data\\roads.shp", b"1"), ("data\\roads.dbf", b"2")],
        STORED,
    );
    assert_eq!(
        told(&zip)[0].1.as_ref().unwrap(),
        &["roads.dbf", "roads.shp"]
    );
}

#[test]
fn a_path_that_leads_out_of_the_zip_is_only_a_name() {
    let zip = zip_of(
        &[("../../etc/roads.shp", b"1"), ("/abs/rivers.shp", b"2")],
        STORED,
    );
    let paths: Vec<_> = told(&zip)
        .into_iter()
        .map(|(path, keyed)| (path, keyed.is_ok()))
        .collect();
    assert_eq!(
        paths,
        [
            ("../../etc/roads.shp".to_owned(), true),
            ("/abs/rivers.shp".to_owned(), true)
        ]
    );
}

#[test]
fn names_that_differ_in_case_only_or_not_at_all_are_told() {
    let two = zip_of(&[("Roads.shp", b"1"), ("roads.shp", b"2")], STORED);
    let refused = refusal(&two);
    assert!(
        refused.contains("Roads.shp") && refused.contains("\"roads.shp\""),
        "{refused}"
    );
    let twice = patched(two, "Roads.shp", 46, b"roads.shp");
    assert!(refusal(&twice).contains("\"roads.shp\" and \"roads.shp\""));
}

#[test]
fn what_cannot_be_read_is_named() {
    let zip = || zip_of(&ROADS, DEFLATED);
    let encrypted = patched(zip(), "roads.dbf", 8, &[1, 0]);
    assert_eq!(refusal(&encrypted), "\"roads.dbf\" is encrypted");
    let bzip2 = patched(zip(), "roads.dbf", 10, &[12, 0]);
    let refused = refusal(&bzip2);
    assert!(
        refused.contains("roads.dbf") && refused.contains("deflate"),
        "{refused}"
    );
    let link = patched(zip(), "roads.dbf", 40, &0o120_777_u16.to_le_bytes());
    assert_eq!(refusal(&link), "\"roads.dbf\" is a link");
    let checksum = patched(zip(), "roads.dbf", 16, &[1, 2, 3, 4]);
    assert!(refusal(&checksum).starts_with("\"roads.dbf\" cannot be read from the zip: "));
    let not_utf8 = patched(zip(), "roads.dbf", 46, b"\xff");
    assert!(refusal(&not_utf8).contains("UTF-8"));
}

#[test]
fn a_member_of_another_size_than_its_directory_says_has_no_key() {
    for method in [STORED, DEFLATED] {
        for size in [0_u32, 4, 6, 100] {
            let lies = patched(zip_of(&ROADS, method), "roads.dbf", 24, &size.to_le_bytes());
            let refused = refusal(&lies);
            assert!(
                refused.starts_with("\"roads.dbf\" "),
                "{method:?} {size}: {refused}"
            );
        }
    }
}

#[test]
fn a_zip_that_claims_more_than_it_can_hold_is_not_inflated() {
    let zeros = vec![0; 10_000_000];
    let honest = zip_of(&[("a.shp", &zeros)], DEFLATED);
    assert!(honest.len() < 20_000);
    assert!(told(&honest)[0].1.is_ok());
    let lies = patched(honest, "a.shp", 24, &u32::MAX.wrapping_sub(1).to_le_bytes());
    let refused = refusal(&lies);
    assert!(refused.contains("4294967294 bytes"), "{refused}");
}

#[test]
fn a_broken_zip_is_told_as_one() {
    let whole = zip_of(&ROADS, DEFLATED);
    for broken in [
        &b""[..],
        b"PK",
        b"no zip at all",
        &whole[..whole.len() - 10],
        &whole[..30],
    ] {
        assert!(
            refusal(broken).starts_with("it cannot be read as a zip: "),
            "{broken:?}"
        );
    }
}

#[test]
fn mutated_zips_give_a_key_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let whole = zip_of(&ROADS, DEFLATED);
    for at in 0..whole.len() {
        for byte in [0, 1, 0x7f, 0xff] {
            let mut zip = whole.clone();
            zip[at] = byte;
            // It neither panics nor waits for ever.
            told_in(&folder, &zip);
        }
    }
}

#[test]
fn a_zip_that_changes_between_opening_and_the_end_gives_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let [path, other] = ["up.zip", "other.zip"].map(|name| folder.path().join(name));
    for path in [&path, &other] {
        fs::write(path, zip_of(&ROADS, DEFLATED)).unwrap();
    }
    let (mut archive, layers) = Archive::open(&path).unwrap();
    let bundle = layers.into_iter().next().unwrap().1.unwrap();
    fs::rename(&other, &path).unwrap();
    assert!(matches!(
        archive.key(&bundle, &UploadKeyOptions::default()),
        Err(KeyError::Changed { .. })
    ));
}
