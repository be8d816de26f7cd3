//! `firstclaim id`: events → job IDs, without claiming or running anything.

use std::path::Path;

use host::settings::Settings;
use identity_core::{
    event::{Ignored, Item, Reading, StorageEvent},
    identity::{Contract, Deriver, JobId, ObjectVersion, Refusal, VersionToken},
    text::error_chain,
};
use serde::Serialize;

use crate::{
    args::IdArgs,
    contract,
    failure::{Ended, Failure},
    input, output,
};

/// One line of `--json`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Line {
    Event {
        provider: &'static str,
        account: Option<String>,
        container: String,
        key: String,
        token: Option<Token>,
        uri: String,
        job_id: Option<String>,
    },
    Ignored {
        ignored: &'static str,
    },
    Error {
        error: String,
    },
}

#[derive(Debug, Serialize)]
struct Token {
    kind: &'static str,
    value: String,
}

pub(crate) fn id(args: &IdArgs, settings: &Settings) -> Result<Ended, Failure> {
    let deriver = deriver(args)?;
    let mut ended = Ended::Well;
    for path in &args.files {
        let items = match input::events(path, &settings.read_context()) {
            Ok(items) => items,
            Err(failure) => {
                output::complain(&failure.to_string());
                ended = Ended::WithFailures;
                continue;
            }
        };
        for item in items {
            let (line, complaint) = line(&item, &deriver);
            if let Some(complaint) = complaint {
                output::complain(&format!("{}: {complaint}", input::name(path)));
                ended = Ended::WithFailures;
            }
            print(&line, args.json, path)?;
        }
    }
    Ok(ended)
}

/// The deriver of the pipeline, under another scheme if one is asked for.
fn deriver(args: &IdArgs) -> Result<Deriver, Failure> {
    match (contract::find(&args.pipeline)?, args.scheme) {
        (Some(contract), Some(scheme)) if scheme != contract.scheme() => Deriver::new(
            contract.name(),
            contract.version(),
            scheme,
            contract.params(),
        )
        .map_err(|refusal| {
            Failure::usage(format!(
                "the pipeline's parameters cannot be used under {scheme}"
            ))
            .because(refusal)
        }),
        (Some(contract), _) => Ok(contract.deriver().clone()),
        (None, Some(scheme)) => Ok(Contract::default_for(scheme).deriver().clone()),
        (None, None) => Err(Failure::usage(
            "there is no pipeline.toml here; name one with --pipeline FILE, or a scheme with --scheme",
        )),
    }
}

/// What is told of one item, and the complaint if all is not well.
fn line(item: &Item, deriver: &Deriver) -> (Line, Option<String>) {
    match &item.reading {
        Reading::Event(event) => match derive(event, deriver) {
            Ok(Some(derived)) => (event_line(event, Some(derived)), None),
            Ok(None) => {
                let complaint = format!(
                    "{} carries no version token; its store would have to be asked",
                    event.address
                );
                (event_line(event, None), Some(complaint))
            }
            Err(refusal) => error(format!("{}: {}", event.address, error_chain(&refusal))),
        },
        Reading::Ignored(reason) => (
            Line::Ignored {
                ignored: reason.as_str(),
            },
            None,
        ),
        Reading::Incomplete(_) => (
            Line::Ignored {
                ignored: Ignored::Incomplete.as_str(),
            },
            None,
        ),
        Reading::Reply(_) => (
            Line::Ignored {
                ignored: Ignored::Handshake.as_str(),
            },
            None,
        ),
        Reading::Unreadable(unreadable) => error(error_chain(&unreadable.error)),
        _ => error("this version does not know such an item".to_owned()),
    }
}

fn error(text: String) -> (Line, Option<String>) {
    (
        Line::Error {
            error: text.clone(),
        },
        Some(text),
    )
}

fn derive(
    event: &StorageEvent,
    deriver: &Deriver,
) -> Result<Option<(VersionToken, JobId)>, Refusal> {
    let Some(token) = event.token_for(deriver.scheme())? else {
        return Ok(None);
    };
    let object = ObjectVersion {
        address: event.address.clone(),
        token,
    };
    let id = deriver.job_id(&object)?;
    Ok(Some((object.token, id)))
}

fn event_line(event: &StorageEvent, derived: Option<(VersionToken, JobId)>) -> Line {
    let address = &event.address;
    let (token, id) = derived.unzip();
    Line::Event {
        provider: address.provider.as_str(),
        account: address.account.clone(),
        container: address.container.clone(),
        key: address.key.display().into_owned(),
        token: token.map(|token| Token {
            kind: token.kind().as_str(),
            value: token.value().to_owned(),
        }),
        uri: address.to_string(),
        job_id: id.map(|id| id.to_string()),
    }
}

fn print(line: &Line, json: bool, path: &Path) -> Result<(), Failure> {
    if json {
        let text = serde_json::to_string(line)
            .map_err(|error| Failure::failed("a line cannot be written as JSON").because(error))?;
        output::line(&text)?;
        return Ok(());
    }
    match line {
        Line::Event {
            job_id: Some(id),
            uri,
            ..
        } => output::line(&format!("{id}  {uri}"))?,
        Line::Ignored { ignored } => {
            output::line(&format!("ignored: {ignored}  {}", input::name(path)))?
        }
        Line::Event { job_id: None, .. } | Line::Error { .. } => {} // said on standard error
    }
    Ok(())
}
