//! `dynamodb://TABLE`: one table, shared by any number of machines. Region and credentials are the environment's.

use std::sync::Arc;

use async_trait::async_trait;
use identity_core::claim::ClaimStore;
use provider_aws::{Aws, DynamoStore};

use super::{Store, unopened, unusable};
use crate::failure::Failure;

#[derive(Debug)]
struct Dynamo {
    table: String,
}

pub(super) fn read(_: &str, rest: &str) -> Result<Box<dyn Store>, Failure> {
    let table = rest.strip_prefix("//").unwrap_or(rest).to_owned();
    DynamoStore::check_name(&table).map_err(unusable)?;
    Ok(Box::new(Dynamo { table }))
}

#[async_trait]
impl Store for Dynamo {
    /// Looks whether the table is there and can be read, before anything is done. Making one is not for a run.
    async fn open(&self) -> Result<Arc<dyn ClaimStore>, Failure> {
        let aws = Aws::from_env().await.map_err(unopened)?;
        let store = aws.claims(&self.table);
        store.warm().await.map_err(unopened)?;
        Ok(Arc::new(store))
    }

    async fn open_if_there(&self) -> Result<Option<Arc<dyn ClaimStore>>, Failure> {
        self.open().await.map(Some)
    }

    fn missing(&self) -> String {
        format!("there is no table {}", self.table)
    }
}
