//! The contract is compiled in: one that cannot be used is no function.

use std::path::Path;

/// What the compiler says of a function with this contract.
fn build(contract: &Path) -> (bool, String) {
    let built = tests::build("handler-lambda", "bootstrap")
        .env("FIRSTCLAIM_PIPELINE", contract)
        .output()
        .unwrap();
    (
        built.status.success(),
        String::from_utf8(built.stderr).unwrap(),
    )
}

#[test]
fn a_contract_that_cannot_be_used_fails_the_build_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let contract = folder.path().join("pipeline.toml");
    let cases = [
        (None, "pipeline.toml: No such file"),
        (
            Some("name = 'scenes'\nversion = '1'\nscheme = 'strict'\n[job]\nexce = ['true']"),
            r#"unknown key "exce" in [job]"#,
        ),
        (
            Some("name = 'scenes'\nversion = '1'\nscheme = 'strict'"),
            "has no [job]",
        ),
    ];
    for (text, why) in cases {
        if let Some(text) = text {
            std::fs::write(&contract, text).unwrap();
        }
        let (built, said) = build(&contract);
        assert!(!built, "{why}");
        assert!(said.contains(why), "{said}");
    }
}
