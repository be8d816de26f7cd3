//! Queues by their destinations: where jobs are handed to.

#[cfg(feature = "aws")]
mod sqs;

use std::{future::Future, pin::Pin, sync::Arc};

use host::destination::Destination;
use identity_core::outbox::Outbox;

use crate::{failure::Failure, features::Feature};

/// Opens a queue of one kind by what names it.
type Open = fn(&str) -> Opening<'_>;
type Opening<'a> = Pin<Box<dyn Future<Output = Result<Arc<dyn Outbox>, Failure>> + Send + 'a>>;

/// Opens a queue. Nothing is sent, and whether it is there is not asked.
pub(crate) async fn open(destination: &Destination) -> Result<Arc<dyn Outbox>, Failure> {
    match destination {
        Destination::Sqs { url } => {
            let open: Feature<Open> = built_with!("aws", sqs::open);
            open.built("SQS")?(url).await
        }
        Destination::PubSub { .. } | Destination::AzureQueue { .. } => {
            Err(Failure::usage(format!(
                "jobs cannot be handed to {destination}: FIRSTCLAIM_DISPATCH_QUEUE should be the URL of an SQS queue"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refused(destination: &str) -> String {
        let destination = Destination::parse(destination).unwrap();
        open(&destination).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn a_queue_of_a_kind_that_is_not_known_is_refused() {
        for destination in ["pubsub://geo-prod/jobs", "azqueue://account/jobs"] {
            let told = format!(
                "jobs cannot be handed to {destination}: FIRSTCLAIM_DISPATCH_QUEUE should be the URL of an SQS queue"
            );
            assert_eq!(refused(destination).await, told);
        }
    }

    #[cfg(not(feature = "aws"))]
    #[tokio::test]
    async fn a_queue_that_this_build_is_without_is_told_with_the_feature_that_brings_it() {
        let told = "this program was built without SQS: build it with `cargo build -p firstclaim --features aws`";
        assert_eq!(
            refused("https://sqs.eu-central-1.amazonaws.com/123456789012/jobs").await,
            told
        );
    }
}
