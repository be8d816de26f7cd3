//! The Lambda function: its process under a runtime API, its batches and their answers, its metrics.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::Duration,
};

use serde_json::{Value, json};

use super::{Aws, REGION};
use crate::{
    build, built,
    clouds::{Cloud as _, Message, Pending},
    handler::Handler,
    runtime_api::{Answer, RuntimeApi, deadline_in},
};

/// The function's process, and the runtime API that it asks.
pub type Function = Handler<RuntimeApi>;

/// The function's binary, whose contract is `tests/src/clouds/pipeline.toml`.
pub fn bootstrap() -> &'static Path {
    static BOOTSTRAP: OnceLock<PathBuf> = OnceLock::new();
    BOOTSTRAP.get_or_init(|| {
        let status = build("handler-lambda", "bootstrap")
            .env("FIRSTCLAIM_PIPELINE", "tests/src/clouds/pipeline.toml")
            .status()
            .unwrap();
        assert!(status.success(), "bootstrap could not be built");
        let program = built("bootstrap");
        // Another build would write over it.
        let folder = program.parent().unwrap();
        let own = folder.join("bootstrap-of-tests");
        let fresh = folder.join(format!("bootstrap-of-tests-{}", std::process::id()));
        std::fs::copy(&program, &fresh).unwrap();
        std::fs::rename(&fresh, &own).unwrap();
        own
    })
}

/// The function, started, with these settings.
pub(super) fn start(cloud: &Aws, time: Duration, settings: &[(&str, &str)]) -> Function {
    let api = RuntimeApi::start();
    let mut command = Command::new(bootstrap());
    cloud.environment(&mut command, &api);
    command
        .env("TEST_JOB", cloud.folder().path("job.sh"))
        .env("TEST_FOLDER", cloud.folder().root())
        .envs(settings.iter().copied());
    Handler::start(cloud.folder(), &mut command, api, time)
}

/// Hands in an invocation, of whose messages some may come again.
pub(super) fn send(function: &Function, invocation: &str, messages: &[Message]) -> Pending {
    let deadline = deadline_in(function.time);
    let pending = std::sync::Arc::new(function.api.send(invocation, deadline));
    let messages = messages.to_vec();
    let asked = pending.clone();
    Pending {
        deadline,
        is_answered: Box::new(move || asked.is_answered()),
        again: Box::new(move || {
            let failures = failures(&pending.answer());
            let failed = messages.into_iter();
            failed
                .filter(|message| failures.contains(&message.id))
                .collect()
        }),
    }
}

impl Aws {
    /// What a function's process finds in its environment, and nothing else.
    pub fn environment(&self, command: &mut Command, api: &RuntimeApi) {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("AWS_LAMBDA_RUNTIME_API", &api.address)
            .env("AWS_LAMBDA_FUNCTION_NAME", "tests")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .env("AWS_REGION", REGION)
            .env("AWS_DEFAULT_REGION", REGION)
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("AWS_ENDPOINT_URL", &self.moto)
            .env("AWS_ENDPOINT_URL_DYNAMODB", &self.tables)
            .env("DEDUP_TABLE", &self.names.table);
    }
}

/// The metrics of a function's invocations, oldest first.
pub fn metrics(function: &Function) -> Vec<Value> {
    let output = function.output();
    let lines = output.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The invocation that Lambda makes of a batch: <https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html>.
pub fn batch(queue_arn: &str, messages: &[Message]) -> String {
    let records: Vec<Value> = messages
        .iter()
        .map(|message| {
            let mut attributes =
                json!({"ApproximateReceiveCount": "1", "SentTimestamp": "1767323045000"});
            if let Some(group) = &message.group {
                attributes["MessageGroupId"] = group.as_str().into();
            }
            let receipt = message.receipt.clone();
            json!({
                "messageId": message.id,
                "receiptHandle": receipt.unwrap_or_else(|| format!("receipt of {}", message.id)),
                "body": message.body,
                "attributes": attributes, "messageAttributes": {}, "md5OfBody": "",
                "eventSource": "aws:sqs", "eventSourceARN": queue_arn, "awsRegion": REGION,
            })
        })
        .collect();
    json!({ "Records": records }).to_string()
}

/// The messages that come again, by the reply to a batch. Exactly these names, or Lambda deletes all.
pub fn failures(answer: &Answer) -> Vec<String> {
    let reply = answer.as_ref().unwrap().as_object().unwrap();
    assert_eq!(reply.keys().collect::<Vec<_>>(), ["batchItemFailures"]);
    let failures = reply["batchItemFailures"].as_array().unwrap();
    failures
        .iter()
        .map(|failure| {
            assert_eq!(failure.as_object().unwrap().len(), 1);
            failure["itemIdentifier"].as_str().unwrap().to_owned()
        })
        .collect()
}
