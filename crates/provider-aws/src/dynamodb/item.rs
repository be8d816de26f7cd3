//! The mapping between an item and a record. An attribute whose field is `None` is left out; an empty text is kept as the
//! service's null, since not every server takes an empty string.

use std::str::FromStr;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use identity_core::claim::{
    ClaimKey, Owner, Reason, Record, RecordedObject, RecordedPipeline, Release, Revision, Status,
    Stored, UnixMillis, UnixSeconds,
};
use identity_core::identity::{Provider, TokenKind};

use super::attributes::{
    ATTEMPT, CLAIMED_AT, Item, KEY, OPEN_SHARD, OPEN_SINCE, OWNER, REVISION, STATUS, shard, since,
};
use super::version;

/// A value that no claim can hold.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    pub(super) what: String,
    pub(super) expected: &'static str,
    pub(super) got: String,
}

impl Misfit {
    /// An item's texts can be of any length: an error keeps their beginning.
    fn new(key: &str, attribute: &str, expected: &'static str, got: &str) -> Self {
        let shortened = |text: &str| -> String { text.chars().take(100).collect() };
        Self {
            what: format!("claim {}, attribute {attribute}", shortened(key)),
            expected,
            got: shortened(got),
        }
    }
}

const STATUSES: &str = "processing, done, failed, rejected or waiting";
const COUNT: &str = "a number from 0 to 4294967295";

/// The item of a record.
pub(super) fn encode(key: &ClaimKey, record: &Record) -> Result<Item, Misfit> {
    if let Some((attribute, expected, got)) = record.oversized() {
        let got = format!("{got} bytes");
        return Err(Misfit::new(key.as_str(), attribute, expected, &got));
    }
    let mut item = Item::new();
    let mut set = |name: &str, value: Option<AttributeValue>| {
        if let Some(value) = value {
            item.insert(name.to_owned(), value);
        }
    };
    set(KEY, Some(AttributeValue::S(key.to_string())));
    set(STATUS, text(record.status.as_str()));
    set(ATTEMPT, number(record.attempt));
    set(
        OWNER,
        record.owner.and_then(|owner| text(&owner.to_string())),
    );
    set(
        REVISION,
        record
            .revision
            .and_then(|revision| text(&revision.to_string())),
    );
    set(CLAIMED_AT, number(record.claimed_at.0));
    set(
        "lease_until",
        record.lease_until.and_then(|time| number(time.0)),
    );
    set(
        "waiting_until",
        record.waiting_until.and_then(|time| number(time.0)),
    );
    set(
        "finished_at",
        record.finished_at.and_then(|time| number(time.0)),
    );
    set(
        "expires_at",
        record.expires_at.and_then(|time| number(time.0)),
    );
    if record.status != Status::Done {
        set(OPEN_SHARD, text(&shard(record.status, key)));
        set(OPEN_SINCE, text(&since(record.claimed_at, key)));
    }
    if let Some(object) = &record.object {
        set("object_provider", text(object.provider.as_str()));
        set("object_account", object.account.as_deref().and_then(text));
        set("bucket", text(&object.container));
        set("key", text(&object.key));
        set("object_raw_key", object.raw_key.as_deref().and_then(text));
        if let Some((kind, value)) = &object.token {
            set("token_kind", text(kind.as_str()));
            set("token_value", text(value));
        }
    }
    let pipeline = &record.pipeline;
    for (name, value) in [
        ("pipeline_name", &pipeline.name),
        ("pipeline_version", &pipeline.version),
        ("scheme", &pipeline.scheme),
        ("params_digest", &pipeline.params_digest),
        ("contract_digest", &pipeline.contract_digest),
    ] {
        set(name, text(value).filter(|_| !value.is_empty()));
    }
    set("redrives", number(record.redrives));
    set(
        "reason",
        record.reason.and_then(|reason| text(reason.as_str())),
    );
    set("error", record.error.as_deref().and_then(text));
    set("result", record.result.as_deref().and_then(text));
    set(
        "body",
        record.body.as_ref().map(|body| {
            if body.is_empty() {
                AttributeValue::Null(true)
            } else {
                AttributeValue::B(Blob::new(body.clone()))
            }
        }),
    );
    if let Some(release) = record.released {
        set("released_at", number(release.at.0));
        set("released_from", text(release.from.as_str()));
        set("released_attempt", number(release.attempt));
    }
    Ok(item)
}

fn text(text: &str) -> Option<AttributeValue> {
    Some(if text.is_empty() {
        AttributeValue::Null(true)
    } else {
        AttributeValue::S(text.to_owned())
    })
}

fn number(number: impl ToString) -> Option<AttributeValue> {
    Some(AttributeValue::N(number.to_string()))
}

/// The key, the record and the version of an item, whoever wrote it.
///
/// What the Python handler's items lack has a meaning: an object without a provider is in S3, a status `done` is done
/// whatever else is missing.
pub(super) fn decode(item: &Item) -> Result<(ClaimKey, Stored), Misfit> {
    let row = Row::of(item);
    let key = ClaimKey::parse(&row.key)
        .ok_or_else(|| row.misfit(KEY, "64 lower-case hex characters", &row.key))?;
    let status = |name, text: String| {
        Status::from_name(&text).ok_or_else(|| row.misfit(name, STATUSES, &text))
    };
    let object = match (row.text("bucket")?, row.text("key")?) {
        (None, None) => None,
        (Some(container), Some(key)) => {
            let provider = row.text("object_provider")?;
            let provider = provider.unwrap_or_else(|| Provider::S3.as_str().to_owned());
            Some(RecordedObject {
                provider: Provider::from_name(&provider).ok_or_else(|| {
                    row.misfit("object_provider", "s3, gcs, azure or file", &provider)
                })?,
                account: row.text("object_account")?,
                container,
                key,
                raw_key: row.text("object_raw_key")?,
                token: token(&row)?,
            })
        }
        half => {
            return Err(row.misfit("bucket", "bucket and key, or neither", &format!("{half:?}")));
        }
    };
    let released = match (
        row.number("released_at", TIME)?,
        row.text("released_from")?,
        row.number("released_attempt", COUNT)?,
    ) {
        (None, None, None) => None,
        (Some(at), Some(from), Some(attempt)) => Some(Release {
            at: UnixSeconds(at),
            from: status("released_from", from)?,
            attempt,
        }),
        part => {
            let expected = "released_at, released_from and released_attempt, or none of the three";
            return Err(row.misfit("released_at", expected, &format!("{part:?}")));
        }
    };
    let word = |name| Ok::<_, Misfit>(row.text(name)?.unwrap_or_default());
    let record = Record {
        status: status(STATUS, word(STATUS)?)?,
        attempt: row.number(ATTEMPT, COUNT)?.unwrap_or(0),
        owner: row.parsed(OWNER, "32 lower-case hex characters", Owner::parse)?,
        revision: row.parsed(REVISION, "an owner, a dot and a number", Revision::parse)?,
        claimed_at: row.seconds(CLAIMED_AT)?.unwrap_or_default(),
        lease_until: row.number("lease_until", TIME)?.map(UnixMillis),
        waiting_until: row.number("waiting_until", TIME)?.map(UnixMillis),
        finished_at: row.seconds("finished_at")?,
        expires_at: row.seconds("expires_at")?,
        object,
        pipeline: RecordedPipeline {
            name: word("pipeline_name")?,
            version: word("pipeline_version")?,
            scheme: word("scheme")?,
            params_digest: word("params_digest")?,
            contract_digest: word("contract_digest")?,
        },
        redrives: row.number("redrives", COUNT)?.unwrap_or(0),
        reason: row.parsed("reason", "the name of a reason", Reason::from_name)?,
        error: row.text("error")?,
        result: row.text("result")?,
        body: row.bytes("body")?,
        released,
    };
    let version = version::of(item);
    Ok((key, Stored { record, version }))
}

fn token(row: &Row<'_>) -> Result<Option<(TokenKind, String)>, Misfit> {
    match (row.text("token_kind")?, row.text("token_value")?) {
        (None, None) => Ok(None),
        (Some(kind), Some(value)) => match TokenKind::from_tag(&kind) {
            Some(kind) => Ok(Some((kind, value))),
            None => {
                let expected = "version-id, etag, generation or content";
                Err(row.misfit("token_kind", expected, &kind))
            }
        },
        half => Err(row.misfit(
            "token_kind",
            "kind and value, or neither",
            &format!("{half:?}"),
        )),
    }
}

const TIME: &str = "a whole number";

/// An item that is being read.
struct Row<'a> {
    item: &'a Item,
    key: String,
}

impl<'a> Row<'a> {
    fn of(item: &'a Item) -> Self {
        let key = match item.get(KEY) {
            Some(AttributeValue::S(key)) => key.clone(),
            other => format!("{other:?}"),
        };
        Self { item, key }
    }

    fn misfit(&self, attribute: &str, expected: &'static str, got: &str) -> Misfit {
        Misfit::new(&self.key, attribute, expected, got)
    }

    fn text(&self, name: &str) -> Result<Option<String>, Misfit> {
        match self.item.get(name) {
            None => Ok(None),
            Some(AttributeValue::S(text)) => Ok(Some(text.clone())),
            Some(AttributeValue::Null(_)) => Ok(Some(String::new())),
            Some(other) => Err(self.misfit(name, "a string", &format!("{other:?}"))),
        }
    }

    fn parsed<T>(
        &self,
        name: &str,
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Misfit> {
        match self.text(name)? {
            None => Ok(None),
            Some(text) => parse(&text)
                .map(Some)
                .ok_or_else(|| self.misfit(name, expected, &text)),
        }
    }

    fn number<T: FromStr>(&self, name: &str, expected: &'static str) -> Result<Option<T>, Misfit> {
        match self.item.get(name) {
            None => Ok(None),
            Some(AttributeValue::N(text)) => text
                .parse()
                .map(Some)
                .map_err(|_| self.misfit(name, expected, text)),
            Some(other) => Err(self.misfit(name, expected, &format!("{other:?}"))),
        }
    }

    /// A time that other programs write, too: of a fraction of a second only the whole seconds count.
    fn seconds(&self, name: &str) -> Result<Option<UnixSeconds>, Misfit> {
        if let Some(AttributeValue::N(text)) = self.item.get(name)
            && let Some((whole, fraction)) = text.split_once('.')
            && fraction.bytes().all(|byte| byte.is_ascii_digit())
            && let Ok(seconds) = whole.parse()
        {
            return Ok(Some(UnixSeconds(seconds)));
        }
        Ok(self.number(name, TIME)?.map(UnixSeconds))
    }

    fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>, Misfit> {
        match self.item.get(name) {
            None => Ok(None),
            Some(AttributeValue::B(bytes)) => Ok(Some(bytes.as_ref().to_vec())),
            Some(AttributeValue::Null(_)) => Ok(Some(Vec::new())),
            Some(other) => Err(self.misfit(name, "bytes", &format!("{other:?}"))),
        }
    }
}

#[cfg(test)]
mod tests;
