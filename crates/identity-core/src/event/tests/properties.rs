//! Properties of the reader over generated keys, details and bytes.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

/// As S3 writes keys into notification records: everything but letters, digits and `-_.*/` is escaped, a space is `+`.
fn form_encode(key: &str) -> String {
    let mut encoded = String::new();
    for byte in key.bytes() {
        match byte {
            b' ' => encoded.push('+'),
            b'-' | b'_' | b'.' | b'*' | b'/' => encoded.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => encoded.push(byte.into()),
            _ => write!(encoded, "%{byte:02X}").unwrap(),
        }
    }
    encoded
}

fn key() -> impl Strategy<Value = String> {
    // Everything that JSON can carry, and often what decoders stumble over.
    prop_oneof![
        "\\PC{1,40}",
        "[ +%/0-9A-Fa-f.]{1,20}",
        prop::collection::vec(any::<char>(), 1..20).prop_map(String::from_iter),
    ]
}

proptest! {
    #[test]
    fn any_key_comes_through_both_envelopes(key in key()) {
        let record = event_in(&notification_of(&form_encode(&key)));
        prop_assert_eq!(record.address.key.exact(), Some(&*key));
        let bridge = event_in(&event_bridge(&json!({"key": key, "etag": ETAG})));
        prop_assert_eq!(bridge.address.key.exact(), Some(&*key));
        prop_assert_eq!(identity_of(&record), identity_of(&bridge));
    }

    #[test]
    fn what_differs_between_deliveries_does_not_reach_the_identity(
        time in ".*", request in ".*", sequencer in ".*", message in ".*", version in "2(\\.[0-9]{1,3})?",
    ) {
        let mut record = record(&json!({"key": "k", "eTag": ETAG, "versionId": VERSION}));
        let expected = identity_of(&event_in(&notification([record.clone()])));
        record["eventTime"] = json!(time);
        record["eventVersion"] = json!(version);
        record["responseElements"]["x-amz-request-id"] = json!(request);
        record["s3"]["object"]["sequencer"] = json!(sequencer);
        let mut batch = sqs([notification([record])]);
        batch["Records"][0]["messageId"] = json!(message);
        prop_assert_eq!(identity_of(&event_in(&batch)), expected);
    }

    #[test]
    fn any_bytes_give_an_item(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(!read(&Delivery::from_body(&bytes)).is_empty());
    }

    #[test]
    fn any_text_of_json_pieces_gives_an_item(pieces in prop::collection::vec(prop::sample::select(&[
        "{", "}", "[", "]", ",", ":", "\"", "\\", "null", "0", "\"Records\"", "\"Messages\"", "\"s3\"", "\"body\"",
        "\"Sns\"", "\"Type\"", "\"Message\"", "\"detail-type\"", "\"Event\"", "\"eventName\"", "\"ObjectCreated:Put\"",
    ][..]), 0..40)) {
        prop_assert!(!read_text(&pieces.concat()).is_empty());
    }
}
