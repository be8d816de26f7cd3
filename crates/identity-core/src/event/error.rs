//! Why something could not be read, in messages that stay short whatever arrived.

use std::str::Utf8Error;

use crate::identity::Refusal;

/// Something that was not understood or not accepted, with the bytes that say so.
#[derive(Debug)]
pub struct Unreadable {
    /// Why.
    pub error: ReadError,
    /// The smallest part that the error concerns: the record's text, the message's body, or the whole payload. Read
    /// again on their own, these bytes mean what they meant in their envelope.
    pub bytes: Vec<u8>,
}

/// Why bytes gave no event.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Nothing arrived, or only white space.
    #[error("the event is empty")]
    Empty,
    /// JSON is UTF-8, and this is not.
    #[error("the event is not UTF-8 text")]
    NotUtf8 {
        /// Where it stops being UTF-8.
        #[source]
        source: Utf8Error,
    },
    /// Not JSON, or JSON that leaves a doubt about what is needed: a field that stands twice, half of a surrogate pair.
    #[error("the event is not JSON that can be read without doubt")]
    NotJson {
        /// What and where.
        #[source]
        source: serde_json::Error,
    },
    /// JSON of a shape that no known source sends.
    #[error("no known event envelope: {got}")]
    UnknownEnvelope {
        /// What stands there instead.
        got: String,
    },
    /// Envelopes in envelopes beyond [`MAX_DEPTH`](super::MAX_DEPTH).
    #[error("envelopes are nested more than {limit} deep")]
    TooDeep {
        /// How many are followed.
        limit: usize,
    },
    /// A list without elements, which no source sends.
    #[error("{field} is an empty list: an envelope without an event")]
    EmptyBatch {
        /// The list's field.
        field: &'static str,
    },
    /// More elements than [`MAX_ITEMS`](super::MAX_ITEMS).
    #[error("{field} brings the delivery to {got} items; at most {limit} are read")]
    TooManyItems {
        /// The list's field.
        field: &'static str,
        /// How many there are.
        got: usize,
        /// How many may be.
        limit: usize,
    },
    /// An object whose name and version are longer than any provider's, and than what a claim may hold.
    #[error("the object's name and version have {got} bytes; at most {limit} are taken")]
    TooLong {
        /// How many there are.
        got: usize,
        /// How many may be.
        limit: usize,
    },
    /// A field that is needed is absent or null.
    #[error("{field} is missing")]
    MissingField {
        /// Its path.
        field: &'static str,
    },
    /// A field that is needed is the empty string.
    #[error("{field} is empty")]
    EmptyField {
        /// Its path.
        field: &'static str,
    },
    /// A field that is needed has a type that cannot be meant.
    #[error("{field} is {got}, expected {expected}")]
    WrongType {
        /// Its path.
        field: &'static str,
        /// What it should be.
        expected: &'static str,
        /// What it is.
        got: &'static str,
    },
    /// A version whose meaning is not known.
    #[error("{field} is {got:?}, expected {expected}")]
    UnsupportedVersion {
        /// Its path.
        field: &'static str,
        /// The version, shortened.
        got: String,
        /// Which ones are read.
        expected: &'static str,
    },
    /// A word or a key of this program's own envelope that means nothing.
    #[error("{field} is {got:?}, expected {expected}")]
    UnknownValue {
        /// Its path.
        field: &'static str,
        /// What it is, shortened.
        got: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A kind of event that is in no list of the provider's: it may be a new object or not.
    #[error("{field} is {got:?}, which is no known kind of event")]
    UnknownEventName {
        /// Its path.
        field: &'static str,
        /// The name, shortened.
        got: String,
    },
    /// Text that should be base64 and is not.
    #[error("{field} is not base64")]
    NotBase64 {
        /// Its path.
        field: &'static str,
        /// What and where.
        #[source]
        source: base64::DecodeError,
    },
    /// A number that has to be whole, and is not, or does not fit in 64 bits.
    #[error("{field} is {got:?}, expected a whole number")]
    NotAWholeNumber {
        /// Its path.
        field: &'static str,
        /// What it is, shortened.
        got: String,
    },
    /// A path or URL that names no blob.
    #[error("{field} is {got:?}, which names no blob")]
    NotABlob {
        /// Its path.
        field: &'static str,
        /// The text, shortened.
        got: String,
    },
    /// A name in which characters were replaced on its way, and nothing tells which.
    #[error("{field} is {got:?}: characters of the name were lost, and the URL does not tell them")]
    LostCharacters {
        /// Its path.
        field: &'static str,
        /// The text, shortened.
        got: String,
    },
    /// A header that cannot be used: its encoding is nowhere documented, or it is no header of its kind.
    #[error("the header {name} is {got:?}, expected {expected}")]
    UnusableHeader {
        /// Its name.
        name: &'static str,
        /// Its value, shortened.
        got: String,
        /// What it should be.
        expected: &'static str,
    },
    /// An EventBridge event of another service.
    #[error("source is {got:?}, expected \"aws.s3\"")]
    UnknownSource {
        /// The service, shortened.
        got: String,
    },
    /// A store of which nobody says whether it encodes keys, and a key that means one object or another by that.
    #[error(
        "eventSource is {source_name:?}, and whether it encodes the key {key:?} is not known: FIRSTCLAIM_S3_KEYS can say so"
    )]
    UnknownKeyEncoding {
        /// The record's source, shortened.
        source_name: String,
        /// The key as it stands there, shortened.
        key: String,
    },
    /// SNS asks for, or reports, a change of a subscription: an operator's business.
    #[error("Type is {got:?}, expected \"Notification\"")]
    NotANotification {
        /// The type, shortened.
        got: String,
    },
    /// Readable, and refused by identity.
    #[error("the event is refused")]
    Refused {
        /// The reason.
        #[from]
        source: Refusal,
    },
}

impl ReadError {
    /// Identity's reason, if the event was readable and identity refused it.
    #[must_use]
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused { source } => Some(source),
            _ => None,
        }
    }
}

/// The first characters of a text that came from outside, for a message.
pub(super) fn excerpt(text: &str) -> String {
    const LIMIT: usize = 64;
    match text.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
