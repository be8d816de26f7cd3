//! Emulated clouds, and the real handlers beside them, fed as their clouds feed them.
//!
//! [`Cloud`] is what a scenario needs of one; each cloud's own module has what only it has.

#[cfg(feature = "aws")]
pub mod aws;

use std::{collections::BTreeSet, fmt, num::NonZeroU32, sync::Arc, time::Duration};

use identity_core::claim::{ClaimKey, ClaimStore, ListQuery, Precondition, Record, Status};

use crate::{eventually, folder::Folder, handler::Handler};

/// A container for objects whose events go to a queue, a claim store, and a script that is the job.
pub trait Cloud: Sized + Sync {
    /// How deliveries reach a handler.
    type Api: Sync;

    /// All of it, with nothing in it, and with this script as the job. In the script, `"$1"` is the local copy of the
    /// object, and the working folder is the test's own.
    fn new(job: &str) -> Self;

    /// The test's folder.
    fn folder(&self) -> &Folder;

    /// Waits for a call.
    fn wait<T>(&self, call: impl Future<Output = T>) -> T;

    /// The claims.
    fn store(&self) -> Arc<dyn ClaimStore>;

    /// Writes an object. Its version, as its event tells it.
    fn put(&self, key: &str, content: &str) -> String;

    /// A message that tells of an object's version, and that no queue knows.
    fn message(&self, key: &str, version: &str) -> Message;

    /// Takes some of what the queue has. What is not [acknowledged](Self::acknowledge) soon is had again.
    fn receive(&self) -> Vec<Message>;

    /// Deletes a message of the queue.
    fn acknowledge(&self, message: &Message);

    /// How many messages the queue has, hidden ones too.
    fn depth(&self) -> u32;

    /// A handler that has this long for each delivery, with these settings.
    fn handler_with(&self, time: Duration, settings: &[(&str, &str)]) -> Handler<Self::Api>;

    /// Hands messages to a handler.
    fn send(&self, handler: &Handler<Self::Api>, messages: &[Message]) -> Pending;

    /// Asks a handler for a sweep.
    ///
    /// # Errors
    ///
    /// What the handler says instead.
    fn sweep(&self, handler: &Handler<Self::Api>) -> Result<Swept, String>;

    /// The setting for sweeps into the queue.
    fn redrives(&self) -> (&str, &str);

    /// The setting with which there is no claim store.
    fn no_store(&self) -> (&str, &str);

    /// Settings with each of which this cloud's handler cannot start, besides those that no handler can start with.
    fn unusable(&self) -> &[(&str, &str)];

    /// Where a handler that cannot start says why, besides its log.
    fn complaints(&self, handler: &Handler<Self::Api>) -> Vec<String>;

    /// A handler that has a minute for each delivery.
    fn handler(&self, settings: &[(&str, &str)]) -> Handler<Self::Api> {
        self.handler_with(Duration::from_secs(60), settings)
    }

    /// The message of an object that is written now.
    fn written(&self, key: &str, content: &str) -> Message {
        let version = self.put(key, content);
        self.message(key, &version)
    }

    /// Hands messages to a handler, and waits for what comes again.
    fn deliver(&self, handler: &Handler<Self::Api>, messages: &[Message]) -> Vec<Message> {
        self.send(handler, messages).again()
    }

    /// Takes what the queue has, gives it to the handler, and deletes what it does not want again, as the cloud does.
    fn poll(&self, handler: &Handler<Self::Api>) {
        let messages = self.receive();
        if messages.is_empty() {
            return;
        }
        let again = self.deliver(handler, &messages);
        for message in messages.iter().filter(|message| !again.contains(message)) {
            self.acknowledge(message);
        }
    }

    /// Polls until the queue has nothing more to give, now or later.
    fn drain(&self, handler: &Handler<Self::Api>) {
        eventually("the queue is empty", || {
            self.poll(handler);
            self.depth() == 0
        });
    }

    /// Deletes what the queue has.
    fn discard(&self) {
        eventually("the queue is empty", || {
            for message in self.receive() {
                self.acknowledge(&message);
            }
            self.depth() == 0
        });
    }

    /// Every claim.
    fn claims(&self) -> Vec<Claim> {
        let store = self.store();
        let mut query = ListQuery {
            statuses: Status::ALL.into(),
            limit: NonZeroU32::new(100).unwrap(),
            after: None,
        };
        let mut claims = Vec::new();
        loop {
            let page = self.wait(store.list(&query)).unwrap();
            assert!(page.unreadable.is_empty(), "{page:?}");
            let listed = page.claims.into_iter();
            claims.extend(listed.map(|(key, stored)| Claim {
                key,
                record: stored.record,
            }));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        let keys: BTreeSet<_> = claims.iter().map(|claim| &claim.key).collect();
        assert_eq!(keys.len(), claims.len(), "a claim is listed twice");
        claims
    }

    /// The one claim.
    fn claim(&self) -> Claim {
        let mut claims = self.claims();
        assert_eq!(claims.len(), 1, "{claims:?}");
        claims.remove(0)
    }

    /// The claim of the object with this key.
    fn claim_of(&self, key: &str) -> Claim {
        let claims = self.claims();
        let mut found = claims.iter().filter(|claim| claim.object_key() == key);
        let claim = found
            .next()
            .unwrap_or_else(|| panic!("no claim of {key}: {claims:?}"));
        assert!(found.next().is_none(), "two claims of {key}: {claims:?}");
        claim.clone()
    }

    /// Makes a claim that ended look as if it had ended earlier.
    fn age(&self, key: &ClaimKey, by: Duration) {
        let store = self.store();
        let mut stored = self.wait(store.get(key)).unwrap().unwrap();
        let finished = stored.record.finished_at.as_mut().unwrap();
        finished.0 -= i64::try_from(by.as_secs()).unwrap();
        let unchanged = Precondition::Unchanged(stored.version);
        self.wait(store.put(key, &stored.record, &unchanged))
            .unwrap();
    }
}

/// A claim in a cloud's store.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Its key.
    pub key: ClaimKey,
    /// What it holds.
    pub record: Record,
}

impl Claim {
    /// Where it stands, e.g. `done`, and its attempt.
    pub fn standing(&self) -> (&'static str, u32) {
        (self.record.status.as_str(), self.record.attempt)
    }

    /// Where it stands, and why.
    pub fn ending(&self) -> (&'static str, &'static str) {
        let reason = self.record.reason;
        let reason = reason.map_or("", identity_core::claim::Reason::as_str);
        (self.record.status.as_str(), reason)
    }

    /// The key of its object; empty where there is none.
    pub fn object_key(&self) -> &str {
        let object = self.record.object.as_ref();
        object.map_or("", |object| &object.key)
    }
}

/// A message of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its ID.
    pub id: String,
    /// What it is acknowledged by; `None` if no queue knows it.
    pub receipt: Option<String>,
    /// Its body.
    pub body: String,
    /// Its group, in a queue that keeps an order.
    pub group: Option<String>,
}

impl Message {
    /// A message that no queue knows.
    pub fn new(id: &str, body: impl Into<String>) -> Self {
        Self {
            id: id.to_owned(),
            receipt: None,
            body: body.into(),
            group: None,
        }
    }
}

/// Messages that a handler was given.
pub struct Pending {
    /// By when it must have answered, in Unix milliseconds.
    pub deadline: u64,
    /// Whether it has.
    pub is_answered: Box<dyn Fn() -> bool>,
    /// Waits for the messages that come again.
    pub again: Box<dyn FnOnce() -> Vec<Message>>,
}

impl Pending {
    /// Whether the handler has answered.
    pub fn is_answered(&self) -> bool {
        (self.is_answered)()
    }

    /// Waits for the answer: the messages that come again.
    pub fn again(self) -> Vec<Message> {
        (self.again)()
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pending(until {})", self.deadline)
    }
}

/// What a sweep did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swept {
    /// How many events were sent again.
    pub sent: u64,
    /// How many the cloud's watch counts as stuck.
    pub stuck: u64,
}
