//! Queues in SQS. Region and credentials are the environment's.

use std::sync::Arc;

use identity_core::outbox::Outbox;
use provider_aws::Aws;

use super::Opening;
use crate::failure::Failure;

pub(super) fn open(url: &str) -> Opening<'_> {
    Box::pin(async move {
        let aws = Aws::from_env().await;
        let aws = aws.map_err(|error| Failure::usage("the queue cannot be used").because(error))?;
        Ok(Arc::new(aws.outbox(url)) as Arc<dyn Outbox>)
    })
}
