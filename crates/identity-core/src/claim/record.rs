//! The record of a claim: what a store keeps under a key.

use std::fmt;

use crate::identity::{JobId, ObjectAddress, Provider, TokenKind, VersionToken, hex};

/// The key of a claim: 64 lower-case hex characters, a job ID or another SHA-256 of this crate's.
///
/// Hexadecimal because it must be a legal key in every store: Azure tables refuse `/ \ # ?`, base64 has two of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClaimKey(String);

impl ClaimKey {
    /// The key with this text, or `None` unless it is 64 lower-case hex characters.
    pub fn parse(text: &str) -> Option<Self> {
        hex::from_hex(text).map(|_| Self(text.to_owned()))
    }

    /// The key of this SHA-256 digest.
    pub fn from_digest(digest: [u8; 32]) -> Self {
        Self(hex::to_hex(&digest))
    }

    /// The 64 characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<JobId> for ClaimKey {
    fn from(id: JobId) -> Self {
        Self::from_digest(id.into())
    }
}

impl fmt::Display for ClaimKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Seconds since 1970-01-01T00:00:00Z, without leap seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct UnixSeconds(pub i64);

/// Milliseconds since 1970-01-01T00:00:00Z, without leap seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct UnixMillis(pub i64);

impl UnixMillis {
    /// The second that this moment lies in.
    pub fn seconds(self) -> UnixSeconds {
        UnixSeconds(self.0.div_euclid(1000))
    }

    /// This moment and `duration` more, at most the last representable one.
    pub fn plus(self, duration: std::time::Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// How long from this moment until `later`; zero if that has passed.
    pub fn until(self, later: Self) -> std::time::Duration {
        std::time::Duration::from_millis(u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0))
    }
}

impl UnixSeconds {
    /// The first millisecond of this second.
    pub fn millis(self) -> UnixMillis {
        UnixMillis(self.0.saturating_mul(1000))
    }
}

/// Who made one claim call: 128 random bits, drawn anew for every call. With the attempt it is the fencing token.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(pub u128);

impl Owner {
    /// The owner that [`Owner`]'s `Display` wrote (32 lower-case hex characters), or `None`.
    pub fn parse(text: &str) -> Option<Self> {
        let owner = u128::from_str_radix(text, 16).map(Self).ok()?;
        (owner.to_string() == text).then_some(owner)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({self})")
    }
}

/// Names one write. Unique among all writes of all processes, never a counter alone: the owner is random and the number
/// counts the writes of its call, so a row that was deleted and made anew never repeats an earlier revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Revision {
    /// The call that wrote.
    pub owner: Owner,
    /// Which of its writes: 1, 2, 3 …
    pub write: u32,
}

impl Revision {
    /// The revision that `Display` wrote, or `None`.
    pub fn parse(text: &str) -> Option<Self> {
        let (owner, write) = text.split_once('.')?;
        let revision = Self {
            owner: Owner::parse(owner)?,
            write: write.parse().ok()?,
        };
        (revision.to_string() == text).then_some(revision)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.owner, self.write)
    }
}

/// Where a claim stands. `done` and `rejected` are ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// Somebody holds it, for as long as the lease lasts.
    Processing,
    /// Ended well. Every later delivery is a duplicate.
    Done,
    /// The last attempt failed; the next delivery wins at once.
    Failed,
    /// Ended for good without success: waits for a person.
    Rejected,
    /// Not ready yet (an incomplete or unsettled bundle): claimed like an absent one once it is.
    Waiting,
}

impl Status {
    /// Every status, in the order of the documentation.
    pub const ALL: [Self; 5] = [
        Self::Processing,
        Self::Done,
        Self::Failed,
        Self::Rejected,
        Self::Waiting,
    ];

    /// The text in records and outputs, e.g. `processing`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Processing => "processing",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Waiting => "waiting",
        }
    }

    /// The status that [`Status::as_str`] names, or `None`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether nothing but an operator's command changes it any more.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Done | Self::Rejected)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The object of a claim, as the record keeps it for people, for the duplicate check and for redrives.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecordedObject {
    /// Where it lives.
    pub provider: Provider,
    /// The Azure storage account.
    pub account: Option<String>,
    /// Bucket, container or folder name, as the event spelt it.
    pub container: String,
    /// The exact key; bytes that are not UTF-8 (possible under `reference` only) are U+FFFD here.
    pub key: String,
    /// The key as it stood in the payload, where that differs from `key`.
    pub raw_key: Option<String>,
    /// The version token: kind and value. `None` on rows of programs that keep none.
    pub token: Option<(TokenKind, String)>,
}

impl RecordedObject {
    /// The record of an object, at a version if one is known.
    pub fn new(address: &ObjectAddress, token: Option<&VersionToken>) -> Self {
        let (key, raw) = (address.key.display(), address.key.raw());
        Self {
            provider: address.provider,
            account: address.account.clone(),
            container: address.container.clone(),
            raw_key: (raw != key).then(|| raw.into_owned()),
            key: key.into_owned(),
            token: token.map(|token| (token.kind(), token.value().to_owned())),
        }
    }
}

impl fmt::Display for RecordedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.provider.uri_scheme())?;
        if let Some(account) = &self.account {
            write!(f, "{account}/")?;
        }
        write!(f, "{}/{}", self.container, self.key)
    }
}

/// Under which pipeline a claim was made. Every field is empty on rows that another program wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct RecordedPipeline {
    /// The contract's `name`.
    pub name: String,
    /// The contract's `version`.
    pub version: String,
    /// The ID scheme's name: `strict`, `reference` or `ingest`.
    pub scheme: String,
    /// SHA-256 of the canonical parameters, 64 hex characters.
    pub params_digest: String,
    /// SHA-256 of the whole contract file, 64 hex characters.
    pub contract_digest: String,
}

/// Why a claim stands where it stands, in one word for programs. The words for people are in [`Record::error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// `done`: the object was gone when its job looked for it.
    Gone,
    /// `done`: another version of the object has taken this one's place, and its job is done.
    Superseded,
    /// `rejected`: the job said that no attempt can succeed.
    Permanent,
    /// `rejected`: `max_attempts` were used up.
    Exhausted,
    /// `rejected`: no event could be read from the delivery.
    Unreadable,
    /// `rejected`: identity refused the event.
    Refused,
    /// `rejected`: the container is not on the allow-list.
    NotAllowed,
    /// `rejected`: two different jobs have one ID.
    Collapsed,
    /// `failed`: an operator released the claim.
    Released,
    /// `failed`: the holder was stopped (shutdown, or its caller went away).
    Interrupted,
    /// `failed`: the object could not be read, or the machine could not do the job. The attempt does not count.
    Unavailable,
    /// `done`: what never was a job (a refused event, an object that was not whole) was sent again, and was settled under
    /// another key, or is no job any more. Not an end: the same may have to be recorded here again.
    Redriven,
}

impl Reason {
    const ALL: [(Self, &'static str); 12] = [
        (Self::Gone, "gone"),
        (Self::Superseded, "superseded"),
        (Self::Permanent, "permanent"),
        (Self::Exhausted, "exhausted"),
        (Self::Unreadable, "unreadable"),
        (Self::Refused, "refused"),
        (Self::NotAllowed, "not-allowed"),
        (Self::Collapsed, "collapsed"),
        (Self::Released, "released"),
        (Self::Interrupted, "interrupted"),
        (Self::Unavailable, "unavailable"),
        (Self::Redriven, "redriven"),
    ];

    /// Every reason.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().map(|(reason, _)| reason)
    }

    /// The text in records and outputs, e.g. `not-allowed`.
    pub fn as_str(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(reason, _)| *reason == self)
            .map_or("", |(_, name)| name)
    }

    /// The reason that [`Reason::as_str`] names, or `None`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(_, text)| *text == name)
            .map(|(reason, _)| *reason)
    }
}

/// An operator's command that moved a claim, kept with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Release {
    /// When, in Unix seconds.
    pub at: UnixSeconds,
    /// Where the claim stood before.
    pub from: Status,
    /// Which attempt was the last one then: `max_attempts` counts from here, or an exhausted claim could not be released.
    pub attempt: u32,
}

/// What a store keeps under a key. How its fields are named and kept is [`fields`](super::fields)' to say.
///
/// Fields that another program's row lacks are `None`; such a row is honoured (see [`Record::lease_end`]).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    /// Where the claim stands.
    pub status: Status,
    /// How often the key was won; 0 for a record that was never won (`waiting`, an unreadable event).
    pub attempt: u32,
    /// Who won it last.
    pub owner: Option<Owner>,
    /// Which write left it so.
    pub revision: Option<Revision>,
    /// When the key was won last (or first recorded), in Unix seconds.
    pub claimed_at: UnixSeconds,
    /// `processing`: until when the claim is the holder's alone, in Unix milliseconds.
    pub lease_until: Option<UnixMillis>,
    /// Not before when it is worth looking again, in Unix milliseconds: of a `waiting` claim, of a `failed` one whose contract
    /// has pauses, and of any that a sweep or an operator has sent again. No claim heeds it, only sweeps do.
    pub waiting_until: Option<UnixMillis>,
    /// When the status became `done`, `rejected` or `failed`, in Unix seconds.
    pub finished_at: Option<UnixSeconds>,
    /// `done` only: after when a store may delete the row, in Unix seconds. Until it does, the row is still done.
    pub expires_at: Option<UnixSeconds>,
    /// The object; `None` for an event that could not be read.
    pub object: Option<RecordedObject>,
    /// The pipeline.
    pub pipeline: RecordedPipeline,
    /// How often an operator or a sweep sent the event again.
    pub redrives: u32,
    /// Why it stands so, for programs.
    pub reason: Option<Reason>,
    /// Why it stands so, for people: the job's error, what was refused, what it was superseded by.
    pub error: Option<String>,
    /// The job's result: JSON text of at most [`Record::MAX_RESULT_BYTES`].
    pub result: Option<String>,
    /// An unreadable event's body; of one that [`Record::keeps_whole`] does not, its first [`Record::MAX_BODY_BYTES`].
    pub body: Option<Vec<u8>>,
    /// The last operator's command on it.
    pub released: Option<Release>,
    /// How many of the attempts since then do not count: neither the job nor its object was to blame
    /// ([`Reason::Unavailable`]).
    pub uncounted: u32,
}

impl Record {
    /// How much of a job's result is kept, in bytes.
    pub const MAX_RESULT_BYTES: usize = 16 * 1024;
    /// How much of an unreadable event is kept, in bytes. A body that fills it may be cut.
    pub const MAX_BODY_BYTES: usize = 32 * 1024;
    /// The lease of a `processing` row whose writer knows no leases (the published Python handlers), from `claimed_at`.
    pub const FOREIGN_LEASE_SECONDS: i64 = 3_600;

    /// A record of this pipeline's that nobody has won, and of which nothing else is known.
    pub fn new(status: Status, claimed_at: UnixSeconds, pipeline: RecordedPipeline) -> Self {
        Self {
            status,
            attempt: 0,
            owner: None,
            revision: None,
            claimed_at,
            lease_until: None,
            waiting_until: None,
            finished_at: None,
            expires_at: None,
            object: None,
            pipeline,
            redrives: 0,
            reason: None,
            error: None,
            result: None,
            body: None,
            released: None,
            uncounted: 0,
        }
    }

    /// Whether an unreadable event's body of so many bytes is kept whole, and not only its beginning.
    pub const fn keeps_whole(length: usize) -> bool {
        length < Self::MAX_BODY_BYTES
    }

    /// Whether of an unreadable event only the beginning is kept.
    pub fn is_cut(&self) -> bool {
        let body = self.body.as_ref();
        body.is_some_and(|body| !Self::keeps_whole(body.len()))
    }

    /// Whether `max_attempts` are used up, counted from the last release.
    pub fn is_exhausted(&self, max_attempts: u32) -> bool {
        self.counted() >= max_attempts
    }

    /// How many attempts count: those since the last release, without those that were nobody's fault.
    pub fn counted(&self) -> u32 {
        let released = self.released.map_or(0, |release| release.attempt);
        self.attempt
            .saturating_sub(released.saturating_add(self.uncounted))
    }

    /// Whether nothing but an operator's command changes it any more. `done` is an end, whatever else a row lacks, unless
    /// it closes what never was a job.
    pub fn is_end(&self) -> bool {
        self.status.is_end() && self.reason != Some(Reason::Redriven)
    }

    /// Until when a `processing` claim is its holder's alone.
    pub fn lease_end(&self) -> UnixMillis {
        self.lease_until.unwrap_or_else(|| {
            UnixSeconds(
                self.claimed_at
                    .0
                    .saturating_add(Self::FOREIGN_LEASE_SECONDS),
            )
            .millis()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_round_trip() {
        for status in Status::ALL {
            assert_eq!(Status::from_name(status.as_str()), Some(status));
        }
        for (reason, _) in Reason::ALL {
            assert_eq!(Reason::from_name(reason.as_str()), Some(reason));
        }
        let revision = Revision {
            owner: Owner(0xab),
            write: 7,
        };
        assert_eq!(Revision::parse(&revision.to_string()), Some(revision));
        for text in ["ab".to_owned(), format!("+{:031x}", 1), "AB".repeat(16)] {
            assert_eq!(Owner::parse(&text), None, "{text}");
            assert_eq!(Revision::parse(&format!("{text}.1")), None);
        }
        assert_eq!(Revision::parse(&format!("{}.+1", Owner(1))), None);
    }

    #[test]
    fn a_done_or_rejected_record_is_an_end_unless_it_closes_what_never_was_a_job() {
        let pipeline = RecordedPipeline::default();
        for status in Status::ALL {
            let ended = matches!(status.to_string().as_str(), "done" | "rejected");
            let record = Record::new(status, UnixSeconds(0), pipeline.clone());
            assert_eq!(
                (status.is_end(), record.is_end()),
                (ended, ended),
                "{status}"
            );
        }
        let closed = Record {
            reason: Some(Reason::Redriven),
            ..Record::new(Status::Done, UnixSeconds(0), pipeline)
        };
        assert!(!closed.is_end());
    }

    #[test]
    fn from_one_moment_to_another_it_takes_what_lies_between_and_nothing_back() {
        let (early, later) = (UnixMillis(1_000), UnixMillis(3_500));
        let between = std::time::Duration::from_millis(2_500);
        assert_eq!((early.until(later), early.plus(between)), (between, later));
        assert!(later.until(early).is_zero());
    }

    #[test]
    fn only_a_lower_case_digest_is_a_key() {
        assert_eq!(
            ClaimKey::parse(&"a0".repeat(32)).map(|key| key.to_string()),
            Some("a0".repeat(32))
        );
        for text in [
            "",
            "A0",
            &"A0".repeat(32),
            &"g0".repeat(32),
            &"a0".repeat(33),
        ] {
            assert_eq!(ClaimKey::parse(text), None, "{text}");
        }
        assert_eq!(ClaimKey::from_digest([0xa0; 32]).as_str(), "a0".repeat(32));
    }

    #[test]
    fn a_row_without_a_lease_is_held_for_an_hour() {
        let seconds = UnixSeconds(1_000);
        assert_eq!(
            UnixSeconds(seconds.0 + Record::FOREIGN_LEASE_SECONDS).millis(),
            UnixMillis(4_600_000)
        );
        assert_eq!(UnixMillis(-1).seconds(), UnixSeconds(-1));
        assert_eq!(
            UnixMillis(i64::MAX).plus(std::time::Duration::MAX),
            UnixMillis(i64::MAX)
        );
        assert_eq!(
            UnixMillis(5).until(UnixMillis(3)),
            std::time::Duration::ZERO
        );
    }
}
