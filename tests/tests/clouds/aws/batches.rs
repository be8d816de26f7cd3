//! How batches of a queue are answered.

use serde_json::json;
use tests::clouds::{
    Cloud as _, Message,
    aws::{Aws, batch, failures, metrics},
};

use crate::scenarios::NOTES;

#[test]
fn of_a_batch_only_what_failed_comes_again() {
    let cloud = Aws::new(NOTES);
    let function = cloud.handler(&[("FIRSTCLAIM_CONCURRENCY", "4")]);
    let of = |id: &str, key: &str| Message::new(id, cloud.notified(key, key));
    let messages = [
        of("good", "good.shp"),
        of("bad", "bad.shp"),
        Message::new(
            "test",
            json!({"Event": "s3:TestEvent", "Bucket": cloud.names.bucket}).to_string(),
        ),
        Message::new("garbage", "no event at all"),
        of("good again", "good.shp"),
        of("other", "other.shp"),
    ];
    let answer = function
        .api
        .invoke(&batch(&cloud.names.queue_arn, &messages));
    assert_eq!(failures(&answer), ["bad"]);
    let mut ran = cloud.folder().lines("ran");
    ran.sort();
    assert_eq!(
        ran,
        [
            "bad.shp 1 bad.shp",
            "good.shp 1 good.shp",
            "other.shp 1 other.shp"
        ]
    );
    assert_eq!(cloud.claim_of("bad.shp").standing(), ("failed", 1));
    let rejected = cloud
        .claims()
        .iter()
        .filter(|claim| claim.standing().0 == "rejected")
        .count();
    assert_eq!(rejected, 1, "what could not be read is recorded");
    let metrics = &metrics(&function)[0];
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
    let cloud = Aws::new(NOTES);
    let function = cloud.handler(&[]);
    let body = cloud.notified("bad.shp", "x");
    let nameless = json!({"Records": [{"body": body, "receiptHandle": "r", "eventSource": "aws:sqs",
        "eventSourceARN": cloud.names.queue_arn}]});
    let error = function.api.invoke(&nameless.to_string()).unwrap_err();
    assert_eq!(error["errorType"], "firstclaim.Retry");
}

#[test]
fn in_a_fifo_queue_nothing_overtakes_a_failure_of_its_group() {
    let cloud = Aws::new(NOTES);
    let function = cloud.handler(&[("FIRSTCLAIM_CONCURRENCY", "4")]);
    let of = |id: &str, group: &str, key: &str| {
        let mut message = Message::new(id, cloud.notified(key, key));
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
    let arn = format!("{}.fifo", cloud.names.queue_arn);
    assert_eq!(
        failures(&function.api.invoke(&batch(&arn, &messages))),
        ["a2", "a3", "a4"]
    );
    let ran = cloud.folder().lines("ran");
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
        failures(
            &function
                .api
                .invoke(&batch(&cloud.names.queue_arn, &messages))
        ),
        ["a2"]
    );
}
