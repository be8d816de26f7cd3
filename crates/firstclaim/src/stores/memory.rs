//! `memory:`: claims that last as long as this process.

use std::sync::Arc;

use async_trait::async_trait;
use identity_core::claim::{ClaimStore, memory::MemoryStore};

use super::Store;
use crate::failure::Failure;

#[derive(Debug)]
struct Memory;

pub(super) fn read(_: &str, rest: &str) -> Result<Box<dyn Store>, Failure> {
    if !rest.is_empty() {
        return Err(Failure::usage(
            "the store memory: has no name: expected nothing after the colon",
        ));
    }
    Ok(Box::new(Memory))
}

#[async_trait]
impl Store for Memory {
    async fn open(&self) -> Result<Arc<dyn ClaimStore>, Failure> {
        Ok(Arc::new(MemoryStore::default()))
    }

    async fn open_if_there(&self) -> Result<Option<Arc<dyn ClaimStore>>, Failure> {
        Ok(None)
    }

    fn missing(&self) -> String {
        "the store memory: lasts only as long as one command, so it has no claims to show"
            .to_owned()
    }
}
