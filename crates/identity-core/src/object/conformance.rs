//! What [`ObjectStore`] means, as a suite: [`run`] is the one entry point that every object store must pass.
//!
//! A [`Subject`] is an object store, and a program that writes to it and removes from it. The suite needs a container of its
//! own with nothing in it, and leaves its objects there.

mod listing_cases;
mod reading_cases;

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};

use super::{Head, ObjectError, ObjectStore};
use crate::{
    identity::{ObjectAddress, ObjectKey, ObjectVersion, VersionToken},
    text::error_chain,
};

pub use crate::claim::conformance::Failure;

/// An object store to be examined, and who writes to it.
#[async_trait]
pub trait Subject: Send + Sync {
    /// The store. Every call may give another handle to the same objects.
    fn store(&self) -> Arc<dyn ObjectStore>;
    /// The suite's container, which is there and empty, with any key.
    fn container(&self) -> ObjectAddress;
    /// A container that is not there, with any key.
    fn missing_container(&self) -> ObjectAddress;
    /// Whether an object of the store can have this key, and the subject write it.
    fn can_hold(&self, key: &[u8]) -> bool;
    /// How many objects the store lists at once.
    fn page(&self) -> usize;
    /// Writes the object.
    async fn put(&self, address: &ObjectAddress, content: &[u8]);
    /// Removes the object.
    async fn delete(&self, address: &ObjectAddress);
}

/// Runs every case on `subject` and returns those that failed.
pub async fn run(subject: &dyn Subject) -> Vec<Failure> {
    let suite = Suite { subject };
    let mut failures = Vec::new();
    for (case, result) in [
        reading_cases::run(&suite).await,
        listing_cases::run(&suite).await,
    ]
    .into_iter()
    .flatten()
    {
        failures.extend(result.err().map(|what| Failure {
            case: case.to_owned(),
            what,
        }));
    }
    failures
}

/// Why a case stopped.
type CaseResult = Result<(), String>;

/// A case's name, and how it went.
type Case = (&'static str, CaseResult);

/// Returns the message unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+));
        }
    };
}
use ensure;

/// How many objects are written at once where there are many.
const WRITERS: usize = 16;

/// The subject, asked in few words.
struct Suite<'a> {
    subject: &'a dyn Subject,
}

impl Suite<'_> {
    fn address(&self, key: impl Into<Vec<u8>>) -> ObjectAddress {
        self.subject.container().beside(ObjectKey::from_bytes(key))
    }

    async fn put(&self, key: &str, content: &[u8]) -> ObjectAddress {
        let address = self.address(key);
        self.subject.put(&address, content).await;
        address
    }

    async fn put_all(&self, keys: &[String]) {
        let writes = keys.iter().map(|key| self.put(key, b"x"));
        stream::iter(writes)
            .buffer_unordered(WRITERS)
            .for_each(async |_| {})
            .await;
    }

    async fn head(&self, address: &ObjectAddress) -> Result<Option<Head>, String> {
        let head = self.subject.store().head(address).await;
        head.map_err(|error| format!("HEAD of {address}: {}", error_chain(&error)))
    }

    /// What a HEAD says of an object that must be there.
    async fn present(&self, address: &ObjectAddress) -> Result<Head, String> {
        let head = self.head(address).await?;
        head.ok_or_else(|| format!("{address} was written, and a HEAD does not find it"))
    }

    /// The bytes of this version; `None` if the store says that it has changed.
    async fn read(
        &self,
        address: &ObjectAddress,
        token: &VersionToken,
    ) -> Result<Option<Vec<u8>>, String> {
        let object = ObjectVersion {
            address: address.clone(),
            token: token.clone(),
        };
        read(&*self.subject.store(), &object)
            .await
            .map_err(|error| format!("reading {address} at {token}: {}", error_chain(&*error)))
    }
}

/// The bytes of this version; `None` if the store says that it has changed, at the latest where the stream ends.
async fn read(
    store: &dyn ObjectStore,
    object: &ObjectVersion,
) -> Result<Option<Vec<u8>>, Box<dyn std::error::Error + Send + Sync>> {
    use tokio::io::AsyncReadExt as _;

    let mut stream = match store.read(object).await {
        Ok(stream) => stream,
        Err(ObjectError::Changed) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes).await {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if has_changed(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn has_changed(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(inner, Some(ObjectError::Changed))
}

/// Text for a message, where the key may be any bytes.
fn shown(key: &[u8]) -> impl fmt::Display {
    key.escape_ascii()
}
