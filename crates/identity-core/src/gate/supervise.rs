//! A won claim, from the start of its job to the record of its end: renewal meanwhile, and every way to stop.

use std::{panic::AssertUnwindSafe, sync::atomic::Ordering, time::Duration};

use futures_util::FutureExt as _;
use tokio::pin;
use tokio_util::sync::CancellationToken;

use super::{Gate, Outcome, Part, part_of};
use crate::{
    claim::{ClaimError, End, Kept, Lease, Reason, Record},
    identity::ObjectVersion,
    job::{JobError, Output},
    text::{bounded, error_chain},
};

/// How often a lease is renewed in its time.
const RENEWALS_PER_LEASE: u32 = 3;
/// The part of a lease before its end in which its job has to be gone.
const MARGIN_PER_LEASE: u32 = 10;
/// How often one delivery follows an object that is overwritten again and again.
const MAX_FOLLOWED: u32 = 3;

/// Why the work stopped.
enum Stopped {
    /// It came to its end; a part that did not do its own is named.
    Finished(End, Option<Part>),
    /// The process is to stop, or nobody waits for the answer any more.
    Interrupted,
    /// The lease could not be renewed in time.
    Expired,
    /// Somebody else holds the claim now.
    LeaseLost,
    /// The job's maximum run time is over.
    TimedOut,
}

/// Runs the job of `lease`, and records how it ended.
pub(super) async fn supervise(
    gate: Gate,
    lease: Lease,
    object: ObjectVersion,
    stop: CancellationToken,
    followed: u32,
) -> Outcome {
    let attempt = lease.attempt();
    let stopping = CancellationToken::new();
    let stopped = {
        let work = work(&gate, &lease, &object, followed, stopping.clone());
        let work = AssertUnwindSafe(work).catch_unwind();
        let expiry = expiry(&gate, &lease);
        let renewals = renewals(&gate, &lease);
        let time_out = gate.clock().sleep(gate.max_run());
        pin!(work, expiry, renewals, time_out);
        let stopped = tokio::select! {
            biased;
            () = stop.cancelled() => Stopped::Interrupted,
            () = &mut expiry => Stopped::Expired,
            () = &mut renewals => Stopped::LeaseLost,
            () = &mut time_out => Stopped::TimedOut,
            ended = &mut work => {
                let (end, missing) = ended.unwrap_or_else(|panic| (panicked(panic), None));
                Stopped::Finished(end, missing)
            }
        };
        let grace = grace(&gate, &lease, &stopped);
        if !grace.is_zero() {
            stopping.cancel();
            // What it comes to now tells nothing: many programs end well when they are told to end.
            tokio::select! {
                _ = &mut work => {}
                () = gate.clock().sleep(grace) => {}
            }
        }
        stopped
        // Here the work is dropped: whatever it started is gone before its end is recorded.
    };
    let mut missing = None;
    let end = match stopped {
        Stopped::Finished(end, part) => {
            missing = part;
            end
        }
        Stopped::LeaseLost => return Outcome::LeaseLost { attempt },
        Stopped::Interrupted => {
            let error = "the worker was stopped before the job was done".to_owned();
            End::Failed {
                reason: Some(Reason::Interrupted),
                error,
            }
        }
        Stopped::Expired => {
            failed("the lease could not be renewed in time, so the job was stopped".to_owned())
        }
        Stopped::TimedOut => failed(format!(
            "the job was stopped after its {} seconds",
            gate.max_run().as_secs()
        )),
    };
    match gate.claims().end_until(lease, end.clone()).await {
        Ok((kept, again)) => match (missing, Outcome::of_run(&end, attempt, kept)) {
            (Some(part), Outcome::Failed { error, .. }) => Outcome::Unavailable { part, error },
            (None, Outcome::Failed { attempt, error, .. }) => Outcome::Failed {
                attempt,
                error,
                again,
            },
            (_, outcome) => outcome,
        },
        Err(error) => Outcome::Unavailable {
            part: part_of(&error),
            error: error_chain(&error),
        },
    }
}

/// How long a job that is stopped may go on. Half of what is left of its lease is kept for recording its end; who has lost
/// it must be gone at once. A lease ends with the call that it is held in, so that no call is overrun, either.
fn grace(gate: &Gate, lease: &Lease, stopped: &Stopped) -> Duration {
    let left = lease
        .confirmed_until()
        .saturating_sub(gate.clock().monotonic());
    let grace = gate.job.grace().min(left / 2);
    match stopped {
        Stopped::Finished(..) | Stopped::LeaseLost => Duration::ZERO,
        Stopped::Expired | Stopped::TimedOut => grace,
        Stopped::Interrupted => {
            let patience = gate.inner.patience.load(Ordering::Relaxed);
            grace.min(Duration::from_millis(patience))
        }
    }
}

/// Runs the job to its end, and names the part without which it could not be done.
async fn work(
    gate: &Gate,
    lease: &Lease,
    object: &ObjectVersion,
    followed: u32,
    stopping: CancellationToken,
) -> (End, Option<Part>) {
    let end = match gate.run_job(lease, object, stopping).await {
        Ok(output) => End::Done {
            result: result_text(&output),
            reason: None,
            note: None,
        },
        Err(JobError::SourceChanged) => follow(gate, object, followed).await,
        Err(error @ JobError::Permanent { .. }) => End::Rejected {
            error: bounded(error_chain(&error)),
        },
        Err(error @ JobError::Unread { .. }) => return missing(&error, Part::ObjectStore),
        Err(error @ JobError::Machine { .. }) => return missing(&error, Part::Machine),
        Err(error @ JobError::Retryable { .. }) => failed(error_chain(&error)),
    };
    (end, None)
}

/// Neither the job nor its object is to blame: the attempt does not count.
fn missing(error: &JobError, part: Part) -> (End, Option<Part>) {
    let end = End::Failed {
        reason: Some(Reason::Unavailable),
        error: bounded(error_chain(error)),
    };
    (end, Some(part))
}

/// The object no longer has the version of this job. A newer version's job is done first, here and now, for its own
/// event may never come (an Azure metadata edit changes the ETag without one); only then is this one superseded.
async fn follow(gate: &Gate, object: &ObjectVersion, followed: u32) -> End {
    let head = match gate.head(&object.address).await {
        Ok(head) => head,
        Err(error) => return failed(error_chain(&error)),
    };
    let Some(token) = head else {
        let note = Some("the object was gone when its job looked for it".to_owned());
        return End::Done {
            result: None,
            reason: Some(Reason::Gone),
            note,
        };
    };
    if token == object.token {
        return failed(format!(
            "a read found another version than {token}, which is there"
        ));
    }
    if followed >= MAX_FOLLOWED {
        return failed(format!(
            "the object was overwritten {followed} times while its jobs ran; now it is {token}"
        ));
    }
    let newer = ObjectVersion {
        address: object.address.clone(),
        token,
    };
    let (_, outcome) = gate.run_object(newer.clone(), followed + 1).await;
    match outcome {
        Outcome::Done { .. } | Outcome::Duplicate => {
            let note = Some(format!("superseded by {}", newer.token));
            End::Done {
                result: None,
                reason: Some(Reason::Superseded),
                note,
            }
        }
        other => failed(format!(
            "superseded by {}, whose job is not done yet ({})",
            newer.token,
            other.as_str()
        )),
    }
}

/// Returns when the lease, as last confirmed, is about to end. Reads the time anew after every sleep: a process that
/// was stopped meanwhile finds out at once.
async fn expiry(gate: &Gate, lease: &Lease) {
    loop {
        let margin = lease.lasts() / MARGIN_PER_LEASE;
        let end = lease.confirmed_until().saturating_sub(margin);
        let now = gate.clock().monotonic();
        if now >= end {
            return;
        }
        gate.clock().sleep(end - now).await;
    }
}

/// Renews until the lease is lost. A store that does not answer is asked again soon; [`expiry`] bounds that.
async fn renewals(gate: &Gate, lease: &Lease) {
    let interval = gate.claims().terms().lease / RENEWALS_PER_LEASE;
    let mut pause = interval;
    loop {
        gate.clock().sleep(pause).await;
        pause = match gate.claims().renew(lease).await {
            Ok(Kept::Yes) => interval,
            Ok(Kept::LeaseLost) => return,
            Err(error) => {
                warn_of_renewal(lease, &error);
                (interval / 4).max(Duration::from_millis(1))
            }
        };
    }
}

fn warn_of_renewal(lease: &Lease, error: &ClaimError) {
    tracing::warn!(job_id = %lease.key(), attempt = lease.attempt(), error = error_chain(error), "lease not renewed");
}

fn panicked(panic: Box<dyn std::any::Any + Send>) -> End {
    failed(format!("the job panicked: {}", panic_text(panic.as_ref())))
}

fn failed(error: String) -> End {
    End::Failed {
        reason: None,
        error: bounded(error),
    }
}

fn result_text(output: &Output) -> Option<String> {
    let text = output.result.as_ref()?.to_string();
    if text.len() <= Record::MAX_RESULT_BYTES {
        return Some(text);
    }
    Some(format!(
        "{{\"omitted\":\"a result of {} bytes; at most {} are kept\"}}",
        text.len(),
        Record::MAX_RESULT_BYTES
    ))
}

/// What a panic says.
pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message")
}
