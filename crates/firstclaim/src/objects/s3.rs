//! Objects in S3. Region and credentials are the environment's.

use std::{future::Future, pin::Pin, sync::Arc};

use identity_core::object::ObjectStore;
use provider_aws::Aws;

use super::Opened;

pub(super) fn open() -> Pin<Box<dyn Future<Output = Opened> + Send>> {
    Box::pin(async {
        let aws = Aws::from_env().await?;
        Ok(Arc::new(aws.objects()) as Arc<dyn ObjectStore>)
    })
}
