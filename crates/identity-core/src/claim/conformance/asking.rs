//! What the cases ask a store, with errors as the texts that a failed case tells.

use std::sync::Arc;

use super::{CaseResult, ensure, told};
use crate::{
    claim::{
        record::{ClaimKey, Owner, Record},
        store::{ClaimStore, Precondition, StoreError, Stored, Version},
    },
    host::Entropy as _,
};

pub(super) fn owner() -> Result<Owner, String> {
    super::host::CountedEntropy
        .owner()
        .map_err(|error| error.to_string())
}

pub(super) async fn put(
    store: &Arc<dyn ClaimStore>,
    key: &ClaimKey,
    record: &Record,
    when: Precondition,
) -> Result<Version, String> {
    store
        .put(key, record, &when)
        .await
        .map_err(|error| told(&error))
}

pub(super) async fn get(
    store: &Arc<dyn ClaimStore>,
    key: &ClaimKey,
) -> Result<Option<Stored>, String> {
    store.get(key).await.map_err(|error| told(&error))
}

/// The write must be refused as a conflict; if the store tells what stands there, it must be what does.
pub(super) async fn conflict(
    store: &Arc<dyn ClaimStore>,
    key: &ClaimKey,
    record: &Record,
    when: &Precondition,
) -> CaseResult {
    match store.put(key, record, when).await {
        Ok(_) => Err(format!(
            "expected a conflict under {when:?}, and the write took place"
        )),
        Err(StoreError::Conflict { standing }) => {
            let stands = get(store, key).await?;
            ensure!(
                standing.is_none() || standing.as_deref() == stands.as_ref(),
                "the conflict told {standing:?}, but {stands:?} stands there"
            );
            Ok(())
        }
        Err(error) => Err(format!(
            "expected a conflict under {when:?}, got: {}",
            told(&error)
        )),
    }
}
