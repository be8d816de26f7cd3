//! What `claims show` explains: why a claim stands where it stands, and what happens next.

use identity_core::claim::{ClaimKey, Reason, Record, Status, Terms, UnixMillis};

use super::view::{millis, seconds};

/// Two sentences for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Explained {
    /// Why deliveries of this event are skipped, held or wanted.
    pub(crate) why: String,
    /// What changes that.
    pub(crate) next: String,
}

/// Explains a claim as it stands at `now`.
pub(crate) fn explain(
    key: &ClaimKey,
    record: &Record,
    now: UnixMillis,
    terms: &Terms,
) -> Explained {
    // A release of what never became a job changes nothing but the status.
    let never_a_job = record.attempt == 0 && record.status == Status::Failed;
    match record.status {
        Status::Failed if never_a_job => Explained {
            why: "an operator released a record that is no job".to_owned(),
            next: "the next delivery is judged anew".to_owned(),
        },
        Status::Done => done(record),
        Status::Rejected if record.is_cut() => Explained {
            why: format!(
                "the event could not be read, and is too long to be kept: its first {} bytes are here, and no delivery of it is \
                 acknowledged, so that its source, or the dead-letter queue behind it, keeps it whole",
                Record::MAX_BODY_BYTES
            ),
            next: "nothing by itself: mend what sends it, or run a version that reads it, and then have it delivered again, \
                   from its dead-letter queue"
                .to_owned(),
        },
        Status::Rejected => Explained {
            why: format!(
                "the job is refused for good ({}); every delivery is acknowledged without running it",
                refusal(record)
            ),
            next: after_refusal(key, record),
        },
        Status::Failed => Explained {
            why: match record.reason {
                Some(Reason::Released) => "an operator released the claim".to_owned(),
                Some(Reason::Interrupted) => {
                    "its worker was stopped before the job was done".to_owned()
                }
                Some(Reason::Unavailable) => "the last attempt missed what it needs, through no fault of the job or its object: it does not count".to_owned(),
                _ => "the last attempt failed".to_owned(),
            },
            next: next_delivery(record, terms),
        },
        Status::Waiting => Explained {
            why: "the object is not ready: it is incomplete or still being written".to_owned(),
            next: match record.waiting_until {
                Some(until) if until > now => {
                    format!(
                        "the first delivery, or `firstclaim claims sweep`, after {} looks again",
                        millis(until)
                    )
                }
                _ => "the next delivery looks again; `firstclaim claims sweep` sends it".to_owned(),
            },
        },
        Status::Processing => processing(record, now, terms),
    }
}

/// As which attempt the next delivery would run the job; `None` if it would not.
pub(crate) fn would_run(record: &Record, now: UnixMillis, terms: &Terms) -> Option<u32> {
    let free = match record.status {
        Status::Done | Status::Rejected => false,
        Status::Failed | Status::Waiting => true,
        Status::Processing => record.lease_end() <= now,
    };
    (free && !record.is_exhausted(terms.max_attempts)).then(|| record.attempt.saturating_add(1))
}

fn done(record: &Record) -> Explained {
    let how = match record.reason {
        Some(Reason::Gone) => "the object was gone when its job looked for it",
        Some(Reason::Redriven) => {
            return Explained {
                why: "it never was a job; its event was sent again, and is settled under another key or is no job"
                    .to_owned(),
                next: "nothing: the same event would be recorded here again".to_owned(),
            };
        }
        Some(Reason::Superseded) => {
            "a newer version of the object took its place, and that one's job is done"
        }
        _ => "the job is done",
    };
    let kept = record.expires_at.map_or_else(
        || "the record does not expire".to_owned(),
        |at| {
            format!(
                "the record is kept until {} at least, and stands for as long as it is there",
                seconds(at)
            )
        },
    );
    Explained {
        why: format!("{how}; every later delivery is skipped as a duplicate"),
        next: format!("nothing: {kept}"),
    }
}

fn processing(record: &Record, now: UnixMillis, terms: &Terms) -> Explained {
    let end = record.lease_end();
    let holder = record.owner.map_or_else(
        || "a program without leases".to_owned(),
        |owner| format!("worker {owner}"),
    );
    if end > now {
        let seconds_left = now.until(end).as_secs();
        return Explained {
            why: format!(
                "{holder} holds it as attempt {} until {} (for {seconds_left} s more, unless it renews); other deliveries \
                 are told to come again",
                record.attempt,
                millis(end)
            ),
            next: format!(
                "it records the job's end; if its lease ends first, {}",
                next_delivery(record, terms)
            ),
        };
    }
    Explained {
        why: format!(
            "{holder} held it as attempt {} and went away: its lease ended at {}",
            record.attempt,
            millis(end)
        ),
        next: next_delivery(record, terms),
    }
}

fn next_delivery(record: &Record, terms: &Terms) -> String {
    if record.is_exhausted(terms.max_attempts) {
        return format!(
            "the next delivery is rejected: all {} attempts are used up",
            terms.max_attempts
        );
    }
    format!(
        "the next delivery runs the job as attempt {}; if none comes, `firstclaim claims sweep` sends the event",
        record.attempt.saturating_add(1)
    )
}

/// A job that was refused can be released. What never became a job is refused again unless its cause is mended.
fn after_refusal(key: &ClaimKey, record: &Record) -> String {
    let mend = match record.reason {
        Some(Reason::NotAllowed) => "allow its container",
        Some(Reason::Unreadable | Reason::Refused) => {
            "mend what sends it, or run a version that reads it"
        }
        Some(Reason::Collapsed) => {
            "give one of the two pipelines a store of its own, or the scheme strict"
        }
        _ => {
            return format!(
                "nothing by itself: it waits for a person; `firstclaim claims release {key}` lets the next delivery run it, `claims redrive` sends its event too"
            );
        }
    };
    format!(
        "nothing by itself: {mend}, and then `firstclaim claims redrive {key}` sends the event again; until then it is \
         refused each time"
    )
}

fn refusal(record: &Record) -> &'static str {
    match record.reason {
        Some(Reason::Exhausted) => "its attempts are used up",
        Some(Reason::Unreadable) => "the event could not be read; its body is kept here",
        Some(Reason::Refused) => "the event carries what no job can be told by",
        Some(Reason::NotAllowed) => "its container is not on the allow-list",
        Some(Reason::Collapsed) => "another job has the same ID",
        _ => "the job said that no attempt can succeed",
    }
}
