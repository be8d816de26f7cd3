//! Claims in one DynamoDB table: one item a claim, decided by conditional writes.
//!
//! `attributes` names what an item has, and `item` maps a record's fields to one and back; `version` says which writes a version
//! allows; `listing` pages through open claims by the index and through ended ones by a scan; `table` holds names and what to
//! do where there is no table.

mod attributes;
#[cfg(feature = "emulators")]
mod create;
mod item;
mod listing;
mod table;
mod version;

#[cfg(all(test, feature = "emulators"))]
mod samples;
#[cfg(test)]
mod tests;

use std::fmt;
use std::num::NonZeroU32;

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};
use identity_core::claim::{
    ClaimKey, ClaimStore, ListQuery, Page, Precondition, Record, StoreError, Stored, UnixSeconds,
    Version,
};

use self::version::Condition;
use crate::error;

#[cfg(feature = "emulators")]
pub use self::create::create_table;
pub use self::table::{OPEN_INDEX, TableNameError};

/// A claim store in a DynamoDB table, shared by any number of machines.
///
/// The table's key is `job_id`, and its attributes `bucket`, `key`, `status`, `claimed_at`, `finished_at` and `expires_at`
/// (all times in Unix seconds) are those of the published Python handler, which can work on the same table. Time to live, if
/// the table has it, is on `expires_at`, which only done claims carry. Open claims are found through the index
/// [`OPEN_INDEX`]; a claim that the Python handler wrote is not in it, and is listed where `done` is asked for.
///
/// A claim takes one `PutItem`, a duplicate one refused `PutItem`, an end one `PutItem`. What the credentials need:
/// `PutItem` and `GetItem` on the table; `Query` on the index for listing; `Scan` on the table where somebody lists done
/// claims.
#[derive(Clone)]
pub struct DynamoStore {
    client: Client,
    table: String,
}

impl DynamoStore {
    /// The claims in this table. Nothing is asked of the service yet.
    pub fn new(client: Client, table: impl Into<String>) -> Self {
        let table = table.into();
        Self { client, table }
    }

    /// Reads a claim that cannot exist: the connection is open afterwards, TLS and all, and the table is known to be there.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Invalid`]: the store cannot be used, now or as it is.
    pub async fn warm(&self) -> Result<(), StoreError> {
        self.item("warm").await.map(|_| ())
    }

    /// The item with this key, strongly consistent.
    async fn item(&self, key: &str) -> Result<Option<attributes::Item>, StoreError> {
        let read = self
            .client
            .get_item()
            .table_name(&self.table)
            .key(attributes::KEY, AttributeValue::S(key.to_owned()))
            .consistent_read(true)
            .send()
            .await;
        match read {
            Ok(read) => Ok(read.item),
            Err(error) => Err(self.failed("reading a claim", error)),
        }
    }

    /// What an error means for the user of the store. A throttled or unanswered write is never a conflict.
    fn failed<E, R>(&self, doing: &'static str, error: SdkError<E, R>) -> StoreError
    where
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
        R: fmt::Debug + Send + Sync + 'static,
    {
        if error.code() == Some("ValidationException") {
            // The same would be refused for ever: the table has another key, or no such index.
            return StoreError::Invalid {
                store: self.to_string(),
                what: doing.to_owned(),
                expected: table::SHAPE,
                got: error.message().unwrap_or_default().to_owned(),
            };
        }
        let (code, message) = (error.code(), error.message());
        let hint = table::hint(
            &self.table,
            code.unwrap_or_default(),
            message.unwrap_or_default(),
        );
        StoreError::Unavailable {
            store: self.to_string(),
            doing,
            source: error::cause_with(error, &hint),
        }
    }
}

impl fmt::Display for DynamoStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dynamodb://{}", self.table)
    }
}

impl fmt::Debug for DynamoStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DynamoStore({self})")
    }
}

#[async_trait]
impl ClaimStore for DynamoStore {
    async fn get(&self, key: &ClaimKey) -> Result<Option<Stored>, StoreError> {
        match self.item(key.as_str()).await? {
            Some(item) => Ok(Some(self.stored(&item)?.1)),
            None => Ok(None),
        }
    }

    /// One `PutItem` decides. The SDK sends it again where it saw no reply, and may then be refused by its own write: that
    /// is a conflict with one's own record, which the protocol recognises by its owner.
    async fn put(
        &self,
        key: &ClaimKey,
        record: &Record,
        when: &Precondition,
    ) -> Result<Version, StoreError> {
        let item = item::encode(key, record);
        let item = item.map_err(|misfit| self.misfit(key.as_str(), &misfit))?;
        let version = version::of(&item);
        let Some(condition) = Condition::of(when) else {
            // No row ever had this version.
            return Err(StoreError::Conflict { standing: None });
        };
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(item))
            .condition_expression(condition.expression)
            .set_expression_attribute_names(condition.names)
            .set_expression_attribute_values(condition.values)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        match put {
            Ok(_) => Ok(version),
            Err(SdkError::ServiceError(refused))
                if matches!(
                    refused.err(),
                    PutItemError::ConditionalCheckFailedException(_)
                ) =>
            {
                let standing = match refused.into_err() {
                    PutItemError::ConditionalCheckFailedException(refused) => refused.item,
                    _ => None,
                };
                let standing = standing.map(|item| self.stored(&item)).transpose()?;
                Err(StoreError::Conflict {
                    standing: standing.map(|(_, stored)| Box::new(stored)),
                })
            }
            Err(error) => Err(self.failed("writing a claim", error)),
        }
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        listing::list(self, query).await
    }

    /// Nothing: time to live, by `expires_at`, is the service's, and costs nothing there.
    /// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html>
    async fn purge(&self, _: UnixSeconds, _: NonZeroU32) -> Result<u32, StoreError> {
        Ok(0)
    }
}
