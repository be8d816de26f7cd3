//! The four ways in, with and without a queue: one job each, whichever way it comes again.

use serde_json::{Value, json};
use tests::{
    clouds::{
        Cloud as _, Message,
        aws::{Aws, batch, failures},
    },
    notification, record_in,
};

const NOTES: &str = r#"echo "$FIRSTCLAIM_JOB_KEY" >> ran
case "$FIRSTCLAIM_JOB_KEY" in *bad*) exit 1;; esac"#;

/// The event of this object as each service wraps it, from the function's point of view.
fn all(cloud: &Aws, key: &str, etag: &str) -> [String; 6] {
    let s3 = notification(&[record_in(&cloud.names.bucket, key, etag)]);
    let event_bridge = json!({
        "version": "0", "id": "1", "detail-type": "Object Created", "source": "aws.s3",
        "detail": {"version": "0", "bucket": {"name": cloud.names.bucket}, "object": {"key": key, "etag": etag},
            "reason": "PutObject"},
    });
    let sns = json!({"Records": [{"EventSource": "aws:sns", "EventVersion": "1.0",
        "Sns": {"Type": "Notification", "Message": s3}}]});
    let sns_in_sqs =
        json!({"Type": "Notification", "TopicArn": "arn:aws:sns:eu-central-1:1:t", "Message": s3});
    let queued = |body: String| batch(&cloud.names.queue_arn, &[Message::new("m", body)]);
    [
        s3.clone(),
        queued(s3),
        sns.to_string(),
        queued(sns_in_sqs.to_string()),
        event_bridge.to_string(),
        queued(event_bridge.to_string()),
    ]
}

#[test]
fn an_event_is_one_job_in_every_envelope() {
    let cloud = Aws::new(NOTES);
    let function = cloud.handler(&[]);
    let keys: Vec<String> = (0..6).map(|number| format!("{number}.shp")).collect();
    for (first, key) in keys.iter().enumerate() {
        let etag = cloud.put(key, key);
        let envelopes = all(&cloud, key, &etag);
        // Each envelope once as the first, and all others after it.
        for step in 0..envelopes.len() {
            let answer = function
                .api
                .invoke(&envelopes[(first + step) % envelopes.len()]);
            let reply = answer.unwrap_or_else(|error| panic!("{key} {step}: {error}"));
            match reply.get("batchItemFailures") {
                Some(failures) => assert_eq!(failures, &json!([])),
                None => {
                    let count = |name: &str| reply[name].as_u64().unwrap();
                    assert_eq!(count("done") + count("duplicate"), 1, "{reply}");
                }
            }
        }
    }
    assert_eq!(cloud.folder().lines("ran"), keys);
}

#[test]
fn a_failed_job_fails_its_invocation_where_there_is_no_queue() {
    let cloud = Aws::new(NOTES);
    let function = cloud.handler(&[]);
    let etag = cloud.put("bad.shp", "x");
    for (number, envelope) in all(&cloud, "bad.shp", &etag).iter().enumerate() {
        let answer = function.api.invoke(envelope);
        if number % 2 == 1 {
            assert_eq!(failures(&answer), ["m"]);
            continue;
        }
        let error = answer.unwrap_err();
        assert_eq!(error["errorType"], "firstclaim.Retry");
        assert!(
            error["errorMessage"]
                .as_str()
                .unwrap()
                .contains("bad.shp is failed"),
            "{error}"
        );
    }
    assert_eq!(cloud.claim().standing(), ("failed", 6));
}

#[test]
fn what_cannot_be_read_is_recorded_and_not_delivered_again() {
    let cloud = Aws::new(NOTES);
    let function = cloud.handler(&[]);
    for payload in ["{}", "null", r#"{"Records":[]}"#, r#"{"hello":"world"}"#] {
        let reply: Value = function.api.invoke(payload).unwrap();
        assert_eq!(reply["rejected"], 1, "{payload}: {reply}");
    }
    assert_eq!(cloud.claims().len(), 4);
}
