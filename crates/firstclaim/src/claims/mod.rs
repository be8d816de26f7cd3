//! `firstclaim claims`: looking at claims, and giving them back.

pub(crate) mod explain;
mod held;
mod resend;
pub(crate) mod view;

use std::{num::NonZeroU32, sync::Arc};

use host::{clock::SystemClock, entropy::OsEntropy, settings::Settings};
use identity_core::{
    claim::{ClaimError, ClaimKey, ClaimStore, Claims, ListQuery, Status},
    host::Clock as _,
};

use crate::{
    args::{ClaimsCommand, ListArgs, ReleaseArgs, ShowArgs, StoreArg},
    failure::{Ended, Failure},
    output, stores,
};

/// How many claims are asked for at once.
const PAGE: NonZeroU32 = NonZeroU32::new(500).unwrap();

pub(crate) async fn claims(command: ClaimsCommand, settings: &Settings) -> Result<Ended, Failure> {
    match command {
        ClaimsCommand::List(args) => list(args).await,
        ClaimsCommand::Show(args) => show(args, settings).await,
        ClaimsCommand::Release(args) => release(args, settings).await,
        ClaimsCommand::Held(args) => held::held(args).await,
        ClaimsCommand::Redrive(args) => resend::redrive(args, settings).await,
        ClaimsCommand::Sweep(args) => resend::sweep(args, settings).await,
    }
}

async fn open(arg: &StoreArg) -> Result<Arc<dyn ClaimStore>, Failure> {
    stores::parse(&arg.store)?.open_existing().await
}

async fn open_claims(arg: &StoreArg, settings: &Settings) -> Result<Claims, Failure> {
    let store = open(arg).await?;
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(OsEntropy::new()));
    Ok(Claims::new(store, clock, entropy, settings.terms))
}

fn parse_id(text: &str) -> Result<ClaimKey, Failure> {
    ClaimKey::parse(text).ok_or_else(|| {
        Failure::usage(format!(
            "{text:?} is no job ID: expected 64 lower-case hexadecimal characters"
        ))
    })
}

async fn list(args: ListArgs) -> Result<Ended, Failure> {
    let store = open(&args.store).await?;
    let open = || {
        Status::ALL
            .into_iter()
            .filter(|status| *status != Status::Done)
            .collect()
    };
    let statuses = if args.status.is_empty() {
        open()
    } else {
        args.status.into_iter().collect()
    };
    let mut rows = Vec::new();
    let mut query = ListQuery {
        statuses,
        limit: PAGE,
        after: None,
    };
    let mut left = args.limit;
    let mut more = false;
    let mut ended = Ended::Well;
    while let Some(limit) = NonZeroU32::new(left) {
        query.limit = PAGE.min(limit);
        let page = store
            .list(&query)
            .await
            .map_err(|error| Failure::failed("the claims cannot be listed").because(error))?;
        left = left.saturating_sub(u32::try_from(page.rows()).unwrap_or(u32::MAX));
        for error in page.unreadable {
            output::complain(&error.to_string());
            ended = Ended::WithFailures;
        }
        for (key, stored) in page.claims {
            if args.json {
                output::line(&view::json(&key, &stored.record)?)?;
            } else {
                rows.push(view::row(&key, &stored.record));
            }
        }
        query.after = page.next;
        more = query.after.is_some();
        if !more {
            break;
        }
    }
    if !rows.is_empty() {
        output::table(view::HEAD, rows)?;
    }
    if more {
        output::complain(&format!(
            "only the first {} are listed; --limit N lists more",
            args.limit
        ));
    }
    Ok(ended)
}

async fn show(args: ShowArgs, settings: &Settings) -> Result<Ended, Failure> {
    let key = parse_id(&args.id)?;
    let store = open(&args.store).await?;
    let stored = store
        .get(&key)
        .await
        .map_err(|error| Failure::failed("the claim cannot be read").because(error))?;
    let Some(stored) = stored else {
        return Err(Failure::failed(format!(
            "there is no claim {key} in {store}: its event never arrived here, its job has another ID, or it was done and \
             its record was removed when its time was over"
        )));
    };
    if args.json {
        output::line(&view::json(&key, &stored.record)?)?;
        return Ok(Ended::Well);
    }
    let now = SystemClock::new().unix_millis();
    for line in view::lines(&key, &stored.record) {
        output::line(&line)?;
    }
    let explained = explain::explain(&key, &stored.record, now, &settings.terms);
    output::line("")?;
    output::line(&format!("why   {}", explained.why))?;
    output::line(&format!("next  {}", explained.next))?;
    Ok(Ended::Well)
}

async fn release(args: ReleaseArgs, settings: &Settings) -> Result<Ended, Failure> {
    let keys = args
        .ids
        .iter()
        .map(|id| parse_id(id))
        .collect::<Result<Vec<_>, _>>()?;
    let claims = open_claims(&args.store, settings).await?;
    let mut ended = Ended::Well;
    for key in keys {
        match claims.release(&key).await {
            Ok((before, after)) => {
                output::line(&format!(
                    "{key}  {} -> {}  attempt {}",
                    before.status, after.status, after.attempt
                ))?;
            }
            Err(error @ ClaimError::Unknown(_)) => {
                output::complain(&error.to_string());
                ended = Ended::WithFailures;
            }
            Err(error) => {
                return Err(Failure::failed(format!("{key} cannot be released")).because(error));
            }
        }
    }
    Ok(ended)
}
