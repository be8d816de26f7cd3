//! `deploy/aws` while `source_kind` is changed in each of its twelve directions, and objects are uploaded: none is lost.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tests::{
    clouds::{
        Cloud as _,
        aws::{Aws, Names},
    },
    server,
    terraform::Deployment,
};

/// A walk that takes each of the twelve changes once.
const WALK: [&str; 13] = [
    "sqs",
    "direct",
    "sqs",
    "sns",
    "sqs",
    "eventbridge",
    "direct",
    "sns",
    "direct",
    "eventbridge",
    "sns",
    "eventbridge",
    "sqs",
];

/// One object in half a second, as a person's uploader would.
const PAUSE: Duration = Duration::from_millis(500);

/// What is done to what Terraform manages: addresses, and what happens there.
fn changes(plan: &Value) -> Vec<(&str, &Value)> {
    let changes = plan["resource_changes"].as_array().unwrap().iter();
    changes
        .filter(|change| change["mode"] == "managed")
        .map(|change| {
            let address = change["address"].as_str().unwrap();
            (address, &change["change"]["actions"])
        })
        .filter(|(_, actions)| **actions != json!(["no-op"]))
        .collect()
}

/// Whether S3 tells the function itself of new objects.
fn is_direct(cloud: &Aws) -> bool {
    let named = cloud.s3.get_bucket_notification_configuration();
    let named = named.bucket(&cloud.names.bucket);
    loop {
        // The emulator answers one at a time, Terraform too: it may take longer than a client waits.
        if let Ok(named) = cloud.wait(named.clone().send()) {
            return !named.lambda_function_configurations().is_empty();
        }
    }
}

/// Uploads until it is told to stop. The keys, and whether S3 may have told the function itself of each: by what the bucket
/// named before, or by what it names after.
fn upload(cloud: &Aws, prefix: &str, stop: &AtomicBool) -> Vec<(String, bool)> {
    let mut uploaded = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let key = format!("{prefix}/{}", uploaded.len());
        let before = is_direct(cloud);
        let put = || cloud.s3.put_object().bucket(&cloud.names.bucket).key(&key);
        while cloud.wait(put().send()).is_err() {}
        uploaded.push((key, before || is_direct(cloud)));
        thread::sleep(PAUSE);
    }
    uploaded
}

/// The key in a message, whichever way it came; none in the test message that S3 sends to what it is told to name.
fn key(body: &str) -> Option<String> {
    let event: Value = serde_json::from_str(body).unwrap();
    let key = match &event["detail"] {
        Value::Null => &event["Records"][0]["s3"]["object"]["key"],
        detail => &detail["object"]["key"],
    };
    let test = event["Event"] == "s3:TestEvent";
    assert!(test || key.is_string(), "{body}");
    Some(key.as_str()?.replace("%2F", "/"))
}

/// All keys that the queue has, which is empty afterwards.
fn arrived(cloud: &Aws) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    // The queue waits for messages, and longer than a client does.
    while cloud.depth() > 0 {
        for message in cloud.receive() {
            keys.extend(key(&message.body));
            cloud.acknowledge(&message);
        }
    }
    keys
}

/// What an emulator cannot show is in the plan: that one call alone is made, which replaces what the bucket names, while
/// every topic, rule, permission and policy stays.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketNotificationConfiguration.html>
#[test]
fn a_change_of_source_loses_no_event() {
    let name = format!("sources-{:08x}", fastrand::u32(..));
    let moto = server("TEST_MOTO_URL");
    let deployment = Deployment::new(&moto, &[("name", &name)]);
    let outputs = deployment.apply();
    let output = |name: &str| outputs[name].as_str().unwrap().to_owned();
    let names = Names {
        bucket: output("bucket"),
        table: output("table"),
        queue_url: output("queue_url"),
        queue_arn: output("queue_arn"),
    };
    let cloud = Aws::of(moto.clone(), moto, names, "");
    for change in WALK.windows(2) {
        let plan = changed(&cloud, &deployment, &[("source_kind", change[1])]);
        the_bus_is_not_alone_at_first(&plan, change[1]);
    }
    // A bus that is named for the first time is deaf for a while, but one that was named before is not.
    changed(&cloud, &deployment, &[("source_kind", "eventbridge")]);
    let alone = [("source_kind", "eventbridge"), ("bus_alone", "true")];
    changed(&cloud, &deployment, &alone);
    changed(&cloud, &deployment, &[("source_kind", "sns")]);
}

/// Makes a change while objects are uploaded, and looks for each of them. The plan of it.
fn changed(cloud: &Aws, deployment: &Deployment, variables: &[(&str, &str)]) -> Value {
    let stop = AtomicBool::new(false);
    let prefix = fastrand::u32(..).to_string();
    let (plan, uploaded) = thread::scope(|scope| {
        let uploader = scope.spawn(|| upload(cloud, &prefix, &stop));
        let plan = deployment.change(variables);
        stop.store(true, Ordering::Relaxed);
        (plan, uploader.join().unwrap())
    });
    assert!(!uploaded.is_empty(), "nothing was uploaded");
    let arrived = arrived(cloud);
    let lost: Vec<_> = uploaded
        .iter()
        .filter(|(key, direct)| !direct && !arrived.contains(key))
        .collect();
    assert!(
        lost.is_empty(),
        "{variables:?}: of {} {lost:?} are lost",
        uploaded.len()
    );
    assert_eq!(
        changes(&plan),
        [("aws_s3_bucket_notification.objects[0]", &json!(["update"]))],
        "{variables:?}"
    );
    plan
}

/// After it is named, a bus is deaf for about five minutes.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/enable-event-notifications-eventbridge.html>
fn the_bus_is_not_alone_at_first(plan: &Value, source: &str) {
    let resources = plan["planned_values"]["root_module"]["resources"].as_array();
    let notification = resources
        .unwrap()
        .iter()
        .find(|resource| resource["type"] == "aws_s3_bucket_notification")
        .unwrap();
    let named = |target: &str| notification["values"][target].as_array().unwrap().len();
    let bus = source == "eventbridge";
    assert_eq!(notification["values"]["eventbridge"], bus);
    assert_eq!(named("queue"), usize::from(bus || source == "sqs"));
    assert_eq!(named("topic"), usize::from(source == "sns"));
    assert_eq!(named("lambda_function"), usize::from(source == "direct"));
}
