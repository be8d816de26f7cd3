//! The columns of `firstclaim_claims`, and the mapping between them and a record. No SQL and no database here.

use identity_core::claim::{
    ClaimKey, Owner, Reason, Record, RecordedObject, RecordedPipeline, Release, Revision, Status,
    StoreError, Stored, UnixMillis, UnixSeconds, Version,
};
use identity_core::identity::{Provider, TokenKind};
use sqlx::database::Database;
use sqlx::query::Query;
use sqlx::{ColumnIndex, Decode, Encode, Row, Type};

use crate::listing::Listed;
use crate::values::{Millis, Seconds, Text};

/// One list for the row's type, the columns' names and their order, so that they cannot drift apart.
macro_rules! claim_columns {
    ($($name:ident: $type:ty,)*) => {
        /// A row of `firstclaim_claims` as the database types it.
        #[derive(Debug, Clone, PartialEq)]
        pub(crate) struct ClaimRow {
            $(pub(crate) $name: $type,)*
        }

        impl ClaimRow {
            /// The columns' names, in the order in which [`ClaimRow::bind`] binds them. The key is the first.
            pub(crate) const COLUMNS: &[&str] = &[$(stringify!($name)),*];

            /// Binds every column, in order.
            pub(crate) fn bind<'q, DB>(
                self,
                mut query: Query<'q, DB, DB::Arguments>,
            ) -> Result<Query<'q, DB, DB::Arguments>, Misfit>
            where
                DB: Database,
                $($type: Encode<'q, DB> + Type<DB>,)*
            {
                let row = self.key.0.clone();
                $(query.try_bind(self.$name).map_err(|error| {
                    Misfit::in_column(&row, stringify!($name), TYPED, &error.to_string())
                })?;)*
                Ok(query)
            }

            /// The row in a list: where it stands, and the claim in it if one can be read.
            pub(crate) fn listed<R: Row>(row: &R) -> Result<Listed, Misfit>
            where
                &'static str: ColumnIndex<R>,
                $(for<'r> $type: Decode<'r, R::Database> + Type<R::Database>,)*
            {
                let position = || -> Result<_, sqlx::Error> {
                    let time: Seconds = row.try_get("claimed_at")?;
                    let key: Text = row.try_get("key")?;
                    Ok((time.0, key.0))
                };
                let position = position().map_err(|error| Misfit::unreadable("claim", "", &error))?;
                Ok(Listed::new(position, Self::read(row)))
            }

            /// The claim in a row that has every column, and its version.
            pub(crate) fn read<R: Row>(row: &R) -> Result<(ClaimKey, Stored), Misfit>
            where
                &'static str: ColumnIndex<R>,
                $(for<'r> $type: Decode<'r, R::Database> + Type<R::Database>,)*
            {
                let read = || -> Result<_, sqlx::Error> {
                    let columns = Self { $($name: row.try_get(stringify!($name))?,)* };
                    Ok((columns, row.try_get::<Text, _>("version")?))
                };
                let (columns, version) = read().map_err(|error| {
                    let key = row.try_get::<Text, _>("key").map_or_else(|_| String::new(), |key| key.0);
                    Misfit::unreadable("claim", &key, &error)
                })?;
                let (key, record) = columns.decode()?;
                let version = Version(version.0);
                Ok((key, Stored { record, version }))
            }
        }
    };
}

// Times are in the unit of the record's field; the table's definition says which.
claim_columns! {
    key: Text,
    status: Text,
    attempt: i64,
    owner: Option<Text>,
    revision: Option<Text>,
    claimed_at: Seconds,
    lease_until: Option<Millis>,
    waiting_until: Option<Millis>,
    finished_at: Option<Seconds>,
    expires_at: Option<Seconds>,
    object_provider: Option<Text>,
    object_account: Option<Text>,
    object_container: Option<Text>,
    object_key: Option<Text>,
    object_raw_key: Option<Text>,
    token_kind: Option<Text>,
    token_value: Option<Text>,
    pipeline_name: Text,
    pipeline_version: Text,
    scheme: Text,
    params_digest: Text,
    contract_digest: Text,
    redrives: i64,
    reason: Option<Text>,
    error: Option<Text>,
    result: Option<Text>,
    body: Option<Vec<u8>>,
    released_at: Option<Seconds>,
    released_from: Option<Text>,
    released_attempt: Option<i64>,
}

/// A value that no claim, and no query for claims, can hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    pub(crate) what: String,
    pub(crate) expected: &'static str,
    pub(crate) got: String,
}

impl Misfit {
    /// The misfit in one column of a claim.
    pub(crate) fn in_column(key: &str, column: &str, expected: &'static str, got: &str) -> Self {
        Self::in_row("claim", key, column, expected, got)
    }

    /// The misfit in one column of one row. A row's texts can be of any length: an error keeps their beginning.
    pub(crate) fn in_row(
        row: &str,
        key: &str,
        column: &str,
        expected: &'static str,
        got: &str,
    ) -> Self {
        let shortened = |text: &str| -> String { text.chars().take(100).collect() };
        Self {
            what: format!("{row} {}, column {column}", shortened(key)),
            expected,
            got: shortened(got),
        }
    }

    /// A column whose bytes are not what its type says, text that is not UTF-8 for example. `row` says of which table.
    pub(crate) fn unreadable(row: &str, key: &str, error: &sqlx::Error) -> Self {
        let (column, got) = match error {
            sqlx::Error::ColumnDecode { index, source } => (index.as_str(), source.to_string()),
            error => ("", error.to_string()),
        };
        Self::in_row(row, key, column.trim_matches('"'), TYPED, &got)
    }

    /// What this is for the caller of `store`.
    pub(crate) fn in_store(self, store: &impl std::fmt::Display) -> StoreError {
        StoreError::Invalid {
            store: store.to_string(),
            what: self.what,
            expected: self.expected,
            got: self.got,
        }
    }
}

/// What is expected where a database's own type is all that a value has to fit.
pub(crate) const TYPED: &str = "a value of the column's type";

const STATUS: &str = "processing, done, failed, rejected or waiting";
const OWNER: &str = "32 lower-case hex characters";
const COUNT: &str = "0 to 4294967295";
const OBJECT: &str = "provider, container and key, or none of the three";
const TOKEN: &str = "kind and value, or neither";
const RELEASE: &str = "released_at, released_from and released_attempt, or none of the three";

impl ClaimRow {
    /// The row of a record.
    pub(crate) fn encode(key: &ClaimKey, record: &Record) -> Result<Self, Misfit> {
        if let Some((column, expected, got)) = record.oversized() {
            let got = format!("{got} bytes");
            return Err(Misfit::in_column(key.as_str(), column, expected, &got));
        }
        let object = record.object.as_ref();
        let token = object.and_then(|object| object.token.as_ref());
        let pipeline = &record.pipeline;
        Ok(Self {
            key: key.as_str().into(),
            status: record.status.as_str().into(),
            attempt: record.attempt.into(),
            owner: record.owner.map(|owner| Text(owner.to_string())),
            revision: record.revision.map(|revision| Text(revision.to_string())),
            claimed_at: Seconds(record.claimed_at.0),
            lease_until: record.lease_until.map(|time| Millis(time.0)),
            waiting_until: record.waiting_until.map(|time| Millis(time.0)),
            finished_at: record.finished_at.map(|time| Seconds(time.0)),
            expires_at: record.expires_at.map(|time| Seconds(time.0)),
            object_provider: object.map(|object| object.provider.as_str().into()),
            object_account: object.and_then(|object| object.account.clone().map(Text)),
            object_container: object.map(|object| Text(object.container.clone())),
            object_key: object.map(|object| Text(object.key.clone())),
            object_raw_key: object.and_then(|object| object.raw_key.clone().map(Text)),
            token_kind: token.map(|(kind, _)| kind.as_str().into()),
            token_value: token.map(|(_, value)| Text(value.clone())),
            pipeline_name: Text(pipeline.name.clone()),
            pipeline_version: Text(pipeline.version.clone()),
            scheme: Text(pipeline.scheme.clone()),
            params_digest: Text(pipeline.params_digest.clone()),
            contract_digest: Text(pipeline.contract_digest.clone()),
            redrives: record.redrives.into(),
            reason: record.reason.map(|reason| reason.as_str().into()),
            error: record.error.clone().map(Text),
            result: record.result.clone().map(Text),
            body: record.body.clone(),
            released_at: record.released.map(|release| Seconds(release.at.0)),
            released_from: record.released.map(|release| release.from.as_str().into()),
            released_attempt: record.released.map(|release| release.attempt.into()),
        })
    }

    /// The key and the record of a row.
    pub(crate) fn decode(self) -> Result<(ClaimKey, Record), Misfit> {
        let misfit =
            |column, expected, got: &str| Misfit::in_column(&self.key, column, expected, got);
        let status = |column, text: &str| {
            Status::from_name(text).ok_or_else(|| misfit(column, STATUS, text))
        };
        let count = |column, number: i64| {
            u32::try_from(number).map_err(|_| misfit(column, COUNT, &number.to_string()))
        };
        // A value that is written back in other letters than it was read would never match the row again.
        let owner = |text: &Text| {
            Owner::parse(text)
                .filter(|owner| owner.to_string() == text.0)
                .ok_or_else(|| misfit("owner", OWNER, text))
        };
        let revision = |text: &Text| {
            Revision::parse(text)
                .filter(|revision| revision.to_string() == text.0)
                .ok_or_else(|| misfit("revision", "an owner, a dot and a number", text))
        };

        let text = |text: &Option<Text>| text.as_ref().map(|text| text.0.clone());

        let key = ClaimKey::parse(&self.key)
            .ok_or_else(|| misfit("key", "64 lower-case hex characters", &self.key))?;
        let token = match (&self.token_kind, &self.token_value) {
            (None, None) => None,
            (Some(kind), Some(value)) => Some((
                TokenKind::from_tag(kind).ok_or_else(|| {
                    misfit(
                        "token_kind",
                        "version-id, etag, generation or content",
                        kind,
                    )
                })?,
                value.0.clone(),
            )),
            half => return Err(misfit("token_kind", TOKEN, &format!("{half:?}"))),
        };
        let object = match (
            &self.object_provider,
            &self.object_container,
            &self.object_key,
        ) {
            (None, None, None) => None,
            (Some(provider), Some(container), Some(key)) => Some(RecordedObject {
                provider: Provider::from_name(provider)
                    .ok_or_else(|| misfit("object_provider", "s3, gcs, azure or file", provider))?,
                account: text(&self.object_account),
                container: container.0.clone(),
                key: key.0.clone(),
                raw_key: text(&self.object_raw_key),
                token,
            }),
            part => return Err(misfit("object_provider", OBJECT, &format!("{part:?}"))),
        };
        let released = match (self.released_at, &self.released_from, self.released_attempt) {
            (None, None, None) => None,
            (Some(at), Some(from), Some(attempt)) => Some(Release {
                at: UnixSeconds(at.0),
                from: status("released_from", from)?,
                attempt: count("released_attempt", attempt)?,
            }),
            part => return Err(misfit("released_at", RELEASE, &format!("{part:?}"))),
        };
        let record = Record {
            status: status("status", &self.status)?,
            attempt: count("attempt", self.attempt)?,
            owner: self.owner.as_ref().map(owner).transpose()?,
            revision: self.revision.as_ref().map(revision).transpose()?,
            claimed_at: UnixSeconds(self.claimed_at.0),
            lease_until: self.lease_until.map(|time| UnixMillis(time.0)),
            waiting_until: self.waiting_until.map(|time| UnixMillis(time.0)),
            finished_at: self.finished_at.map(|time| UnixSeconds(time.0)),
            expires_at: self.expires_at.map(|time| UnixSeconds(time.0)),
            object,
            redrives: count("redrives", self.redrives)?,
            reason: match &self.reason {
                None => None,
                Some(text) => Some(
                    Reason::from_name(text)
                        .ok_or_else(|| misfit("reason", "the name of a reason", text))?,
                ),
            },
            released,
            pipeline: RecordedPipeline {
                name: self.pipeline_name.0,
                version: self.pipeline_version.0,
                scheme: self.scheme.0,
                params_digest: self.params_digest.0,
                contract_digest: self.contract_digest.0,
            },
            error: self.error.map(|text| text.0),
            result: self.result.map(|text| text.0),
            body: self.body,
        };
        Ok((key, record))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use identity_core::claim::conformance::samples;

    proptest! {
        #[test]
        fn a_row_says_what_its_record_said(key in samples::key(), record in samples::record()) {
            let row = ClaimRow::encode(&key, &record).unwrap();
            prop_assert_eq!(row.decode().unwrap(), (key, record));
        }
    }

    #[test]
    fn a_value_that_would_be_written_back_otherwise_is_no_value() {
        let (owner, upper) = ("ab".repeat(16), "AB".repeat(16));
        let row = bare_row();
        for (owner, revision) in [
            (Some(upper.clone()), None),
            (Some(format!("+{}", &owner[1..])), None),
            (None, Some(format!("{upper}.1"))),
            (None, Some(format!("{owner}.01"))),
            (None, Some(format!("{owner}.+1"))),
        ] {
            let got = owner.clone().or(revision.clone()).unwrap();
            let (owner, revision) = (owner.map(Text), revision.map(Text));
            let row = ClaimRow {
                owner,
                revision,
                ..row.clone()
            };
            assert_eq!(row.decode().unwrap_err().got, got);
        }
        assert!(row.decode().is_ok());
    }

    #[test]
    fn an_error_keeps_the_beginning_of_a_long_text() {
        let row = ClaimRow {
            status: Text("é".repeat(1_000_000)),
            ..bare_row()
        };
        assert_eq!(row.decode().unwrap_err().got, "é".repeat(100));
    }

    fn bare_row() -> ClaimRow {
        let key = ClaimKey::from_digest([1; 32]);
        ClaimRow::encode(&key, &samples::bare(Status::Done, 1)).unwrap()
    }
}
