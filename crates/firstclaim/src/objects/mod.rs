//! The objects that jobs read: those of the command line's folders, and those of the clouds that this build has.

#[cfg(feature = "aws")]
mod s3;

use std::{future::Future, num::NonZeroU32, pin::Pin, sync::Arc};

use async_trait::async_trait;
use identity_core::{
    identity::{ObjectAddress, ObjectVersion, Provider},
    object::{Head, Listed, ObjectError, ObjectStore, ObjectStream},
};
use tokio::sync::OnceCell;

use crate::folder::LocalObjects;

/// The clouds whose objects are read, and how their stores are opened.
const CLOUDS: &[(Provider, Open)] = &[
    #[cfg(feature = "aws")]
    (Provider::S3, s3::open),
];

type Open = fn() -> Pin<Box<dyn Future<Output = Opened> + Send>>;
type Opened = Result<Arc<dyn ObjectStore>, Box<dyn std::error::Error + Send + Sync>>;

/// One store of several, each of which has its providers' objects.
#[derive(Debug)]
pub(crate) struct ByProvider {
    folders: LocalObjects,
    clouds: Vec<Cloud>,
}

/// A store that is opened when the first of its objects is asked for: who has none needs no region and no credentials.
#[derive(Debug)]
struct Cloud {
    provider: Provider,
    open: Open,
    store: OnceCell<Arc<dyn ObjectStore>>,
}

impl ByProvider {
    /// These folders, and every cloud of this build.
    pub(crate) fn new(folders: LocalObjects) -> Self {
        let clouds = CLOUDS.iter().map(|&(provider, open)| Cloud {
            provider,
            open,
            store: OnceCell::new(),
        });
        Self {
            folders,
            clouds: clouds.collect(),
        }
    }

    fn cloud(&self, provider: Provider) -> Option<&Cloud> {
        self.clouds.iter().find(|cloud| cloud.provider == provider)
    }

    async fn store(&self, address: &ObjectAddress) -> Result<&dyn ObjectStore, ObjectError> {
        let Some(cloud) = self.cloud(address.provider) else {
            return Ok(&self.folders);
        };
        let store = cloud.store.get_or_try_init(cloud.open).await;
        match store {
            Ok(store) => Ok(&**store),
            Err(error) => Err(ObjectError::unavailable(address, error)),
        }
    }
}

#[async_trait]
impl ObjectStore for ByProvider {
    fn reads(&self, provider: Provider) -> bool {
        self.cloud(provider).is_some() || self.folders.reads(provider)
    }

    fn missing(&self, address: &ObjectAddress) -> Option<String> {
        self.folders.missing(address)
    }

    async fn head(&self, address: &ObjectAddress) -> Result<Option<Head>, ObjectError> {
        self.store(address).await?.head(address).await
    }

    async fn read(&self, object: &ObjectVersion) -> Result<ObjectStream, ObjectError> {
        self.store(&object.address).await?.read(object).await
    }

    async fn list(
        &self,
        prefix: &ObjectAddress,
        most: NonZeroU32,
    ) -> Result<Vec<Listed>, ObjectError> {
        self.store(prefix).await?.list(prefix, most).await
    }
}
