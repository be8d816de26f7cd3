//! `deploy/aws` by Terraform's own checks, its policies, what it refuses, and applied to moto, which `cargo xtask test` starts.

use serde_json::{Value, json};
use tests::{
    root, server,
    terraform::{Deployment, terraform},
};

/// The resources in a plan or a state, with their values.
fn resources(shown: &Value) -> Vec<&Value> {
    let values = match &shown["planned_values"] {
        Value::Null => &shown["values"],
        planned => planned,
    };
    values["root_module"]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|resource| resource["mode"] == "managed")
        .collect()
}

/// The values of the resource with this address.
fn values<'shown>(shown: &'shown Value, address: &str) -> &'shown Value {
    let resource = resources(shown)
        .into_iter()
        .find(|resource| resource["address"] == address);
    &resource.unwrap_or_else(|| panic!("there is no {address}"))["values"]
}

/// Every policy: the address of what has it, and the document.
fn policies(shown: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for resource in resources(shown) {
        for field in ["policy", "assume_role_policy"] {
            if let Some(text) = resource["values"][field]
                .as_str()
                .filter(|text| !text.is_empty())
            {
                let address = resource["address"].as_str().unwrap().to_owned();
                found.push((address, serde_json::from_str(text).unwrap()));
            }
        }
    }
    found
}

/// A field that is one text or many.
fn texts(field: &Value) -> Vec<&str> {
    match field {
        Value::Array(texts) => texts.iter().map(|text| text.as_str().unwrap()).collect(),
        Value::Null => Vec::new(),
        text => vec![text.as_str().unwrap()],
    }
}

/// What a policy says that is wider than it must be.
fn too_wide(policy: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for statement in policy["Statement"].as_array().unwrap() {
        for field in ["NotAction", "NotResource", "NotPrincipal"] {
            if !statement[field].is_null() {
                found.push(field.to_owned());
            }
        }
        let actions = texts(&statement["Action"]);
        found.extend(
            actions
                .iter()
                .filter(|action| action.contains('*'))
                .map(|action| (*action).to_owned()),
        );
        let wide = |resource: &&str| resource.splitn(6, ':').last() == Some("*");
        let all = texts(&statement["Resource"]);
        found.extend(all.into_iter().filter(wide).map(str::to_owned));
        let everybody =
            statement["Effect"] == "Allow" && statement["Principal"].to_string().contains("\"*\"");
        if everybody {
            found.push("anybody".to_owned());
        }
    }
    found
}

/// The actions that a policy allows, and on what, in order.
fn allowed(policy: &Value) -> Vec<(&str, &str)> {
    let mut allowed = Vec::new();
    for statement in policy["Statement"].as_array().unwrap() {
        if statement["Effect"] == "Allow" {
            for action in texts(&statement["Action"]) {
                allowed.extend(
                    texts(&statement["Resource"])
                        .iter()
                        .map(|resource| (action, *resource)),
                );
            }
        }
    }
    allowed.sort_unstable();
    allowed
}

/// The services that a queue's policy lets send, and to which queue.
fn senders<'a>(policies: &'a [(String, Value)], address: &str) -> Vec<(&'a str, &'a str)> {
    policies
        .iter()
        .filter(|(of, _)| of == address)
        .flat_map(|(_, policy)| policy["Statement"].as_array().unwrap())
        .filter(|statement| statement["Effect"] == "Allow")
        .map(|statement| {
            assert_eq!(statement["Action"], "sqs:SendMessage");
            let service = statement["Principal"]["Service"].as_str().unwrap();
            (service, statement["Resource"].as_str().unwrap())
        })
        .collect()
}

#[test]
fn a_wide_policy_is_found() {
    let policy = |action: Value, resource: Value| json!({"Statement": [{"Effect": "Allow", "Action": action, "Resource": resource}]});
    assert_eq!(
        too_wide(&policy(json!("s3:*"), json!("arn:aws:s3:::b"))),
        ["s3:*"]
    );
    assert_eq!(
        too_wide(&policy(json!(["s3:Get*"]), json!("arn:aws:s3:::b/*"))),
        ["s3:Get*"]
    );
    assert_eq!(
        too_wide(&policy(json!("s3:GetObject"), json!(["a", "*"]))),
        ["*"]
    );
    let every_queue = "arn:aws:sqs:eu-central-1:123456789012:*";
    assert_eq!(
        too_wide(&policy(json!("sqs:SendMessage"), json!(every_queue))),
        [every_queue]
    );
    let anybody = json!({"Statement": [{"Effect": "Allow", "Action": "sqs:SendMessage", "Principal": {"AWS": "*"}, "Resource": "q"}]});
    assert_eq!(too_wide(&anybody), ["anybody"]);
    assert!(too_wide(&policy(json!("s3:GetObject"), json!("arn:aws:s3:::b/in/*"))).is_empty());
}

#[test]
fn the_files_are_formatted() {
    let mut terraform = terraform(&root().join("deploy/aws"));
    terraform.env_remove("TF_CLI_CONFIG_FILE");
    let output = terraform
        .args(["fmt", "-check", "-diff", "-no-color"])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

/// One folder for all plans: fetching the provider takes longest.
#[test]
fn policies_are_narrow_and_bad_settings_are_refused() {
    let deployment = Deployment::new(&server("TEST_MOTO_URL"), &[]);
    deployment.validate();
    common(&deployment);
    let [lake, words, signs] = [
        "landing/region=eu/",
        "Aufträge/region=eu west/",
        "a+b&c@d,e:f/",
    ];
    for (source, prefix, reserved, most, expected) in [
        ("sqs", lake, "10", "", 10),
        ("direct", signs, "500", "", 100),
        ("sns", words, "500", "200", 200),
        ("eventbridge", words, "-1", "1000", 1000),
    ] {
        let mut variables = vec![
            ("bucket", "geo-in"),
            ("source_kind", source),
            ("prefix", prefix),
            ("reserved_concurrency", reserved),
            (
                "object_key_arn",
                "arn:aws:kms:eu-central-1:123456789012:key/k",
            ),
        ];
        if !most.is_empty() {
            variables.push(("max_concurrency", most));
        }
        let plan = deployment.plan(&variables);
        prefixes_are_encoded_where_s3_decodes_them(&plan, source, prefix);
        the_queue_takes_no_more_than_may_run(&plan, expected);
        let policies = policies(&plan);
        // Two roles, whom they trust, both queues, and the topic.
        assert_eq!(policies.len(), 7, "{source}: {policies:#?}");
        for (address, policy) in &policies {
            assert_eq!(
                too_wide(policy),
                Vec::<String>::new(),
                "{source}: {address}"
            );
        }
        // Whichever way is taken, so that a change of it closes none.
        let [queue, dead_letters] = ["events", "dead-letters"]
            .map(|queue| format!("arn:aws:sqs:eu-central-1:123456789012:firstclaim-{queue}"));
        let relays = ["events.amazonaws.com", "sns.amazonaws.com"];
        let mut to_queue = senders(&policies, "aws_sqs_queue.events");
        to_queue.sort_unstable();
        let expected: Vec<_> = [relays[0], "s3.amazonaws.com", relays[1]]
            .map(|service| (service, queue.as_str()))
            .into();
        assert_eq!(to_queue, expected, "{source}");
        let mut refused = senders(&policies, "aws_sqs_queue_policy.dead_letters");
        refused.sort_unstable();
        let expected: Vec<_> = relays
            .map(|service| (service, dead_letters.as_str()))
            .into();
        assert_eq!(refused, expected, "{source}");
    }
    refused(&deployment);
}

/// What does not depend on where events come from.
fn common(deployment: &Deployment) {
    let topics = format!("[\"{TOPIC}\"]");
    let plan = deployment.plan(&[
        ("environment", r#"{"DB_PASSWORD":"hunter2"}"#),
        ("alarm_topic_arns", &topics),
        ("bucket", "geo-in"),
    ]);
    no_secret_is_printed(&plan);
    a_backlog_is_told_before_it_expires(&plan);
    alarms_end_with_their_cause(&plan);
    old_versions_do_not_stay_for_ever(&plan);
    dispatch_is_one_setting(deployment, &plan);
    the_queue_takes_no_more_than_may_run(&plan, 100);
}

const TOPIC: &str = "arn:aws:sns:eu-central-1:123456789012:people";

/// What people set for their jobs may be a password, and continuous integration keeps what an apply prints.
fn no_secret_is_printed(plan: &Value) {
    let outputs = plan["output_changes"].as_object().unwrap();
    let told = &outputs["environment"]["after_sensitive"];
    assert_eq!(*told, true, "{}", outputs["environment"]);
    for (name, output) in outputs {
        let secret = output["after"].to_string().contains("hunter2");
        assert!(!secret || output["after_sensitive"] == true, "{name}");
    }
}

/// A message that was never received is in no dead-letter queue and no claim: its age alone tells of it.
fn a_backlog_is_told_before_it_expires(plan: &Value) {
    let seconds = |address: &str| {
        let kept = &values(plan, address)["message_retention_seconds"];
        kept.as_u64().unwrap()
    };
    let kept = seconds("aws_sqs_queue.events");
    assert!(kept >= 10 * 24 * 60 * 60, "{kept}");
    assert!(kept < seconds("aws_sqs_queue.dead_letters"), "{kept}");
    let alarm = values(plan, "aws_cloudwatch_metric_alarm.backlog");
    assert_eq!(alarm["metric_name"], "ApproximateAgeOfOldestMessage");
    assert_eq!(alarm["dimensions"]["QueueName"], "firstclaim-events");
    assert_eq!(alarm["threshold"].as_u64().unwrap() * 2, kept);
    let neighbour = values(plan, "aws_cloudwatch_metric_alarm.dead_letters");
    for field in ["treat_missing_data", "alarm_actions", "ok_actions"] {
        assert_eq!(alarm[field], neighbour[field], "{field}");
    }
    assert_eq!(alarm["alarm_actions"], json!([TOPIC]));
}

/// What nobody takes away is no cause that lasts: only that it came is told. And a mapping that is off fails nothing.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html>
fn alarms_end_with_their_cause(plan: &Value) {
    let failed = values(plan, "aws_cloudwatch_metric_alarm.failed_invocations");
    assert_eq!(failed["metric_name"], "NumberOfMessagesSent");
    assert_eq!(failed["statistic"], "Sum");
    // What is moved to a dead-letter queue is not counted as sent.
    let dead = values(plan, "aws_cloudwatch_metric_alarm.dead_letters");
    assert_eq!(dead["metric_name"], "ApproximateNumberOfMessagesVisible");
    let off = values(plan, "aws_cloudwatch_metric_alarm.not_taken");
    let metrics: Vec<_> = off["metric_query"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|query| query["metric"][0]["metric_name"].as_str())
        .collect();
    for metric in [
        "ApproximateNumberOfMessagesVisible",
        "ApproximateNumberOfMessagesNotVisible",
        "NumberOfMessagesReceived",
    ] {
        assert!(metrics.contains(&metric), "{metrics:?}");
    }
    for resource in resources(plan) {
        if resource["type"] == "aws_cloudwatch_metric_alarm" {
            let (alarm, address) = (&resource["values"], &resource["address"]);
            assert_eq!(alarm["treat_missing_data"], "notBreaching", "{address}");
            assert_eq!(alarm["ok_actions"], json!([TOPIC]), "{address}");
        }
    }
}

fn old_versions_do_not_stay_for_ever(plan: &Value) {
    let address = "aws_s3_bucket_lifecycle_configuration.objects[0]";
    let rules = values(plan, address)["rule"].as_array().unwrap();
    let days = |block: &str, field: &str| {
        let mut all = rules
            .iter()
            .filter_map(|rule| rule[block][0][field].as_u64());
        all.next().unwrap()
    };
    let given_up = days("abort_incomplete_multipart_upload", "days_after_initiation");
    assert_eq!(given_up, 7);
    // An event names its version.
    assert!(days("noncurrent_version_expiration", "noncurrent_days") >= 32);
}

/// The queue, the permission and the variable.
fn dispatch_is_one_setting(deployment: &Deployment, without: &Value) {
    let jobs = "arn:aws:sqs:eu-central-1:123456789012:firstclaim-jobs";
    let may_send = |plan: &Value| {
        let policies = policies(plan);
        let role = policies
            .iter()
            .find(|(of, _)| of == "aws_iam_role_policy.function");
        allowed(&role.unwrap().1).contains(&("sqs:SendMessage", jobs))
    };
    assert!(!may_send(without));
    let plan = deployment.plan(&[("dispatch", "true"), ("bucket", "geo-in")]);
    assert!(may_send(&plan));
    assert_eq!(
        values(&plan, "aws_sqs_queue.jobs[0]")["name"],
        "firstclaim-jobs"
    );
    let variables = [
        ("dispatch", "true"),
        (
            "environment",
            r#"{"FIRSTCLAIM_DISPATCH_QUEUE":"https://q"}"#,
        ),
        ("old_versions_days", "31"),
    ];
    let said = deployment.refusal(&variables);
    for expected in [
        "must not have FIRSTCLAIM_DISPATCH_QUEUE while dispatch is true",
        "old_versions_days must be a whole number, and at least done_ttl_seconds (32 days)",
    ] {
        assert!(said.contains(expected), "{said}");
    }
}

/// What is taken beyond what may run is throttled, and ends as dead letters.
fn the_queue_takes_no_more_than_may_run(plan: &Value, expected: u64) {
    let mapping = values(plan, "aws_lambda_event_source_mapping.queue");
    let most = &mapping["scaling_config"][0]["maximum_concurrency"];
    assert_eq!(*most, expected);
}

/// What S3 compares keys with when this is the filter of a notification: it is URL-encoded, a blank as `+`.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-how-to-filtering.html>
fn decoded(filter: &str) -> String {
    let mut decoded = Vec::new();
    let mut bytes = filter.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            plain => {
                let safe = plain.is_ascii_alphanumeric() || b"/-_.~".contains(&plain);
                assert!(safe, "{filter} is not encoded");
                plain
            }
        });
    }
    String::from_utf8(decoded).unwrap()
}

/// The emulator compares the filter as it is, so only the plan can tell.
fn prefixes_are_encoded_where_s3_decodes_them(plan: &Value, source: &str, prefix: &str) {
    let notification = values(plan, "aws_s3_bucket_notification.objects[0]");
    let target = match source {
        "sqs" => "queue",
        "sns" => "topic",
        "direct" => "lambda_function",
        _ => "",
    };
    if target.is_empty() {
        let rule = values(plan, "aws_cloudwatch_event_rule.objects");
        let pattern: Value = serde_json::from_str(rule["event_pattern"].as_str().unwrap()).unwrap();
        assert_eq!(pattern["detail"]["object"]["key"][0]["prefix"], prefix);
    } else {
        let filter = notification[target][0]["filter_prefix"].as_str().unwrap();
        assert_eq!(decoded(filter), prefix);
    }
    let policies = policies(plan);
    let (_, policy) = policies
        .iter()
        .find(|(address, _)| address == "aws_iam_role_policy.function")
        .unwrap();
    let objects = format!("arn:aws:s3:::geo-in/{prefix}*");
    let may_read = allowed(policy).contains(&("s3:GetObject", objects.as_str()));
    assert!(may_read, "{source}: {policy:#}");
    // `…IfExists` would let a listing without a prefix through:
    // https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
    let list = policy["Statement"].as_array().unwrap();
    let list = list.iter().find(|s| s["Action"] == "s3:ListBucket");
    assert_eq!(
        list.unwrap()["Condition"],
        json!({"StringLike": {"s3:prefix": format!("{prefix}*")}})
    );
}

/// Every check: settings that just fail several at once, for a plan takes seconds, and what is said of each.
fn refused(deployment: &Deployment) {
    type Case<'case> = (&'case [(&'case str, &'case str)], &'case [&'case str]);
    let cases: [Case<'_>; 5] = [
        (
            &[("zip", "missing.zip")],
            &["There is no missing.zip: `cargo xtask dist aws x86_64` makes it"],
        ),
        (
            &[
                ("name", "Geo"),
                ("create_bucket", "false"),
                ("prefix", "in*"),
                ("source_kind", "kinesis"),
                ("done_ttl_seconds", "2419199"),
                ("reserved_concurrency", "0"),
                ("batch_size", "11"),
                ("lease_seconds", "30.5"),
                ("max_attempts", "2000000"),
                ("log_level", "loud"),
                ("table_name", "my table"),
                ("sweep_schedule", "every 5 minutes"),
                ("environment", r#"{"FIRSTCLAIM_LEASE_SECONDS":"1"}"#),
            ],
            &[
                "The name must have 2 to 24 characters",
                "must be named by the variable bucket",
                "must not contain *, ? or $",
                "must be sqs, direct, sns or eventbridge",
                "done_ttl_seconds (2419199) must be at least 2,419,200",
                "reserved_concurrency must be -1, or at least 2",
                "A batch has 1 to 10 messages",
                "10 to 86,400 whole seconds",
                "1 to 1,000,000 attempts",
                "log_level must be off",
                "A table's name has",
                "must be rate(…) or cron(…)",
                "environment must not have FIRSTCLAIM_",
            ],
        ),
        (
            &[
                ("reserved_concurrency", "10"),
                ("max_concurrency", "11"),
                ("bus_alone", "true"),
            ],
            &[
                "max_concurrency (11) must be at most reserved_concurrency (10)",
                "bus_alone must not be true unless source_kind is eventbridge",
            ],
        ),
        (
            &[
                ("timeout_seconds", "300"),
                ("visibility_seconds", "299"),
                ("lease_seconds", "299"),
                ("max_receives", "2"),
            ],
            &[
                "visibility_seconds (299) must be at least timeout_seconds (300)",
                "lease_seconds (299) must be less than (max_receives - 1) × visibility_seconds (299)",
                "max_receives (2) is too small",
            ],
        ),
        (
            &[
                ("visibility_seconds", "43201"),
                ("max_receives", "8"),
                ("retention_seconds", "345608"),
            ],
            &[
                "visibility_seconds (43201) must be at most 43,200",
                "max_receives × visibility_seconds (345608) must be less than retention_seconds (345608)",
            ],
        ),
    ];
    for (variables, expected) in cases {
        let said = deployment.refusal(variables);
        for expected in expected {
            assert!(
                said.contains(expected),
                "{variables:?}: no {expected:?} in {said}"
            );
        }
    }
}

#[test]
fn it_is_applied_and_nothing_is_left_to_change() {
    // An emulator that a person has started keeps what was made before.
    let name = &format!("applied-{}", std::process::id());
    let bucket = &format!("{name}-in");
    let deployment = Deployment::new(
        &server("TEST_MOTO_URL"),
        &[("name", name), ("bucket", bucket), ("dispatch", "true")],
    );
    let outputs = deployment.apply();
    assert_eq!(outputs["bucket"], *bucket);
    assert_eq!(outputs["table"], format!("{name}-claims"));
    assert_eq!(outputs["function"], *name);
    assert_eq!(outputs["notification_target"], outputs["queue_arn"]);
    assert_eq!(outputs["environment"]["DEDUP_TABLE"], outputs["table"]);
    assert_eq!(
        outputs["environment"]["FIRSTCLAIM_ALLOW"],
        format!("s3:{bucket}")
    );
    assert_eq!(
        outputs["environment"]["FIRSTCLAIM_REDRIVE_QUEUE"],
        outputs["queue_url"]
    );
    assert!(
        outputs["queue_url"]
            .as_str()
            .unwrap()
            .ends_with(&format!("/{name}-events"))
    );

    assert_eq!(
        outputs["environment"]["FIRSTCLAIM_DISPATCH_QUEUE"],
        outputs["jobs_url"]
    );

    let state = deployment.state();
    // Without it, Lambda deletes the messages of a batch of which one failed.
    let mapping = values(&state, "aws_lambda_event_source_mapping.queue");
    assert_eq!(
        mapping["function_response_types"],
        json!(["ReportBatchItemFailures"])
    );
    let table = values(&state, "aws_dynamodb_table.claims");
    assert_eq!(table["ttl"][0]["attribute_name"], "expires_at");
    assert_eq!(table["ttl"][0]["enabled"], true);
    assert_eq!(table["point_in_time_recovery"][0]["enabled"], true);
    assert_eq!(table["server_side_encryption"][0]["enabled"], true);
    assert_eq!(table["global_secondary_index"][0]["name"], "open");
    let versioning = values(&state, "aws_s3_bucket_versioning.objects[0]");
    assert_eq!(
        versioning["versioning_configuration"][0]["status"],
        "Enabled"
    );
    let sweep = values(&state, "aws_scheduler_schedule.sweep");
    assert_eq!(
        sweep["target"][0]["input"],
        r#"{"firstclaim":{"sweep":{}}}"#
    );
    let policies = policies(&state);
    let (_, policy) = policies
        .iter()
        .find(|(address, _)| address == "aws_iam_role_policy.function")
        .unwrap();
    let here = "eu-central-1:123456789012";
    let [table, index] = ["", "/index/open"]
        .map(|index| format!("arn:aws:dynamodb:{here}:table/{name}-claims{index}"));
    let [queue, failed, jobs] = ["events", "failed-invocations", "jobs"]
        .map(|queue| format!("arn:aws:sqs:{here}:{name}-{queue}"));
    let log = format!("arn:aws:logs:{here}:log-group:/aws/lambda/{name}:log-stream:*");
    let mut expected = Vec::new();
    for action in ["GetItem", "PutItem"] {
        expected.push((format!("dynamodb:{action}"), table.clone()));
    }
    expected.push(("dynamodb:Query".to_owned(), index));
    for action in ["CreateLogStream", "PutLogEvents"] {
        expected.push((format!("logs:{action}"), log.clone()));
    }
    for action in ["GetObject", "GetObjectVersion"] {
        expected.push((format!("s3:{action}"), format!("arn:aws:s3:::{bucket}/*")));
    }
    expected.push(("s3:ListBucket".to_owned(), format!("arn:aws:s3:::{bucket}")));
    for action in [
        "ChangeMessageVisibility",
        "DeleteMessage",
        "GetQueueAttributes",
        "ReceiveMessage",
        "SendMessage",
    ] {
        expected.push((format!("sqs:{action}"), queue.clone()));
    }
    expected.push(("sqs:SendMessage".to_owned(), failed));
    expected.push(("sqs:SendMessage".to_owned(), jobs));
    let expected: Vec<_> = expected
        .iter()
        .map(|(action, resource)| (action.as_str(), resource.as_str()))
        .collect();
    assert_eq!(allowed(policy), expected);

    let plan = deployment.plan(&[]);
    let left: Vec<_> = plan["resource_changes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|change| change["change"]["actions"] != json!(["no-op"]))
        // Documents that are read while applying.
        .filter(|change| change["mode"] == "managed")
        .collect();
    assert!(left.is_empty(), "{left:#?}");
    the_image_takes_along_what_belongs_to_the_function(&deployment);
}

/// A function that is made anew has lost its permissions and how it is invoked, which are parts of it.
/// <https://docs.aws.amazon.com/lambda/latest/dg/access-control-resource-based.html>
fn the_image_takes_along_what_belongs_to_the_function(deployment: &Deployment) {
    let image = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/firstclaim:1";
    let plan = deployment.plan(&[("image", image), ("source_kind", "direct")]);
    let actions = |address: &str| {
        let changes = plan["resource_changes"].as_array().unwrap();
        let change = changes.iter().find(|change| change["address"] == address);
        change.unwrap()["change"]["actions"].clone()
    };
    let anew = json!(["delete", "create"]);
    assert_eq!(actions("aws_lambda_function.handler"), anew);
    assert_eq!(
        actions("aws_lambda_function_event_invoke_config.handler"),
        anew
    );
    // What is not there yet cannot be replaced: the permission must name what changes with the function.
    let configured = plan["configuration"]["root_module"]["resources"]
        .as_array()
        .unwrap();
    let permission = configured
        .iter()
        .find(|resource| resource["address"] == "aws_lambda_permission.bucket")
        .unwrap();
    let names = texts(&permission["expressions"]["function_name"]["references"]);
    assert!(
        names.contains(&"aws_lambda_function.handler.arn"),
        "{names:?}"
    );
}
