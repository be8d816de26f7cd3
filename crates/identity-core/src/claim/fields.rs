//! A row's fields: their names, kinds and bounds, and what is wrong with a value. A store maps values to its own types
//! and back, and nothing else.
//!
//! A new field of a [`Record`] is a line in [`fields!`](self), an arm in `value` and one in [`read`]: the compiler asks for
//! all three. Stores go by [`Field::ALL`]; only a table with columns has to get one more.

use super::record::{
    ClaimKey, Owner, Reason, Record, RecordedObject, RecordedPipeline, Release, Revision, Status,
    UnixMillis, UnixSeconds,
};
use crate::identity::{Provider, TokenKind};

macro_rules! fields {
    ($($(#[$doc:meta])* $field:ident $name:literal $kind:ident,)*) => {
        /// A field of a row.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Field {
            $($(#[$doc])* $field,)*
        }

        impl Field {
            /// Every field. New ones come last, as columns do that are added to a table.
            pub const ALL: &[Self] = &[$(Self::$field),*];

            /// Its name, e.g. `lease_until`. A store whose rows other programs read can have a name of its own for it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$field => $name,)*
                }
            }

            /// What it holds.
            pub const fn kind(self) -> Kind {
                match self {
                    $(Self::$field => Kind::$kind,)*
                }
            }
        }
    };
}

fields! {
    /// The [`ClaimKey`]; every row has it.
    Key "key" Text,
    /// [`Record::status`]; every row has it.
    Status "status" Text,
    /// [`Record::attempt`]; none is 0.
    Attempt "attempt" Count,
    /// [`Record::owner`]
    Owner "owner" Text,
    /// [`Record::revision`]
    Revision "revision" Text,
    /// [`Record::claimed_at`]; none is 1970, long ago.
    ClaimedAt "claimed_at" Seconds,
    /// [`Record::lease_until`]
    LeaseUntil "lease_until" Millis,
    /// [`Record::waiting_until`]
    WaitingUntil "waiting_until" Millis,
    /// [`Record::finished_at`]
    FinishedAt "finished_at" Seconds,
    /// [`Record::expires_at`]
    ExpiresAt "expires_at" Seconds,
    /// [`RecordedObject::provider`]; this, container and key are there together.
    ObjectProvider "object_provider" Text,
    /// [`RecordedObject::account`]
    ObjectAccount "object_account" Text,
    /// [`RecordedObject::container`]
    ObjectContainer "object_container" Text,
    /// [`RecordedObject::key`]
    ObjectKey "object_key" Text,
    /// [`RecordedObject::raw_key`]
    ObjectRawKey "object_raw_key" Text,
    /// [`RecordedObject::token`]'s kind; it and the value are there together.
    TokenKind "token_kind" Text,
    /// [`RecordedObject::token`]'s value
    TokenValue "token_value" Text,
    /// [`RecordedPipeline::name`]; none is empty, as with the other four.
    PipelineName "pipeline_name" Text,
    /// [`RecordedPipeline::version`]
    PipelineVersion "pipeline_version" Text,
    /// [`RecordedPipeline::scheme`]
    Scheme "scheme" Text,
    /// [`RecordedPipeline::params_digest`]
    ParamsDigest "params_digest" Text,
    /// [`RecordedPipeline::contract_digest`]
    ContractDigest "contract_digest" Text,
    /// [`Record::redrives`]; none is 0.
    Redrives "redrives" Count,
    /// [`Record::reason`]
    Reason "reason" Text,
    /// [`Record::error`]
    Error "error" Text,
    /// [`Record::result`]
    Result "result" Text,
    /// [`Record::body`]
    Body "body" Bytes,
    /// [`Release::at`]; this and the next two are there together.
    ReleasedAt "released_at" Seconds,
    /// [`Release::from`]
    ReleasedFrom "released_from" Text,
    /// [`Release::attempt`]
    ReleasedAttempt "released_attempt" Count,
    /// [`Record::uncounted`]; none is 0.
    Uncounted "uncounted" Count,
}

/// What a field holds, and so what type a store keeps it in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// [`Value::Text`]
    Text,
    /// [`Value::Number`], from 0 to `u32::MAX`
    Count,
    /// [`Value::Number`], in Unix seconds
    Seconds,
    /// [`Value::Number`], in Unix milliseconds
    Millis,
    /// [`Value::Bytes`]
    Bytes,
}

impl Kind {
    /// What is expected where a value of this kind stands.
    pub const fn expected(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Count => "a number from 0 to 4294967295",
            Self::Seconds | Self::Millis => "a whole number",
            Self::Bytes => "bytes",
        }
    }
}

/// What stands in a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Any characters, U+0000 among them, or none.
    Text(String),
    /// A count or a time.
    Number(i64),
    /// Any bytes, or none.
    Bytes(Vec<u8>),
}

impl Field {
    /// Whether it is one of a pipeline's five texts: empty, and no other, it may be left out of a row.
    pub const fn is_pipelines(self) -> bool {
        matches!(
            self,
            Self::PipelineName
                | Self::PipelineVersion
                | Self::Scheme
                | Self::ParamsDigest
                | Self::ContractDigest
        )
    }

    /// How long it may be, in bytes, and how that is said.
    const fn bound(self) -> Option<(usize, &'static str)> {
        match self {
            Self::Result => Some((Record::MAX_RESULT_BYTES, "at most 16384 bytes")),
            Self::Body => Some((Record::MAX_BODY_BYTES, "at most 32768 bytes")),
            _ => None,
        }
    }
}

/// A value that no row can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// In which field.
    pub field: Field,
    /// What it should be.
    pub expected: &'static str,
    /// What it is, or the beginning of it: a foreign row's texts can be of any length.
    pub got: String,
}

impl Misfit {
    /// `got` in a field where something else is expected.
    pub fn new(field: Field, expected: &'static str, got: &str) -> Self {
        let got = beginning(got);
        Self {
            field,
            expected,
            got,
        }
    }

    /// `got` in a field whose kind is another.
    pub fn of_kind(field: Field, got: &str) -> Self {
        Self::new(field, field.kind().expected(), got)
    }
}

/// As much of a text as an error quotes: 100 characters.
pub fn beginning(text: &str) -> String {
    text.chars().take(100).collect()
}

/// The row of a record: every field that it has, in order.
///
/// # Errors
///
/// [`Misfit`]: a field is longer than stores keep.
pub fn write(key: &ClaimKey, record: &Record) -> Result<Vec<(Field, Value)>, Misfit> {
    let mut row = Vec::with_capacity(Field::ALL.len());
    for &field in Field::ALL {
        let Some(value) = value(field, key, record) else {
            continue;
        };
        bounded(field, &value)?;
        row.push((field, value));
    }
    Ok(row)
}

/// Whether [`write()`] has a row for the record, for a store that keeps it as it is.
///
/// # Errors
///
/// As [`write()`]'s.
pub fn check(key: &ClaimKey, record: &Record) -> Result<(), Misfit> {
    for &field in Field::ALL {
        if field.bound().is_some()
            && let Some(value) = value(field, key, record)
        {
            bounded(field, &value)?;
        }
    }
    Ok(())
}

fn bounded(field: Field, value: &Value) -> Result<(), Misfit> {
    let length = match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Number(_) => 0,
    };
    match field.bound() {
        Some((most, expected)) if length > most => {
            Err(Misfit::new(field, expected, &format!("{length} bytes")))
        }
        _ => Ok(()),
    }
}

/// What stands in a field of the row of a record.
fn value(field: Field, key: &ClaimKey, record: &Record) -> Option<Value> {
    let text = |text: &str| Some(Value::Text(text.to_owned()));
    let some_text = |text: Option<&String>| text.cloned().map(Value::Text);
    let count = |count: u32| Some(Value::Number(count.into()));
    let seconds = |time: Option<UnixSeconds>| time.map(|time| Value::Number(time.0));
    let millis = |time: Option<UnixMillis>| time.map(|time| Value::Number(time.0));
    let object = record.object.as_ref();
    let token = object.and_then(|object| object.token.as_ref());
    let (pipeline, released) = (&record.pipeline, record.released);
    match field {
        Field::Key => text(key.as_str()),
        Field::Status => text(record.status.as_str()),
        Field::Attempt => count(record.attempt),
        Field::Owner => record.owner.map(|owner| Value::Text(owner.to_string())),
        Field::Revision => {
            let revision = record.revision;
            revision.map(|revision| Value::Text(revision.to_string()))
        }
        Field::ClaimedAt => seconds(Some(record.claimed_at)),
        Field::LeaseUntil => millis(record.lease_until),
        Field::WaitingUntil => millis(record.waiting_until),
        Field::FinishedAt => seconds(record.finished_at),
        Field::ExpiresAt => seconds(record.expires_at),
        Field::ObjectProvider => text(object?.provider.as_str()),
        Field::ObjectAccount => some_text(object?.account.as_ref()),
        Field::ObjectContainer => text(&object?.container),
        Field::ObjectKey => text(&object?.key),
        Field::ObjectRawKey => some_text(object?.raw_key.as_ref()),
        Field::TokenKind => text(token?.0.as_str()),
        Field::TokenValue => text(&token?.1),
        Field::PipelineName => text(&pipeline.name),
        Field::PipelineVersion => text(&pipeline.version),
        Field::Scheme => text(&pipeline.scheme),
        Field::ParamsDigest => text(&pipeline.params_digest),
        Field::ContractDigest => text(&pipeline.contract_digest),
        Field::Redrives => count(record.redrives),
        Field::Reason => text(record.reason?.as_str()),
        Field::Error => some_text(record.error.as_ref()),
        Field::Result => some_text(record.result.as_ref()),
        Field::Body => record.body.clone().map(Value::Bytes),
        Field::ReleasedAt => seconds(Some(released?.at)),
        Field::ReleasedFrom => text(released?.from.as_str()),
        Field::ReleasedAttempt => count(released?.attempt),
        Field::Uncounted => (record.uncounted > 0).then(|| Value::Number(record.uncounted.into())),
    }
}

/// The key and the record of a row, whose field a store tells by `field`, or `None` where there is nothing.
///
/// # Errors
///
/// [`Misfit`]: the first value that none of ours can be, or `field`'s own.
pub fn read<F>(mut field: F) -> Result<(ClaimKey, Record), Misfit>
where
    F: FnMut(Field) -> Result<Option<Value>, Misfit>,
{
    let mut row = Row(&mut field);
    let key = row.required(Field::Key, "64 lower-case hex characters", ClaimKey::parse)?;
    let token = row.token()?;
    let record = Record {
        status: row.required(Field::Status, STATUS, Status::from_name)?,
        attempt: row.count(Field::Attempt)?.unwrap_or(0),
        owner: row.parsed(Field::Owner, "32 lower-case hex characters", Owner::parse)?,
        revision: row.parsed(Field::Revision, REVISION, Revision::parse)?,
        claimed_at: row.seconds(Field::ClaimedAt)?.unwrap_or_default(),
        lease_until: row.number(Field::LeaseUntil)?.map(UnixMillis),
        waiting_until: row.number(Field::WaitingUntil)?.map(UnixMillis),
        finished_at: row.seconds(Field::FinishedAt)?,
        expires_at: row.seconds(Field::ExpiresAt)?,
        object: row.object(token)?,
        pipeline: RecordedPipeline {
            name: row.text(Field::PipelineName)?.unwrap_or_default(),
            version: row.text(Field::PipelineVersion)?.unwrap_or_default(),
            scheme: row.text(Field::Scheme)?.unwrap_or_default(),
            params_digest: row.text(Field::ParamsDigest)?.unwrap_or_default(),
            contract_digest: row.text(Field::ContractDigest)?.unwrap_or_default(),
        },
        redrives: row.count(Field::Redrives)?.unwrap_or(0),
        reason: row.parsed(Field::Reason, "the name of a reason", Reason::from_name)?,
        error: row.text(Field::Error)?,
        result: row.text(Field::Result)?,
        body: row.bytes(Field::Body)?,
        released: row.released()?,
        uncounted: row.count(Field::Uncounted)?.unwrap_or(0),
    };
    Ok((key, record))
}

const STATUS: &str = "processing, done, failed, rejected or waiting";
const REVISION: &str = "an owner, a dot and a number";
const PROVIDER: &str = "s3, gcs, azure or file";
const TOKEN: &str = "kind and value, or neither";
const OBJECT: &str = "provider, container and key, or none of the three";
const RELEASE: &str = "released_at, released_from and released_attempt, or none of the three";

/// A row that is being read.
struct Row<'a, F>(&'a mut F);

impl<F> Row<'_, F>
where
    F: FnMut(Field) -> Result<Option<Value>, Misfit>,
{
    fn text(&mut self, field: Field) -> Result<Option<String>, Misfit> {
        match self.0(field)? {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(other) => Err(Misfit::of_kind(field, &format!("{other:?}"))),
        }
    }

    fn number(&mut self, field: Field) -> Result<Option<i64>, Misfit> {
        match self.0(field)? {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number)),
            Some(other) => Err(Misfit::of_kind(field, &format!("{other:?}"))),
        }
    }

    fn bytes(&mut self, field: Field) -> Result<Option<Vec<u8>>, Misfit> {
        match self.0(field)? {
            None => Ok(None),
            Some(Value::Bytes(bytes)) => Ok(Some(bytes)),
            Some(other) => Err(Misfit::of_kind(field, &format!("{other:?}"))),
        }
    }

    fn seconds(&mut self, field: Field) -> Result<Option<UnixSeconds>, Misfit> {
        Ok(self.number(field)?.map(UnixSeconds))
    }

    fn count(&mut self, field: Field) -> Result<Option<u32>, Misfit> {
        match self.number(field)? {
            None => Ok(None),
            Some(number) => match u32::try_from(number) {
                Ok(count) => Ok(Some(count)),
                Err(_) => Err(Misfit::of_kind(field, &number.to_string())),
            },
        }
    }

    /// What `parse` makes of the text. It must take only what it would write: a text that is written back in other letters
    /// than it was read would never match the row again.
    fn parsed<T>(
        &mut self,
        field: Field,
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Misfit> {
        match self.text(field)? {
            None => Ok(None),
            Some(text) => match parse(&text) {
                Some(value) => Ok(Some(value)),
                None => Err(Misfit::new(field, expected, &text)),
            },
        }
    }

    fn required<T>(
        &mut self,
        field: Field,
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Misfit> {
        let value = self.parsed(field, expected, parse)?;
        value.ok_or_else(|| Misfit::new(field, expected, ""))
    }

    fn token(&mut self) -> Result<Option<(TokenKind, String)>, Misfit> {
        let kind = self.parsed(Field::TokenKind, TokenKind::EXPECTED, TokenKind::from_tag)?;
        match (kind, self.text(Field::TokenValue)?) {
            (None, None) => Ok(None),
            (Some(kind), Some(value)) => Ok(Some((kind, value))),
            half => Err(Misfit::new(Field::TokenKind, TOKEN, &format!("{half:?}"))),
        }
    }

    fn object(
        &mut self,
        token: Option<(TokenKind, String)>,
    ) -> Result<Option<RecordedObject>, Misfit> {
        let provider = self.parsed(Field::ObjectProvider, PROVIDER, Provider::from_name)?;
        let container = self.text(Field::ObjectContainer)?;
        match (provider, container, self.text(Field::ObjectKey)?) {
            (None, None, None) => Ok(None),
            (Some(provider), Some(container), Some(key)) => Ok(Some(RecordedObject {
                provider,
                account: self.text(Field::ObjectAccount)?,
                container,
                key,
                raw_key: self.text(Field::ObjectRawKey)?,
                token,
            })),
            part => {
                let got = format!("{part:?}");
                Err(Misfit::new(Field::ObjectContainer, OBJECT, &got))
            }
        }
    }

    fn released(&mut self) -> Result<Option<Release>, Misfit> {
        let at = self.number(Field::ReleasedAt)?;
        let from = self.parsed(Field::ReleasedFrom, STATUS, Status::from_name)?;
        match (at, from, self.count(Field::ReleasedAttempt)?) {
            (None, None, None) => Ok(None),
            (Some(at), Some(from), Some(attempt)) => Ok(Some(Release {
                at: UnixSeconds(at),
                from,
                attempt,
            })),
            part => Err(Misfit::new(
                Field::ReleasedAt,
                RELEASE,
                &format!("{part:?}"),
            )),
        }
    }
}

#[cfg(test)]
#[cfg(feature = "conformance")]
mod tests;
