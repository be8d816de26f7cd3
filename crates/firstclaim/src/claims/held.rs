//! `firstclaim claims held`: a job's question whether it still holds its claim.

use host::clock::SystemClock;
use identity_core::{
    claim::{Owner, Record, Status, UnixMillis},
    host::Clock as _,
};

use super::{open, parse_id, view};
use crate::{
    args::HeldArgs,
    failure::{Ended, Failure},
    output,
};

/// Whatever is not a clear yes is an error: it must not pass for one.
pub(super) async fn held(args: HeldArgs) -> Result<Ended, Failure> {
    let key = parse_id(&args.id)?;
    let owner = Owner::parse(&args.owner).ok_or_else(|| {
        Failure::usage(format!(
            "{:?} is no owner: expected 32 lower-case hexadecimal characters",
            args.owner
        ))
    })?;
    let store = open(&args.store).await?;
    let stored = store
        .get(&key)
        .await
        .map_err(|error| Failure::failed("the claim cannot be read").because(error))?;
    let stored =
        stored.ok_or_else(|| Failure::failed(format!("there is no claim {key} in {store}")))?;
    // After the answer: a lease that ended while it came is none.
    let now = SystemClock::new().unix_millis();
    let until = holds(&stored.record, owner, now)
        .map_err(|why| Failure::failed(format!("{key} is not held by {owner}: {why}")))?;
    output::line(&format!("held until {}", view::millis(until)))?;
    Ok(Ended::Well)
}

/// When the owner's lease ends, or why it holds none.
fn holds(record: &Record, owner: Owner, now: UnixMillis) -> Result<UnixMillis, String> {
    let Record {
        status, attempt, ..
    } = record;
    let until = record.lease_end();
    if record.owner != Some(owner) {
        return Err(format!("it is {status}, as attempt {attempt} of another"));
    }
    if *status != Status::Processing {
        return Err(format!("it is {status}"));
    }
    if until <= now {
        return Err(format!("its lease ended at {}", view::millis(until)));
    }
    Ok(until)
}
