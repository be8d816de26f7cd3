//! Envelopes in envelopes, and batches: every item on its own, bound to where it came from.

use super::*;

fn object() -> Value {
    json!({"key": "in/東京+v2", "size": 4096, "etag": ETAG, "version-id": VERSION})
}

/// The same write as a notification record.
fn as_notification() -> Value {
    notification([record(&json!({
        "key": "in/%E6%9D%B1%E4%BA%AC%2Bv2", "size": 4096, "eTag": ETAG, "versionId": VERSION,
    }))])
}

#[test]
fn one_write_is_one_object_version_through_every_envelope() {
    let direct = as_notification();
    let bridge = event_bridge(&object());
    let expected = identity_of(&event_in(&direct));
    for (name, value) in [
        ("SQS", sqs([direct.clone()])),
        ("SNS", sns(&direct)),
        ("SNS to a function", sns_to_function(&direct)),
        ("SNS in SQS", sqs([sns(&direct)])),
        ("EventBridge", bridge.clone()),
        ("EventBridge in SQS", sqs([bridge.clone()])),
        ("EventBridge in SNS", sns_to_function(&bridge)),
        ("EventBridge in SNS in SQS", sqs([sns(&bridge)])),
        ("SQS in SQS", sqs([sqs([direct.clone()])])),
        ("a record alone", direct["Records"][0].clone()),
        ("records without a name", direct["Records"].clone()),
        (
            "a message alone",
            sqs([direct.clone()])["Records"][0].clone(),
        ),
    ] {
        assert_eq!(identity_of(&event_in(&value)), expected, "{name}");
    }
}

#[test]
fn messages_are_read_in_the_form_of_the_api_too() {
    let messages = json!([{
        "MessageId": "m0",
        "ReceiptHandle": "r0",
        "Body": as_notification().to_string(),
        "Attributes": {"MessageGroupId": "g0"},
    }]);
    for value in [messages.clone(), json!({ "Messages": messages })] {
        let items = read_value(&value);
        assert_eq!(
            identity_of(event_of(&items[0])),
            identity_of(&event_in(&as_notification()))
        );
        assert_eq!(
            *items[0].origin,
            Origin {
                index: 0,
                message_id: Some("m0".into()),
                receipt_handle: Some("r0".into()),
                message_group_id: Some("g0".into()),
                queue_arn: None,
            }
        );
    }
}

#[test]
fn a_message_given_to_a_function_names_its_queue() {
    let arn = "arn:aws:sqs:eu-central-1:123456789012:events.fifo";
    let value = json!({"Records": [{
        "messageId": "m0",
        "receiptHandle": "r0",
        "body": as_notification().to_string(),
        "attributes": {"MessageGroupId": "g0"},
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
    }]});
    let origin = &read_value(&value)[0].origin;
    assert_eq!(origin.queue_arn.as_deref(), Some(arn));
    assert_eq!(origin.message_group_id.as_deref(), Some("g0"));
}

#[test]
fn a_test_event_is_ignored_at_any_depth() {
    let test = test_event();
    for value in [
        test.clone(),
        sqs([test.clone()]),
        sns(&test),
        sns_to_function(&test),
        sqs([sns(&test)]),
        notification([test.clone()]),
    ] {
        assert_eq!(ignored_in(&value), Ignored::TestEvent, "{value}");
    }
}

#[test]
fn in_a_batch_only_the_bad_message_is_bad() {
    let bad = json!({"hello": "world"});
    let items = read_value(&sqs([
        notification_of("a.shp"),
        test_event(),
        bad.clone(),
        event_bridge(&object()),
    ]));
    let ids: Vec<_> = items
        .iter()
        .map(|item| item.origin.message_id.as_deref().unwrap())
        .collect();
    assert_eq!(ids, ["m0", "m1", "m2", "m3"]);
    event_of(&items[0]);
    assert!(matches!(
        items[1].reading,
        Reading::Ignored(Ignored::TestEvent)
    ));
    match &items[2].reading {
        Reading::Unreadable(unreadable) => {
            assert_eq!(unreadable.bytes, bad.to_string().as_bytes());
        }
        other => panic!("{other:?}"),
    }
    event_of(&items[3]);
}

#[test]
fn all_records_of_one_message_share_its_origin() {
    let two = notification([
        record(&json!({"key": "a", "eTag": ETAG})),
        json!("no record"),
    ]);
    let items = read_value(&sqs([notification_of("z"), two]));
    assert_eq!(items.len(), 3);
    assert!(!Arc::ptr_eq(&items[0].origin, &items[1].origin));
    assert!(Arc::ptr_eq(&items[1].origin, &items[2].origin));
    assert_eq!(items[1].origin.index, 1);
    assert_eq!(items[1].origin.message_id.as_deref(), Some("m1"));
    match &items[2].reading {
        Reading::Unreadable(unreadable) => assert_eq!(unreadable.bytes, b"\"no record\""),
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_the_outermost_message_is_answered() {
    let items = read_value(&sqs([sqs([notification_of("a"), notification_of("b")])]));
    assert_eq!(items.len(), 2);
    for item in &items {
        assert_eq!(item.origin.message_id.as_deref(), Some("m0"));
        assert_eq!(item.origin.index, 0);
    }
    assert_eq!(event_of(&items[1]).address.key.exact(), Some("b"));
}

#[test]
fn one_message_twice_in_a_batch_is_two_equal_items() {
    let mut batch = sqs([notification_of("a")]);
    let message = batch["Records"][0].clone();
    batch["Records"].as_array_mut().unwrap().push(message);
    let items = read_value(&batch);
    assert_eq!(event_of(&items[0]), event_of(&items[1]));
    assert_eq!(items[0].origin.message_id, items[1].origin.message_id);
    assert_eq!([items[0].origin.index, items[1].origin.index], [0, 1]);
}

#[test]
fn a_message_without_a_usable_id_is_read_and_has_none() {
    for id in [json!(null), json!(""), json!({})] {
        let mut batch = sqs([notification_of("a")]);
        batch["Records"][0]["messageId"] = id;
        let items = read_value(&batch);
        event_of(&items[0]);
        assert_eq!(items[0].origin.message_id, None);
    }
}

#[test]
fn a_direct_notification_has_no_message_to_answer() {
    let record = record(&json!({"key": "a", "eTag": ETAG}));
    let items = read_value(&notification([record.clone(), record]));
    assert_eq!(
        items.iter().map(|item| &*item.origin).collect::<Vec<_>>(),
        [
            &Origin::default(),
            &Origin {
                index: 1,
                ..Origin::default()
            }
        ]
    );
    assert_eq!(
        *read_value(&event_bridge(&object()))[0].origin,
        Origin::default()
    );
}

#[test]
fn one_record_that_cannot_even_be_parsed_leaves_the_others_alone() {
    let good = record(&json!({"key": "a", "eTag": ETAG})).to_string();
    let twice = good.replace(r#""key":"a""#, r#""key":"a","key":"b""#);
    assert_ne!(good, twice);
    for text in [
        format!(r#"{{"Records":[{good},{twice},{good}]}}"#),
        format!(r#"{{"Messages":[{good},{twice},{good}]}}"#),
        format!("[{good},{twice},{good}]"),
    ] {
        let items = read_text(&text);
        assert_eq!(items.len(), 3, "{text}");
        event_of(&items[0]);
        event_of(&items[2]);
        assert_eq!(items[1].origin.index, 1);
        match &items[1].reading {
            Reading::Unreadable(Unreadable {
                error: ReadError::NotJson { .. },
                bytes,
            }) => assert_eq!(bytes, twice.as_bytes()),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn sns_messages_about_subscriptions_are_told_and_not_followed() {
    let mut message = sns(&json!("You have chosen to subscribe"));
    message["Type"] = json!("SubscriptionConfirmation");
    message["SubscribeURL"] = json!("https://example.com/confirm");
    assert_eq!(
        error_in(&sqs([message]).to_string()).to_string(),
        r#"Type is "SubscriptionConfirmation", expected "Notification""#
    );
}

#[test]
fn a_message_that_cannot_be_parsed_can_still_be_answered() {
    let text = sqs([notification_of("a"), json!("x"), notification_of("c")]).to_string();
    for damaged in [r#""\ud800""#, r#""{}","body":"{}""#] {
        let text = text.replace(r#""\"x\"""#, damaged);
        let items = read_text(&text);
        assert_eq!(items.len(), 3);
        event_of(&items[0]);
        event_of(&items[2]);
        assert!(matches!(items[1].reading, Reading::Unreadable(_)));
        let origin = &items[1].origin;
        assert_eq!(origin.index, 1);
        assert_eq!(origin.message_id.as_deref(), Some("m1"));
        assert_eq!(origin.receipt_handle.as_deref(), Some("r1"));
        assert_eq!(origin.message_group_id.as_deref(), Some("g1"));
    }
}

#[test]
fn what_lambda_could_not_deliver_is_read_from_its_record() {
    let payload = notification([
        record(&json!({"key": "a", "eTag": ETAG})),
        record(&json!({"key": "b", "eTag": ETAG})),
    ]);
    let failed = json!({
        "version": "1.0",
        "timestamp": "2026-01-02T03:10:05.000Z",
        "requestContext": {
            "requestId": "e4b46cbf",
            "functionArn": "arn:aws:lambda:eu-north-1:123456789012:function:firstclaim:$LATEST",
            "condition": "RetriesExhausted",
            "approximateInvokeCount": 3,
        },
        "requestPayload": payload,
        "responseContext": {"statusCode": 200, "functionError": "Unhandled"},
        "responsePayload": {"errorMessage": "the table is away"},
    });
    let messages = json!({"Messages": [
        {"MessageId": "m0", "Body": failed.to_string()},
        {"MessageId": "m1", "Body": payload.to_string()},
    ]});
    let keys = |items: &[Item]| -> Vec<_> {
        let events = items.iter().map(event_of);
        events
            .map(|event| event.address.key.exact().unwrap().to_owned())
            .collect()
    };
    let alone = read_value(&failed);
    assert_eq!(keys(&alone), ["a", "b"]);
    assert_eq!(alone[0].carriers.outermost(), Some(Carrier::LambdaRecord));
    let items = read_value(&messages);
    assert_eq!(keys(&items), ["a", "b", "a", "b"]);
    let ids = items.iter().map(|item| item.origin.message_id.as_deref());
    assert_eq!(
        ids.collect::<Vec<_>>(),
        [Some("m0"), Some("m0"), Some("m1"), Some("m1")]
    );
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    let payload = notification([record(&json!({"key": "a", "eTag": ETAG}))]).to_string();
    let expected = identity_of(event_of(&read_text(&payload)[0]));
    let marked = format!("\u{feff}{payload}");
    for text in [
        marked.clone(),
        format!("\u{feff} \n{payload}"),
        json!({"Messages": [{"MessageId": "m", "Body": &marked}]}).to_string(),
        json!({"MessageId": "m", "MessageText": &marked}).to_string(),
        json!({"MessageId": "m", "MessageText": base64(&marked)}).to_string(),
        json!({"MessageId": "m", "MessageText": json!(marked).to_string()}).to_string(),
    ] {
        assert_eq!(
            identity_of(event_of(&read_text(&text)[0])),
            expected,
            "{text}"
        );
    }
    // One alone is no event, and a second is none.
    for text in ["\u{feff}".to_owned(), format!("\u{feff}{marked}")] {
        unreadable_of(read_text(&text));
    }
}
