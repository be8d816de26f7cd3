//! What is no event, or a damaged one: a clear error each, in short words, and never nothing.

use std::error::Error as _;

use super::*;

/// Every message of an error and its causes.
fn messages(error: &ReadError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

#[test]
fn what_is_no_event_says_what_it_is() {
    for (text, message) in [
        ("", "the event is empty"),
        (" \n", "the event is empty"),
        ("null", "no known event envelope: null"),
        ("true", "no known event envelope: a boolean"),
        ("42", "no known event envelope: a number"),
        (r#""x""#, "no known event envelope: a string"),
        ("{}", "no known event envelope: an object without fields"),
        (
            "[]",
            "the event is an empty list: an envelope without an event",
        ),
        ("[[]]", "no known event envelope: an array"),
        (
            r#"{"Records":[]}"#,
            "Records is an empty list: an envelope without an event",
        ),
        (
            r#"{"Messages":[]}"#,
            "Messages is an empty list: an envelope without an event",
        ),
        (
            r#"{"Records":{}}"#,
            "Records is an object, expected an array",
        ),
        (
            r#"{"Records":"x"}"#,
            "Records is a string, expected an array",
        ),
        (
            r#"{"Records":null}"#,
            r#"no known event envelope: an object with the fields "Records""#,
        ),
        (
            r#"{"Records":[],"Messages":[]}"#,
            r#"no known event envelope: an object with the fields "Records", "Messages""#,
        ),
        (
            r#"{"records":[{"xAmzId2":"x","eventTime":1767323045}]}"#,
            r#"no known event envelope: an object with the fields "records""#,
        ),
        (
            r#"{"Records":[{"kinesis":{}}]}"#,
            r#"no known event envelope: an object with the fields "kinesis""#,
        ),
        (
            r#"{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}"#,
            r#"no known event envelope: an object with the fields "a", "b", "c", "d", "e", "f", "g", "h", …"#,
        ),
        (
            r#"{"Event":"s3:OtherEvent"}"#,
            r#"no known event envelope: an object with the fields "Event""#,
        ),
        (
            r#"{"detail-type":"Object Created","source":"aws.ec2","detail":{}}"#,
            r#"source is "aws.ec2", expected "aws.s3""#,
        ),
        (r#"{"detail-type":"Object Created"}"#, "source is missing"),
        (
            r#"{"detail-type":"Object Created","source":"aws.s3"}"#,
            "detail is missing",
        ),
        (
            r#"{"Type":"Notification","TopicArn":"arn:aws:sns:x"}"#,
            "Message is missing",
        ),
        (
            r#"{"Type":"Notification","Message":{}}"#,
            "Message is an object, expected a string",
        ),
        (
            r#"{"Type":7,"Message":"{}"}"#,
            "Type is a number, expected a string",
        ),
        (
            r#"{"Records":[{"Sns":"x"}]}"#,
            "Sns is a string, expected an object",
        ),
        (r#"{"Records":[{"messageId":"1"}]}"#, "body is missing"),
        (
            r#"{"Records":[{"body":{"Records":[]}}]}"#,
            "body is an object, expected a string",
        ),
        (r#"{"Records":[{"body":""}]}"#, "body is empty"),
        (r#"{"Records":[{"body":" "}]}"#, "the event is empty"),
        (
            r#"{"Records":[{"body":"\ud800"}]}"#,
            "the event is not JSON that can be read without doubt: \
             unexpected end of hex escape at line 1 column 16",
        ),
    ] {
        assert_eq!(messages(&error_in(text)), message, "{text}");
    }
}

#[test]
fn what_is_no_json_is_unreadable_as_a_whole() {
    for text in [
        "{",
        "[",
        "{\"Records\":[",
        "{\"Records\":[{}]",
        "{} {}",
        "nul",
        "hello",
        "<xml/>",
        "{'a':1}",
        "{}\u{feff}",
        "{\"a\":01}",
    ] {
        assert!(
            matches!(error_in(text), ReadError::NotJson { .. }),
            "{text}"
        );
    }
    for bytes in [&b"\xff\xfe\x00\x01"[..], b"{\"Records\":\"\xff\"}"] {
        let items = read(&Delivery::from_body(bytes));
        assert_eq!(items.len(), 1);
        match &items[0].reading {
            Reading::Unreadable(Unreadable {
                error: ReadError::NotUtf8 { .. },
                bytes: kept,
            }) => assert_eq!(kept, bytes),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_identity_needs_must_be_there_and_be_text() {
    type Edit = fn(&mut Value);
    let edits: [(Edit, &str); 14] = [
        (|r| r["eventName"] = json!(null), "eventName is missing"),
        (|r| r["eventName"] = json!(""), "eventName is empty"),
        (
            |r| r["eventName"] = json!(1),
            "eventName is a number, expected a string",
        ),
        (|r| r["s3"] = json!(null), "s3 is missing"),
        (
            |r| r["s3"] = json!([]),
            "s3 is an array, expected an object",
        ),
        (|r| r["s3"]["bucket"] = json!(null), "s3.bucket is missing"),
        (
            |r| r["s3"]["bucket"] = json!(["geo-in"]),
            "s3.bucket is an array, expected an object",
        ),
        (
            |r| r["s3"]["bucket"]["name"] = json!(""),
            "s3.bucket.name is empty",
        ),
        (
            |r| r["s3"]["bucket"]["name"] = json!({}),
            "s3.bucket.name is an object, expected a string",
        ),
        (|r| r["s3"]["object"] = json!(null), "s3.object is missing"),
        (
            |r| r["s3"]["object"]["key"] = json!(null),
            "s3.object.key is missing",
        ),
        (
            |r| r["s3"]["object"]["key"] = json!(""),
            "s3.object.key is empty",
        ),
        (
            |r| r["s3"]["object"]["eTag"] = json!(12),
            "s3.object.eTag is a number, expected a string",
        ),
        (
            |r| r["s3"]["object"]["versionId"] = json!(false),
            "s3.object.versionId is a boolean, expected a string",
        ),
    ];
    for (edit, message) in edits {
        let mut record = record(&json!({"key": "k", "eTag": ETAG, "versionId": VERSION}));
        edit(&mut record);
        let text = notification([record]).to_string();
        assert_eq!(error_in(&text).to_string(), message);
    }
    let bridge = event_bridge(&json!({"key": ""})).to_string();
    assert_eq!(error_in(&bridge).to_string(), "detail.object.key is empty");
}

#[test]
fn half_a_surrogate_pair_spoils_what_needs_it_and_nothing_else() {
    let good = notification_of("k").to_string();
    let bad_key = good.replace(r#""key":"k""#, r#""key":"\ud800""#);
    assert!(matches!(error_in(&bad_key), ReadError::NotJson { .. }));
    let bad_time = good.replace("2026-01-02T03:04:05.678Z", r"\ud800");
    assert_ne!(bad_time, good);
    assert_eq!(event_of(&read_text(&bad_time)[0]).details.event_time, None);
}

#[test]
fn the_smallest_unreadable_part_keeps_its_bytes_and_reads_the_same_alone() {
    let mut bad = record(&json!({"key": "k", "eTag": ETAG}));
    bad["eventVersion"] = json!("3.0");
    for value in [
        notification([record(&json!({"key": "k", "eTag": ETAG})), bad.clone()]),
        sqs([notification([bad.clone()])]),
        sqs([sns(&notification([bad.clone()]))]),
        json!([bad.clone()]),
    ] {
        let items = read_value(&value);
        match &items.last().unwrap().reading {
            Reading::Unreadable(unreadable) => {
                assert_eq!(unreadable.bytes, bad.to_string().as_bytes());
                let again = error_in(std::str::from_utf8(&unreadable.bytes).unwrap());
                assert_eq!(again.to_string(), unreadable.error.to_string());
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn megabytes_of_brackets_are_one_error() {
    const COUNT: usize = 1 << 20;
    for text in [
        "[".repeat(10 << 20),
        "{\"a\":".repeat(COUNT / 5),
        "{\"Records\":[".repeat(COUNT / 12),
        "[{\"s3\":".repeat(COUNT / 7),
        format!("{{\"Records\":{}", "[".repeat(COUNT)),
    ] {
        assert!(matches!(error_in(&text), ReadError::NotJson { .. }));
    }
    let closed = format!("{}{}", "[".repeat(COUNT / 2), "]".repeat(COUNT / 2));
    assert!(matches!(
        error_in(&closed),
        ReadError::UnknownEnvelope { .. }
    ));
}

#[test]
fn depth_in_a_field_that_nobody_needs_does_no_harm() {
    let nested = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let text = notification_of("k")
        .to_string()
        .replace(r#"{"principalId":"AWS:AIDAEXAMPLE"}"#, &nested);
    assert!(text.len() > nested.len());
    event_of(&read_text(&text)[0]);
}

#[test]
fn envelopes_are_followed_to_a_depth_and_no_further() {
    // Raw SNS in SNS, whose quotes double with each level.
    let nest = |levels: usize| {
        let mut value = notification_of("k");
        for _ in 0..levels {
            value = sns(&value);
        }
        value.to_string()
    };
    event_of(&read_text(&nest(MAX_DEPTH))[0]);
    assert!(matches!(
        error_in(&nest(MAX_DEPTH + 1)),
        ReadError::TooDeep { limit: MAX_DEPTH }
    ));
}

#[test]
fn a_list_beyond_any_batch_is_one_error() {
    let list = |count: usize| format!("{{\"Records\":[{}{{}}]}}", "{},".repeat(count - 1));
    assert_eq!(read_text(&list(MAX_ITEMS)).len(), MAX_ITEMS);
    assert!(matches!(
        error_in(&list(MAX_ITEMS + 1)),
        ReadError::TooManyItems { got, limit, .. } if got == MAX_ITEMS + 1 && limit == MAX_ITEMS
    ));
    // Nor can many small lists get round it: each message carries half of what is allowed.
    let half: Value = serde_json::from_str(&list(MAX_ITEMS / 2)).unwrap();
    let items = read_value(&sqs([half.clone(), half.clone(), half]));
    assert_eq!(items.len(), MAX_ITEMS + 1);
    assert_eq!(
        items.last().unwrap().origin.message_id.as_deref(),
        Some("m2")
    );
}

#[test]
fn a_message_stays_short_whatever_arrived() {
    let long = "é".repeat(1 << 20);
    let mut unknown = record(&json!({"key": "k"}));
    unknown["eventName"] = json!(long);
    let mut version = record(&json!({"key": "k"}));
    version["eventVersion"] = json!(long);
    let mut source = event_bridge(&json!({"key": "k"}));
    source["source"] = json!(long);
    let mut sns_type = sns(&json!({}));
    sns_type["Type"] = json!(long);
    let mut fields = json!({});
    for index in 0..20 {
        fields[format!("{index}{long}")] = json!(1);
    }
    for value in [
        notification([unknown]),
        notification([version]),
        source,
        sns_type,
        fields,
        json!(long),
        sqs([json!({ "x": long })]),
    ] {
        let message = messages(&error_in(&value.to_string()));
        assert!(message.len() < 1_500, "{message}");
    }
}
