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
    /// An object that was not whole: the store says what it is now. Without content it goes on waiting, unless it is still the
    /// version that was put so: then it is whole, and a job like any other.
    pub(super) async fn look_again(&self, event: &StorageEvent) -> Prepared {
        let address = &event.address;
        if !self.wants(address, None) {
            return ignored(Some(address), NoJob::NotSelected);
        }
        let objects = &self.inner.parts.objects;
        if !objects.reads(address.provider) {
            // It stays recorded, for one that can look.
            return self.incomplete(event).await;
        }
        let head = match objects.head(address).await {
            Ok(None) => return ignored(Some(address), NoJob::Gone),
            Ok(Some(head)) => head,
            Err(error) => return unavailable(address, &error),
        };
        let (size, now) = (head.size, self.token_of(head));
        match event.token_for(self.contract().scheme()) {
            Ok(Some(put)) if size == 0 && put != now => {
                // Put anew, or opened: it is this version that may be whole.
                let mut event = event.clone();
                event.token = Some(now);
                self.incomplete(&event).await
            }
            Ok(None) if size == 0 => self.incomplete(event).await,
            _ => self.job_of(event, now).await,
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
        match self.claims().close(&record, redriven).await {
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
