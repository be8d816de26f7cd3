//! What the Azure Functions host posts to a custom handler.

use super::{
    event_grid::{AZURE_ETAG, created, created_as},
    *,
};

const NAME: &str = "in/東京 +.shp";
const PATH: &str = "in/%E6%9D%B1%E4%BA%AC%20+.shp";

fn invocation(binding: &Value) -> Value {
    json!({"Data": {"event": binding}, "Metadata": {"sys": {"MethodName": "OnBlob"}}})
}

/// An invocation by a blob trigger; the URI is encoded as often as it is said.
fn blob_trigger(uri: &Value, properties: &Value) -> Value {
    json!({
        "Data": {"blob": "AAAnCg=="},
        "Metadata": {"Uri": uri, "Properties": properties, "Metadata": {}, "name": "\"x\""},
    })
}

fn uri() -> String {
    format!("https://acct.blob.core.windows.net/geo-in/{PATH}")
}

#[test]
fn a_binding_is_read_as_an_object_and_as_text_encoded_once_or_twice() {
    let event = created_as(NAME, PATH);
    let expected = identity_of(&event_in(&event));
    for value in [event.clone(), json!([event])] {
        let once = json!(value.to_string());
        let twice = json!(once.to_string());
        let thrice = json!(twice.to_string());
        let base64 = json!(base64(&value.to_string()));
        let base64_twice = json!(base64.to_string());
        for binding in [value, once, twice, thrice, base64, base64_twice] {
            assert_eq!(
                identity_of(&event_in(&invocation(&binding))),
                expected,
                "{binding}"
            );
        }
    }
}

#[test]
fn every_binding_and_every_event_of_it_is_an_item() {
    let value = json!({
        "Data": {"a": [created("a"), created("b")], "c": created("c").to_string(), "d": 7},
        "Metadata": {},
    });
    let items = read_value(&value);
    let keys: Vec<_> = items[..3]
        .iter()
        .map(|item| event_of(item).address.key.exact().unwrap())
        .collect();
    assert_eq!(keys, ["a", "b", "c"]);
    assert!(matches!(items[3].reading, Reading::Unreadable(_)));
    assert_eq!(items.len(), 4);
}

#[test]
fn quotes_around_quotes_come_to_an_end() {
    let mut binding = created("k");
    for _ in 0..=MAX_DEPTH {
        binding = json!(binding.to_string());
    }
    event_in(&invocation(&binding));
    binding = json!(binding.to_string());
    assert!(matches!(
        error_in(&invocation(&binding).to_string()),
        ReadError::NotBase64 { .. }
    ));
}

#[test]
fn an_http_request_is_read_as_if_it_had_come_itself() {
    let request = |method: &str, headers: &Value, body: &Value| {
        json!({"Data": {"req": {
            "Url": "http://localhost:7071/api/OnBlobHttp", "Method": method, "Query": {}, "Headers": headers,
            "Params": {}, "Body": body,
        }}, "Metadata": {}})
    };
    let event = created_as(NAME, PATH);
    let expected = identity_of(&event_in(&event));
    let none = json!({});
    for body in [
        event.clone(),
        json!([event]),
        json!(event.to_string()),
        json!(json!(event.to_string()).to_string()),
    ] {
        let value = request("POST", &none, &body);
        assert_eq!(identity_of(&event_in(&value)), expected, "{body}");
    }
    let handshake = request(
        "OPTIONS",
        &json!({"WebHook-Request-Origin": ["eventgrid.azure.net"]}),
        &json!(null),
    );
    assert!(matches!(
        read_value(&handshake)[0].reading,
        Reading::Reply(Reply { status: 200, .. })
    ));
    let deleted = request(
        "POST",
        &json!({"Eventtype": "OBJECT_DELETE"}),
        &json!("{\"kind\":\"storage#object\"}"),
    );
    assert_eq!(ignored_in(&deleted), Ignored::Removed);
}

// Case E13.
#[test]
fn a_blob_triggers_metadata_reads_the_same_as_objects_and_as_strings() {
    let etag = format!("\"{AZURE_ETAG}\"");
    let object = json!({"ContentLength": 4096, "ETag": etag});
    let legacy = json!({"Length": 4096, "ETag": etag}).to_string();
    let expected = event_in(&created_as(NAME, PATH));
    for uri in [json!(uri()), json!(json!(uri()).to_string())] {
        for properties in [
            object.clone(),
            json!(legacy),
            json!(json!(legacy).to_string()),
        ] {
            let event = event_in(&blob_trigger(&uri, &properties));
            assert_eq!(
                identity_of(&event),
                identity_of(&expected),
                "{uri} {properties}"
            );
            assert_eq!(event.address.key.raw(), PATH);
            assert_eq!(event.details.size, Some(4096));
        }
    }
}

#[test]
fn an_etag_that_the_host_did_not_write_out_is_left_to_the_store() {
    for properties in [
        json!({"ETag": {}}),
        json!({"ETag": ""}),
        json!({"ETag": null}),
        json!({}),
        json!(null),
        json!("no object"),
        json!([1]),
    ] {
        let event = event_in(&blob_trigger(&json!(uri()), &properties));
        assert_eq!((event.token, event.etag), (None, None), "{properties}");
        assert_eq!(event.address.key.exact(), Some(NAME));
    }
}

// Case E16: what is in the blob says nothing, and is not copied.
#[test]
fn a_blob_triggers_data_is_never_read() {
    let trap = json!({"blob": created("other").to_string(), "req": {"Method": "OPTIONS"}});
    let mut value = blob_trigger(&json!(uri()), &json!({}));
    value["Data"] = trap;
    assert_eq!(exact_key(&value), NAME);
    for uri in [
        json!("no uri"),
        json!(7),
        json!(""),
        json!("https://acct.blob.x/"),
    ] {
        value["Metadata"]["Uri"] = uri;
        let unreadable = unreadable_of(read_value(&value));
        let kept = String::from_utf8(unreadable.bytes).unwrap();
        assert_eq!(kept, json!({"Metadata": value["Metadata"]}).to_string());
        // It reads the same alone.
        assert_eq!(error_in(&kept).to_string(), unreadable.error.to_string());
    }
}

#[test]
fn an_invocation_without_an_event_is_an_error() {
    for (value, message) in [
        (json!({"Metadata": {}}), "Data is missing"),
        (
            json!({"Data": [], "Metadata": {}}),
            "Data is an array, expected an object",
        ),
        (
            json!({"Data": {}, "Metadata": {}}),
            "Data is an empty list: an envelope without an event",
        ),
        (invocation(&json!(7)), "no known event envelope: a number"),
        (invocation(&json!("")), "the event is empty"),
        (invocation(&json!("hello!")), "Data is not base64"),
        (
            json!({"Data": {"timer": {"IsPastDue": false}}, "Metadata": {}}),
            r#"no known event envelope: an object with the fields "IsPastDue""#,
        ),
    ] {
        assert_eq!(error_in(&value.to_string()).to_string(), message, "{value}");
    }
}
