//! What is Amazon's: the function, fed as Lambda feeds it, the program on DynamoDB and S3, and `deploy/aws`.

mod batches;
mod building;
mod deadlines;
mod deploy;
mod deployed;
mod envelopes;
mod logins;
mod program;
mod races;
mod reports;
mod sources;
mod versions;
mod visibility;

use tests::clouds::{
    Message,
    aws::{Aws, batch},
};

/// The invocation of one message, `m`, about one object.
fn delivery(cloud: &Aws) -> String {
    let message = Message::new("m", cloud.notified("roads.shp", "content"));
    batch(&cloud.names.queue_arn, &[message])
}
