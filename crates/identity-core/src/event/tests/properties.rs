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
    fn any_name_comes_through_every_envelope_that_does_not_encode_it(key in key()) {
        let resource = json!({"kind": "storage#object", "bucket": "b", "name": key, "generation": "7"});
        let pushed = json!({"message": {"attributes": {
            "eventType": "OBJECT_FINALIZE", "bucketId": "b", "objectId": key, "objectGeneration": "7",
        }}});
        let eventarc = json!({
            "specversion": "1.0", "type": "google.cloud.storage.object.v1.finalized", "data": resource,
        });
        let expected = identity_of(&event_in(&resource));
        prop_assert_eq!(&expected.3, key.as_bytes());
        for value in [&pushed, &eventarc] {
            prop_assert_eq!(&identity_of(&event_in(value)), &expected);
        }

        // Azure has the name in a URL as well, unescaped or escaped in one way or another.
        let escaped: String = key.bytes().map(|byte| format!("%{byte:02x}")).collect();
        for path in [&escaped, &key.replace('%', "%25"), &key] {
            let grid = event_grid::created_as(&key, path);
            // What was lost can only come from a URL that has it.
            if key.contains('\u{fffd}') && path.contains('\u{fffd}') {
                continue;
            }
            let event = event_in(&grid);
            prop_assert_eq!(event.address.key.exact(), Some(&*key));
            prop_assert!(event.token.is_some());
            for binding in [grid.clone(), json!(grid.to_string()), json!(json!(grid.to_string()).to_string())] {
                let invoked = event_in(&json!({"Data": {"x": binding}, "Metadata": {}}));
                prop_assert_eq!(&invoked, &event);
            }
        }
    }

    #[test]
    fn any_request_gives_an_item(
        method in prop::sample::select(&["POST", "OPTIONS", "GET", ""][..]),
        headers in prop::collection::vec((prop::sample::select(&[
            "ce-type", "ce-time", "eventType", "objectId", "bucketId", "objectGeneration", "WebHook-Request-Origin",
            "WebHook-Request-Rate", "aeg-event-type",
        ][..]), prop_oneof![
            Just("OBJECT_FINALIZE".to_owned()), Just("google.cloud.storage.object.v1.finalized".to_owned()), ".*",
        ]), 0..6),
        body in prop_oneof![Just(String::new()), ".*", Just(r#"{"bucket":"b","name":"n"}"#.to_owned())],
    ) {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let items = read_request(method, &headers, &body);
        prop_assert_eq!(items.len(), 1);
        if let Reading::Reply(reply) = &items[0].reading {
            // Nothing that could end a header comes back in one.
            let visible = |text: &str| text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
            prop_assert!(reply.headers.iter().all(|(_, value)| visible(value)));
        }
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
        "\"message\"", "\"attributes\"", "\"data\"", "\"eventType\"", "\"OBJECT_FINALIZE\"", "\"kind\"",
        "\"storage#object\"", "\"specversion\"", "\"1.0\"", "\"type\"", "\"Microsoft.Storage.BlobCreated\"", "\"subject\"",
        "\"/blobServices/default/containers/c/blobs/n\"", "\"url\"", "\"https://a.blob.x/c/n\"", "\"Data\"", "\"Metadata\"",
        "\"Uri\"", "\"Method\"", "\"Url\"", "\"Body\"", "\"MessageText\"", "\"BlobName\"", "\"eyJ9\"",
        "\"firstclaim\"", "\"version\"", "1", "\"record\"", "\"provider\"", "\"gcs\"", "\"key\"", "\"key_base64\"", "\"incomplete\"",
    ][..]), 0..40)) {
        prop_assert!(!read_text(&pieces.concat()).is_empty());
    }
}
