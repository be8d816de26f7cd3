//! Every parser of files that people write: random text and damaged good text give a result or an error, never a panic.
//! (What the network sends is in `event/tests/properties.rs`.)
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use identity_core::{
    event::{http_file::OwnedDelivery, read},
    identity::{Contract, Params, event_grid_url, vectors},
};
use proptest::prelude::*;

const CONTRACT: &str = r#"name = "scenes"
version = "3.2.0"
scheme = "strict"
[params]
window = { x = 1, y = [2.5, "three", true] }
[select]
include = ["**/*.shp", "a[!b]{c,d}?.tif"]
exclude = ["tmp/**"]
[job]
exec = ["env", "A=1", "sh", "-c", 'echo "$1"', "sh", "{uri}", "{{key}}"]
permanent = [65, 66]
timeout_seconds = 60
"#;
const PARAMS: &str = r#"{"a":[1,-0,1e300,0.1,"\ud83d\ude00",null],"b":{"_pipeline_version":true},"c":12345678901234567890123}"#;
const VECTORS: &str = r#"{"scheme":"reference","vectors":[{"name":"n","event":"parts","payload":{"scheme":"s3","container":"b","raw_key":"k","version_token":"t"},"params":{},"pipeline_version":"1","job_id":"00"}]}"#;
const REQUEST: &str =
    r#"{"method":"POST","path":"/","headers":{"a":"b"},"body":{"Records":[{"s3":{}}]}}"#;
const URL: &str = "https://acct.blob.core.windows.net:443/container/a%2Fb;c?d#e";

/// Hands the text to every parser; what each says of it is its own business.
fn parse_as_everything(text: &str) {
    if let Ok(contract) = Contract::parse(text) {
        let _ = contract.select().selects(text);
    }
    let _ = Params::from_json(text).map(|params| params.digest());
    let _ = vectors::run(text);
    let _ = event_grid_url::container_and_name(text);
    let items = read(&OwnedDelivery::from_file(text.as_bytes().to_vec()).as_delivery());
    assert!(!items.is_empty());
}

/// A good text with a piece replaced by another, anywhere.
fn damaged() -> impl Strategy<Value = String> {
    let good = prop::sample::select(vec![CONTRACT, PARAMS, VECTORS, REQUEST, URL]);
    let piece = prop_oneof![
        any::<String>(),
        prop::sample::select(vec![
            "", "\"", "'", "[", "]", "{", "}", "\\", "\0", "\n", "=", "1e999", "nan", "%", "**",
            "\u{1f}"
        ])
        .prop_map(str::to_owned),
        ("[\\[{(]", 1..300_usize).prop_map(|(open, times)| open.repeat(times)),
    ];
    (good, any::<prop::sample::Index>(), 0..40_usize, piece).prop_map(
        |(good, at, length, piece)| {
            let characters: Vec<char> = good.chars().collect();
            let at = at.index(characters.len());
            let rest = characters.len().min(at + length);
            characters[..at]
                .iter()
                .chain(&piece.chars().collect::<Vec<_>>())
                .chain(&characters[rest..])
                .collect()
        },
    )
}

#[test]
fn the_good_texts_are_good() {
    assert!(Contract::parse(CONTRACT).is_ok());
    assert!(Params::from_json(PARAMS).is_ok());
    assert_eq!(vectors::run(VECTORS).unwrap().failures.len(), 1);
    assert!(event_grid_url::container_and_name(URL).is_ok());
    assert_eq!(
        OwnedDelivery::from_file(REQUEST.as_bytes().to_vec())
            .method
            .as_deref(),
        Some("POST")
    );
}

proptest! {
    #[test]
    fn random_text_is_parsed_or_refused(text in any::<String>()) {
        parse_as_everything(&text);
    }

    #[test]
    fn a_good_text_with_a_piece_replaced_is_parsed_or_refused(text in damaged()) {
        parse_as_everything(&text);
    }
}
