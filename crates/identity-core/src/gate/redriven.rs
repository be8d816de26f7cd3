//! What was recorded without an attempt, when its event is sent again: an object that was not whole is looked at, and the
//! record is closed once its event is settled under another key.

use super::{Gate, NoJob, Outcome, Prepared, Settled, ignored, part_of, unavailable};
use crate::{
    claim::ClaimKey,
    event::{Redriven, StorageEvent},
    gate::Disposition,
    text::error_chain,
};

impl Gate {
    /// An object that was not whole: the store says what it is now.
    pub(super) async fn look_again(&self, event: &StorageEvent) -> Prepared {
        let address = &event.address;
        if !self.wants(address, None) {
            return ignored(Some(address), NoJob::NotSelected);
        }
        match self.inner.parts.objects.head(address).await {
            Ok(None) => ignored(Some(address), NoJob::Gone),
            Ok(Some(head)) if head.size == 0 => self.incomplete(event).await,
            Ok(Some(head)) => self.job_of(event, self.token_of(head)).await,
            Err(error) => unavailable(address, &error),
        }
    }

    /// Closes the record that an event was sent again from, once the event is acknowledged and was not recorded there anew.
    /// If that fails, the event has to come again.
    pub(super) async fn close(&self, redriven: &Redriven, settled: Settled) -> Settled {
        let acknowledged = settled.outcome.disposition() == Disposition::Ack;
        if !acknowledged || !redriven.acknowledge() {
            return settled;
        }
        let Some(record) = ClaimKey::parse(&redriven.record) else {
            return settled; // the reader lets no other through
        };
        if settled.key.as_ref() == Some(&record) {
            return settled;
        }
        match self.claims().close(&record, redriven.redrives).await {
            Ok(()) => settled,
            Err(error) => {
                redriven.take_back();
                let outcome = Outcome::Unavailable {
                    part: part_of(&error),
                    error: error_chain(&error),
                };
                Settled { outcome, ..settled }
            }
        }
    }
}
