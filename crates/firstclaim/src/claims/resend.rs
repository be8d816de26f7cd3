//! `firstclaim claims sweep` and `redrive`: the events of claims, rebuilt, as lines on standard output.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use host::settings::Settings;
use identity_core::{
    claim::{
        ClaimKey, Claims, ListQuery, Obstacle, Record, ResendError, Resender, Resent, Status, Swept,
    },
    outbox::{Message, Outbox, OutboxError},
    text::error_chain,
};
use serde_json::json;

use super::{PAGE, open_claims, parse_id, view};
use crate::{
    args::{GraceArg, PipelineArg, RedriveArgs, StoreArg, SweepArgs},
    contract,
    failure::{Ended, Failure},
    output,
};

/// Standard output as a queue: a message a line.
#[derive(Debug)]
struct Lines;

impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output")
    }
}

#[async_trait]
impl Outbox for Lines {
    async fn send(&self, message: &Message) -> Result<(), OutboxError> {
        output::line(&message.body).map_err(|error| OutboxError::Unavailable {
            queue: self.to_string(),
            source: error.into(),
        })
    }
}

async fn resender(
    pipeline: &PipelineArg,
    store: &StoreArg,
    grace: &GraceArg,
    settings: &Settings,
) -> Result<Resender, Failure> {
    Ok(Resender {
        contract: contract::require(pipeline)?,
        claims: open_claims(store, settings).await?,
        outbox: Arc::new(Lines),
        grace: Duration::from_secs(grace.seconds),
    })
}

pub(super) async fn sweep(args: SweepArgs, settings: &Settings) -> Result<Ended, Failure> {
    let resender = resender(&args.pipeline, &args.store, &args.grace, settings).await?;
    let mut told = Ok(());
    let swept = resender
        .sweep(args.dry_run, &mut |key, record, resent| {
            if told.is_ok() {
                told = tell(key, record, resent, args.json);
            }
        })
        .await;
    let swept = swept.map_err(stopped)?;
    told?;
    let Swept {
        sent,
        left,
        reported,
        failed,
        purged,
    } = swept;
    if args.json {
        output::say(&json!(swept).to_string());
    } else {
        output::say(&format!(
            "sent={sent} left={left} reported={reported} failed={failed} purged={purged}"
        ));
    }
    Ok(if failed == 0 {
        Ended::Well
    } else {
        Ended::WithFailures
    })
}

/// What became of one row: what would be sent on standard output, what cannot be on standard error.
fn tell(key: &ClaimKey, record: &Record, resent: &Resent, as_json: bool) -> Result<(), Failure> {
    match resent {
        Resent::WouldBeSent if as_json => output::line(&view::json(key, record)?)?,
        Resent::WouldBeSent => output::line(&format!("{key}  {}", standing(record)))?,
        Resent::Obstacle(obstacle) if as_json => {
            output::say(
                &json!({"job_id": key.as_str(), "not_sent": obstacle.to_string()}).to_string(),
            );
        }
        Resent::Obstacle(obstacle) => {
            output::complain(&format!(
                "{key}  {}: not sent: {obstacle}",
                standing(record)
            ));
        }
        Resent::Sent { .. } | Resent::Left => {}
    }
    Ok(())
}

fn standing(record: &Record) -> String {
    let object = record.object.as_ref();
    let object = object.map_or_else(|| "-".to_owned(), ToString::to_string);
    format!("{}  {object}", record.status)
}

pub(super) async fn redrive(args: RedriveArgs, settings: &Settings) -> Result<Ended, Failure> {
    let mut keys = args
        .ids
        .iter()
        .map(|id| parse_id(id))
        .collect::<Result<Vec<_>, _>>()?;
    let resender = resender(&args.pipeline, &args.store, &args.grace, settings).await?;
    if !args.status.is_empty() {
        keys = with_status(&resender.claims, args.status, args.limit).await?;
    }
    let (mut sent, mut refused) = (0_u64, 0_u64);
    for key in keys {
        let obstacle = match resender.redrive(&key, args.done).await {
            Ok(Resent::Obstacle(Obstacle::Done)) => {
                "it is done: --done has its job run again".to_owned()
            }
            Ok(Resent::Obstacle(obstacle)) => obstacle.to_string(),
            Ok(_) => {
                sent += 1;
                continue;
            }
            Err(ResendError::Claim { source, .. }) => error_chain(&source),
            Err(error) => return Err(stopped(error)),
        };
        refused += 1;
        output::complain(&format!("{key}: not sent: {obstacle}"));
    }
    output::say(&format!("sent={sent} refused={refused}"));
    Ok(if refused == 0 {
        Ended::Well
    } else {
        Ended::WithFailures
    })
}

/// The keys of claims with one of the statuses, oldest first. All of them before the first is written: what is redriven
/// would be listed again under its new status.
async fn with_status(
    claims: &Claims,
    statuses: Vec<Status>,
    limit: u32,
) -> Result<Vec<ClaimKey>, Failure> {
    let mut query = ListQuery {
        statuses: statuses.into_iter().collect(),
        limit: PAGE,
        after: None,
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut keys = Vec::new();
    while keys.len() < limit {
        let page = claims.store().list(&query).await;
        let page =
            page.map_err(|error| Failure::failed("the claims cannot be listed").because(error))?;
        for error in page.unreadable {
            output::complain(&error_chain(&error));
        }
        keys.extend(page.claims.into_iter().map(|(key, _)| key));
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    keys.truncate(limit);
    Ok(keys)
}

/// Why no more is sent. A reader of standard output that went away (`| head`) knows it.
fn stopped(error: ResendError) -> Failure {
    match error {
        ResendError::Outbox {
            source: OutboxError::Unavailable { source, .. },
            ..
        } => match source.downcast::<std::io::Error>() {
            Ok(error) => Failure::from(*error),
            Err(error) => Failure::failed("an event cannot be sent").because(error),
        },
        error => Failure::failed("not all claims were looked at").because(error),
    }
}
