//! Keys, tokens and details of one object, in both innermost envelopes.

use super::*;
use crate::identity::{ObjectKey, decode::form_decode};

/// A notification with these fields in `s3.object` beside the key.
fn with_object(fields: &Value) -> Value {
    let mut object = json!({"key": "in/roads.shp", "size": 4096});
    for (name, value) in fields.as_object().unwrap() {
        object[name] = value.clone();
    }
    notification([record(&object)])
}

fn token_in(value: &Value) -> Option<String> {
    event_in(value).token.map(|token| token.to_string())
}

#[test]
fn a_record_key_is_form_decoded() {
    for (raw, exact) in [
        ("folder+a/data.shp", "folder a/data.shp"),
        ("p/VJ9B+-+Copy+%282%29%2Bx.tif", "p/VJ9B - Copy (2)+x.tif"),
        (
            "in/dt%3D2024-05-04/10%3A47.shp",
            "in/dt=2024-05-04/10:47.shp",
        ),
        ("in/roads.shp+", "in/roads.shp "),
        ("%E6%9D%B1%E4%BA%AC", "東京"),
        ("a%2520b%252Fc.shp", "a%20b%2Fc.shp"),
    ] {
        let event = event_in(&notification_of(raw));
        assert_eq!(event.address.key.exact(), Some(exact));
        assert_eq!(event.address.key.raw(), raw);
    }
}

#[test]
fn an_escaped_slash_is_a_slash() {
    assert_eq!(
        identity_of(&event_in(&notification_of("in%2Froads.shp"))),
        identity_of(&event_in(&notification_of("in/roads.shp")))
    );
}

#[test]
fn a_key_is_decoded_once_and_no_other_reading_is_tried() {
    assert_eq!(exact_key(&notification_of("5%253A00.shp")), "5%3A00.shp");
    assert_eq!(exact_key(&notification_of("50%")), "50%");
}

#[test]
fn a_key_whose_bytes_are_not_utf8_keeps_its_bytes() {
    let event = event_in(&notification_of("bad%FFname"));
    assert_eq!(event.address.key.exact(), None);
    assert_eq!(event.address.key.exact_bytes(), b"bad\xffname");
}

#[test]
fn an_event_bridge_key_is_taken_as_it_is() {
    for key in ["a+b.txt", "lit%2Fpct.txt", "dir/with space.txt", "東京 😀"] {
        let event = event_in(&event_bridge(&json!({"key": key, "etag": ETAG})));
        assert_eq!(event.address.key.exact(), Some(key));
        assert_eq!(event.address.key.raw(), key);
    }
}

#[test]
fn a_field_that_only_some_library_knows_is_no_key() {
    let value = with_object(&json!({"urlDecodedKey": "", "eTag": ETAG}));
    assert_eq!(exact_key(&value), "in/roads.shp");
}

#[test]
fn no_version_in_any_spelling_falls_back_to_the_etag() {
    let expected = Some(format!("etag:{ETAG}"));
    for version in [json!(null), json!(""), json!("null")] {
        assert_eq!(
            token_in(&with_object(&json!({"eTag": ETAG, "versionId": version}))),
            expected
        );
        assert_eq!(
            token_in(&event_bridge(
                &json!({"key": "k", "etag": ETAG, "version-id": version})
            )),
            expected
        );
    }
    assert_eq!(token_in(&with_object(&json!({"eTag": ETAG}))), expected);
    assert_eq!(
        token_in(&event_bridge(&json!({"key": "k", "etag": ETAG}))),
        expected
    );
}

#[test]
fn a_version_id_is_the_better_token_and_the_etag_stays_at_hand() {
    for value in [
        with_object(&json!({"eTag": format!("\"{ETAG}\""), "versionId": VERSION})),
        event_bridge(&json!({"key": "k", "etag": format!("\"{ETAG}\""), "version-id": VERSION})),
    ] {
        let event = event_in(&value);
        assert_eq!(
            event.object_version().unwrap().token.to_string(),
            format!("version-id:{VERSION}")
        );
        assert_eq!(event.etag_token().unwrap().unwrap().value(), ETAG);
    }
}

#[test]
fn an_etag_is_the_same_with_and_without_quotes() {
    let quoted = with_object(&json!({"eTag": "\"abc\""}));
    assert_eq!(token_in(&quoted), Some("etag:abc".into()));
    assert_eq!(
        token_in(&quoted),
        token_in(&with_object(&json!({"eTag": "abc"})))
    );
}

#[test]
fn an_etag_is_opaque() {
    for etag in ["4af981f98d22a0b9979da24b259e5e42-12", "kms/not=an+MD5"] {
        let value = with_object(&json!({ "eTag": etag }));
        assert_eq!(token_in(&value), Some(format!("etag:{etag}")));
    }
}

#[test]
fn either_spelling_of_the_etag_is_read_in_either_envelope() {
    for name in ["etag", "eTag"] {
        let expected = Some(format!("etag:{ETAG}"));
        let mut object = json!({"key": "k"});
        object[name] = json!(ETAG);
        assert_eq!(token_in(&event_bridge(&object)), expected);
        assert_eq!(token_in(&notification([record(&object)])), expected);
    }
}

#[test]
fn an_event_without_any_token_needs_a_head() {
    for object in [
        json!({}),
        json!({"eTag": ""}),
        json!({"eTag": null, "versionId": "null"}),
    ] {
        let event = event_in(&with_object(&object));
        assert_eq!(event.token, None);
        assert_eq!(event.object_version(), None);
        assert_eq!(event.etag_token(), Ok(None));
    }
}

#[test]
fn an_unusable_token_is_a_refusal_and_not_an_unreadable_event() {
    for (object, refusal) in [
        (
            json!({"eTag": "\"\""}),
            Refusal::QuotesOnlyToken("\"\"".into()),
        ),
        (
            json!({"eTag": "a\nb"}),
            Refusal::ControlCharacterInToken("a\nb".into()),
        ),
        (
            json!({"eTag": ETAG, "versionId": "\"\""}),
            Refusal::QuotesOnlyToken("\"\"".into()),
        ),
        (
            json!({"eTag": ETAG, "versionId": "v\u{7f}"}),
            Refusal::ControlCharacterInToken("v\u{7f}".into()),
        ),
    ] {
        let error = error_in(&with_object(&object).to_string());
        assert_eq!(error.refusal(), Some(&refusal));
        assert_eq!(error.to_string(), "the event is refused");
    }
    assert_eq!(error_in("").refusal(), None);
}

#[test]
fn an_unusable_etag_concerns_nobody_who_has_a_version_id() {
    let event = event_in(&with_object(&json!({"eTag": "\"\"", "versionId": VERSION})));
    assert_eq!(
        event.token.as_ref().unwrap().to_string(),
        format!("version-id:{VERSION}")
    );
    assert_eq!(
        event.etag_token(),
        Err(Refusal::QuotesOnlyToken("\"\"".into()))
    );
}

#[test]
fn every_way_to_create_an_object_is_an_event() {
    for name in ["Put", "Post", "Copy", "CompleteMultipartUpload"] {
        for prefix in ["", "s3:"] {
            let mut record = record(&json!({"key": "k", "eTag": ETAG}));
            let name = format!("{prefix}ObjectCreated:{name}");
            record["eventName"] = json!(name);
            let event = event_in(&notification([record]));
            assert_eq!(event.details.event_name, Some(name));
        }
    }
}

/// A record of this store, as that store writes its version.
fn from(source: Option<&str>, key: &str) -> String {
    let mut record = record(&json!({"key": key, "eTag": ETAG, "versionId": ""}));
    record["eventSource"] = json!(source);
    if source == Some("scality:s3") {
        record["eventVersion"] = json!("1.0");
    }
    notification([record]).to_string()
}

#[test]
fn who_wrote_a_record_decides_how_its_key_is_encoded() {
    for key in [
        "in/roads+rail v2.shp",
        "in/100%25 cover.shp",
        "a%2Fb",
        "%",
        "東京.tif",
    ] {
        let read = |source| only(&read_text(&from(source, key))).address.key;
        for source in ["ceph:s3", "storj:s3", "scality:s3", "noobaa:s3"] {
            assert_eq!(
                read(Some(source)),
                ObjectKey::verbatim(key),
                "{source} {key}"
            );
        }
        let decoded = ObjectKey::decoded(key, form_decode(key));
        for source in ["aws:s3", "minio:s3", "rustfs:s3", "cubefs:s3"] {
            assert_eq!(read(Some(source)), decoded, "{source} {key}");
        }
        // Without a source it is written as S3 does it.
        assert_eq!(read(None), decoded, "{key}");
    }
}

#[test]
fn what_cannot_be_told_of_a_store_is_configured_and_not_guessed() {
    let unknown = ["wasabi:s3", "sgws:s3", "Ceph:S3", "my-noobaa:s3", ""];
    for source in unknown {
        let key = only(&read_text(&from(Some(source), "in/roads v2.shp")))
            .address
            .key;
        assert_eq!(key, ObjectKey::verbatim("in/roads v2.shp"), "{source}");
        for key in ["in/roads+rail.shp", "in/100%25.shp", "50%"] {
            let error = error_in(&from(Some(source), key)).to_string();
            assert!(
                error.contains("FIRSTCLAIM_S3_KEYS") && error.contains(key),
                "{error}"
            );
        }
    }
    let keys = S3Keys::parse("sgws:s3=form,wasabi:s3=verbatim").unwrap();
    let context = ReadContext {
        s3_keys: Some(&keys),
        ..ReadContext::default()
    };
    let read = |source| {
        let text = from(Some(source), "a+b%2Bc");
        match read_in(&Delivery::from_body(text.as_bytes()), &context)
            .remove(0)
            .reading
        {
            Reading::Event(event) => event.address.key.exact().unwrap().to_owned(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(read("sgws:s3"), "a b+c");
    assert_eq!(read("wasabi:s3"), "a+b%2Bc");
    assert_eq!(read("ceph:s3"), "a+b%2Bc");
    assert_eq!(read("minio:s3"), "a b+c");
}

#[test]
fn a_source_is_a_text() {
    let mut record = record(&json!({"key": "k", "eTag": ETAG}));
    record["eventSource"] = json!(["ceph:s3"]);
    assert!(matches!(
        error_in(&notification([record]).to_string()),
        ReadError::WrongType {
            field: "eventSource",
            ..
        }
    ));
}

#[test]
fn what_ceph_synced_from_another_zone_is_a_new_object() {
    for name in [
        "ObjectSynced:Create",
        "s3:ObjectSynced:Create",
        "Replication:Create",
    ] {
        let mut record = record(&json!({"key": "k", "eTag": ETAG}));
        record["eventSource"] = json!("ceph:s3");
        let put = event_in(&notification([record.clone()]));
        record["eventName"] = json!(name);
        let synced = event_in(&notification([record]));
        assert_eq!(identity_of(&synced), identity_of(&put), "{name}");
    }
}

#[test]
fn a_copy_onto_itself_is_the_same_object_version() {
    let put = record(&json!({"key": "k", "eTag": ETAG}));
    let mut copy = put.clone();
    copy["eventName"] = json!("ObjectCreated:Copy");
    assert_eq!(
        identity_of(&event_in(&notification([put]))),
        identity_of(&event_in(&notification([copy])))
    );
}

#[test]
fn what_brings_no_new_bytes_is_ignored_by_its_reason() {
    for (name, reason) in [
        ("ObjectRemoved:Delete", Ignored::Removed),
        ("s3:ObjectRemoved:DeleteMarkerCreated", Ignored::Removed),
        ("LifecycleExpiration:Delete", Ignored::Removed),
        (
            "s3:LifecycleExpiration:DeleteMarkerCreated",
            Ignored::Removed,
        ),
        ("ObjectLifecycle:Expiration:Current", Ignored::Removed),
        ("ObjectLifecycle:Transition:Current", Ignored::Metadata),
        ("ObjectTagging:Put", Ignored::Metadata),
        ("s3:ObjectTagging:Delete", Ignored::Metadata),
        ("ObjectAcl:Put", Ignored::Metadata),
        ("ObjectAnnotation:Put", Ignored::Metadata),
        ("ObjectRestore:Completed", Ignored::Metadata),
        ("LifecycleTransition", Ignored::Metadata),
        ("IntelligentTiering", Ignored::Metadata),
        ("s3:ReducedRedundancyLostObject", Ignored::Metadata),
        ("Replication:OperationFailedReplication", Ignored::Metadata),
        ("s3:ObjectAccessed:Get", Ignored::Metadata),
        ("s3:ObjectCreated:PutTagging", Ignored::Metadata),
        ("s3:ObjectCreated:PutLegalHold", Ignored::Metadata),
        ("s3:ObjectSynced:Delete", Ignored::Removed),
        ("ObjectSynced:DeletionMarkerCreated", Ignored::Removed),
        ("Replication:Delete", Ignored::Removed),
        ("Replication:DeletionMarkerCreated", Ignored::Removed),
        (
            "s3:Replication:OperationCompletedReplication",
            Ignored::Metadata,
        ),
        ("s3:ObjectTransition:Failed", Ignored::Metadata),
        ("s3:ObjectTransition:Complete", Ignored::Metadata),
        ("s3:ObjectRemoved:DeleteAllVersions", Ignored::Removed),
        ("s3:ObjectRemoved:NoOP", Ignored::Removed),
        ("s3:LifecycleDelMarkerExpiration:Delete", Ignored::Removed),
        ("s3:ILM:DelMarkerExpirationDelete", Ignored::Removed),
        ("s3:Scanner:ManyVersions", Ignored::Metadata),
        ("s3:Scanner:LargeVersions", Ignored::Metadata),
        ("s3:Scanner:BigPrefix", Ignored::Metadata),
        ("s3:BucketCreated:*", Ignored::Metadata),
        ("s3:BucketRemoved:*", Ignored::Removed),
        ("s3:TestEvent", Ignored::TestEvent),
    ] {
        // Nothing else is asked of such a record.
        let value = notification([json!({"eventVersion": "2.3", "eventName": name})]);
        assert_eq!(ignored_in(&value), reason, "{name}");
    }
    for (name, reason) in [
        ("Object Deleted", Ignored::Removed),
        ("Object Restore Initiated", Ignored::Metadata),
        ("Object Restore Completed", Ignored::Metadata),
        ("Object Restore Expired", Ignored::Metadata),
        ("Object Storage Class Changed", Ignored::Metadata),
        ("Object Access Tier Changed", Ignored::Metadata),
        ("Object ACL Updated", Ignored::Metadata),
        ("Object Tags Added", Ignored::Metadata),
        ("Object Tags Deleted", Ignored::Metadata),
    ] {
        let value = json!({"detail-type": name, "source": "aws.s3", "detail": {}});
        assert_eq!(ignored_in(&value), reason, "{name}");
    }
    assert_eq!(Ignored::Removed.as_str(), "removed");
    assert_eq!(Ignored::Metadata.as_str(), "metadata");
    assert_eq!(Ignored::TestEvent.as_str(), "test-event");
}

#[test]
fn an_event_of_an_unknown_kind_is_an_error_and_not_ignored() {
    for name in [
        "ObjectCreated",
        "ObjectCreated:",
        "objectcreated:put",
        "Replication:Recreate",
        "ObjectSynced:",
        "ObjectTeleported:Away",
        "INSERT",
        "s3:s3:ObjectCreated:Put",
    ] {
        let value = notification([json!({"eventName": name})]);
        assert!(
            matches!(
                error_in(&value.to_string()),
                ReadError::UnknownEventName { field: "eventName", got } if got == name
            ),
            "{name}"
        );
    }
    let value = json!({
        "detail-type": "AWS API Call via CloudTrail", "source": "aws.s3", "detail": {},
    });
    assert!(matches!(
        error_in(&value.to_string()),
        ReadError::UnknownEventName {
            field: "detail-type",
            ..
        }
    ));
}

#[test]
fn the_major_number_of_the_version_counts_and_the_minor_does_not() {
    let with_version = |version: &Value| {
        let mut record = record(&json!({"key": "k", "eTag": ETAG}));
        record["eventVersion"] = version.clone();
        record["glacierEventData"] = json!({"new": ["field"]});
        notification([record])
    };
    for version in [
        json!("2.0"),
        json!("2.6"),
        json!("2.10"),
        json!("2"),
        json!(2.6),
        json!(null),
    ] {
        event_in(&with_version(&version));
    }
    for version in [
        json!("3.0"),
        json!("20.1"),
        json!(""),
        json!("v2.1"),
        json!(3),
    ] {
        assert!(
            matches!(
                error_in(&with_version(&version).to_string()),
                ReadError::UnsupportedVersion {
                    field: "eventVersion",
                    ..
                }
            ),
            "{version}"
        );
    }
    assert!(matches!(
        error_in(&with_version(&json!(["2.1"])).to_string()),
        ReadError::WrongType { .. }
    ));

    let mut event = event_bridge(&json!({"key": "k", "etag": ETAG}));
    event["detail"]["event-version"] = json!("1.9");
    event_in(&event);
    event["detail"]["event-version"] = json!("2.0");
    assert_eq!(
        error_in(&event.to_string()).to_string(),
        r#"detail.event-version is "2.0", expected 1.x"#
    );
}

#[test]
fn details_are_told_as_they_stand_and_differ_without_consequence() {
    let record = record(&json!({
        "key": "k", "size": 4096, "eTag": ETAG, "sequencer": "0062E99A88DC407460",
    }));
    let event = event_in(&notification([record.clone()]));
    let expected = EventDetails {
        envelope: Some("S3 notification"),
        event_name: Some("ObjectCreated:Put".into()),
        event_time: Some("2026-01-02T03:04:05.678Z".into()),
        request_id: Some("C3D13FE58DE4C810".into()),
        sequencer: Some("0062E99A88DC407460".into()),
        size: Some(4096),
    };
    assert_eq!(event.details, expected);

    let mut other = record;
    other["eventTime"] = json!("2031-01-01T00:00:00");
    other["responseElements"]["x-amz-request-id"] = json!("other");
    other["s3"]["object"]["sequencer"] = json!("1");
    other["s3"]["object"]["size"] = json!("4096");
    let other = event_in(&notification([other]));
    assert_ne!(other.details, expected);
    assert_eq!(identity_of(&other), identity_of(&event));
    assert_eq!(other.details.size, Some(4096));
}

#[test]
fn a_request_id_is_told_wherever_it_stands() {
    let told = |elements: &str| {
        let text = notification_of("k")
            .to_string()
            .replace(r#"{"x-amz-request-id":"C3D13FE58DE4C810"}"#, elements);
        only(&read_text(&text)).details.request_id
    };
    for elements in [
        r#"{"x-amz-request-id":"R","x-amz-id-2":"I"}"#,
        r#"{ "x-amz-request-id" : "R" }"#,
        r#"{"x-amz-id-2":"I","x-amz-request-id":"R"}"#,
        r#"{"x-amz-request-id":"\u0052"}"#,
    ] {
        assert_eq!(told(elements).as_deref(), Some("R"), "{elements}");
    }
    for elements in ["{}", "[]", "null", r#"{"x-amz-request-id":""}"#] {
        assert_eq!(told(elements), None, "{elements}");
    }
}

#[test]
fn a_field_that_identity_does_not_need_may_hold_anything() {
    let plain = record(&json!({"key": "k", "eTag": ETAG}));
    let expected = identity_of(&event_in(&notification([plain.clone()])));
    let junk = [
        json!(null),
        json!(true),
        json!(-1.5e300),
        json!("x"),
        json!([[1], {}]),
        json!({"a": {"b": []}}),
    ];
    for value in &junk {
        for path in [
            "/eventTime",
            "/userIdentity",
            "/requestParameters",
            "/responseElements",
            "/responseElements/x-amz-request-id",
            "/awsRegion",
            "/attributes",
            "/s3/s3SchemaVersion",
            "/s3/bucket/arn",
            "/s3/object/size",
            "/s3/object/sequencer",
            "/s3/object/version-id",
        ] {
            let mut record = plain.clone();
            let (parent, name) = path.rsplit_once('/').unwrap();
            record.pointer_mut(parent).unwrap()[name] = value.clone();
            let event = event_in(&notification([record]));
            assert_eq!(identity_of(&event), expected, "{path}: {value}");
        }
    }
}

#[test]
fn no_flaw_of_an_unneeded_field_reaches_the_others() {
    let text = sqs([notification_of("k")]).to_string();
    let event = notification_of("k").to_string();
    for (text, field, flaw) in [
        // A number that no machine number holds.
        (&event, r#""2026-01-02T03:04:05.678Z""#, "1e999"),
        (
            &event,
            r#"{"x-amz-request-id":"C3D13FE58DE4C810"}"#,
            "1e999",
        ),
        (
            &event,
            r#"{"x-amz-request-id":"C3D13FE58DE4C810"}"#,
            r#"{"x-amz-request-id":1,"x-amz-request-id":2}"#,
        ),
        (
            &text,
            r#"{"ApproximateReceiveCount":"1","MessageGroupId":"g0"}"#,
            "-1e999",
        ),
    ] {
        let flawed = text.replace(field, flaw);
        assert_ne!(&flawed, text, "{field}");
        let event = event_of(&read_text(&flawed)[0]).clone();
        assert_eq!(event.address.key.exact(), Some("k"));
    }
}
