//! `firstclaim explain`: a dry run for the events of one file.

use host::{clock::SystemClock, settings::Settings};
use identity_core::{
    claim::{ClaimKey, ClaimStore, Record, Terms},
    event::{Item, Reading, StorageEvent},
    host::Clock as _,
    identity::{Contract, ObjectVersion, Selected},
    text::error_chain,
};
use serde_json::{Map, Value};

use crate::{
    args::ExplainArgs,
    claims::explain as claim,
    contract,
    failure::{Ended, Failure},
    input, output, stores,
};

pub(crate) async fn explain(args: &ExplainArgs, settings: &Settings) -> Result<Ended, Failure> {
    let contract = contract::require(&args.pipeline)?;
    let store = stores::parse(&args.store.store)?;
    // A dry run makes no store: one that is not there has no claims.
    let store = store.open_if_there().await?;
    let explainer = Explainer {
        contract,
        store,
        settings,
    };
    let mut ended = Ended::Well;
    for (at, item) in input::events(&args.file, &settings.read_context())?
        .iter()
        .enumerate()
    {
        let told = explainer.tell(item).await?;
        if matches!(item.reading, Reading::Unreadable(_)) {
            ended = Ended::WithFailures;
        }
        if args.json {
            output::line(&told.json())?;
        } else {
            if at > 0 {
                output::line("")?;
            }
            for line in told.lines() {
                output::line(&line)?;
            }
        }
    }
    Ok(ended)
}

struct Explainer<'a> {
    contract: Contract,
    store: Option<std::sync::Arc<dyn ClaimStore>>,
    settings: &'a Settings,
}

/// What is told of one event, in the order of its way.
#[derive(Debug, Default)]
struct Told(Vec<(String, String)>);

impl Told {
    fn add(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.push((name.into(), value.into()));
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        self.0.iter().map(move |(name, value)| {
            format!(
                "{name:<width$}  {}",
                output::clipped(value, output::COMPLAINT)
            )
        })
    }

    fn json(self) -> String {
        let members = self
            .0
            .into_iter()
            .map(|(name, value)| (name.replace(' ', "_"), Value::String(value)));
        Value::Object(members.collect::<Map<_, _>>()).to_string()
    }
}

impl Explainer<'_> {
    async fn tell(&self, item: &Item) -> Result<Told, Failure> {
        let mut told = Told::default();
        let envelopes = item.envelopes();
        if !envelopes.is_empty() {
            told.add("envelope", envelopes.join(" in "));
        }
        if let Some(id) = &item.origin.message_id {
            told.add("message", id);
        }
        match &item.reading {
            Reading::Event(event) => self.event(event, &mut told).await?,
            Reading::Ignored(reason) => {
                told.add("kind", reason.as_str());
                told.add("run would", "acknowledge it: it is no new object");
            }
            Reading::Incomplete(event) => {
                let address = &event.address;
                told.add("object", address.to_string());
                told.add("kind", "incomplete");
                if let Some(token) = &event.token {
                    told.add("token", token.to_string());
                }
                let wanted = self.settings.allow.allows(address)
                    && self.contract.select().selects(&address.key.display());
                let verdict = match &event.token {
                    _ if !wanted => {
                        "acknowledge it: the pipeline does not select its key, or its container is not allowed"
                    }
                    Some(_) => {
                        "record that it waits, and acknowledge it: it holds 0 bytes, and a sweep looks whether it still does"
                    }
                    None => {
                        "record that it waits, and acknowledge it: its content is still to come, and a sweep looks whether it has"
                    }
                };
                told.add("run would", verdict);
            }
            Reading::Unreadable(unreadable) => {
                told.add("error", error_chain(&unreadable.error));
                let verdict = if Record::keeps_whole(unreadable.bytes.len()) {
                    "record it with its bytes as rejected, and then acknowledge it".to_owned()
                } else {
                    format!(
                        "record its first {} bytes as rejected, and not acknowledge it: its source keeps it whole",
                        Record::MAX_BODY_BYTES
                    )
                };
                told.add("run would", verdict);
            }
            _ => told.add(
                "run would",
                "acknowledge it: it is a handshake, which only a server answers",
            ),
        }
        Ok(told)
    }

    async fn event(&self, event: &StorageEvent, told: &mut Told) -> Result<(), Failure> {
        let (address, contract) = (&event.address, &self.contract);
        if let Some(name) = &event.details.event_name {
            told.add("event", name);
        }
        let (key, raw) = (address.key.display(), address.key.raw());
        told.add("key", &*key);
        told.add("key in payload", &*raw);
        told.add("decoded", if key == raw { "verbatim" } else { "once" });
        told.add("object", address.to_string());
        told.add(
            "pipeline",
            format!(
                "{} {} ({})",
                contract.name(),
                contract.version(),
                contract.scheme()
            ),
        );
        let allowed = self.settings.allow.allows(address);
        told.add(
            "allowed",
            if allowed {
                "yes"
            } else {
                "no: its container is not on the allow-list"
            },
        );
        let selected = contract.select().judge(&key, event.details.size);
        let mut why = match selected {
            Selected::Yes => "yes".to_owned(),
            Selected::No => "no".to_owned(),
            Selected::Folder => "no: it is the empty object of a folder".to_owned(),
            Selected::FolderIfEmpty => "unless it is the empty object of a folder".to_owned(),
        };
        if contract.select().hangs_on_normal_form(&key) {
            why += " (a pattern differs from the key in Unicode's normal form alone)";
        }
        told.add("selected", why);
        let token = match event.token_for(contract.scheme()) {
            Ok(token) => token,
            Err(refusal) => {
                told.add("token", format!("refused: {}", error_chain(&refusal)));
                told.add(
                    "run would",
                    "record it as rejected, and then acknowledge it",
                );
                return Ok(());
            }
        };
        let Some(token) = token else {
            told.add("token", "none: its store would be asked for one (HEAD)");
            told.add(
                "run would",
                verdict_without_claim(
                    allowed,
                    selected,
                    "derive its ID from what the store answers",
                ),
            );
            return Ok(());
        };
        told.add("token", token.to_string());
        let object = ObjectVersion {
            address: address.clone(),
            token,
        };
        let deriver = contract.deriver();
        let (material, id) = match deriver
            .material(&object)
            .and_then(|material| Ok((material, deriver.job_id(&object)?)))
        {
            Ok(derived) => derived,
            Err(refusal) => {
                told.add("job id", format!("refused: {}", error_chain(&refusal)));
                told.add(
                    "run would",
                    "record it as rejected, and then acknowledge it",
                );
                return Ok(());
            }
        };
        for (name, value) in material.fields() {
            told.add(format!("material {name}"), value.as_str());
        }
        told.add("material bytes", material.bytes().len().to_string());
        told.add("job id", id.to_string());
        let verdict = self.claim(&ClaimKey::from(id), told).await?;
        told.add(
            "run would",
            verdict_without_claim(allowed, selected, &verdict),
        );
        Ok(())
    }

    /// What the store says, and what would be done for it.
    async fn claim(&self, key: &ClaimKey, told: &mut Told) -> Result<String, Failure> {
        let Some(store) = &self.store else {
            told.add("claim", "none: there is no store yet");
            return Ok("claim it as attempt 1, and run the job".to_owned());
        };
        let stored = store
            .get(key)
            .await
            .map_err(|error| Failure::failed("the claim cannot be read").because(error))?;
        let Some(stored) = stored else {
            told.add("claim", format!("none in {store}"));
            return Ok("claim it as attempt 1, and run the job".to_owned());
        };
        let now = SystemClock::new().unix_millis();
        let terms: &Terms = &self.settings.terms;
        let explained = claim::explain(key, &stored.record, now, terms);
        told.add(
            "claim",
            format!(
                "{}, attempt {}: {}",
                stored.record.status, stored.record.attempt, explained.why
            ),
        );
        Ok(match claim::would_run(&stored.record, now, terms) {
            Some(attempt) => format!("claim it as attempt {attempt}, and run the job"),
            None => format!("not run the job: {}", explained.next),
        })
    }
}

fn verdict_without_claim(allowed: bool, selected: Selected, otherwise: &str) -> String {
    match (allowed, selected) {
        (false, _) => "record it as rejected (not allowed), and then acknowledge it".to_owned(),
        (true, Selected::No) => "acknowledge it: the pipeline does not select its key".to_owned(),
        (true, Selected::Folder) => {
            "acknowledge it: it only shows a folder, and the pipeline does not want those"
                .to_owned()
        }
        (true, Selected::FolderIfEmpty) => {
            format!("ask for its size, acknowledge it if it is empty, else {otherwise}")
        }
        (true, Selected::Yes) => otherwise.to_owned(),
    }
}
