//! The objects that a build with AWS reads: those of the command line's folders, and those in S3.

use std::num::NonZeroU32;

use async_trait::async_trait;
use identity_core::{
    identity::{ObjectAddress, ObjectVersion, Provider},
    object::{Head, Listed, ObjectError, ObjectStore, ObjectStream},
};
use provider_aws::{Aws, S3Objects};
use tokio::sync::OnceCell;

use crate::folder::LocalObjects;

/// Folders and S3.
#[derive(Debug)]
pub(super) struct Objects {
    folders: LocalObjects,
    /// Made when the first of its objects is asked for: who has none needs no region.
    s3: OnceCell<S3Objects>,
}

impl Objects {
    pub(super) fn new(folders: LocalObjects) -> Self {
        Self {
            folders,
            s3: OnceCell::new(),
        }
    }

    async fn s3(&self, address: &ObjectAddress) -> Result<&S3Objects, ObjectError> {
        let made = self
            .s3
            .get_or_try_init(async || Aws::from_env().await.map(|aws| aws.objects()));
        made.await
            .map_err(|error| ObjectError::unavailable(address, error))
    }
}

#[async_trait]
impl ObjectStore for Objects {
    fn reads(&self, provider: Provider) -> bool {
        provider == Provider::S3 || self.folders.reads(provider)
    }

    async fn head(&self, address: &ObjectAddress) -> Result<Option<Head>, ObjectError> {
        if address.provider == Provider::S3 {
            return self.s3(address).await?.head(address).await;
        }
        self.folders.head(address).await
    }

    async fn read(&self, object: &ObjectVersion) -> Result<ObjectStream, ObjectError> {
        if object.address.provider == Provider::S3 {
            return self.s3(&object.address).await?.read(object).await;
        }
        self.folders.read(object).await
    }

    async fn list(
        &self,
        prefix: &ObjectAddress,
        most: NonZeroU32,
    ) -> Result<Vec<Listed>, ObjectError> {
        if prefix.provider == Provider::S3 {
            return self.s3(prefix).await?.list(prefix, most).await;
        }
        self.folders.list(prefix, most).await
    }
}
