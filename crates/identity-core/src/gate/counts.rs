//! How often each outcome came.

use super::Outcome;
use crate::claim::Reason;

/// Counts of outcomes, as every program tells them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Jobs that ran here and are done.
    pub done: u64,
    /// Events whose job was done before.
    pub duplicate: u64,
    /// Events at whose job somebody else is.
    pub held: u64,
    /// Jobs that ran here and failed, or whose claim was lost.
    pub failed: u64,
    /// Events and jobs that are refused for good.
    pub rejected: u64,
    /// Of two jobs under one ID, the one that came later: rejected, too, and counted here alone.
    pub collapsed: u64,
    /// Events that are no job.
    pub ignored: u64,
    /// Events whose object is not whole yet: recorded as waiting.
    pub waiting: u64,
    /// Events for which the claim store, the object store or the machine did not do its part.
    pub unavailable: u64,
}

impl Counts {
    /// Counts one more.
    pub fn count(&mut self, outcome: &Outcome) {
        let count = match outcome {
            Outcome::Done { .. } => &mut self.done,
            Outcome::Duplicate => &mut self.duplicate,
            Outcome::Held { .. } => &mut self.held,
            Outcome::Failed { .. } | Outcome::LeaseLost { .. } => &mut self.failed,
            Outcome::Rejected {
                reason: Reason::Collapsed,
                ..
            } => &mut self.collapsed,
            Outcome::Rejected { .. } | Outcome::Unkept { .. } => &mut self.rejected,
            Outcome::Ignored(_) => &mut self.ignored,
            Outcome::Waiting { .. } => &mut self.waiting,
            Outcome::Unavailable { .. } => &mut self.unavailable,
        };
        *count += 1;
    }

    /// The counts by their names.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 9] {
        [
            ("done", self.done),
            ("duplicate", self.duplicate),
            ("held", self.held),
            ("failed", self.failed),
            ("rejected", self.rejected),
            ("collapsed", self.collapsed),
            ("ignored", self.ignored),
            ("waiting", self.waiting),
            ("unavailable", self.unavailable),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        claim::UnixMillis,
        gate::{NoJob, Part},
    };

    #[test]
    fn each_outcome_is_counted_once_under_its_name() {
        let rejected = |reason| Outcome::Rejected {
            reason,
            error: String::new(),
        };
        let cases = [
            (
                "done",
                Outcome::Done {
                    attempt: 1,
                    reason: None,
                },
            ),
            ("duplicate", Outcome::Duplicate),
            (
                "held",
                Outcome::Held {
                    until: UnixMillis(1),
                },
            ),
            (
                "failed",
                Outcome::Failed {
                    attempt: 1,
                    error: String::new(),
                    again: None,
                },
            ),
            ("failed", Outcome::LeaseLost { attempt: 1 }),
            ("rejected", rejected(Reason::Unreadable)),
            (
                "rejected",
                Outcome::Unkept {
                    reason: Reason::Unreadable,
                    error: String::new(),
                },
            ),
            ("collapsed", rejected(Reason::Collapsed)),
            ("ignored", Outcome::Ignored(NoJob::Gone)),
            (
                "waiting",
                Outcome::Waiting {
                    until: UnixMillis(1),
                },
            ),
            (
                "unavailable",
                Outcome::Unavailable {
                    part: Part::ClaimStore,
                    error: String::new(),
                },
            ),
        ];
        for (name, outcome) in cases {
            let mut counts = Counts::default();
            counts.count(&outcome);
            let counted = counts.named().into_iter().filter(|(_, count)| *count > 0);
            assert_eq!(counted.collect::<Vec<_>>(), [(name, 1)], "{outcome:?}");
        }
    }
}
