//! Tables with nothing in them, on the emulators.

use std::collections::HashMap;
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use identity_core::claim::{ClaimKey, Status};

use crate::dynamodb::attributes::{self, Item};
use crate::testing::{configuration, emulator, unused_name};
use crate::{DynamoStore, create_table};

/// A client with our own times and tries.
pub(super) async fn client(url: &str) -> Client {
    Client::new(&configuration(url).await)
}

/// A table on an emulator, and the foreign program that writes to it without knowing the protocol.
pub(super) struct Table {
    pub(super) store: Arc<DynamoStore>,
    /// Where the emulator listens.
    pub(super) url: String,
    name: String,
    client: Client,
}

impl Table {
    pub(super) async fn on_moto() -> Self {
        Self::on(emulator("TEST_MOTO_URL")).await
    }

    pub(super) async fn on_dynalite() -> Self {
        Self::on(emulator("TEST_DYNALITE_URL")).await
    }

    async fn on(url: String) -> Self {
        let name = unused_name("claims");
        let client = client(&url).await;
        create_table(&client, &name).await.unwrap();
        let store = Arc::new(DynamoStore::new(client.clone(), &name));
        Self {
            store,
            url,
            name,
            client,
        }
    }

    /// Another process's store on the same table: by way of `url`, and no connection is shared.
    pub(super) async fn by_way_of(&self, url: &str) -> DynamoStore {
        DynamoStore::new(client(url).await, &self.name)
    }

    /// The foreign program's item, as it writes one.
    pub(super) async fn put(&self, item: Item) {
        let put = self.client.put_item().table_name(&self.name);
        put.set_item(Some(item)).send().await.unwrap();
    }

    /// The item under a key, attribute by attribute.
    pub(super) async fn item(&self, key: &ClaimKey) -> Item {
        self.store.item(key.as_str()).await.unwrap().unwrap()
    }

    pub(super) async fn delete(&self, key: &ClaimKey) {
        let delete = self.client.delete_item().table_name(&self.name);
        let deleted = delete
            .key(attributes::KEY, AttributeValue::S(key.to_string()))
            .return_values(ReturnValue::AllOld);
        assert!(deleted.send().await.unwrap().attributes.is_some());
    }

    /// Sets attributes and removes others; the row must be there, or the update would make one.
    pub(super) async fn update(&self, key: &ClaimKey, expression: &str, values: Item) {
        self.client
            .update_item()
            .table_name(&self.name)
            .key(attributes::KEY, AttributeValue::S(key.to_string()))
            .condition_expression("attribute_exists(job_id)")
            .update_expression(expression)
            .set_expression_attribute_values(Some(values).filter(|values| !values.is_empty()))
            .set_expression_attribute_names(names(expression))
            .send()
            .await
            .unwrap();
    }

    pub(super) async fn flip_status(&self, key: &ClaimKey, status: Status) {
        let values = Item::from([(":s".to_owned(), AttributeValue::S(status.to_string()))]);
        self.update(key, "SET #status = :s", values).await;
    }
}

/// `#status` and `#owner` stand for reserved words.
fn names(expression: &str) -> Option<HashMap<String, String>> {
    let names: HashMap<_, _> = expression
        .split([' ', ','])
        .filter_map(|word| Some((word.to_owned(), word.strip_prefix('#')?.to_owned())))
        .collect();
    Some(names).filter(|names| !names.is_empty())
}
