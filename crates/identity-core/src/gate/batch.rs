//! Whole deliveries: every event settled, bounded and side by side, and one answer for each delivery item.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, StreamExt as _, stream};

use super::{
    Disposition, Gate, Outcome, Part, Prepared, Settled, groups::grouped, supervise::panic_text,
};
use crate::{
    claim::{ClaimKey, UnixMillis},
    event::{Item, Origin},
    identity::ObjectVersion,
};

/// The answer to one delivery item, which may have held several events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemAnswer {
    /// The delivery item.
    pub origin: Arc<Origin>,
    /// What to tell its source: retry if any of its events needs it.
    pub disposition: Disposition,
    /// What became of its events, in order.
    pub settled: Vec<Settled>,
}

impl Gate {
    /// Settles every event of a delivery, at most `concurrency` at a time, and answers item by item. Events of one job
    /// are claimed once: one message that came twice in a batch is not held by itself.
    pub async fn settle_all(&self, items: &[Item], concurrency: usize) -> Vec<ItemAnswer> {
        let concurrency = concurrency.max(1);
        // By their places: a closure over borrowed items would be too narrow for the compiler to know that this can be spawned.
        let prepared: Vec<Prepared> = stream::iter(0..items.len())
            .map(|at| self.prepare_alone(&items[at]))
            .buffered(concurrency)
            .collect()
            .await;

        let mut settled: Vec<Option<Settled>> = Vec::with_capacity(items.len());
        let mut jobs = Vec::new();
        for (at, prepared) in prepared.into_iter().enumerate() {
            settled.push(None);
            match prepared {
                Prepared::Settled(done) => settled[at] = Some(done),
                Prepared::Job(job) => {
                    let (key, object) = *job;
                    jobs.push((key.clone(), (at, key, object)));
                }
            }
        }
        let run = stream::iter(grouped(jobs.into_iter()))
            .map(|group| self.settle_group(group, items))
            .buffer_unordered(concurrency);
        for (at, done) in run.collect::<Vec<_>>().await.into_iter().flatten() {
            settled[at] = Some(done);
        }

        let mut answers: Vec<ItemAnswer> = Vec::new();
        for (item, settled) in items.iter().zip(settled) {
            let Some(settled) = settled else { continue };
            let disposition = settled.outcome.disposition();
            match answers
                .last_mut()
                .filter(|answer| Arc::ptr_eq(&answer.origin, &item.origin))
            {
                Some(answer) => {
                    answer.disposition = both(answer.disposition, disposition);
                    answer.settled.push(settled);
                }
                None => {
                    answers.push(ItemAnswer {
                        origin: item.origin.clone(),
                        disposition,
                        settled: vec![settled],
                    });
                }
            }
        }
        answers
    }
}

impl Gate {
    /// Prepares an event, and finishes it if it is no job.
    async fn prepare_alone(&self, item: &Item) -> Prepared {
        let started = self.clock().monotonic();
        let prepared = AssertUnwindSafe(self.prepare(item)).catch_unwind().await;
        match prepared {
            Ok(Prepared::Settled(settled)) => {
                Prepared::Settled(self.finish_alone(item, settled, started).await)
            }
            Ok(job) => job,
            Err(panic) => {
                let settled = panicked(panic.as_ref());
                Prepared::Settled(self.finish_alone(item, settled, started).await)
            }
        }
    }

    async fn finish_alone(&self, item: &Item, settled: Settled, started: Duration) -> Settled {
        let finish = AssertUnwindSafe(self.finish(item, settled, started));
        let finished = finish.catch_unwind().await;
        finished.unwrap_or_else(|panic| panicked(panic.as_ref()))
    }

    /// Settles the events of one ID. The same object is claimed once; another one under the same ID is looked at after
    /// it, as any later event would be.
    async fn settle_group(
        &self,
        group: Vec<(usize, ClaimKey, ObjectVersion)>,
        items: &[Item],
    ) -> Vec<(usize, Settled)> {
        let mut done: Vec<(ObjectVersion, Settled)> = Vec::new();
        let mut answers = Vec::with_capacity(group.len());
        for (at, key, object) in group {
            let started = self.clock().monotonic();
            let known = done.iter().find(|(other, _)| *other == object);
            let settled = match known {
                Some((_, settled)) => again(settled.clone()),
                None => {
                    let settled = AssertUnwindSafe(self.claim_and_run((key, object.clone()), 0));
                    let settled = settled.catch_unwind().await;
                    let settled = settled.unwrap_or_else(|panic| panicked(panic.as_ref()));
                    done.push((object, settled.clone()));
                    settled
                }
            };
            answers.push((at, self.finish_alone(&items[at], settled, started).await));
        }
        answers
    }
}

/// What a second event of the same job is told, right after the first.
fn again(first: Settled) -> Settled {
    match first.outcome {
        Outcome::Done { .. } => Settled {
            outcome: Outcome::Duplicate,
            ..first
        },
        _ => first,
    }
}

/// One event's panic is its own: the others of its delivery are settled all the same.
fn panicked(panic: &(dyn std::any::Any + Send)) -> Settled {
    let error = format!("the gate panicked: {}", panic_text(panic));
    Settled {
        key: None,
        uri: None,
        outcome: Outcome::Unavailable {
            part: Part::Process,
            error,
        },
    }
}

/// The disposition of an item that holds two events.
fn both(a: Disposition, b: Disposition) -> Disposition {
    let later = |a: Option<UnixMillis>, b: Option<UnixMillis>| Some(a?.max(b?));
    match (a, b) {
        (Disposition::Ack, other) | (other, Disposition::Ack) => other,
        (Disposition::Retry { not_before: a }, Disposition::Retry { not_before: b }) => {
            Disposition::Retry {
                not_before: later(a, b),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_retried_if_any_of_its_events_is() {
        let held = |at| Disposition::Retry {
            not_before: Some(UnixMillis(at)),
        };
        let failed = Disposition::Retry { not_before: None };
        assert_eq!(both(Disposition::Ack, Disposition::Ack), Disposition::Ack);
        assert_eq!(both(Disposition::Ack, held(1)), held(1));
        assert_eq!(both(held(2), held(1)), held(2));
        assert_eq!(both(held(2), failed), failed);
    }
}
