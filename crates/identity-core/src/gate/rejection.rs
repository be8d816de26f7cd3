//! What the gate records without an attempt: deliveries that cannot be read, events that are refused, two jobs with one
//! ID, objects that are not whole yet.

use sha2::{Digest as _, Sha256};

use super::{Gate, NoJob, Outcome, Prepared, Settled, ignored, part_of};
use crate::{
    claim::{ClaimKey, Reason, Record, RecordedObject, Status},
    event::{StorageEvent, Unreadable},
    identity::ObjectAddress,
    text::{bounded, error_chain},
};

impl Gate {
    /// Records a delivery that could not be read, under the digest of its bytes, and keeps them. One that is too long to be
    /// kept whole is not acknowledged.
    pub(super) async fn unreadable(&self, unreadable: &Unreadable) -> Prepared {
        let Unreadable { error, bytes } = unreadable;
        let reason = if error.refusal().is_some() {
            Reason::Refused
        } else {
            Reason::Unreadable
        };
        let key = digest("firstclaim/unreadable/1\n", &[bytes]);
        let kept = bytes.len().min(Record::MAX_BODY_BYTES);
        let text = error_chain(error);
        let record = Record {
            body: Some(bytes[..kept].to_vec()),
            ..self.rejection(reason, text.clone())
        };
        let mut outcome = self.record(&key, record, reason, text).await;
        let whole = Record::keeps_whole(bytes.len());
        outcome = match outcome {
            Outcome::Rejected { reason, error } if !whole => Outcome::Unkept { reason, error },
            outcome => outcome,
        };
        Prepared::Settled(Settled {
            key: Some(key),
            uri: None,
            outcome,
        })
    }

    /// Records an object that is not whole yet as waiting, for the sweep: if its commit never tells of itself, nothing
    /// else would. The record keeps the version that may be whole as it is.
    pub(super) async fn incomplete(&self, event: &StorageEvent) -> Prepared {
        let address = &event.address;
        if !self.wants(address, Some(0)) {
            return ignored(Some(address), NoJob::NotSelected);
        }
        if let Err(refusal) = event.token_for(self.contract().scheme()) {
            return self
                .refuse(event, Reason::Refused, error_chain(&refusal))
                .await;
        }
        let key = digest("firstclaim/incomplete/1\n", &self.place(address));
        let now = self.clock().unix_millis();
        let mut why = match &event.token {
            Some(_) => "it holds 0 bytes: a sweep looks whether it still does".to_owned(),
            None => "its content is still to come: a sweep looks whether it has".to_owned(),
        };
        if !self.inner.parts.objects.reads(address.provider) {
            why.push_str(", by a build that can read it, which this one cannot");
        }
        let record = Record {
            status: Status::Waiting,
            reason: None,
            finished_at: None,
            waiting_until: Some(now.plus(self.claims().terms().lease)),
            object: Some(RecordedObject::new(address, event.token.as_ref())),
            ..self.rejection(Reason::Refused, why)
        };
        let outcome = match self.claims().record(&key, record).await {
            // Another program may have ended it.
            Ok(record) if record.is_end() => Outcome::of_ended(&record),
            Ok(record) => Outcome::Waiting {
                until: record.waiting_until.unwrap_or(now),
            },
            Err(error) => Outcome::Unavailable {
                part: part_of(&error),
                error: error_chain(&error),
            },
        };
        Prepared::Settled(Settled {
            key: Some(key),
            uri: Some(address.to_string()),
            outcome,
        })
    }

    /// What tells an object from every other, and the pipeline that it is for.
    fn place<'a>(&'a self, address: &'a ObjectAddress) -> [&'a [u8]; 5] {
        [
            self.inner.pipeline.name.as_bytes(),
            address.provider.as_str().as_bytes(),
            address.account.as_deref().unwrap_or_default().as_bytes(),
            address.container.as_bytes(),
            address.key.exact_bytes(),
        ]
    }

    /// Records an event that was read and may not, or cannot, become a job, under the digest of what it says. The
    /// record holds all of it, so there is no body to keep; and two deliveries of it are one record.
    pub(super) async fn refuse(
        &self,
        event: &StorageEvent,
        reason: Reason,
        error: String,
    ) -> Prepared {
        let StorageEvent {
            address,
            token,
            etag,
            ..
        } = event;
        let token_text = token.as_ref().map(ToString::to_string).unwrap_or_default();
        let [pipeline, provider, account, container, name] = self.place(address);
        let etag = etag.as_deref().unwrap_or_default().as_bytes();
        let (token_text, reason_text) = (token_text.as_bytes(), reason.as_str().as_bytes());
        let key = digest(
            "firstclaim/refused/1\n",
            &[
                pipeline,
                provider,
                account,
                container,
                name,
                token_text,
                etag,
                reason_text,
            ],
        );
        let object = Some(RecordedObject::new(address, token.as_ref()));
        let record = Record {
            object,
            ..self.rejection(reason, error.clone())
        };
        let outcome = self.record(&key, record, reason, error).await;
        Prepared::Settled(Settled {
            key: Some(key),
            uri: Some(address.to_string()),
            outcome,
        })
    }

    async fn record(
        &self,
        key: &ClaimKey,
        record: Record,
        reason: Reason,
        error: String,
    ) -> Outcome {
        match self.claims().record(key, record).await {
            Ok(_) => Outcome::Rejected { reason, error },
            Err(error) => Outcome::Unavailable {
                part: part_of(&error),
                error: error_chain(&error),
            },
        }
    }

    fn rejection(&self, reason: Reason, error: String) -> Record {
        let now = self.clock().unix_millis().seconds();
        Record {
            finished_at: Some(now),
            reason: Some(reason),
            error: Some(bounded(error)),
            ..Record::new(Status::Rejected, now, self.inner.pipeline.clone())
        }
    }

    /// Two jobs under one ID: the second is recorded under a key of its own, never taken for a duplicate.
    pub(super) async fn collapsed(
        &self,
        key: &ClaimKey,
        standing: &Record,
        differing: &[&str],
        event: RecordedObject,
    ) -> Settled {
        let token = event
            .token
            .as_ref()
            .map(|(kind, value)| format!("{}:{value}", kind.as_str()))
            .unwrap_or_default();
        let pipeline = &self.inner.pipeline;
        let own_key = digest(
            "firstclaim/collapsed/1\n",
            &[
                key.as_str(),
                &event.to_string(),
                &token,
                &pipeline.name,
                &pipeline.params_digest,
            ]
            .map(str::as_bytes),
        );
        let other = standing
            .object
            .as_ref()
            .map_or_else(|| "an unknown object".to_owned(), ToString::to_string);
        let error = format!(
            "the ID {key} already stands for another job ({other}): {} differ",
            differing.join(", ")
        );
        let uri = Some(event.to_string());
        let record = Record {
            object: Some(event),
            ..self.rejection(Reason::Collapsed, error.clone())
        };
        let outcome = self
            .record(&own_key, record, Reason::Collapsed, error)
            .await;
        Settled {
            key: Some(own_key),
            uri,
            outcome,
        }
    }
}

/// SHA-256 over a line that names what is hashed, and the parts, each as its length in 8 bytes (big-endian) and its
/// bytes. The line keeps such keys apart from job IDs.
fn digest(domain: &str, parts: &[&[u8]]) -> ClaimKey {
    let mut hasher = Sha256::new();
    hasher.update(domain);
    for part in parts {
        hasher.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hasher.update(part);
    }
    ClaimKey::from_digest(hasher.finalize().into())
}
