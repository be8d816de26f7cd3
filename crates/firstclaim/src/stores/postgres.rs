//! `postgres://…`: one database, shared by any number of machines.

use std::sync::Arc;

use async_trait::async_trait;
use identity_core::claim::ClaimStore;
use provider_sql::{ConnectError, PostgresStore, PostgresUrl};

use super::{Store, unopened, unusable};
use crate::failure::Failure;

#[derive(Debug)]
struct Postgres(Box<PostgresUrl>);

pub(super) fn read(url: &str, _: &str) -> Result<Box<dyn Store>, Failure> {
    let url = PostgresUrl::parse(url).map_err(unusable)?;
    Ok(Box::new(Postgres(Box::new(url))))
}

#[async_trait]
impl Store for Postgres {
    async fn open(&self) -> Result<Arc<dyn ClaimStore>, Failure> {
        let (wait, connections) = (PostgresStore::WAIT, PostgresStore::CONNECTIONS);
        let store = PostgresStore::connect(&self.0, wait, connections).await;
        Ok(Arc::new(store.map_err(unopened)?))
    }

    async fn open_if_there(&self) -> Result<Option<Arc<dyn ClaimStore>>, Failure> {
        let (wait, connections) = (PostgresStore::WAIT, PostgresStore::CONNECTIONS);
        match PostgresStore::connect_existing(&self.0, wait, connections).await {
            Ok(store) => Ok(Some(Arc::new(store))),
            Err(ConnectError::Missing { .. }) => Ok(None),
            Err(error) => Err(unopened(error)),
        }
    }

    fn missing(&self) -> String {
        format!("there is no claim store at {}", self.0)
    }
}
