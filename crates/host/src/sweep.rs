//! The scheduled call `{"firstclaim":{"sweep":{}}}`: events that nobody delivers again are sent to a queue again.

use std::time::Duration;

use identity_core::claim::{ClaimKey, Record, ResendError, Resender, Resent, Swept};
use serde_json::{Value, json};

use crate::{call::for_jobs, worker::Worker};

/// Nothing longer is looked at twice: the schedule's input is constant.
const LONGEST: usize = 256;

/// Whether a payload asks for a sweep.
#[must_use]
pub fn is_wanted(payload: &[u8]) -> bool {
    payload.len() <= LONGEST
        && serde_json::from_slice::<Value>(payload)
            .is_ok_and(|value| value == json!({"firstclaim": {"sweep": {}}}))
}

/// There is nowhere to send events to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("FIRSTCLAIM_REDRIVE_QUEUE is not set: there is no queue to send events to")]
pub struct NoRedriveQueue;

/// A sweep that was begun.
#[derive(Debug)]
pub struct Sweep {
    /// How many claims it found stuck.
    pub stuck: u64,
    /// What it did, or why it did not come to its end.
    pub ended: Result<Swept, SweepError>,
}

/// Why a sweep did not come to its end. The next one does what is left.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The store or the queue failed.
    #[error(transparent)]
    Resend(#[from] ResendError),
    /// The call's time was over.
    #[error("the call's time is over after {stuck} claims: the next sweep goes on")]
    OutOfTime {
        /// How many claims it had found stuck.
        stuck: u64,
    },
}

impl Worker {
    /// Sweeps, in the time that is left.
    ///
    /// # Errors
    ///
    /// [`NoRedriveQueue`]: nothing was looked at.
    pub async fn sweep(&self, left: Option<Duration>) -> Result<Sweep, NoRedriveQueue> {
        let resender = self.resender().ok_or(NoRedriveQueue)?;
        let mut stuck = 0;
        let mut count = |key: &ClaimKey, _: &Record, resent: &Resent| {
            stuck += 1;
            tell(key, resent);
        };
        let swept = match left {
            None => Some(resender.sweep(false, &mut count).await),
            Some(left) => tokio::select! {
                swept = resender.sweep(false, &mut count) => Some(swept),
                () = self.clock().sleep(for_jobs(left)) => {
                    self.purge(resender, (left - for_jobs(left)) / 2).await;
                    None
                }
            },
        };
        if let Some(Err(ResendError::Claim { .. } | ResendError::Outbox { .. })) = &swept {
            // The one that could not be sent is stuck all the more.
            stuck += 1;
        }
        let ended = match swept {
            Some(swept) => swept.map_err(SweepError::from),
            None => Err(SweepError::OutOfTime { stuck }),
        };
        Ok(Sweep { stuck, ended })
    }

    /// Purges for so long: while there is always more to send than time, ends would otherwise never go.
    async fn purge(&self, resender: &Resender, time: Duration) {
        tokio::select! {
            _ = resender.purge() => (),
            () = self.clock().sleep(time) => (),
        }
    }
}

fn tell(key: &ClaimKey, resent: &Resent) {
    match resent {
        Resent::Obstacle(obstacle) => {
            tracing::warn!(job_id = %key, error = %obstacle, "stuck, and not sent again");
        }
        Resent::Sent { redrives } => tracing::warn!(job_id = %key, redrives, "stuck: sent again"),
        Resent::WouldBeSent | Resent::Left => {}
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fmt,
        sync::{Arc, Mutex, atomic::Ordering},
    };

    use async_trait::async_trait;
    use identity_core::{
        claim::Status,
        event::Delivery,
        outbox::{Message, Outbox, OutboxError},
    };

    use super::*;
    use crate::{
        call::Order,
        testing::{Bench, notification},
    };

    #[test]
    fn only_the_schedules_input_is_a_sweep() {
        for wanted in [
            r#"{"firstclaim":{"sweep":{}}}"#,
            "{ \"firstclaim\": {\"sweep\": {} } }\n",
        ] {
            assert!(is_wanted(wanted.as_bytes()), "{wanted}");
        }
        for other in [
            "",
            "{}",
            r#"{"firstclaim":{}}"#,
            r#"{"firstclaim":{"sweep":{},"version":1}}"#,
            r#"{"Records":[]}"#,
        ] {
            assert!(!is_wanted(other.as_bytes()), "{other}");
        }
        let long = format!(
            "{{\"firstclaim\":{{\"sweep\":{{}}}}}}{}",
            " ".repeat(LONGEST)
        );
        assert!(!is_wanted(long.as_bytes()));
        assert!(!is_wanted(b"\xff"));
    }

    /// Takes so many messages, and then does not answer.
    #[derive(Debug)]
    struct Queue {
        takes: usize,
        sent: Mutex<Vec<String>>,
    }

    impl fmt::Display for Queue {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("test")
        }
    }

    #[async_trait]
    impl Outbox for Queue {
        async fn send(&self, message: &Message) -> Result<(), OutboxError> {
            let is_full = {
                let mut sent = self.sent.lock().unwrap();
                sent.push(message.body.clone());
                sent.len() > self.takes
            };
            if is_full {
                std::future::pending::<()>().await;
            }
            Ok(())
        }
    }

    /// A worker two of whose jobs failed long ago.
    async fn with_stuck(queue: Option<Arc<Queue>>) -> (Bench, Worker) {
        let mut bench = Bench::new();
        bench.redrives = queue.map(|queue| queue as _);
        bench.job.fails.store(true, Ordering::SeqCst);
        let worker = bench.simulated();
        let body = notification(&["a", "b"]);
        let items = worker.read(&Delivery::from_body(body.as_bytes()));
        let settlement = worker.settle(&items, Order::Any, None).await;
        assert_eq!(settlement.counts.failed, 2);
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        (bench, worker)
    }

    fn queue(takes: usize) -> Option<Arc<Queue>> {
        let sent = Mutex::default();
        Some(Arc::new(Queue { takes, sent }))
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_stuck_is_sent_again_and_counted() {
        let (_bench, worker) = with_stuck(queue(2)).await;
        let Sweep { stuck, ended } = worker.sweep(Some(Duration::from_secs(30))).await.unwrap();
        assert_eq!((stuck, ended.unwrap().sent), (2, 2));
        let Sweep { stuck, ended } = worker.sweep(None).await.unwrap();
        assert_eq!((stuck, ended.unwrap().left), (0, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sweep_ends_with_its_call() {
        let (_bench, worker) = with_stuck(queue(1)).await;
        let started = tokio::time::Instant::now();
        let left = Duration::from_secs(16);
        let Sweep { stuck, ended } = worker.sweep(Some(left)).await.unwrap();
        assert_eq!(stuck, 1);
        assert_eq!(
            ended.unwrap_err().to_string(),
            "the call's time is over after 1 claims: the next sweep goes on"
        );
        assert_eq!(started.elapsed(), for_jobs(left));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sweep_that_is_out_of_time_purges() {
        let (bench, worker) = with_stuck(queue(1)).await;
        bench.job.fails.store(false, Ordering::SeqCst);
        let body = notification(&["c"]);
        let items = worker.read(&Delivery::from_body(body.as_bytes()));
        let settlement = worker.settle(&items, Order::Any, None).await;
        assert_eq!(settlement.counts.done, 1);
        tokio::time::sleep(Duration::from_secs(400 * 86_400)).await;
        let sweep = worker.sweep(Some(Duration::from_secs(16))).await.unwrap();
        assert!(
            matches!(sweep.ended, Err(SweepError::OutOfTime { .. })),
            "{sweep:?}"
        );
        let left = bench.store.records().await;
        assert!(left.iter().all(|record| record.status == Status::Failed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_is_away_ends_a_sweep() {
        let (bench, worker) = with_stuck(queue(2)).await;
        bench.store.away.store(true, Ordering::SeqCst);
        let sweep = worker.sweep(None).await.unwrap();
        assert!(
            matches!(sweep.ended, Err(SweepError::Resend(ResendError::List(_)))),
            "{sweep:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_queue_there_is_no_sweep() {
        let (_bench, worker) = with_stuck(None).await;
        assert_eq!(worker.sweep(None).await.unwrap_err(), NoRedriveQueue);
    }
}
