//! Tests of the vectors runner: what passes, and above all what does not.

use super::*;

fn file(scheme: &str, rows: &str) -> String {
    format!(r#"{{"scheme":"{scheme}","source":"here","vectors":[{rows}]}}"#)
}

/// The failures of one file, each as `name: got, expected`.
fn failures(scheme: &str, rows: &str) -> Vec<String> {
    let report = run(&file(scheme, rows)).unwrap();
    report
        .failures
        .into_iter()
        .map(
            |Failure {
                 name,
                 got,
                 expected,
             }| format!("{name}: {got} / {expected}"),
        )
        .collect()
}

const ID: &str = "bf221bd039a5f6ce6dd1a4750213bcdcea57ee4a881963c20d59c277d9b86461";

/// The published program's row "no params", with what it expects left out.
fn row(expects: &str) -> String {
    format!(
        r#"{{"name":"n","event":"parts","payload":{{"scheme":"s3","container":"b","raw_key":"k","version_token":"t"}},
            "params":{{}},"pipeline_version":"3.2.0"{expects}}}"#
    )
}

#[test]
fn a_row_passes_by_its_id_only() {
    assert_eq!(
        failures("reference", &row(&format!(r#","job_id":"{ID}""#))),
        [""; 0]
    );
    let other = ID.replace('b', "c");
    assert_eq!(
        failures("reference", &row(&format!(r#","job_id":"{other}""#))),
        [format!("n: {ID} / {other}")]
    );
    assert_eq!(
        failures("reference", &row(r#","job_id":"""#)),
        ["n:  / a job ID in the row"]
    );
}

#[test]
fn a_row_fails_by_its_canonical_parameters_too() {
    let with = |text: &str| row(&format!(r#","job_id":"{ID}","canonical_params":{text:?}"#));
    assert_eq!(
        failures("reference", &with(r#"{"_pipeline_version":"3.2.0"}"#)),
        [""; 0]
    );
    assert_eq!(failures("reference", &with("{}")).len(), 1);
}

#[test]
fn a_refusal_passes_where_one_is_expected_and_nowhere_else() {
    assert_eq!(
        failures("reference", &row(r#","refused":"x""#)),
        [format!("n: {ID} / refused: x")]
    );
    let tokenless = row(r#","refused":"x""#).replace(r#""t""#, r#""""#);
    assert_eq!(failures("reference", &tokenless), [""; 0]);
    let tokenless = row(&format!(r#","job_id":"{ID}""#)).replace(r#""t""#, "null");
    assert_eq!(failures("reference", &tokenless).len(), 1);
}

#[test]
fn a_row_that_expects_nothing_or_both_fails() {
    assert_eq!(failures("reference", &row("")).len(), 1);
    assert_eq!(
        failures(
            "reference",
            &row(&format!(r#","job_id":"{ID}","refused":"x""#))
        )
        .len(),
        1
    );
}

#[test]
fn a_row_of_another_shape_fails() {
    let id = format!(r#","job_id":"{ID}""#);
    for (broken, told) in [
        (row(&id).replace("\"parts\"", "\"s4\""), "event: expected"),
        (
            row(&id).replace("\"s3\"", "\"ftp\""),
            "payload.scheme: expected",
        ),
        (
            row(&id).replace("\"params\"", "\"parameters\""),
            "unknown field `parameters`",
        ),
        (
            row(&id).replace(",\"pipeline_version\":\"3.2.0\"", ""),
            "no \"pipeline_version\"",
        ),
        ("1".to_owned(), "invalid type"),
        ("{}".to_owned(), "no \"event\""),
    ] {
        let failures = failures("reference", &broken);
        assert!(
            failures.len() == 1 && failures[0].contains(told),
            "{failures:?}"
        );
        assert!(failures[0].ends_with("/ a request"), "{failures:?}");
    }
    assert!(failures("reference", "{}")[0].starts_with("row 1: "));
}

#[test]
fn a_refused_row_of_another_shape_fails_all_the_same() {
    for scheme in ["strict", "reference", "ingest"] {
        assert_eq!(
            failures(scheme, r#"{"event":"s4","refused":"x"}"#).len(),
            1,
            "{scheme}"
        );
        assert_eq!(failures(scheme, r#"{"refused":"x"}"#).len(), 1, "{scheme}");
    }
}

#[test]
fn what_is_no_vectors_file_is_an_error() {
    assert!(matches!(
        run(&file("reference", "")),
        Err(VectorsError::NoRows)
    ));
    assert!(
        matches!(run(&file("md5", "1")), Err(VectorsError::UnknownScheme(name)) if name == "md5")
    );
    for text in [
        "",
        "{}",
        "[]",
        r#"{"scheme":"strict","vectors":[],"rows":1}"#,
        r#"{"vectors":[1]}"#,
    ] {
        assert!(matches!(run(text), Err(VectorsError::Shape(_))), "{text}");
    }
}

#[test]
fn an_ingest_row_is_an_event_or_its_three_fields() {
    let id = "e7cb296bf24bf3e1ee3236fbc4c90f13e7c176bad54db12d61b6c7033fa4d703";
    let fields = format!(
        r#"{{"bucket":"geo-uploads","key":"parcels/county.shp","etag":"9b2cf5","job_id":"{id}"}}"#
    );
    let event = format!(
        r#"{{"event":"s3","payload":{{"s3":{{"bucket":{{"name":"geo-uploads"}},"object":
            {{"key":"parcels%2Fcounty.shp","eTag":"\"9b2cf5\"","versionId":"v"}}}}}},"job_id":"{id}"}}"#
    );
    assert_eq!(failures("ingest", &format!("{fields},{event}")), [""; 0]);
}

#[test]
fn a_strict_key_can_be_given_by_its_bytes() {
    let row = |key: &str, expects: &str| {
        format!(
            r#"{{"event":"parts","payload":{{"scheme":"gs","container":"b",{key},"token_kind":"generation","token":"1"}},
                "params":{{}},"pipeline_name":"p","pipeline_version":"1",{expects}}}"#
        )
    };
    let id = |key: &str| {
        let text = row(key, r#""refused":"""#);
        Request::parse(&text)
            .unwrap()
            .answer(Scheme::Strict)
            .unwrap()
            .job_id
    };
    assert_eq!(id(r#""key_hex":"6b""#), id(r#""key":"k""#));
    assert!(id(r#""key_hex":"ff""#).is_err());
    for key in [
        r#""key_hex":"f""#,
        r#""key_hex":"+f""#,
        r#""key_hex":"FF""#,
        r#""key":"k","key_hex":"6b""#,
        r#""account":null"#,
    ] {
        let failures = failures("strict", &row(key, r#""refused":"x""#));
        assert!(failures[0].ends_with("/ a request"), "{key}: {failures:?}");
    }
}
