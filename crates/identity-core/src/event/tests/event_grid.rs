//! Azure Blob Storage through Event Grid, in both schemas, on every way it is delivered.

use super::*;

pub(super) const AZURE_ETAG: &str = "0x8D4BCC2E4835CD0";
const TOPIC: &str =
    "/subscriptions/0/resourceGroups/rg/providers/Microsoft.Storage/storageAccounts/acct";

/// A `BlobCreated` of this name, whose URL has this path, in Event Grid's own schema.
pub(super) fn created_as(name: &str, path: &str) -> Value {
    json!({
        "topic": TOPIC,
        "subject": format!("/blobServices/default/containers/geo-in/blobs/{name}"),
        "eventType": "Microsoft.Storage.BlobCreated",
        "eventTime": "2026-01-02T03:04:05.9584103Z",
        "id": "831e1650-001e-001b-66ab-eeb76e069631",
        "data": {
            "api": "PutBlockList",
            "requestId": "831e1650-001e-001b-66ab-eeb76e000000",
            "eTag": AZURE_ETAG,
            "contentLength": 4096,
            "blobType": "BlockBlob",
            "url": format!("https://acct.blob.core.windows.net/geo-in/{path}"),
            "sequencer": "00000000000004420000000000028963",
        },
        "dataVersion": "",
        "metadataVersion": "1",
    })
}

pub(super) fn created(name: &str) -> Value {
    created_as(name, name)
}

/// The same event in the schema of CloudEvents.
fn as_cloud_event(event: &Value) -> Value {
    json!({
        "specversion": "1.0",
        "type": event["eventType"],
        "source": event["topic"],
        "subject": event["subject"].as_str().unwrap().trim_start_matches('/'),
        "time": event["eventTime"],
        "id": event["id"],
        "data": event["data"],
    })
}

fn queue_message(text: &str) -> Value {
    json!({"MessageId": "q0", "PopReceipt": "p0", "DequeueCount": 1, "MessageText": text})
}

fn with_api(api: &str, length: u64) -> Value {
    let mut event = created("in/roads.shp");
    event["data"]["api"] = json!(api);
    event["data"]["contentLength"] = json!(length);
    event
}

// Cases E10, E11.
#[test]
fn one_write_is_one_object_version_through_every_envelope() {
    let grid = created_as("in/東京 +.shp", "in/%E6%9D%B1%E4%BA%AC%20+.shp");
    let cloud = as_cloud_event(&grid);
    let expected = identity_of(&event_in(&grid));
    assert_eq!(expected.1.as_deref(), Some("acct"));
    assert_eq!(expected.3, "in/東京 +.shp".as_bytes());
    for event in [grid, cloud] {
        let text = event.to_string();
        let list = json!([event]);
        for (name, value) in [
            ("object", event.clone()),
            ("array", list.clone()),
            ("queue, plain", queue_message(&text)),
            ("queue, plain array", queue_message(&list.to_string())),
            ("queue, base64", queue_message(&base64(&text))),
            (
                "queue, base64 array",
                queue_message(&base64(&list.to_string())),
            ),
            ("queue, in quotes", queue_message(&json!(text).to_string())),
            ("a list of queue messages", json!([queue_message(&text)])),
            ("a dead-letter record", {
                let mut record = event.clone();
                record["deadLetterReason"] = json!("MaxDeliveryAttemptsExceeded");
                record["deliveryAttempts"] = json!(30);
                json!([record])
            }),
        ] {
            assert_eq!(identity_of(&event_in(&value)), expected, "{name}");
        }
    }
}

#[test]
fn a_queue_message_can_be_answered() {
    let items = read_value(&queue_message(&base64(&created("a").to_string())));
    assert_eq!(
        *items[0].origin,
        Origin {
            index: 0,
            message_id: Some("q0".into()),
            receipt_handle: Some("p0".into()),
            message_group_id: None,
            queue_arn: None,
        }
    );
}

#[test]
fn in_a_batch_only_the_bad_event_is_bad() {
    let mut bad = created("bad");
    bad["subject"] = json!("nothing");
    let deleted = json!({"eventType": "Microsoft.Storage.BlobDeleted"});
    let items = read_value(&json!([created("a"), bad, deleted, created("b"), 7]));
    assert_eq!(items.len(), 5);
    event_of(&items[0]);
    event_of(&items[3]);
    match (&items[1].reading, &items[4].reading) {
        (Reading::Unreadable(event), Reading::Unreadable(number)) => {
            assert_eq!(event.bytes, bad.to_string().as_bytes());
            assert_eq!(number.bytes, b"7");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        items[2].reading,
        Reading::Ignored(Ignored::Removed)
    ));
}

// Case E1.
#[test]
fn of_a_file_that_is_created_and_then_closed_the_close_is_the_job() {
    let items = read_value(&json!([
        with_api("CreateFile", 0),
        with_api("FlushWithClose", 4096)
    ]));
    let Reading::Incomplete(incomplete) = &items[0].reading else {
        panic!("expected an incomplete object, got {items:?}");
    };
    assert_eq!(incomplete.address, event_of(&items[1]).address);
    assert_eq!(event_of(&items[1]).details.size, Some(4096));
}

// Case E3.
#[test]
fn every_way_to_write_a_blob_is_an_event() {
    for api in [
        "PutBlob",
        "PutBlockList",
        "CopyBlob",
        "FlushWithClose",
        "SftpCommit",
        "CreateFile",
        "NextYearsApi",
    ] {
        event_in(&with_api(api, 1));
    }
    for api in ["PutBlockList", "CopyBlob", "FlushWithClose", "SftpCommit"] {
        event_in(&with_api(api, 0));
    }
    let mut none = created("a");
    none["data"]["api"] = json!(null);
    event_in(&none);
}

// Case E4.
#[test]
fn of_an_upload_by_sftp_the_commit_is_the_job() {
    for length in [0, 9] {
        let items = read_value(&with_api("SftpCreate", length));
        assert!(matches!(items[0].reading, Reading::Incomplete(_)));
    }
    event_in(&with_api("SftpCommit", 4096));
}

// Case E5.
#[test]
fn of_a_blob_that_is_opened_and_then_written_the_write_is_the_job() {
    let mut write = with_api("PutBlockList", 4096);
    write["data"]["eTag"] = json!("0x2");
    let items = read_value(&json!([with_api("PutBlob", 0), write]));
    let Reading::Incomplete(opened) = &items[0].reading else {
        panic!("{items:?}");
    };
    // Its version is kept: it may have been meant as it is.
    assert!(opened.token.is_some());
    assert_eq!(opened.address, event_of(&items[1]).address);
    assert_eq!(
        event_of(&items[1]).token.as_ref().unwrap().to_string(),
        "etag:0x2"
    );
    // A size that is not told is not zero.
    let mut unknown = with_api("PutBlob", 0);
    unknown["data"]["contentLength"] = json!(null);
    event_in(&unknown);
}

#[test]
fn of_an_append_or_page_blob_the_put_is_only_the_beginning() {
    for (blob_type, length) in [
        ("AppendBlob", json!(0)),
        ("AppendBlob", json!(null)),
        ("PageBlob", json!(0)),
        ("PageBlob", json!(1024)),
    ] {
        let mut put = with_api("PutBlob", 0);
        put["data"]["contentLength"] = length;
        put["data"]["blobType"] = json!(blob_type);
        let items = read_value(&put);
        let Reading::Incomplete(begun) = &items[0].reading else {
            panic!("{items:?}");
        };
        assert_eq!(begun.token, None, "the ETag of no content");
    }
    let mut copied = with_api("CopyBlob", 1024);
    copied["data"]["blobType"] = json!("PageBlob");
    event_in(&copied);
}

// Case E7.
#[test]
fn characters_lost_from_the_subject_come_from_the_url() {
    let key = |path| exact_key(&created_as("in/\u{fffd}\u{fffd}.shp", path));
    assert_eq!(key("in/%F0%9F%97%BA.shp"), "in/🗺.shp");
    assert_eq!(key("in/%F0%9F%9A%97.shp"), "in/🚗.shp");
    assert!(matches!(
        error_in(&created_as("in/\u{fffd}.shp", "in/\u{fffd}.shp").to_string()),
        ReadError::LostCharacters { .. }
    ));
}

// Cases E8, E9.
#[test]
fn the_name_is_the_subjects_and_is_not_decoded() {
    for (name, path) in [
        ("a%20b", "a%2520b"),
        ("id:0,src.shp", "id%3A0%2Csrc.shp"),
        ("a+b c", "a+b%20c"),
        ("a#b?c", "a#b?c"),
    ] {
        let event = event_in(&created_as(name, path));
        assert_eq!(event.address.key.exact(), Some(name));
        assert_eq!(event.token.unwrap().value(), AZURE_ETAG);
    }
}

#[test]
fn reference_hashes_what_python_makes_of_the_url() {
    let raw = |name, path| {
        event_in(&created_as(name, path))
            .address
            .key
            .raw()
            .into_owned()
    };
    assert_eq!(raw("a%20b", "a%2520b"), "a%2520b");
    assert_eq!(raw("a;b#c", "a;b#c"), "a");
    let mut event = created("k");
    event["data"]["url"] = json!("https://[acct/geo-in/k");
    let event = event_in(&event);
    assert!(matches!(
        event.token_for(Scheme::Reference),
        Err(Refusal::UnreadableUrl { .. })
    ));
    assert!(event.token_for(Scheme::Strict).is_ok());
    let fine = event_in(&created("k"));
    assert_eq!(fine.token_for(Scheme::Reference), Ok(fine.token.clone()));
}

#[test]
fn a_url_that_contradicts_the_subject_leaves_the_token_to_the_store() {
    let event = event_in(&created_as("in/a.shp", "in/b.shp"));
    assert_eq!(event.address.key.exact(), Some("in/a.shp"));
    assert_eq!((event.token, event.etag), (None, None));
    let mut no_url = created("a");
    no_url["data"]["url"] = json!(null);
    assert!(event_in(&no_url).token.is_some());
}

#[test]
fn no_part_of_the_host_but_the_account_reaches_the_identity() {
    let with_url = |topic: &str, url: &str| {
        let mut event = created("k");
        event["topic"] = json!(topic);
        event["data"]["url"] = json!(url);
        identity_of(&event_in(&event))
    };
    let expected = identity_of(&event_in(&created("k")));
    for (topic, url) in [
        (TOPIC, "https://acct.dfs.core.windows.net/geo-in/k"),
        ("", "https://acct.dfs.core.windows.net/geo-in/k"),
        ("", "https://acct.z12.blob.storage.azure.net/geo-in/k"),
        (TOPIC, "https://maps.example.org/geo-in/k"),
        (TOPIC, "http://127.0.0.1:10000/acct/geo-in/k"),
    ] {
        assert_eq!(with_url(topic, url), expected, "{topic} {url}");
    }
    assert_eq!(with_url("", "https://maps.example.org/geo-in/k").1, None);
}

#[test]
fn an_etag_is_the_same_with_and_without_quotes() {
    let mut quoted = created("k");
    quoted["data"]["eTag"] = json!(format!("\"{AZURE_ETAG}\""));
    assert_eq!(
        identity_of(&event_in(&quoted)),
        identity_of(&event_in(&created("k")))
    );
    for none in [json!(null), json!("")] {
        quoted["data"]["eTag"] = none;
        let event = event_in(&quoted);
        assert_eq!((event.token, event.etag), (None, None));
    }
    quoted["data"]["eTag"] = json!("\"\"");
    assert!(error_in(&quoted.to_string()).refusal().is_some());
}

#[test]
fn a_renamed_blob_is_its_destination_without_a_token() {
    let renamed = |name: &str, destination: &str| {
        let mut event = created(name);
        event["eventType"] = json!("Microsoft.Storage.BlobRenamed");
        event["data"] = json!({
            "api": "RenameFile",
            "destinationUrl": format!("https://acct.dfs.core.windows.net/geo-in/{destination}"),
            "sourceUrl": "https://acct.dfs.core.windows.net/geo-in/_temporary/0/a%20b",
        });
        event_in(&event)
    };
    for name in ["in/a b", "_temporary/0/a b"] {
        let event = renamed(name, "in/a%20b");
        assert_eq!(event.address.key.exact(), Some("in/a b"), "{name}");
        assert_eq!(event.address.key.raw(), "in/a%20b");
        assert_eq!(event.token, None);
    }
}

#[test]
fn what_brings_no_new_bytes_is_ignored_by_its_reason() {
    for (name, reason) in [
        ("Microsoft.Storage.BlobDeleted", Ignored::Removed),
        ("Microsoft.Storage.DirectoryDeleted", Ignored::Removed),
        ("Microsoft.Storage.DirectoryRenamed", Ignored::Metadata),
        ("Microsoft.Storage.BlobTierChanged", Ignored::Metadata),
        (
            "Microsoft.Storage.LifecyclePolicyCompleted",
            Ignored::Metadata,
        ),
        (
            "Microsoft.EventGrid.SubscriptionDeletedEvent",
            Ignored::Metadata,
        ),
    ] {
        // Nothing else is asked of such an event.
        assert_eq!(
            ignored_in(&json!([{ "eventType": name }])),
            reason,
            "{name}"
        );
        let cloud = json!({"specversion": "1.0", "type": name});
        assert_eq!(ignored_in(&cloud), reason, "{name}");
    }
    for name in [
        "Microsoft.Storage.BlobTeleported",
        "Microsoft.Resources.ResourceWriteSuccess",
    ] {
        assert!(matches!(
            error_in(&json!({ "eventType": name }).to_string()),
            ReadError::UnknownEventName {
                field: "eventType",
                ..
            }
        ));
    }
    assert_eq!(Ignored::Incomplete.as_str(), "incomplete");
}

#[test]
fn what_identity_needs_must_be_there_and_be_text() {
    type Edit = fn(&mut Value);
    let edits: [(Edit, &str); 8] = [
        (|e| e["subject"] = json!(null), "subject is missing"),
        (
            |e| e["subject"] = json!("x"),
            r#"subject is "x", which names no blob"#,
        ),
        (|e| e["data"] = json!(null), "data is missing"),
        (
            |e| e["data"] = json!([]),
            "data is an array, expected an object",
        ),
        (
            |e| e["data"]["eTag"] = json!(1),
            "data.eTag is a number, expected a string",
        ),
        (
            |e| e["data"]["url"] = json!({}),
            "data.url is an object, expected a string",
        ),
        (|e| e["eventType"] = json!(""), "eventType is empty"),
        (
            |e| e["eventType"] = json!(7),
            "eventType is a number, expected a string",
        ),
    ];
    for (edit, message) in edits {
        let mut event = created("k");
        edit(&mut event);
        assert_eq!(error_in(&event.to_string()).to_string(), message);
    }
    for (value, message) in [
        (queue_message(""), "MessageText is empty"),
        (queue_message("hello, world"), "MessageText is not base64"),
        (queue_message("/w=="), "the event is not UTF-8 text"),
        (
            json!({"MessageText": {}}),
            "MessageText is an object, expected a string",
        ),
    ] {
        assert_eq!(error_in(&value.to_string()).to_string(), message, "{value}");
    }
}

// Case E17.
#[test]
fn what_differs_between_deliveries_of_one_message_does_not_reach_the_identity() {
    let first = queue_message(&created("k").to_string());
    let expected = identity_of(&event_in(&first));
    for count in 2..=5 {
        let mut again = first.clone();
        again["DequeueCount"] = json!(count);
        again["PopReceipt"] = json!(format!("p{count}"));
        assert_eq!(identity_of(&event_in(&again)), expected);
        let invocation = json!({
            "Data": {"msg": created("k").to_string()},
            "Metadata": {"DequeueCount": count, "RetryContext": {"RetryCount": count}},
        });
        assert_eq!(identity_of(&event_in(&invocation)), expected);
    }
}

#[test]
fn a_message_of_the_blob_triggers_queue_takes_the_configured_account() {
    let message = |id: &str| {
        json!({
            "Type": "BlobTrigger", "FunctionId": id, "BlobType": "BlockBlob",
            "ContainerName": "geo-in", "BlobName": "in/a%20b+", "ETag": format!("\"{AZURE_ETAG}\""),
        })
    };
    let text = message("f").to_string();
    let context = ReadContext {
        s3_keys: None,
        azure_account: Some("acct"),
    };
    let event = only(&read_in(&Delivery::from_body(text.as_bytes()), &context));
    assert_eq!(
        identity_of(&event),
        identity_of(&event_in(&created_as("in/a%20b+", "in/a%2520b+")))
    );
    assert_eq!(event_in(&message("f")).address.account, None);
    let in_queue = queue_message(&base64(&message("g").to_string())).to_string();
    let again = only(&read_in(
        &Delivery::from_body(in_queue.as_bytes()),
        &context,
    ));
    assert_eq!(identity_of(&again), identity_of(&event));
    // An event that names its account does not take another.
    let text = created("k").to_string();
    let other = ReadContext {
        s3_keys: None,
        azure_account: Some("other"),
    };
    let event = only(&read_in(&Delivery::from_body(text.as_bytes()), &other));
    assert_eq!(event.address.account.as_deref(), Some("acct"));
}
