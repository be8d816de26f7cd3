//! Amazon's services behind the core's traits: claims in DynamoDB, objects in S3, messages to SQS.
//!
//! The reader's way: [`Aws`] (one shared configuration) → [`DynamoStore`] → [`S3Objects`] → [`SqsOutbox`]. Nothing outside
//! this crate knows the SDK's errors: `error` maps them, in one place.

mod config;
mod dynamodb;
mod error;
mod http;
mod s3;
mod sqs;
#[cfg(test)]
mod testing;
mod trust;

/// A client for SQS, for what is not sent: see [`change_visibility`].
pub use aws_sdk_sqs::Client as SqsClient;
pub use config::{Aws, NoRegion, loader};
#[cfg(feature = "emulators")]
pub use dynamodb::create_table;
pub use dynamodb::{DynamoStore, OPEN_INDEX, TableNameError};
pub use s3::S3Objects;
pub use sqs::{LONGEST_HIDDEN, SqsOutbox, change_visibility};
