//! The table: its index, what its name may be, and what to do where it is not as it should be.

use super::DynamoStore;

/// The name of the index of open claims: partition key `open_shard`, sort key `open_since`, both strings, keys alone
/// projected. Only claims that are not done have the two, so the index is as large as what is open.
pub const OPEN_INDEX: &str = "open";

/// What is expected of a table, in a sentence's end.
pub(super) const SHAPE: &str = "a table with the string key job_id, and with the index \"open\" over the strings open_shard and open_since";

/// A name that no table can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a DynamoDB table's name has 3 to 255 letters, digits, dots, dashes and underscores, got {0:?}"
)]
pub struct TableNameError(pub String);

impl DynamoStore {
    /// Checks a table's name.
    /// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html>
    ///
    /// # Errors
    ///
    /// [`TableNameError`].
    pub fn check_name(table: &str) -> Result<(), TableNameError> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if (3..=255).contains(&table.len()) && table.bytes().all(legal) {
            Ok(())
        } else {
            Err(TableNameError(table.to_owned()))
        }
    }

    /// The command that makes such a table.
    #[must_use]
    pub fn create_command(table: &str) -> String {
        format!(
            "aws dynamodb create-table --table-name {table} --billing-mode PAY_PER_REQUEST \
             --attribute-definitions AttributeName=job_id,AttributeType=S AttributeName=open_shard,AttributeType=S \
             AttributeName=open_since,AttributeType=S --key-schema AttributeName=job_id,KeyType=HASH \
             --global-secondary-indexes 'IndexName={OPEN_INDEX},KeySchema=[{{AttributeName=open_shard,KeyType=HASH}},\
             {{AttributeName=open_since,KeyType=RANGE}}],Projection={{ProjectionType=KEYS_ONLY}}' && \
             aws dynamodb wait table-exists --table-name {table} && \
             aws dynamodb update-time-to-live --table-name {table} \
             --time-to-live-specification Enabled=true,AttributeName=expires_at"
        )
    }
}

/// What to do about an error with this code, or nothing.
pub(super) fn hint(table: &str, code: &str, message: &str) -> String {
    match code {
        // Which of the two is missing, emulators say in their own ways.
        "ResourceNotFoundException" if message.contains("index") => {
            format!("the table has no index {OPEN_INDEX:?}: expected {SHAPE}")
        }
        "ResourceNotFoundException" => format!(
            "there is no such table in this region and account: deploy/aws makes one, and so does `{}`",
            DynamoStore::create_command(table)
        ),
        "AccessDeniedException" => format!(
            "these credentials need dynamodb:PutItem and dynamodb:GetItem on the table {table}, dynamodb:Query on its index \
             {OPEN_INDEX} to list claims, and dynamodb:Scan to list done ones"
        ),
        "UnrecognizedClientException" | "ExpiredTokenException" | "InvalidSignatureException" => {
            "these credentials are not valid, or not any more: `aws sts get-caller-identity` says whose they are".to_owned()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_index_is_not_taken_for_a_missing_table() {
        let told = |message| hint("claims", "ResourceNotFoundException", message);
        assert!(told("Requested resource not found").contains("create-table"));
        assert!(told("Invalid index: open for table: claims").contains("no index"));
    }

    #[test]
    fn a_name_is_checked_as_the_service_does() {
        for name in ["abc", "A.b-c_9", &"x".repeat(255)] {
            assert_eq!(DynamoStore::check_name(name), Ok(()));
        }
        for name in [
            "",
            "ab",
            "a/b",
            "a b c",
            "naïve",
            "jobs?x=1",
            &"x".repeat(256),
        ] {
            assert_eq!(
                DynamoStore::check_name(name),
                Err(TableNameError(name.to_owned()))
            );
        }
    }
}
