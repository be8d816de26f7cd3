//! Tests of the upload key: the two encodings, what they tell apart, and what the hasher refuses.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::identity::bundle::{Bundle, members::SUFFIXES};

/// A folder: names and contents.
type Files = BTreeMap<String, Vec<u8>>;

fn files<const N: usize>(files: [(&str, &[u8]); N]) -> Files {
    files
        .map(|(name, bytes)| (name.to_owned(), bytes.to_owned()))
        .into()
}

fn options(form: Form) -> UploadKeyOptions {
    UploadKeyOptions {
        form,
        ..UploadKeyOptions::default()
    }
}

/// The key of the one bundle among the files, hashed in pieces of at most `piece` bytes.
fn key_in_pieces(files: &Files, options: &UploadKeyOptions, piece: usize) -> UploadKey {
    let shapes = files
        .keys()
        .find(|name| name.to_ascii_lowercase().ends_with(".shp"))
        .unwrap();
    let bundle = Bundle::find(shapes, files.keys().map(String::as_str))
        .unwrap()
        .unwrap();
    let mut hasher = UploadKeyHasher::new(options);
    for member in bundle.members(options.index_sidecars) {
        let content = &files[member.path()];
        hasher.member(member, content.len() as u64).unwrap();
        for bytes in content.chunks(piece) {
            hasher.update(bytes).unwrap();
        }
    }
    hasher.finish().unwrap()
}

fn key(files: &Files, options: &UploadKeyOptions) -> UploadKey {
    key_in_pieces(files, options, usize::MAX)
}

#[test]
fn a_reference_key_is_written_out_as_the_module_says() {
    let bundle = files([("A.shp", b"S"), ("A.DBF", b"D"), ("A.prj", b"")]);
    let expected = Sha256::digest(b"parcels-ingest:v1:a.dbf\0Da.prj\0a.shp\0S");
    let key = key(&bundle, &options(Form::Reference));
    assert_eq!(key.digest, <[u8; 32]>::from(expected));
}

#[test]
fn a_strict_key_is_written_out_as_the_module_says() {
    let bundle = files([("É.A.shp", b"SSS"), ("É.A.DBF", b"D"), ("É.A.qix", b"Q")]);
    let mut material = b"firstclaim/upload/strict/1\n".to_vec();
    let field = |material: &mut Vec<u8>, bytes: &[u8]| {
        material.extend([0, 0, 0, 0, 0, 0, 0]);
        material.push(u8::try_from(bytes.len()).unwrap());
        material.extend(bytes);
    };
    for bytes in [
        "ns",
        "7",
        "index-sidecars:in",
        "É.a.dbf",
        "D",
        "É.a.qix",
        "Q",
        "É.a.shp",
        "SSS",
    ] {
        field(&mut material, bytes.as_bytes());
    }
    let mut options = UploadKeyOptions {
        namespace: "ns".to_owned(),
        algo_version: 7,
        ..options(Form::Strict)
    };
    assert_eq!(
        key(&bundle, &options).digest,
        <[u8; 32]>::from(Sha256::digest(&material))
    );

    let mut material = b"firstclaim/upload/strict/1\n".to_vec();
    for bytes in [
        "ns",
        "7",
        "index-sidecars:out",
        "É.a.dbf",
        "D",
        "É.a.shp",
        "SSS",
    ] {
        field(&mut material, bytes.as_bytes());
    }
    options.index_sidecars = false;
    assert_eq!(
        key(&bundle, &options).digest,
        <[u8; 32]>::from(Sha256::digest(&material))
    );
}

#[test]
fn a_name_that_ends_in_a_capital_sigma_is_lowered_with_its_suffix() {
    // Python: "ΑΣ.shp".lower() ends in σ before its dot, "ΑΣ".lower() in ς.
    let bundle = files([("ΑΣ.shp", b"S")]);
    let expected = Sha256::digest("parcels-ingest:v1:ασ.shp\0S");
    assert_eq!(
        key(&bundle, &options(Form::Reference)).digest,
        <[u8; 32]>::from(expected)
    );
}

#[test]
fn a_key_is_a_prefix_of_the_digest_in_base64url() {
    let bundle = files([("a.shp", b"abc"), ("a.dbf", b"abc")]);
    let of = |bytes| {
        key(
            &bundle,
            &UploadKeyOptions {
                key_bytes: KeyBytes::new(bytes).unwrap(),
                ..UploadKeyOptions::default()
            },
        )
    };
    assert_eq!(of(12).key(), "Bnqg456TLjUa_Y6y");
    assert_eq!(of(12).to_string(), "Bnqg456TLjUa_Y6y");
    assert_eq!(of(1).key(), "Bg");
    assert_eq!(of(32).key().len(), 43);
    assert!(of(32).full_digest().starts_with("067aa0e39e932e351afd8eb2"));
    assert_eq!(of(32).full_digest(), of(1).full_digest());
    for refused in [0, 33, 255] {
        assert_eq!(KeyBytes::new(refused), None);
    }
}

/// docs/bundle-keys.md shows these two.
#[test]
fn bytes_that_swallow_the_next_member_are_one_key_under_reference_only() {
    let with_prj = files([
        ("roads.dbf", b"D"),
        ("roads.prj", b"P"),
        ("roads.shp", b"S"),
    ]);
    let without = files([("roads.dbf", b"Droads.prj\0P"), ("roads.shp", b"S")]);
    let both = |form| {
        [
            key(&with_prj, &options(form)),
            key(&without, &options(form)),
        ]
    };
    let [one, other] = both(Form::Reference);
    assert_eq!(one, other);
    let [one, other] = both(Form::Strict);
    assert_ne!(one, other);
}

#[test]
fn fields_that_run_together_are_one_key_under_reference_only() {
    let of = |form, namespace: &str, algo_version, name: &str| {
        let options = UploadKeyOptions {
            namespace: namespace.to_owned(),
            algo_version,
            ..options(form)
        };
        key(&files([(name, b"S")]), &options)
    };
    for (form, one_key) in [(Form::Reference, true), (Form::Strict, false)] {
        let one = of(form, "x", 1, "y:v2:a.shp");
        let other = of(form, "x:v1:y", 2, "a.shp");
        assert_eq!(one == other, one_key, "{form:?}");
    }
}

#[test]
fn leaving_indexes_out_is_written_down_under_strict_only() {
    let bundle = files([("a.shp", b"S"), ("a.dbf", b"D")]);
    let of = |form, index_sidecars| {
        let options = UploadKeyOptions {
            index_sidecars,
            ..options(form)
        };
        key(&bundle, &options)
    };
    assert_eq!(of(Form::Reference, true), of(Form::Reference, false));
    assert_ne!(of(Form::Strict, true), of(Form::Strict, false));
}

#[test]
fn an_index_made_anew_is_the_same_upload_only_where_indexes_are_left_out() {
    for form in Form::ALL {
        for suffix in [".sbn", ".SBX", ".qix", ".fix"] {
            let with = |bytes: &[u8], index_sidecars| {
                let bundle = files([("a.shp", b"S"), (&format!("a{suffix}"), bytes)]);
                let options = UploadKeyOptions {
                    index_sidecars,
                    ..options(form)
                };
                key(&bundle, &options)
            };
            assert_ne!(with(b"1", true), with(b"2", true), "{suffix}");
            assert_eq!(with(b"1", false), with(b"2", false), "{suffix}");
        }
    }
}

fn member(path: &str) -> Member {
    Member::at(path).unwrap()
}

#[test]
fn a_content_of_another_length_than_was_told_gives_no_key() {
    let length = |expected, got| UploadKeyError::Length {
        member: "a.shp".to_owned(),
        expected,
        got,
    };
    for form in Form::ALL {
        let mut hasher = UploadKeyHasher::new(&options(form));
        hasher.member(&member("a.shp"), 2).unwrap();
        hasher.update(b"S").unwrap();
        assert_eq!(hasher.clone().finish(), Err(length(2, 1)));
        assert_eq!(hasher.member(&member("a.shx"), 0), Err(length(2, 1)));
        assert_eq!(hasher.update(b"SS"), Err(length(2, 3)));
    }
    assert_eq!(
        length(2, 1).to_string(),
        r#""a.shp": expected 2 bytes, got 1"#
    );
    assert_eq!(
        length(2, 3).to_string(),
        r#""a.shp": expected 2 bytes, got at least 3"#
    );
}

#[test]
fn members_that_are_no_bundle_give_no_key() {
    let fresh = || UploadKeyHasher::new(&UploadKeyOptions::default());
    assert_eq!(fresh().finish(), Err(UploadKeyError::NoShapes));
    assert_eq!(fresh().update(b""), Err(UploadKeyError::NoMember));

    let mut dbf = fresh();
    dbf.member(&member("a.dbf"), 0).unwrap();
    assert_eq!(dbf.clone().finish(), Err(UploadKeyError::NoShapes));
    for next in ["a.cpg", "x/a.DBF", "b.shp", "A.shp"] {
        assert_eq!(
            dbf.member(&member(next), 0),
            Err(UploadKeyError::Order {
                previous: "a.dbf".to_owned(),
                next: next.to_owned()
            })
        );
    }

    let mut out = UploadKeyHasher::new(&UploadKeyOptions {
        index_sidecars: false,
        ..UploadKeyOptions::default()
    });
    assert_eq!(
        out.member(&member("a.qix"), 0),
        Err(UploadKeyError::IndexSidecar("a.qix".to_owned()))
    );
}

/// A bundle of some stem with a `.shp` and any of the others, each in some case.
fn bundle() -> impl Strategy<Value = Files> {
    let content = || prop::collection::vec(any::<u8>(), 0..20);
    let others = prop::collection::btree_map(0..SUFFIXES.len(), (any::<bool>(), content()), 0..9);
    ("[a-zA-ZÄäΣσ.]{0,4}[a-z]", others, content()).prop_map(|(stem, others, shapes)| {
        let mut files = Files::new();
        for (index, (upper, content)) in others {
            let suffix = if upper {
                SUFFIXES[index].to_uppercase()
            } else {
                SUFFIXES[index].to_owned()
            };
            files.insert(format!("{stem}{suffix}"), content);
        }
        if !files
            .keys()
            .any(|name| name.to_ascii_lowercase().ends_with(".shp"))
        {
            files.insert(format!("{stem}.shp"), shapes);
        }
        files
    })
}

fn form() -> impl Strategy<Value = Form> {
    prop::sample::select(Form::ALL.to_vec())
}

proptest! {
    #[test]
    fn a_key_depends_on_neither_folder_nor_order_nor_pieces(files in bundle(), form in form(), piece in 1usize..30) {
        let options = options(form);
        let expected = key(&files, &options);
        prop_assert_eq!(key_in_pieces(&files, &options, piece), expected);

        let moved: Files = files.iter().map(|(name, bytes)| (format!("else/where/{name}"), bytes.clone())).collect();
        prop_assert_eq!(key(&moved, &options), expected);

        let backwards: Vec<&str> = files.keys().rev().map(String::as_str).chain(["other.dbf", "readme"]).collect();
        let shapes = files.keys().find(|name| name.to_ascii_lowercase().ends_with(".shp")).unwrap();
        let again = Bundle::find(shapes, backwards).unwrap().unwrap();
        let forwards = Bundle::find(shapes, files.keys().map(String::as_str)).unwrap().unwrap();
        prop_assert_eq!(again, forwards);
    }

    #[test]
    fn a_key_depends_on_every_byte(files in bundle(), form in form(), at in any::<prop::sample::Index>(), flip in 1u8..) {
        let options = options(form);
        let before = key(&files, &options);
        let mut changed = files.clone();
        let Some(byte) = changed.values_mut().flatten().collect::<Vec<_>>().into_iter().nth(
            at.index(files.values().map(Vec::len).sum::<usize>().max(1))
        ) else {
            return Ok(());
        };
        *byte ^= flip;
        prop_assert_ne!(key(&changed, &options), before);
    }

    #[test]
    fn a_key_depends_on_every_member(files in bundle(), form in form(), at in any::<prop::sample::Index>()) {
        let options = options(form);
        let before = key(&files, &options);
        let others: Vec<&String> = files.keys().filter(|name| !name.to_ascii_lowercase().ends_with(".shp")).collect();
        if !others.is_empty() {
            let mut fewer = files.clone();
            fewer.remove(*at.get(&others));
            prop_assert_ne!(key(&fewer, &options), before);
        }
        let renamed: Files = files.iter().map(|(name, bytes)| (format!("x{name}"), bytes.clone())).collect();
        prop_assert_ne!(key(&renamed, &options), before);
    }

    #[test]
    fn namespace_and_version_part_keys(files in bundle(), form in form(), namespace in "[a-z]{1,5}", version in 2u64..) {
        let options = options(form);
        let before = key(&files, &options);
        let other = UploadKeyOptions { namespace, ..options.clone() };
        prop_assert_ne!(key(&files, &other), before);
        let other = UploadKeyOptions { algo_version: version, ..options };
        prop_assert_ne!(key(&files, &other), before);
    }

    #[test]
    fn a_strict_key_depends_on_where_a_content_ends(files in bundle(), from in any::<prop::sample::Index>()) {
        let options = options(Form::Strict);
        let before = key(&files, &options);
        // The last byte of one member becomes the first of the next that has one.
        let mut moved = files.clone();
        let names: Vec<String> = files.keys().cloned().collect();
        let index = from.index(names.len());
        let (Some(next), Some(byte)) = (names.get(index + 1), moved.get_mut(&names[index]).and_then(Vec::pop)) else {
            return Ok(());
        };
        moved.get_mut(next).unwrap().insert(0, byte);
        prop_assert_ne!(key(&moved, &options), before);
    }
}
