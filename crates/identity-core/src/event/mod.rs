//! What arrived: bytes of any envelope → [`StorageEvent`]s, each bound to the delivery item it came from.

use crate::identity::{ObjectAddress, VersionToken};

/// One write of one object, as an envelope told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageEvent {
    /// Which object was written.
    pub address: ObjectAddress,
    /// Which version; `None` if the envelope carries none, so that the store must be asked once (HEAD).
    pub token: Option<VersionToken>,
    /// What people want to see. Identity functions never take it.
    pub details: EventDetails,
}

/// What an envelope says beside identity. It differs between two deliveries of one event, so nothing here may reach a
/// job ID.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventDetails {
    /// The provider's name of the event, e.g. `ObjectCreated:Put`.
    pub event_name: Option<String>,
    /// When the provider says that it happened, as written there.
    pub event_time: Option<String>,
    /// The provider's request ID.
    pub request_id: Option<String>,
    /// S3's ordering hint, comparable only within one key.
    pub sequencer: Option<String>,
    /// Size of the object in bytes.
    pub size: Option<u64>,
    /// ETag without quotes, also where a better token is known.
    pub etag: Option<String>,
}
