//! The suite of object stores passes the in-memory one with each provider's tokens, and each of its cases fails one that is
//! broken so.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use identity_core::{
    claim::UnixMillis,
    identity::{
        ObjectAddress, ObjectKey, ObjectVersion, Provider, TokenKind, VersionToken,
        decode::form_decode,
    },
    object::{
        Head, Listed, ObjectError, ObjectStore, ObjectStream,
        conformance::{self, Subject},
        memory::MemoryObjects,
    },
};
use tokio::io::AsyncReadExt as _;

/// So many objects a broken store lists that knows of no second page.
const PAGE: usize = 5;

#[derive(Debug)]
struct Memory {
    store: Arc<MemoryObjects>,
    container: ObjectAddress,
}

impl Memory {
    fn new(provider: Provider) -> Self {
        let container = ObjectAddress {
            provider,
            account: (provider == Provider::Azure).then(|| "acct".to_owned()),
            container: "uploads".to_owned(),
            key: ObjectKey::verbatim(""),
        };
        let store = Arc::new(MemoryObjects::new(provider));
        store.add_container(&container);
        Self { store, container }
    }
}

#[async_trait]
impl Subject for Memory {
    fn store(&self) -> Arc<dyn ObjectStore> {
        self.store.clone()
    }
    fn container(&self) -> ObjectAddress {
        self.container.clone()
    }
    fn missing_container(&self) -> ObjectAddress {
        ObjectAddress {
            container: "nowhere".to_owned(),
            ..self.container.clone()
        }
    }
    fn can_hold(&self, _: &[u8]) -> bool {
        true
    }
    fn page(&self) -> usize {
        PAGE
    }
    async fn put(&self, address: &ObjectAddress, content: &[u8]) {
        self.store.put(address, content);
    }
    async fn delete(&self, address: &ObjectAddress) {
        self.store.delete(address);
    }
}

#[tokio::test]
async fn the_memory_store_conforms() {
    for provider in Provider::ALL {
        let failures = conformance::run(&Memory::new(provider)).await;
        assert!(failures.is_empty(), "{}: {failures:#?}", provider.as_str());
    }
}

/// How a store is broken.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    LosesTheLastByte,
    ReadsWhatIsThere,
    KeepsWhatIsRemoved,
    FindsByPrefix,
    TakesAMissingContainerForAnEmptyOne,
    AnswersForEveryProvider,
    ListsBelowFolders,
    FoldsCase,
    DecodesKeys,
    SortsBackwards,
    LeavesOutTheWholeKey,
    ListsLate,
    ListsAnotherToken,
    TellsSeconds,
    ListsOnePage,
    CutsAtTheMost,
    ErrsWhereNothingIs,
    /// No answer of it is right.
    AnswersWrongly,
}

/// An in-memory store with a fault, and all keys that were ever written to it.
#[derive(Debug)]
struct Broken {
    fault: Fault,
    inner: MemoryObjects,
    keys: Mutex<BTreeMap<Vec<u8>, ObjectAddress>>,
    /// The last listing of each prefix.
    told: Mutex<BTreeMap<Vec<u8>, Vec<Listed>>>,
}

impl Broken {
    /// What of all keys begins so, in the eyes of this store.
    async fn begins(&self, begins: impl Fn(&[u8]) -> bool) -> Result<Vec<Listed>, ObjectError> {
        let keys = self.keys.lock().unwrap().clone();
        let mut listed = Vec::new();
        for (_, address) in keys.into_iter().filter(|(key, _)| begins(key)) {
            if let Some(head) = self.inner.head(&address).await? {
                listed.push(Listed {
                    address,
                    size: head.size,
                    modified: None,
                    token: None,
                });
            }
        }
        Ok(listed)
    }

    async fn list_faithfully(
        &self,
        prefix: &ObjectAddress,
        most: NonZeroU32,
    ) -> Result<Vec<Listed>, ObjectError> {
        let key = prefix.key.exact_bytes().to_owned();
        match self.fault {
            Fault::ListsBelowFolders => self.begins(|other| other.starts_with(&key)).await,
            Fault::FoldsCase => {
                let key = key.to_ascii_lowercase();
                let alike = |other: &[u8]| other.to_ascii_lowercase().starts_with(&key);
                self.begins(|other| alike(other) && !other[key.len()..].contains(&b'/'))
                    .await
            }
            _ => self.inner.list(prefix, most).await,
        }
    }
}

#[async_trait]
impl ObjectStore for Broken {
    fn reads(&self, provider: Provider) -> bool {
        self.inner.reads(provider)
    }

    async fn head(&self, address: &ObjectAddress) -> Result<Option<Head>, ObjectError> {
        let head = self.inner.head(address).await;
        match (self.fault, head) {
            (Fault::AnswersWrongly, _) => Err(ObjectError::Changed),
            (Fault::FindsByPrefix, Ok(None)) => {
                let key = address.key.exact_bytes();
                let first = self.begins(|other| other.starts_with(key)).await?;
                match first.first() {
                    Some(listed) => self.inner.head(&listed.address).await,
                    None => Ok(None),
                }
            }
            (Fault::TakesAMissingContainerForAnEmptyOne, Err(_))
                if self.reads(address.provider) =>
            {
                Ok(None)
            }
            (Fault::AnswersForEveryProvider, Err(_)) if !self.reads(address.provider) => Ok(None),
            (_, head) => head,
        }
    }

    async fn read(&self, object: &ObjectVersion) -> Result<ObjectStream, ObjectError> {
        let now = self.inner.head(&object.address).await?;
        let asked = match (self.fault, now) {
            (Fault::ReadsWhatIsThere, Some(head)) => ObjectVersion {
                token: head.token,
                ..object.clone()
            },
            _ => object.clone(),
        };
        let mut stream = self.inner.read(&asked).await?;
        if self.fault == Fault::LosesTheLastByte {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).await.unwrap();
            bytes.pop();
            return Ok(Box::new(std::io::Cursor::new(bytes)));
        }
        Ok(stream)
    }

    async fn list(
        &self,
        prefix: &ObjectAddress,
        most: NonZeroU32,
    ) -> Result<Vec<Listed>, ObjectError> {
        if self.fault == Fault::AnswersWrongly {
            return Err(ObjectError::Changed);
        }
        let all = NonZeroU32::MAX;
        let key = prefix.key.exact_bytes();
        let listed = match self.list_faithfully(prefix, most).await {
            Ok(listed) => listed,
            Err(_) if self.fault == Fault::TakesAMissingContainerForAnEmptyOne => Vec::new(),
            Err(_) if self.fault == Fault::AnswersForEveryProvider => Vec::new(),
            Err(_) if self.fault == Fault::CutsAtTheMost => {
                let mut listed = self.inner.list(prefix, all).await?;
                listed.truncate(usize::try_from(most.get()).unwrap());
                listed
            }
            Err(error) => return Err(error),
        };
        let each = |change: fn(&mut Listed)| {
            let mut listed = listed.clone();
            listed.iter_mut().for_each(change);
            listed
        };
        Ok(match self.fault {
            Fault::DecodesKeys => each(|listed| {
                let key = form_decode(&listed.address.key.display());
                listed.address = listed.address.beside(ObjectKey::from_bytes(key));
            }),
            Fault::SortsBackwards => listed.into_iter().rev().collect(),
            Fault::LeavesOutTheWholeKey => {
                let others = listed.into_iter();
                others
                    .filter(|other| other.address.key.exact_bytes() != key)
                    .collect()
            }
            Fault::ListsLate => {
                let before = self
                    .told
                    .lock()
                    .unwrap()
                    .insert(key.to_owned(), listed.clone());
                before.unwrap_or(listed)
            }
            Fault::ListsAnotherToken => each(|listed| {
                listed.token = Some(VersionToken::new(TokenKind::ETag, "e1").unwrap());
            }),
            Fault::TellsSeconds => each(|listed| {
                listed.modified = listed.modified.map(|at| UnixMillis(at.0 / 1_000));
            }),
            Fault::ListsOnePage => listed.into_iter().take(PAGE).collect(),
            Fault::ErrsWhereNothingIs if listed.is_empty() => {
                return Err(ObjectError::unavailable(prefix, "404"));
            }
            _ => listed,
        })
    }
}

struct BrokenSubject {
    memory: Memory,
    broken: Arc<Broken>,
}

#[async_trait]
impl Subject for BrokenSubject {
    fn store(&self) -> Arc<dyn ObjectStore> {
        self.broken.clone()
    }
    fn container(&self) -> ObjectAddress {
        self.memory.container()
    }
    fn missing_container(&self) -> ObjectAddress {
        self.memory.missing_container()
    }
    fn can_hold(&self, key: &[u8]) -> bool {
        self.memory.can_hold(key)
    }
    fn page(&self) -> usize {
        self.memory.page()
    }
    async fn put(&self, address: &ObjectAddress, content: &[u8]) {
        self.broken.inner.put(address, content);
        let key = address.key.exact_bytes().to_owned();
        self.broken
            .keys
            .lock()
            .unwrap()
            .insert(key, address.clone());
    }
    async fn delete(&self, address: &ObjectAddress) {
        if self.broken.fault != Fault::KeepsWhatIsRemoved {
            self.broken.inner.delete(address);
        }
    }
}

async fn failures_of(fault: Fault) -> BTreeSet<String> {
    let memory = Memory::new(Provider::Gcs);
    let inner = MemoryObjects::new(Provider::Gcs);
    inner.add_container(&memory.container);
    let broken = Arc::new(Broken {
        fault,
        inner,
        keys: Mutex::default(),
        told: Mutex::default(),
    });
    let failures = conformance::run(&BrokenSubject { memory, broken }).await;
    failures.into_iter().map(|failure| failure.case).collect()
}

/// Which cases each fault must fail.
const FOUND: [(Fault, &[&str]); 17] = [
    (
        Fault::LosesTheLastByte,
        &["an object is read as it was written"],
    ),
    (
        Fault::ReadsWhatIsThere,
        &["other bytes are another version"],
    ),
    (
        Fault::KeepsWhatIsRemoved,
        &[
            "a removed object is not there",
            "a listing is of what is there now",
        ],
    ),
    (
        Fault::FindsByPrefix,
        &["an object that never was is not there"],
    ),
    (
        Fault::TakesAMissingContainerForAnEmptyOne,
        &[
            "a container that is not there is an error",
            "a listing in a container that is not there is an error",
        ],
    ),
    (
        Fault::AnswersForEveryProvider,
        &[
            "an object of another provider is an error",
            "a listing at another provider is an error",
        ],
    ),
    (
        Fault::ListsBelowFolders,
        &["a listing holds what begins with its prefix, and nothing else"],
    ),
    (
        Fault::FoldsCase,
        &["a listing holds what begins with its prefix, and nothing else"],
    ),
    (Fault::DecodesKeys, &["a listing tells each key exactly"]),
    (
        Fault::SortsBackwards,
        &["a listing holds what begins with its prefix, and nothing else"],
    ),
    (
        Fault::LeavesOutTheWholeKey,
        &["a key that is a prefix of others is listed with them"],
    ),
    (Fault::ListsLate, &["a listing is of what is there now"]),
    (
        Fault::ListsAnotherToken,
        &["a token of a listing is the one that a HEAD tells"],
    ),
    (
        Fault::TellsSeconds,
        &["a listing tells times in milliseconds"],
    ),
    (
        Fault::ListsOnePage,
        &["a listing of several pages is whole"],
    ),
    (
        Fault::CutsAtTheMost,
        &["a listing of more than there may be is an error"],
    ),
    (
        Fault::ErrsWhereNothingIs,
        &["nothing begins so: an empty listing"],
    ),
];

#[tokio::test]
async fn a_broken_store_fails_the_cases_that_are_about_its_fault() {
    for (fault, cases) in FOUND {
        let failed = failures_of(fault).await;
        for case in cases {
            assert!(
                failed.contains(*case),
                "{fault:?}: {case:?} passed; failed were {failed:#?}"
            );
        }
    }
}

#[tokio::test]
async fn every_case_is_failed_by_a_fault_of_its_own() {
    let found = FOUND.iter().flat_map(|(_, cases)| *cases);
    let found: BTreeSet<_> = found.map(|case| (*case).to_owned()).collect();
    assert_eq!(failures_of(Fault::AnswersWrongly).await, found);
}
