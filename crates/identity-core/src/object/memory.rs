//! Objects in this process's memory, for tests: those of any provider, each with the tokens that its provider gives.

use std::{
    collections::BTreeMap,
    io::Cursor,
    num::NonZeroU32,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};

use super::{Head, Listed, ObjectError, ObjectStore, ObjectStream};
use crate::{
    claim::UnixMillis,
    identity::{
        ObjectAddress, ObjectKey, ObjectVersion, Provider, Refusal, TokenKind, VersionToken,
        hex::to_hex,
    },
};

/// An object store that lasts as long as its value, of one provider. It keeps the newest version of an object alone, and
/// knows the containers that it was [given](Self::add_container).
///
/// An object's best token is what a HEAD tells at its provider: in S3 a version ID beside the ETag, as with versioning; at
/// Cloud Storage a generation; at Azure an ETag of the write; in a folder the digest of its bytes. Each write of the store
/// happens a millisecond after the one before it.
#[derive(Debug)]
pub struct MemoryObjects {
    provider: Provider,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    containers: BTreeMap<Container, Objects>,
    writes: u32,
}

/// Account and name.
type Container = (Option<String>, String);

/// By their keys.
type Objects = BTreeMap<Vec<u8>, Object>;

#[derive(Debug, Clone)]
struct Object {
    content: Vec<u8>,
    write: u32,
}

/// When the store's first write happened: 2026-01-02 03:04:05 UTC.
const BEGIN: UnixMillis = UnixMillis(1_767_323_045_000);

impl MemoryObjects {
    /// A store of this provider's objects, with no container.
    pub fn new(provider: Provider) -> Self {
        Self {
            provider,
            state: Mutex::default(),
        }
    }

    /// Makes the container of this address, unless it is there.
    pub fn add_container(&self, address: &ObjectAddress) {
        self.state()
            .containers
            .entry(container(address))
            .or_default();
    }

    /// Writes an object, and makes its container.
    pub fn put(&self, address: &ObjectAddress, content: impl Into<Vec<u8>>) {
        let mut state = self.state();
        state.writes += 1;
        let object = Object {
            content: content.into(),
            write: state.writes,
        };
        let objects = state.containers.entry(container(address)).or_default();
        objects.insert(address.key.exact_bytes().to_owned(), object);
    }

    /// Removes an object, if it is there.
    pub fn delete(&self, address: &ObjectAddress) {
        if let Some(objects) = self.state().containers.get_mut(&container(address)) {
            objects.remove(address.key.exact_bytes());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere cannot leave an object half-written: objects are replaced whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What stands in the address's container under its key.
    fn find(&self, address: &ObjectAddress) -> Result<Option<Object>, ObjectError> {
        let state = self.state();
        let objects = self.objects(&state, address)?;
        Ok(objects.get(address.key.exact_bytes()).cloned())
    }

    fn objects<'a>(
        &self,
        state: &'a State,
        address: &ObjectAddress,
    ) -> Result<&'a Objects, ObjectError> {
        if address.provider != self.provider {
            let what = format!("only objects of {} are here", self.provider.as_str());
            return Err(ObjectError::unavailable(address, what));
        }
        let found = state.containers.get(&container(address));
        found.ok_or_else(|| ObjectError::unavailable(address, "there is no such container"))
    }
}

fn container(address: &ObjectAddress) -> Container {
    (address.account.clone(), address.container.clone())
}

impl Object {
    fn head(&self, provider: Provider) -> Result<Head, Refusal> {
        let digest = to_hex(&Sha256::digest(&self.content).into());
        let (kind, value, etag) = match provider {
            Provider::S3 => (
                TokenKind::VersionId,
                format!("v{}", self.write),
                Some(digest),
            ),
            Provider::Gcs => (TokenKind::Generation, self.write.to_string(), None),
            Provider::Azure => {
                let etag = format!("0x{:X}", self.write);
                (TokenKind::ETag, etag.clone(), Some(etag))
            }
            Provider::File => (TokenKind::Content, digest, None),
        };
        let etag = etag.map(|etag| VersionToken::new(TokenKind::ETag, etag));
        Ok(Head {
            token: VersionToken::new(kind, value)?,
            etag: etag.transpose()?,
            size: self.content.len() as u64,
        })
    }
}

#[async_trait]
impl ObjectStore for MemoryObjects {
    fn reads(&self, provider: Provider) -> bool {
        provider == self.provider
    }

    async fn head(&self, address: &ObjectAddress) -> Result<Option<Head>, ObjectError> {
        let found = self.find(address)?;
        found
            .map(|object| object.head(address.provider))
            .transpose()
            .map_err(|refusal| ObjectError::unavailable(address, refusal))
    }

    async fn read(&self, object: &ObjectVersion) -> Result<ObjectStream, ObjectError> {
        let address = &object.address;
        let found = self.find(address)?.ok_or(ObjectError::Changed)?;
        let head = found
            .head(address.provider)
            .map_err(|refusal| ObjectError::unavailable(address, refusal))?;
        if head.token != object.token && head.etag.as_ref() != Some(&object.token) {
            return Err(ObjectError::Changed);
        }
        Ok(Box::new(Cursor::new(found.content)))
    }

    async fn list(
        &self,
        prefix: &ObjectAddress,
        most: NonZeroU32,
    ) -> Result<Vec<Listed>, ObjectError> {
        let state = self.state();
        let begin = prefix.key.exact_bytes();
        let found = self
            .objects(&state, prefix)?
            .range(begin.to_owned()..)
            .take_while(|(key, _)| key.starts_with(begin))
            .filter(|(key, _)| !key[begin.len()..].contains(&b'/'));
        let mut listed = Vec::new();
        for (key, object) in found {
            if listed.len() == usize::try_from(most.get()).unwrap_or(usize::MAX) {
                return Err(ObjectError::too_many(prefix, most));
            }
            let head = object
                .head(prefix.provider)
                .map_err(|refusal| ObjectError::unavailable(prefix, refusal))?;
            listed.push(Listed {
                address: prefix.beside(ObjectKey::from_bytes(key.clone())),
                size: head.size,
                modified: Some(UnixMillis(BEGIN.0 + i64::from(object.write))),
                token: matches!(prefix.provider, Provider::Gcs | Provider::Azure)
                    .then_some(head.token),
            });
        }
        Ok(listed)
    }
}
