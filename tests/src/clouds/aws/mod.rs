//! Amazon's services on an emulator: a bucket whose events go to a queue, a table, and the function beside them.

mod function;

use std::{sync::Arc, time::Duration};

use aws_sdk_s3::types::{
    BucketLocationConstraint, BucketVersioningStatus, CreateBucketConfiguration, Event,
    NotificationConfiguration, QueueConfiguration, VersioningConfiguration,
};
use aws_sdk_sqs::types::{MessageSystemAttributeName, QueueAttributeName};
use identity_core::claim::ClaimStore;
use provider_aws::{DynamoStore, create_table};
use tokio::runtime::Runtime;

pub use self::function::{Function, batch, bootstrap, failures, metrics};

use super::{Cloud, Message, Pending, Swept};
use crate::{folder::Folder, notification, record_in, server};

const REGION: &str = "eu-central-1";

/// A bucket whose notifications go to a queue, a table, and a script that is the job.
#[derive(Debug)]
pub struct Aws {
    /// S3's client.
    pub s3: aws_sdk_s3::Client,
    /// SQS's client.
    pub sqs: aws_sdk_sqs::Client,
    /// DynamoDB's client.
    pub dynamodb: aws_sdk_dynamodb::Client,
    /// The bucket, the table and the queue.
    pub names: Names,
    /// Where DynamoDB is asked.
    tables: String,
    /// Where S3 and SQS are asked.
    moto: String,
    folder: Folder,
    runtime: Runtime,
}

/// What an [`Aws`] is made of.
#[derive(Debug, Default)]
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

impl Aws {
    /// All of it, with the table on a server of its own.
    pub fn on(moto: String, tables: String, job: &str) -> Self {
        let name = format!("tests-{:016x}", fastrand::u64(..));
        let names = Names {
            bucket: name.clone(),
            table: name.clone(),
            queue_url: String::new(),
            queue_arn: format!("arn:aws:sqs:{REGION}:123456789012:{name}"),
        };
        let mut cloud = Self::of(moto, tables, names, job);
        cloud.wait(create_table(&cloud.dynamodb, &name)).unwrap();
        cloud.names.queue_url = cloud.wait(create_bucket_and_queue(&cloud.s3, &cloud.sqs, &name));
        cloud
    }

    /// A table alone, for functions that need no more.
    pub fn with_table_only(tables: String) -> Self {
        let table = format!("tests-{:016x}", fastrand::u64(..));
        let names = Names {
            table: table.clone(),
            ..Names::default()
        };
        let cloud = Self::of(tables.clone(), tables, names, "");
        cloud.wait(create_table(&cloud.dynamodb, &table)).unwrap();
        cloud
    }

    /// What stands already.
    pub fn of(moto: String, tables: String, names: Names, job: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let folder = Folder::new();
        folder.write("job.sh", format!("set -eu\ncd \"$TEST_FOLDER\"\n{job}\n"));
        let (s3, sqs, dynamodb) = clients(&runtime, &moto, &tables);
        Self {
            s3,
            sqs,
            dynamodb,
            names,
            tables,
            moto,
            folder,
            runtime,
        }
    }

    /// Keeps every version from now on.
    pub fn version_the_bucket(&self) {
        let versioning = VersioningConfiguration::builder()
            .status(BucketVersioningStatus::Enabled)
            .build();
        let put = self
            .s3
            .put_bucket_versioning()
            .bucket(&self.names.bucket)
            .versioning_configuration(versioning);
        self.wait(put.send()).unwrap();
    }

    /// Writes an object. Its ETag without quotes, and its version ID.
    pub fn put_version(&self, key: &str, content: &str) -> (String, Option<String>) {
        let put = self.s3.put_object().bucket(&self.names.bucket).key(key);
        let put = put.body(content.as_bytes().to_vec().into());
        let put = self.wait(put.send()).unwrap();
        let etag = put.e_tag().unwrap().trim_matches('"').to_owned();
        (etag, put.version_id().map(str::to_owned))
    }

    /// The notification of an object that is written now.
    pub fn notified(&self, key: &str, content: &str) -> String {
        self.written(key, content).body
    }
}

impl Cloud for Aws {
    type Api = crate::runtime_api::RuntimeApi;

    fn new(job: &str) -> Self {
        Self::on(server("TEST_MOTO_URL"), server("TEST_MOTO_URL"), job)
    }

    fn folder(&self) -> &Folder {
        &self.folder
    }

    fn wait<T>(&self, call: impl Future<Output = T>) -> T {
        self.runtime.block_on(call)
    }

    fn store(&self) -> Arc<dyn ClaimStore> {
        Arc::new(DynamoStore::new(self.dynamodb.clone(), &self.names.table))
    }

    fn put(&self, key: &str, content: &str) -> String {
        self.put_version(key, content).0
    }

    fn message(&self, key: &str, version: &str) -> Message {
        let record = record_in(&self.names.bucket, key, version);
        let id = format!("message-{:016x}", fastrand::u64(..));
        Message::new(&id, notification(&[record]))
    }

    /// At most one batch.
    fn receive(&self) -> Vec<Message> {
        let receive = self
            .sqs
            .receive_message()
            .queue_url(&self.names.queue_url)
            .max_number_of_messages(10)
            .message_system_attribute_names(MessageSystemAttributeName::All);
        let received = self.wait(receive.send()).unwrap().messages;
        let received = received.unwrap_or_default().into_iter();
        received
            .map(|message| Message {
                id: message.message_id.unwrap(),
                receipt: message.receipt_handle,
                body: message.body.unwrap(),
                group: None,
            })
            .collect()
    }

    fn acknowledge(&self, message: &Message) {
        let delete = self.sqs.delete_message().queue_url(&self.names.queue_url);
        let delete = delete.set_receipt_handle(message.receipt.clone());
        self.wait(delete.send()).unwrap();
    }

    fn depth(&self) -> u32 {
        let names = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
        ];
        let get = self.sqs.get_queue_attributes();
        let get = get.queue_url(&self.names.queue_url);
        let got = self
            .wait(get.set_attribute_names(Some(names.to_vec())).send())
            .unwrap();
        let got = got.attributes.unwrap();
        names
            .iter()
            .map(|name| got[name].parse::<u32>().unwrap())
            .sum()
    }

    fn handler_with(&self, time: Duration, settings: &[(&str, &str)]) -> Function {
        function::start(self, time, settings)
    }

    fn send(&self, handler: &Function, messages: &[Message]) -> Pending {
        // Nobody hides a message in a queue that does not know it.
        let is_known = messages.iter().all(|message| message.receipt.is_some());
        let queue = if is_known {
            &self.names.queue_arn
        } else {
            "no queue of ours"
        };
        function::send(handler, &batch(queue, messages), messages)
    }

    fn sweep(&self, handler: &Function) -> Result<Swept, String> {
        let reply = handler.api.invoke(r#"{"firstclaim":{"sweep":{}}}"#);
        let reply = reply.map_err(|error| error.to_string())?;
        let metrics = metrics(handler);
        Ok(Swept {
            sent: reply["sent"].as_u64().unwrap(),
            stuck: metrics.last().unwrap()["stuck"].as_u64().unwrap(),
        })
    }

    fn redrives(&self) -> (&str, &str) {
        ("FIRSTCLAIM_REDRIVE_QUEUE", &self.names.queue_url)
    }

    fn no_store(&self) -> (&str, &str) {
        ("DEDUP_TABLE", "no-such-table")
    }

    fn unusable(&self) -> &[(&str, &str)] {
        &[
            ("DEDUP_TABLE", ""),
            ("DEDUP_TABLE", "no/table"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "lots"),
        ]
    }

    /// Lambda shows what a function reports instead of starting.
    fn complaints(&self, handler: &Function) -> Vec<String> {
        let told = handler.api.failed_start().unwrap();
        vec![told["errorMessage"].as_str().unwrap().to_owned()]
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
