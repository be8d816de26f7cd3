//! What can be broken on purpose, to see that the model notices.
//!
//! The shipped machine stays as it is: what is bent is what passes between it and the store, or the source.

/// A mistake that programs of this kind make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Control {
    /// The store writes an end without looking at its condition: no fencing.
    EndWithoutCondition,
    /// The store's versions count a row's writes, so that a row made anew counts up to an old version again.
    VersionIsACounter,
    /// The source is told that a delivery whose job somebody else holds is settled.
    HeldIsAcknowledged,
    /// A claim that meets its own write, whose reply was lost, takes it for a duplicate.
    OwnWriteIsADuplicate,
    /// A job's failure is told to the source, but the row is left in `processing`: what the published handler does.
    FailureIsNotRecorded,
    /// Claims carry `expires_at`, so that the store forgets a job before it has ended.
    ExpiryIsSetAtClaim,
    /// An end is written, whatever stands there, as long as the holder's own wall clock says that its lease lasts.
    WallClockDecidesEnds,
}

impl Control {
    /// Every one of them.
    pub const ALL: [Self; 7] = [
        Self::EndWithoutCondition,
        Self::VersionIsACounter,
        Self::HeldIsAcknowledged,
        Self::OwnWriteIsADuplicate,
        Self::FailureIsNotRecorded,
        Self::ExpiryIsSetAtClaim,
        Self::WallClockDecidesEnds,
    ];

    /// What is wrong, in a few words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EndWithoutCondition => "an end is written without its condition",
            Self::VersionIsACounter => "a version is a counter",
            Self::HeldIsAcknowledged => "a held duplicate is acknowledged",
            Self::OwnWriteIsADuplicate => "one's own lost write is taken for a duplicate",
            Self::FailureIsNotRecorded => "a failed row is left in processing",
            Self::ExpiryIsSetAtClaim => "expires_at is set at the claim",
            Self::WallClockDecidesEnds => "a wrong clock decides an end",
        }
    }
}
