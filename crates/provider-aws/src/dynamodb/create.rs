//! Makes the table of claims on an emulator, for tests; `deploy/aws` makes the one that is used.

use aws_sdk_dynamodb::{
    Client, Error,
    types::{
        AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType,
        Projection, ProjectionType, ScalarAttributeType, TableStatus,
    },
};

use super::{attributes, table::OPEN_INDEX};

/// Makes the table as `deploy/aws` does, and waits until it can be used.
///
/// # Errors
///
/// The service's.
pub async fn create_table(client: &Client, name: &str) -> Result<(), Error> {
    let attribute = |name: &str| {
        AttributeDefinition::builder()
            .attribute_name(name)
            .attribute_type(ScalarAttributeType::S)
            .build()
    };
    let key = |name: &str, kind: KeyType| {
        KeySchemaElement::builder()
            .attribute_name(name)
            .key_type(kind)
            .build()
    };
    let keys_alone = Projection::builder()
        .projection_type(ProjectionType::KeysOnly)
        .build();
    let index = GlobalSecondaryIndex::builder()
        .index_name(OPEN_INDEX)
        .key_schema(key(attributes::OPEN_SHARD, KeyType::Hash)?)
        .key_schema(key(attributes::OPEN_SINCE, KeyType::Range)?)
        .projection(keys_alone)
        .build()?;
    client
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(attribute(attributes::KEY)?)
        .attribute_definitions(attribute(attributes::OPEN_SHARD)?)
        .attribute_definitions(attribute(attributes::OPEN_SINCE)?)
        .key_schema(key(attributes::KEY, KeyType::Hash)?)
        .global_secondary_indexes(index)
        .send()
        .await?;
    // Some emulators' tables are there a moment later.
    loop {
        let described = client.describe_table().table_name(name).send().await?;
        let status = described.table.and_then(|table| table.table_status);
        if status == Some(TableStatus::Active) {
            return Ok(());
        }
    }
}
