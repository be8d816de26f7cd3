//! Rows of upload keys: a bundle's path, what the key depends on besides it, and the key that it must give.

use serde::{Deserialize, de::IgnoredAny};

use super::{Bundles, Checked, chain};
use crate::identity::{
    Scheme,
    bundle::{Form, KeyBytes, UploadKey, UploadKeyOptions},
};

/// Which bundle a row asks for, and under which options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadRequest {
    /// The path of its `.shp` in the folder of bundles.
    pub bundle: String,
    /// The file's scheme as the form, and the row's own.
    pub options: UploadKeyOptions,
}

/// What a bundle gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadAnswer {
    /// Its key.
    pub key: UploadKey,
    /// The names of the members that were hashed, in order.
    pub components: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: Option<String>,
    bundle: String,
    namespace: String,
    algo_version: u64,
    key_bytes: u8,
    #[serde(default = "yes")]
    index_sidecars: bool,
    components: Vec<String>,
    upload_key: String,
    full_digest: Option<String>,
}

const fn yes() -> bool {
    true
}

/// Whether a row is one of upload keys: it names a bundle.
pub(super) fn is_row(json_text: &str) -> bool {
    #[derive(Deserialize)]
    struct Marked {
        bundle: Option<IgnoredAny>,
    }
    serde_json::from_str::<Marked>(json_text).is_ok_and(|row| row.bundle.is_some())
}

/// The row's name, and whether it gives what it must.
pub(super) fn check(
    json_text: &str,
    scheme: Scheme,
    bundles: &mut Bundles<'_>,
) -> (Option<String>, Checked) {
    let row: Row = match serde_json::from_str(json_text) {
        Ok(row) => row,
        Err(error) => return (None, Err((chain(&error), "a request".to_owned()))),
    };
    let name = row.name.clone().unwrap_or_else(|| row.bundle.clone());
    (Some(name), check_row(&row, scheme, bundles))
}

fn check_row(row: &Row, scheme: Scheme, bundles: &mut Bundles<'_>) -> Checked {
    let form = match scheme {
        Scheme::Reference => Form::Reference,
        Scheme::Strict => Form::Strict,
        Scheme::Ingest => {
            return Err((scheme.to_string(), "scheme reference or strict".to_owned()));
        }
    };
    let key_bytes = KeyBytes::new(row.key_bytes).ok_or_else(|| {
        (
            row.key_bytes.to_string(),
            "key_bytes from 1 to 32".to_owned(),
        )
    })?;
    let request = UploadRequest {
        bundle: row.bundle.clone(),
        options: UploadKeyOptions {
            namespace: row.namespace.clone(),
            algo_version: row.algo_version,
            key_bytes,
            form,
            index_sidecars: row.index_sidecars,
        },
    };
    let answer = bundles(&request).map_err(|why| (why, row.upload_key.clone()))?;
    let same = |got: String, expected: &str| {
        if got == expected {
            Ok(())
        } else {
            Err((got, expected.to_owned()))
        }
    };
    same(answer.components.join(" "), &row.components.join(" "))?;
    same(answer.key.key(), &row.upload_key)?;
    match &row.full_digest {
        Some(expected) => same(answer.key.full_digest(), expected),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Failure, VectorsError, run, run_with_bundles};
    use super::*;
    use crate::identity::bundle::{Member, UploadKeyHasher};

    const ROW: &str = r#"{"bundle": "x/a.shp", "namespace": "ns", "algo_version": 3, "key_bytes": 2,
        "components": ["a.shp"], "upload_key": "-_8"}"#;

    fn file(scheme: &str, row: &str) -> String {
        format!(r#"{{"scheme": "{scheme}", "vectors": [{row}]}}"#)
    }

    fn hashed(request: &UploadRequest) -> UploadKey {
        let mut hasher = UploadKeyHasher::new(&request.options);
        hasher
            .member(&Member::at(request.bundle.as_str()).unwrap(), 0)
            .unwrap();
        hasher.finish().unwrap()
    }

    /// The failures of a row whose bundle is there.
    fn failures(scheme: &str, row: &str) -> Vec<Failure> {
        let report = run_with_bundles(&file(scheme, row), |request| {
            Ok(UploadAnswer {
                key: hashed(request),
                components: vec!["a.shp".to_owned()],
            })
        });
        report.unwrap().failures
    }

    /// The row with the key that the bundle has under this scheme.
    fn right(scheme: &str) -> String {
        let got = failures(scheme, ROW).remove(0).got;
        ROW.replace("-_8", &got)
    }

    #[test]
    fn a_row_passes_by_its_key_and_components() {
        for scheme in ["reference", "strict"] {
            assert_eq!(failures(scheme, &right(scheme)), []);
            assert_eq!(failures(scheme, ROW)[0].expected, "-_8");
            assert_eq!(failures(scheme, ROW)[0].name, "x/a.shp");
        }
        assert_ne!(right("reference"), right("strict"));
        let other = right("strict").replace(r#"["a.shp"]"#, r#"["a.dbf", "a.shp"]"#);
        let failed = failures("strict", &other).remove(0);
        assert_eq!(
            (failed.got.as_str(), failed.expected.as_str()),
            ("a.shp", "a.dbf a.shp")
        );
    }

    #[test]
    fn a_row_fails_by_each_thing_that_the_key_depends_on() {
        let row = right("strict");
        for (from, to) in [
            (r#""ns""#, r#""sn""#),
            (r#""algo_version": 3"#, r#""algo_version": 4"#),
            (r#""key_bytes": 2"#, r#""key_bytes": 3"#),
            ("x/a.shp", "x/b.shp"),
            (r#""namespace""#, r#""index_sidecars": false, "namespace""#),
            (r#""namespace""#, r#""full_digest": "00", "namespace""#),
        ] {
            let changed = row.replace(from, to);
            assert_ne!(changed, row);
            assert_eq!(failures("strict", &changed).len(), 1, "{changed}");
        }
    }

    #[test]
    fn a_row_of_another_shape_fails() {
        let row = right("strict");
        for (scheme, changed, told) in [
            ("ingest", row.clone(), "ingest"),
            (
                "strict",
                row.replace(r#""key_bytes": 2"#, r#""key_bytes": 0"#),
                "0",
            ),
            (
                "strict",
                row.replace(r#""namespace""#, r#""name_space""#),
                "name_space",
            ),
            (
                "strict",
                row.replace(r#""algo_version": 3,"#, ""),
                "algo_version",
            ),
            (
                "strict",
                row.replace(r#""upload_key""#, r#""job_id""#),
                "job_id",
            ),
        ] {
            let failures = failures(scheme, &changed);
            assert!(
                failures.len() == 1 && failures[0].got.contains(told),
                "{failures:?}"
            );
        }
    }

    #[test]
    fn a_bundle_that_is_not_there_fails() {
        let report = run_with_bundles(&file("strict", ROW), |_| Err("not there".to_owned()));
        let failures = report.unwrap().failures;
        assert_eq!((failures.len(), failures[0].got.as_str()), (1, "not there"));
    }

    #[test]
    fn rows_that_name_bundles_need_bundles() {
        assert!(matches!(
            run(&file("strict", ROW)),
            Err(VectorsError::NoBundles)
        ));
    }
}
