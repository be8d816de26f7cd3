//! What became of an event, and what its source is told: the table of the gate.

use crate::claim::{End, Kept, Reason, Record, Status, UnixMillis};

/// What the source of an event is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Disposition {
    /// Do not deliver again: what the event asked for is recorded, or it asks for nothing.
    Ack,
    /// Deliver again, where the source lets us say so not before this moment.
    Retry {
        /// Unix time in milliseconds before which another delivery would find the same.
        not_before: Option<UnixMillis>,
    },
}

/// Why an event is no job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NoJob {
    /// By its kind: a removal, a metadata change, a test event.
    Kind(crate::event::Ignored),
    /// The contract does not select its key.
    NotSelected,
    /// It is the empty object by which a folder is shown, and the contract does not want those.
    Folder,
    /// The object is no longer there.
    Gone,
}

impl NoJob {
    /// The reason in counts and outputs, e.g. `not-selected`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kind(kind) => kind.as_str(),
            Self::NotSelected => "not-selected",
            Self::Folder => "folder",
            Self::Gone => "gone",
        }
    }
}

/// What an event's way leads through beside its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The claim store: without it nothing can be settled.
    ClaimStore,
    /// This claim: its row cannot be read, or too many write to it at once.
    Claim,
    /// The object store, for this object.
    ObjectStore,
    /// This machine: what the job is run by, or with, is not there, and other jobs will miss it, too.
    Machine,
    /// This process: it is being stopped, or a part of it ended.
    Process,
}

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Its job ran here and is recorded as done.
    Done {
        /// Which attempt it was.
        attempt: u32,
        /// [`Reason::Gone`] or [`Reason::Superseded`] if there was nothing left to do.
        reason: Option<Reason>,
    },
    /// Its job was done before: the duplicate that is the whole point.
    Duplicate,
    /// Somebody else is at its job.
    Held {
        /// When their lease ends unless it is renewed, in Unix milliseconds.
        until: UnixMillis,
    },
    /// Its job ran here and failed, which is recorded.
    Failed {
        /// Which attempt it was.
        attempt: u32,
        /// What happened.
        error: String,
        /// Not before when it is worth another attempt, in Unix milliseconds, if the contract says so.
        again: Option<UnixMillis>,
    },
    /// Its job ran here, but the claim was lost meanwhile; nothing is recorded by this attempt.
    LeaseLost {
        /// Which attempt it was.
        attempt: u32,
    },
    /// It, or its job, is recorded as rejected, now or before.
    Rejected {
        /// Why.
        reason: Reason,
        /// Why, for people.
        error: String,
    },
    /// It could not be read, and is too long to be kept whole: its beginning is recorded as rejected. It is not acknowledged,
    /// so that its source, or the dead-letter queue behind it, keeps all of it.
    Unkept {
        /// Why.
        reason: Reason,
        /// Why, for people.
        error: String,
    },
    /// What it is about is not whole yet, which is recorded as waiting: a sweep looks at it again.
    Waiting {
        /// Until when it is left alone, in Unix milliseconds.
        until: UnixMillis,
    },
    /// It is no job.
    Ignored(NoJob),
    /// The claim store, the object store or the machine did not do its part. Nothing is known to be recorded, but for a job
    /// that had begun: it is `failed`, by an attempt that does not count.
    Unavailable {
        /// Which of them.
        part: Part,
        /// What happened.
        error: String,
    },
}

impl Outcome {
    /// Of an event whose job has ended before, as `record` says.
    pub fn of_ended(record: &Record) -> Self {
        if record.status == Status::Rejected {
            Self::Rejected {
                reason: record.reason.unwrap_or(Reason::Permanent),
                error: record.error.clone().unwrap_or_default(),
            }
        } else {
            Self::Duplicate
        }
    }

    /// Of an event whose job ran here as `attempt` and came to `end`, which was recorded if it was `kept`.
    pub fn of_run(end: &End, attempt: u32, kept: Kept) -> Self {
        match (kept, end) {
            (Kept::LeaseLost, _) => Self::LeaseLost { attempt },
            (Kept::Yes, End::Done { reason, .. }) => Self::Done {
                attempt,
                reason: *reason,
            },
            (Kept::Yes, End::Failed { error, .. }) => Self::Failed {
                attempt,
                error: error.clone(),
                again: None,
            },
            (Kept::Yes, End::Rejected { error }) => Self::Rejected {
                reason: Reason::Permanent,
                error: error.clone(),
            },
        }
    }

    /// What the source is told. Acknowledged means recorded: `Ack` stands only where the job is `done`, `rejected` or
    /// `waiting`, or where there is none.
    pub fn disposition(&self) -> Disposition {
        match self {
            Self::Done { .. }
            | Self::Duplicate
            | Self::Rejected { .. }
            | Self::Waiting { .. }
            | Self::Ignored(_) => Disposition::Ack,
            // Acknowledging a held duplicate would lose the job if its holder dies.
            Self::Held { until } => Disposition::Retry {
                not_before: Some(*until),
            },
            Self::Failed { again, .. } => Disposition::Retry { not_before: *again },
            Self::LeaseLost { .. } | Self::Unkept { .. } | Self::Unavailable { .. } => {
                Disposition::Retry { not_before: None }
            }
        }
    }

    /// Why it came out so, in a word, where there is one.
    pub fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Done { reason, .. } => reason.map(Reason::as_str),
            Self::Rejected { reason, .. } | Self::Unkept { reason, .. } => Some(reason.as_str()),
            Self::Ignored(why) => Some(why.as_str()),
            _ => None,
        }
    }

    /// Which attempt ran here, if one did.
    pub fn attempt(&self) -> Option<u32> {
        match self {
            Self::Done { attempt, .. }
            | Self::Failed { attempt, .. }
            | Self::LeaseLost { attempt } => Some(*attempt),
            _ => None,
        }
    }

    /// What went wrong, for people, if something did.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Failed { error, .. }
            | Self::Rejected { error, .. }
            | Self::Unkept { error, .. }
            | Self::Unavailable { error, .. } => Some(error),
            _ => None,
        }
    }

    /// One word for logs and counts, e.g. `duplicate`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Done { .. } => "done",
            Self::Duplicate => "duplicate",
            Self::Held { .. } => "held",
            Self::Failed { .. } => "failed",
            Self::LeaseLost { .. } => "lease-lost",
            Self::Rejected { .. } => "rejected",
            Self::Unkept { .. } => "unkept",
            Self::Waiting { .. } => "waiting",
            Self::Ignored(_) => "ignored",
            Self::Unavailable { .. } => "unavailable",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_recorded_or_no_job_is_acknowledged() {
        let retried = [
            Outcome::Held {
                until: UnixMillis(5),
            },
            Outcome::Failed {
                attempt: 1,
                error: String::new(),
                again: None,
            },
            Outcome::LeaseLost { attempt: 1 },
            Outcome::Unkept {
                reason: Reason::Unreadable,
                error: String::new(),
            },
            Outcome::Unavailable {
                part: Part::ClaimStore,
                error: String::new(),
            },
        ];
        for outcome in retried {
            assert!(
                matches!(outcome.disposition(), Disposition::Retry { .. }),
                "{outcome:?}"
            );
        }
        let acknowledged = [
            Outcome::Done {
                attempt: 1,
                reason: None,
            },
            Outcome::Duplicate,
            Outcome::Rejected {
                reason: Reason::Unreadable,
                error: String::new(),
            },
            Outcome::Waiting {
                until: UnixMillis(5),
            },
            Outcome::Ignored(NoJob::NotSelected),
        ];
        for outcome in acknowledged {
            assert_eq!(outcome.disposition(), Disposition::Ack, "{outcome:?}");
        }
    }

    #[test]
    fn each_outcome_is_told_in_words_with_its_attempt_and_what_went_wrong() {
        let error = || "e".to_owned();
        let done = |reason| Outcome::Done { attempt: 3, reason };
        let until = UnixMillis(5);
        let failed = Outcome::Failed {
            attempt: 3,
            error: error(),
            again: None,
        };
        let rejected = Outcome::Rejected {
            reason: Reason::Refused,
            error: error(),
        };
        let unkept = Outcome::Unkept {
            reason: Reason::Unreadable,
            error: error(),
        };
        let unavailable = Outcome::Unavailable {
            part: Part::ClaimStore,
            error: error(),
        };
        let kind = crate::event::Ignored::Handshake;
        for (outcome, word, reason, attempt, error) in [
            (done(None), "done", None, Some(3), None),
            (
                done(Some(Reason::Gone)),
                "done",
                Some("gone"),
                Some(3),
                None,
            ),
            (Outcome::Duplicate, "duplicate", None, None, None),
            (Outcome::Held { until }, "held", None, None, None),
            (failed, "failed", None, Some(3), Some("e")),
            (
                Outcome::LeaseLost { attempt: 3 },
                "lease-lost",
                None,
                Some(3),
                None,
            ),
            (rejected, "rejected", Some("refused"), None, Some("e")),
            (unkept, "unkept", Some("unreadable"), None, Some("e")),
            (Outcome::Waiting { until }, "waiting", None, None, None),
            (
                Outcome::Ignored(NoJob::NotSelected),
                "ignored",
                Some("not-selected"),
                None,
                None,
            ),
            (
                Outcome::Ignored(NoJob::Gone),
                "ignored",
                Some("gone"),
                None,
                None,
            ),
            (
                Outcome::Ignored(NoJob::Kind(kind)),
                "ignored",
                Some(kind.as_str()),
                None,
                None,
            ),
            (unavailable, "unavailable", None, None, Some("e")),
        ] {
            let told = (
                outcome.as_str(),
                outcome.reason(),
                outcome.attempt(),
                outcome.error(),
            );
            assert_eq!(told, (word, reason, attempt, error), "{outcome:?}");
        }
    }

    #[test]
    fn a_failed_event_is_wanted_again_after_its_pause() {
        let again = Some(UnixMillis(5));
        let error = String::new();
        let failed = Outcome::Failed {
            attempt: 1,
            error,
            again,
        };
        let expected = Disposition::Retry { not_before: again };
        assert_eq!(failed.disposition(), expected);
    }

    #[test]
    fn a_held_event_is_wanted_again_when_the_lease_ends() {
        let disposition = Outcome::Held {
            until: UnixMillis(5),
        }
        .disposition();
        assert_eq!(
            disposition,
            Disposition::Retry {
                not_before: Some(UnixMillis(5))
            }
        );
    }
}
