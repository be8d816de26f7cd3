//! Tests of the contract as a whole.

use std::error::Error as _;

use super::*;
use crate::identity::Refusal;

const HEAD: &str = "name = 'scenes'\nversion = '3.2.0'\nscheme = 'strict'\n";

fn error(toml: &str) -> ContractError {
    Contract::parse(toml).unwrap_err()
}

#[test]
fn a_whole_contract_is_read() {
    let text = r#"
        name    = "scenes"
        version = "3.2.0"
        scheme  = "reference"
        [params]
        dst_crs = "EPSG:3857"
        tile_px = 512
        tol = 0.1
        [select]
        include = ["**/*.shp"]
        exclude = ["tmp/**"]
        [job]
        exec = ["ingest", "--in={path}"]
        permanent = [65, 66]
        timeout_seconds = 60
    "#;
    let contract = Contract::parse(text).unwrap();
    assert_eq!((contract.name(), contract.version()), ("scenes", "3.2.0"));
    assert_eq!(contract.scheme(), Scheme::Reference);
    assert_eq!(
        contract.deriver().canonical_params(),
        Some(
            r#"{"_pipeline_version":"3.2.0","dst_crs":"EPSG:3857","tile_px":512,"tol":"0.100000"}"#
        )
    );
    assert!(contract.select().selects("in/a.dbf"));
    let Work::Exec(exec) = contract.job().unwrap().work() else {
        panic!("{:?}", contract.job())
    };
    assert_eq!(exec.permanent(), [65, 66]);
    assert_eq!(contract.digest(), hex::sha256_hex(text.as_bytes()));
}

#[test]
fn the_digest_is_over_the_whole_file_and_the_job_has_no_part_in_the_id() {
    let one = Contract::parse(&format!("{HEAD}[job]\nexec = ['a']")).unwrap();
    let two = Contract::parse(&format!("{HEAD}[job]\nexec = ['b']")).unwrap();
    assert_ne!(one.digest(), two.digest());
    assert_eq!(one.params().digest(), two.params().digest());
}

#[test]
fn the_contract_of_a_bare_scheme_has_no_job() {
    for scheme in Scheme::ALL {
        let contract = Contract::default_for(scheme);
        assert_eq!(contract.scheme(), scheme);
        assert_eq!((contract.name(), contract.version()), ("default", "0.0.0"));
        assert!(contract.job().is_none());
    }
    let file = "name = 'default'\nversion = '0.0.0'\nscheme = 'strict'";
    assert_eq!(
        Contract::default_for(Scheme::Strict)
            .deriver()
            .canonical_params(),
        Contract::parse(file).unwrap().deriver().canonical_params(),
    );
}

#[test]
fn each_of_the_three_is_required() {
    for key in ["name", "version", "scheme"] {
        let without: String = HEAD
            .lines()
            .filter(|line| !line.starts_with(key))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(
            error(&without).to_string(),
            format!("the key {key:?} is missing in the contract")
        );
    }
}

#[test]
fn an_unknown_key_names_its_table_and_the_nearest_known_one() {
    for (toml, message) in [
        (
            "parms = {}",
            r#"unknown key "parms" in the contract, the nearest known one is "params""#,
        ),
        (
            "[select]\nincludes = []",
            r#"unknown key "includes" in [select], the nearest known one is "include""#,
        ),
        (
            "[job]\nexec = ['a']\ntimeout = 1",
            r#"unknown key "timeout" in [job], the nearest known one is "timeout_seconds""#,
        ),
    ] {
        assert_eq!(error(&format!("{HEAD}{toml}")).to_string(), message);
    }
}

#[test]
fn a_wrong_type_says_what_it_got() {
    for (toml, message) in [
        ("params = 1", "params: expected a table, got an integer"),
        (
            "[select]\ninclude = 'x'",
            "select.include: expected a list, got a string",
        ),
        (
            "[select]\nexclude = ['x', 2]",
            "select.exclude[1]: expected a string, got an integer",
        ),
        (
            "[job]\nexec = 'echo'",
            "job.exec: expected a list, got a string",
        ),
        (
            "[job]\nexec = ['a']\npermanent = [1.5]",
            "job.permanent[0]: expected an integer, got a float",
        ),
        (
            "[job]\nexec = ['a']\ntimeout_seconds = true",
            "job.timeout_seconds: expected an integer, got a boolean",
        ),
    ] {
        assert_eq!(error(&format!("{HEAD}{toml}")).to_string(), message);
    }
    let version = "name = 'x'\nversion = 3.2\nscheme = 'strict'";
    assert_eq!(
        error(version).to_string(),
        "version: expected a string, got a float"
    );
}

#[test]
fn a_name_or_version_is_a_line_of_visible_text() {
    let contract = |name: &str| format!("name = \"{name}\"\nversion = '1'\nscheme = 'strict'");
    assert!(matches!(
        error(&contract("")),
        ContractError::Blank { key: "name" }
    ));
    assert!(matches!(
        error(&contract("  ")),
        ContractError::Blank { key: "name" }
    ));
    assert!(matches!(
        error(&contract("a\\nb")),
        ContractError::ControlCharacter { key: "name", .. }
    ));
}

#[test]
fn an_unknown_scheme_names_the_known_ones() {
    let error = error("name = 'x'\nversion = '1'\nscheme = 'Strict'");
    assert_eq!(
        error.to_string(),
        "scheme: expected strict, reference or ingest, got \"Strict\""
    );
}

#[test]
fn parameters_that_the_scheme_refuses_stop_the_contract() {
    let refused = |error: ContractError| match error {
        ContractError::Params(ParamsError::Refused(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    };
    let inexact = "[params]\nn = 9007199254740992";
    assert_eq!(
        refused(error(&format!("{HEAD}{inexact}"))),
        Refusal::InexactInteger {
            at: "n".into(),
            got: "9007199254740992".into()
        }
    );
    let reference = HEAD.replace("strict", "reference");
    assert!(Contract::parse(&format!("{reference}{inexact}")).is_ok());
    for scheme in Scheme::ALL {
        let head = HEAD.replace("strict", scheme.as_str());
        assert_eq!(
            refused(error(&format!(
                "{head}params = {{ _pipeline_version = 1 }}"
            ))),
            Refusal::ReservedParameter
        );
        assert!(matches!(
            refused(error(&format!("{head}params = {{ x = inf }}"))),
            Refusal::NonFiniteParameter { .. }
        ));
        assert!(matches!(
            refused(error(&format!("{head}params = {{ x = 2026-01-02 }}"))),
            Refusal::DateParameter { .. }
        ));
    }
}

#[test]
fn what_is_not_toml_keeps_its_cause() {
    for text in ["name = ", "a = 1\na = 2", "x = 99999999999999999999", "{}"] {
        let error = error(text);
        assert!(matches!(error, ContractError::Syntax { .. }), "{text}");
        assert!(error.source().is_some());
    }
}
