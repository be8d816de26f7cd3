//! A bucket, a queue and a table on an emulator, and the real function beside them, fed as Lambda feeds it.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, GlobalSecondaryIndex, KeySchemaElement,
    KeyType, Projection, ProjectionType, ScalarAttributeType,
};
use aws_sdk_s3::types::{
    BucketLocationConstraint, BucketVersioningStatus, CreateBucketConfiguration, Event,
    NotificationConfiguration, QueueConfiguration, VersioningConfiguration,
};
use aws_sdk_sqs::types::{MessageSystemAttributeName, QueueAttributeName};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{
    eventually, kill, root,
    runtime_api::{Answer, RuntimeApi},
    server,
};

const REGION: &str = "eu-central-1";

/// The function's binary, whose contract is `tests/src/clouds/pipeline.toml`.
pub fn bootstrap() -> &'static Path {
    static BOOTSTRAP: OnceLock<PathBuf> = OnceLock::new();
    BOOTSTRAP.get_or_init(|| {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--locked", "-p", "handler-lambda"])
            .env("FIRSTCLAIM_PIPELINE", "tests/src/clouds/pipeline.toml")
            .current_dir(root())
            .status()
            .unwrap();
        assert!(built.success(), "bootstrap could not be built");
        // This test lies in `debug/deps`, the program one folder up. Another build would write over it.
        let test = std::env::current_exe().unwrap();
        let folder = test.parent().unwrap().parent().unwrap();
        let own = folder.join("bootstrap-of-tests");
        let fresh = folder.join(format!("bootstrap-of-tests-{}", std::process::id()));
        std::fs::copy(folder.join("bootstrap"), &fresh).unwrap();
        std::fs::rename(&fresh, &own).unwrap();
        own
    })
}

/// A bucket whose notifications go to a queue, a table, and a script that is the job.
#[derive(Debug)]
pub struct Cloud {
    /// S3's client.
    pub s3: aws_sdk_s3::Client,
    /// SQS's client.
    pub sqs: aws_sdk_sqs::Client,
    /// DynamoDB's client.
    pub dynamodb: aws_sdk_dynamodb::Client,
    /// The bucket.
    pub name: String,
    /// The table.
    pub table: String,
    /// The queue's ARN.
    pub queue_arn: String,
    /// The queue.
    pub queue_url: String,
    /// Where DynamoDB is asked.
    pub tables: String,
    /// Where S3 and SQS are asked.
    pub moto: String,
    folder: TempDir,
    runtime: Runtime,
}

/// What a [`Cloud`] is made of.
#[derive(Debug)]
pub struct Names {
    /// The bucket.
    pub bucket: String,
    /// The table.
    pub table: String,
    /// The queue.
    pub queue_url: String,
    /// The same queue.
    pub queue_arn: String,
}

impl Cloud {
    /// All of it on moto, with this script as the job. In the script, `"$1"` is the local copy of the object, and the
    /// working folder is the test's own.
    pub fn new(job: &str) -> Self {
        Self::on(server("TEST_MOTO_URL"), server("TEST_MOTO_URL"), job)
    }

    /// The same, with the table on another server.
    pub fn on(moto: String, tables: String, job: &str) -> Self {
        let name = format!("tests-{:016x}", fastrand::u64(..));
        let names = Names {
            bucket: name.clone(),
            table: name.clone(),
            queue_url: String::new(),
            queue_arn: format!("arn:aws:sqs:{REGION}:123456789012:{name}"),
        };
        let mut cloud = Self::of(moto, tables, names, job);
        cloud.wait(create_table(&cloud.dynamodb, &name));
        cloud.queue_url = cloud.wait(create_bucket_and_queue(&cloud.s3, &cloud.sqs, &name));
        cloud
    }

    /// A table alone, for functions that need no more.
    pub fn with_table_only(tables: String) -> Self {
        let table = format!("tests-{:016x}", fastrand::u64(..));
        let names = Names {
            bucket: String::new(),
            table: table.clone(),
            queue_url: String::new(),
            queue_arn: String::new(),
        };
        let cloud = Self::of(tables.clone(), tables, names, "");
        cloud.wait(create_table(&cloud.dynamodb, &table));
        cloud
    }

    /// What stands already.
    pub fn of(moto: String, tables: String, names: Names, job: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let script = format!("set -eu\ncd \"$TEST_FOLDER\"\n{job}\n");
        std::fs::write(folder.path().join("job.sh"), script).unwrap();
        let (s3, sqs, dynamodb) = clients(&runtime, &moto, &tables);
        Self {
            s3,
            sqs,
            dynamodb,
            name: names.bucket,
            table: names.table,
            queue_arn: names.queue_arn,
            queue_url: names.queue_url,
            tables,
            moto,
            folder,
            runtime,
        }
    }

    /// Waits for a call.
    pub fn wait<T>(&self, call: impl Future<Output = T>) -> T {
        self.runtime.block_on(call)
    }

    /// A path in the test's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A file's text; empty if there is none.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The lines of a file.
    pub fn lines(&self, name: &str) -> Vec<String> {
        self.read(name).lines().map(str::to_owned).collect()
    }

    /// Keeps every version from now on.
    pub fn version_the_bucket(&self) {
        let versioning = VersioningConfiguration::builder()
            .status(BucketVersioningStatus::Enabled)
            .build();
        let put = self
            .s3
            .put_bucket_versioning()
            .bucket(&self.name)
            .versioning_configuration(versioning);
        self.wait(put.send()).unwrap();
    }

    /// Writes an object. Its ETag without quotes, and its version ID.
    pub fn put(&self, key: &str, content: &str) -> (String, Option<String>) {
        let put = self.s3.put_object().bucket(&self.name).key(key);
        let put = put.body(content.as_bytes().to_vec().into());
        let put = self.wait(put.send()).unwrap();
        let etag = put.e_tag().unwrap().trim_matches('"').to_owned();
        (etag, put.version_id().map(str::to_owned))
    }

    /// The claims, attribute by attribute.
    pub fn rows(&self) -> Vec<Row> {
        let scan = self
            .dynamodb
            .scan()
            .table_name(&self.table)
            .consistent_read(true);
        self.wait(scan.send())
            .unwrap()
            .items
            .unwrap_or_default()
            .into_iter()
            .map(Row)
            .collect()
    }

    /// The one claim.
    pub fn row(&self) -> Row {
        let mut rows = self.rows();
        assert_eq!(rows.len(), 1, "{rows:?}");
        rows.remove(0)
    }

    /// The claim of the object with this key.
    pub fn row_of(&self, key: &str) -> Row {
        let rows = self.rows();
        let mut found = rows.iter().filter(|row| row.text("key") == key);
        let row = found
            .next()
            .unwrap_or_else(|| panic!("no claim of {key}: {rows:?}"));
        assert!(found.next().is_none(), "two claims of {key}: {rows:?}");
        row.clone()
    }

    /// Makes a claim that ended look as if it had ended earlier.
    pub fn age(&self, row: &Row, by: std::time::Duration) {
        let earlier: u64 = row.text("finished_at").parse().unwrap();
        let update = self.dynamodb.update_item().table_name(&self.table);
        let update = update
            .key("job_id", AttributeValue::S(row.text("job_id").to_owned()))
            .update_expression("SET finished_at = :earlier")
            .expression_attribute_values(
                ":earlier",
                AttributeValue::N((earlier - by.as_secs()).to_string()),
            );
        self.wait(update.send()).unwrap();
    }

    /// The function, started, with these settings.
    pub fn function(&self, settings: &[(&str, &str)]) -> Function {
        let api = RuntimeApi::start();
        let name = format!("function-{:08x}", fastrand::u32(..));
        let file =
            |kind: &str| std::fs::File::create(self.path(&format!("{name}.{kind}"))).unwrap();
        let mut command = Command::new(bootstrap());
        self.environment(&mut command, &api);
        command
            .env("TEST_JOB", self.path("job.sh"))
            .env("TEST_FOLDER", self.folder.path())
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(file("out"))
            .stderr(file("err"));
        Function {
            child: command.spawn().unwrap(),
            api,
            name,
        }
    }

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
            .env("DEDUP_TABLE", &self.table);
    }

    /// What a function wrote to its log.
    pub fn log(&self, function: &Function) -> String {
        self.read(&format!("{}.err", function.name))
    }

    /// The metrics of a function's invocations, oldest first.
    pub fn metrics(&self, function: &Function) -> Vec<Value> {
        let lines = self.lines(&format!("{}.out", function.name));
        lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Takes what the queue has, at most one batch.
    pub fn receive(&self) -> Vec<Message> {
        let receive = self
            .sqs
            .receive_message()
            .queue_url(&self.queue_url)
            .max_number_of_messages(10)
            .message_system_attribute_names(MessageSystemAttributeName::All);
        let received = self
            .wait(receive.send())
            .unwrap()
            .messages
            .unwrap_or_default();
        received
            .into_iter()
            .map(|message| Message {
                id: message.message_id.unwrap(),
                receipt: message.receipt_handle.unwrap(),
                body: message.body.unwrap(),
                group: None,
            })
            .collect()
    }

    /// Takes one batch, gives it to the function, and deletes what it does not want again, as Lambda does. How many
    /// messages there were, and how many come again.
    pub fn poll(&self, function: &Function) -> (usize, usize) {
        let messages = self.receive();
        if messages.is_empty() {
            return (0, 0);
        }
        let failures = failures(&function.api.invoke(&batch(&self.queue_arn, &messages)));
        for message in &messages {
            if failures.contains(&message.id) {
                continue;
            }
            let delete = self.sqs.delete_message().queue_url(&self.queue_url);
            self.wait(delete.receipt_handle(&message.receipt).send())
                .unwrap();
        }
        (messages.len(), failures.len())
    }

    /// Polls until the queue has nothing more to give, now or later.
    pub fn drain(&self, function: &Function) {
        eventually("the queue is empty", || {
            self.poll(function);
            self.depth() == 0
        });
    }

    /// How many messages the queue has, hidden ones too.
    pub fn depth(&self) -> u32 {
        let names = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
        ];
        let get = self.sqs.get_queue_attributes().queue_url(&self.queue_url);
        let got = self
            .wait(get.set_attribute_names(Some(names.to_vec())).send())
            .unwrap();
        let got = got.attributes.unwrap();
        names
            .iter()
            .map(|name| got[name].parse::<u32>().unwrap())
            .sum()
    }
}

/// A claim, as the table has it.
#[derive(Debug, Clone)]
pub struct Row(std::collections::HashMap<String, AttributeValue>);

impl Row {
    /// An attribute's text, of a string or a number; empty if it is not there.
    pub fn text(&self, name: &str) -> &str {
        match self.0.get(name) {
            Some(AttributeValue::S(text) | AttributeValue::N(text)) => text,
            _ => "",
        }
    }
}

/// A message of a queue.
#[derive(Debug, Clone)]
pub struct Message {
    /// Its ID.
    pub id: String,
    /// Its receipt handle.
    pub receipt: String,
    /// Its body.
    pub body: String,
    /// Its group, in a FIFO queue.
    pub group: Option<String>,
}

impl Message {
    /// A message that no queue knows.
    pub fn new(id: &str, body: impl Into<String>) -> Self {
        Self {
            id: id.to_owned(),
            receipt: format!("receipt of {id}"),
            body: body.into(),
            group: None,
        }
    }
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
            json!({
                "messageId": message.id, "receiptHandle": message.receipt, "body": message.body,
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

/// The function's process, and the runtime API that it asks.
#[derive(Debug)]
pub struct Function {
    child: Child,
    /// Hands it its invocations.
    pub api: RuntimeApi,
    name: String,
}

impl Function {
    /// Its process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal, e.g. `TERM`.
    pub fn signal(&self, signal: &str) {
        kill(signal, &self.child.id().to_string());
    }

    /// Waits for its end: its exit code, or -1 if a signal killed it.
    pub fn end(&mut self) -> i32 {
        let mut ended = None;
        eventually("the function's process ends", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        // It may have ended already, and then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn clients(
    runtime: &Runtime,
    moto: &str,
    tables: &str,
) -> (
    aws_sdk_s3::Client,
    aws_sdk_sqs::Client,
    aws_sdk_dynamodb::Client,
) {
    let credentials = aws_sdk_s3::config::Credentials::new("test", "test", None, None, "tests");
    let config = provider_aws::loader()
        .region(aws_sdk_s3::config::Region::new(REGION))
        .credentials_provider(credentials)
        .endpoint_url(moto);
    let config = runtime.block_on(config.load());
    let s3 = aws_sdk_s3::config::Builder::from(&config).force_path_style(true);
    let dynamodb = aws_sdk_dynamodb::config::Builder::from(&config).endpoint_url(tables);
    (
        aws_sdk_s3::Client::from_conf(s3.build()),
        aws_sdk_sqs::Client::new(&config),
        aws_sdk_dynamodb::Client::from_conf(dynamodb.build()),
    )
}

async fn create_table(client: &aws_sdk_dynamodb::Client, name: &str) {
    let string = |name: &str| {
        AttributeDefinition::builder()
            .attribute_name(name)
            .attribute_type(ScalarAttributeType::S)
            .build()
            .unwrap()
    };
    let key = |name: &str, kind| {
        KeySchemaElement::builder()
            .attribute_name(name)
            .key_type(kind)
            .build()
            .unwrap()
    };
    let keys = Projection::builder()
        .projection_type(ProjectionType::KeysOnly)
        .build();
    let index = GlobalSecondaryIndex::builder()
        .index_name(provider_aws::OPEN_INDEX)
        .key_schema(key("open_shard", KeyType::Hash))
        .key_schema(key("open_since", KeyType::Range))
        .projection(keys)
        .build()
        .unwrap();
    let create = client
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(string("job_id"))
        .attribute_definitions(string("open_shard"))
        .attribute_definitions(string("open_since"))
        .key_schema(key("job_id", KeyType::Hash))
        .global_secondary_indexes(index);
    create.send().await.unwrap();
    // dynalite's tables are there a moment later.
    loop {
        let described = client
            .describe_table()
            .table_name(name)
            .send()
            .await
            .unwrap();
        let table = described.table.unwrap();
        if table.table_status == Some(aws_sdk_dynamodb::types::TableStatus::Active) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

async fn create_bucket_and_queue(
    s3: &aws_sdk_s3::Client,
    sqs: &aws_sdk_sqs::Client,
    name: &str,
) -> String {
    let queue = sqs.create_queue().queue_name(name);
    // Messages that come again do so at once.
    let queue = queue.attributes(QueueAttributeName::VisibilityTimeout, "1");
    let queue_url = queue.send().await.unwrap().queue_url.unwrap();
    let place = CreateBucketConfiguration::builder()
        .location_constraint(BucketLocationConstraint::EuCentral1)
        .build();
    let bucket = s3
        .create_bucket()
        .bucket(name)
        .create_bucket_configuration(place);
    bucket.send().await.unwrap();
    let to_queue = QueueConfiguration::builder()
        .queue_arn(format!("arn:aws:sqs:{REGION}:123456789012:{name}"))
        .events(Event::S3ObjectCreated)
        .build()
        .unwrap();
    let notifications = NotificationConfiguration::builder()
        .queue_configurations(to_queue)
        .build();
    s3.put_bucket_notification_configuration()
        .bucket(name)
        .notification_configuration(notifications)
        .send()
        .await
        .unwrap();
    queue_url
}
