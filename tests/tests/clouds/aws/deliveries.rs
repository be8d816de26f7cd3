//! An object's way: written, notified, queued, claimed, done. And how batches are answered.

use serde_json::json;
use tests::{
    clouds::aws::{Cloud, Message, batch, failures},
    notification, record,
};

/// A job that notes the key, the attempt and what it was given, and refuses keys with `bad` in them.
const NOTES: &str = r#"
echo "$FIRSTCLAIM_JOB_KEY $FIRSTCLAIM_JOB_ATTEMPT $(cat "$1")" >> ran
case "$FIRSTCLAIM_JOB_KEY" in *bad*) exit 1;; esac
"#;

#[test]
fn a_written_object_is_done_once_however_often_it_is_delivered() {
    let cloud = Cloud::new(NOTES);
    let function = cloud.function(&[]);
    cloud.put("in/roads.shp", "first");
    // S3's own notification, which is delivered, and then delivered again.
    let messages = cloud.receive();
    let notified = messages
        .iter()
        .find(|message| message.body.contains("roads.shp"));
    let body = notified.unwrap().body.clone();
    let delivered = |id: &str| batch(&cloud.queue_arn, &[Message::new(id, body.clone())]);
    for id in ["m1", "m2"] {
        assert_eq!(failures(&function.api.invoke(&delivered(id))), [""; 0]);
    }
    assert_eq!(cloud.lines("ran"), ["in/roads.shp 1 first"]);
    let row = cloud.row();
    assert_eq!((row.text("status"), row.text("attempt")), ("done", "1"));
    let told = cloud.metrics(&function);
    let counts: Vec<_> = told
        .iter()
        .map(|line| {
            (
                line["claimed"].as_u64().unwrap(),
                line["duplicate"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(counts, [(1, 0), (0, 1)]);
    let log = cloud.log(&function);
    let line = log
        .lines()
        .find(|line| line.contains("\"outcome\":\"done\""))
        .unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["job_id"], row.text("job_id"));
    assert!(
        line["span"]["request_id"]
            .as_str()
            .unwrap()
            .starts_with("request-"),
        "{line}"
    );
}

#[test]
fn the_queue_is_emptied_whatever_the_keys_are() {
    let cloud = Cloud::new(NOTES);
    let function = cloud.function(&[]);
    let keys = [
        "a b.shp",
        "a+b.shp",
        "a%2Bb.shp",
        "100%.shp",
        "straße/日本.shp",
        "a//b.shp",
        "a/b.shp",
        "q?x=1&y=2#z;w.shp",
        "=:@,$.shp",
    ];
    for (number, key) in keys.iter().enumerate() {
        cloud.put(key, &number.to_string());
    }
    cloud.drain(&function);
    let mut ran = cloud.lines("ran");
    let mut expected: Vec<_> = keys
        .iter()
        .enumerate()
        .map(|(number, key)| format!("{key} 1 {number}"))
        .collect();
    ran.sort();
    expected.sort();
    assert_eq!(ran, expected);
}

#[test]
fn an_overwritten_object_is_a_job_of_its_own() {
    let cloud = Cloud::new(NOTES);
    let function = cloud.function(&[]);
    for content in ["first", "second"] {
        cloud.put("roads.shp", content);
        cloud.drain(&function);
    }
    assert_eq!(
        cloud.lines("ran"),
        ["roads.shp 1 first", "roads.shp 1 second"]
    );
    assert_eq!(cloud.rows().len(), 2);
}

#[test]
fn each_version_of_a_versioned_object_is_read_as_it_was() {
    let cloud = Cloud::new(NOTES);
    cloud.version_the_bucket();
    let function = cloud.function(&[]);
    let versions = ["first", "second"].map(|content| cloud.put("roads.shp", content).1.unwrap());
    // The older one is delivered last, when the newer has long taken its place.
    for version in versions.iter().rev() {
        let record = json!({
            "eventVersion": "2.1", "eventSource": "aws:s3", "eventName": "ObjectCreated:Put",
            "s3": {"bucket": {"name": cloud.name}, "object": {"key": "roads.shp", "eTag": "e", "versionId": version}},
        });
        let message = Message::new(version, notification(&[record.to_string()]));
        assert_eq!(
            failures(&function.api.invoke(&batch(&cloud.queue_arn, &[message]))),
            [""; 0]
        );
    }
    assert_eq!(
        cloud.lines("ran"),
        ["roads.shp 1 second", "roads.shp 1 first"]
    );
    let done = cloud
        .rows()
        .iter()
        .filter(|row| row.text("status") == "done")
        .count();
    assert_eq!(done, 2);
}

#[test]
fn of_a_batch_only_what_failed_comes_again() {
    let cloud = Cloud::new(NOTES);
    let function = cloud.function(&[("FIRSTCLAIM_CONCURRENCY", "4")]);
    let of = |id: &str, key: &str| {
        let etag = cloud.put(key, key).0;
        Message::new(
            id,
            notification(&[record(key, &etag).replace("geo-in", &cloud.name)]),
        )
    };
    let messages = [
        of("good", "good.shp"),
        of("bad", "bad.shp"),
        Message::new(
            "test",
            json!({"Event": "s3:TestEvent", "Bucket": cloud.name}).to_string(),
        ),
        Message::new("garbage", "no event at all"),
        of("good again", "good.shp"),
        of("other", "other.shp"),
    ];
    let answer = function.api.invoke(&batch(&cloud.queue_arn, &messages));
    assert_eq!(failures(&answer), ["bad"]);
    let mut ran = cloud.lines("ran");
    ran.sort();
    assert_eq!(
        ran,
        [
            "bad.shp 1 bad.shp",
            "good.shp 1 good.shp",
            "other.shp 1 other.shp"
        ]
    );
    assert_eq!(cloud.row_of("bad.shp").text("status"), "failed");
    let rejected = cloud
        .rows()
        .iter()
        .filter(|row| row.text("status") == "rejected")
        .count();
    assert_eq!(rejected, 1, "what could not be read is recorded");
    let metrics = &cloud.metrics(&function)[0];
    for (name, count) in [
        ("claimed", 3),
        ("done", 2),
        ("duplicate", 1),
        ("failed", 1),
        ("rejected", 1),
        ("ignored", 1),
        ("held", 0),
        ("unavailable", 0),
    ] {
        assert_eq!(metrics[name], count, "{name}: {metrics}");
    }
    assert_eq!(metrics["job_milliseconds"].as_array().unwrap().len(), 3);
}

#[test]
fn a_failure_that_cannot_be_named_brings_the_whole_batch_again() {
    let cloud = Cloud::new(NOTES);
    let function = cloud.function(&[]);
    let etag = cloud.put("bad.shp", "x").0;
    let body = notification(&[record("bad.shp", &etag).replace("geo-in", &cloud.name)]);
    let nameless = json!({"Records": [{"body": body, "receiptHandle": "r", "eventSource": "aws:sqs",
        "eventSourceARN": cloud.queue_arn}]});
    let error = function.api.invoke(&nameless.to_string()).unwrap_err();
    assert_eq!(error["errorType"], "firstclaim.Retry");
}

#[test]
fn in_a_fifo_queue_nothing_overtakes_a_failure_of_its_group() {
    let cloud = Cloud::new(NOTES);
    let function = cloud.function(&[("FIRSTCLAIM_CONCURRENCY", "4")]);
    let of = |id: &str, group: &str, key: &str| {
        let etag = cloud.put(key, key).0;
        let body = notification(&[record(key, &etag).replace("geo-in", &cloud.name)]);
        let mut message = Message::new(id, body);
        message.group = Some(group.to_owned());
        message
    };
    let messages = [
        of("a1", "a", "a1.shp"),
        of("b1", "b", "b1.shp"),
        of("a2", "a", "a2-bad.shp"),
        of("a3", "a", "a3.shp"),
        of("b2", "b", "b2.shp"),
        of("a4", "a", "a4.shp"),
    ];
    let arn = format!("{}.fifo", cloud.queue_arn);
    assert_eq!(
        failures(&function.api.invoke(&batch(&arn, &messages))),
        ["a2", "a3", "a4"]
    );
    let ran = cloud.lines("ran");
    let of_group = |group: &str| -> Vec<_> {
        ran.iter()
            .filter(|line| line.starts_with(group))
            .cloned()
            .collect()
    };
    assert_eq!(
        of_group("a"),
        ["a1.shp 1 a1.shp", "a2-bad.shp 1 a2-bad.shp"]
    );
    assert_eq!(of_group("b"), ["b1.shp 1 b1.shp", "b2.shp 1 b2.shp"]);
    // The same batch through a queue without an order: a group's name is no order there.
    assert_eq!(
        failures(&function.api.invoke(&batch(&cloud.queue_arn, &messages))),
        ["a2"]
    );
}
