//! The columns of `firstclaim_claims`, and the mapping between them and a record. No SQL and no database here.

use identity_core::claim::{
    ClaimKey, Owner, Reason, Record, RecordedObject, RecordedPipeline, Release, Revision, Status,
    StoreError, UnixMillis, UnixSeconds,
};
use identity_core::identity::{Provider, TokenKind};
use sqlx::database::Database;
use sqlx::query::Query;
use sqlx::{ColumnIndex, Decode, Encode, Row, Type};

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
                query: Query<'q, DB, DB::Arguments>,
            ) -> Query<'q, DB, DB::Arguments>
            where
                DB: Database,
                $($type: Encode<'q, DB> + Type<DB>,)*
            {
                $(let query = query.bind(self.$name);)*
                query
            }

            /// Reads every column by its name.
            pub(crate) fn read<R: Row>(row: &R) -> Result<Self, sqlx::Error>
            where
                &'static str: ColumnIndex<R>,
                $(for<'r> $type: Decode<'r, R::Database> + Type<R::Database>,)*
            {
                Ok(Self { $($name: row.try_get(stringify!($name))?,)* })
            }
        }
    };
}

// Times are in the unit of the record's field; the table's definition says which.
claim_columns! {
    key: String,
    status: String,
    attempt: i64,
    owner: Option<String>,
    revision: Option<String>,
    claimed_at: i64,
    lease_until: Option<i64>,
    waiting_until: Option<i64>,
    finished_at: Option<i64>,
    expires_at: Option<i64>,
    object_provider: Option<String>,
    object_account: Option<String>,
    object_container: Option<String>,
    object_key: Option<String>,
    object_raw_key: Option<String>,
    token_kind: Option<String>,
    token_value: Option<String>,
    pipeline_name: String,
    pipeline_version: String,
    scheme: String,
    params_digest: String,
    contract_digest: String,
    redrives: i64,
    reason: Option<String>,
    error: Option<String>,
    result: Option<String>,
    body: Option<Vec<u8>>,
    released_at: Option<i64>,
    released_from: Option<String>,
}

/// A value that no claim, and no query for claims, can hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    pub(crate) what: String,
    pub(crate) expected: &'static str,
    pub(crate) got: String,
}

impl Misfit {
    /// The misfit in one column of one row. A row's texts can be of any length: an error keeps their beginning.
    pub(crate) fn in_column(key: &str, column: &str, expected: &'static str, got: &str) -> Self {
        let shortened = |text: &str| -> String { text.chars().take(100).collect() };
        Self {
            what: format!("claim {}, column {column}", shortened(key)),
            expected,
            got: shortened(got),
        }
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

const STATUS: &str = "processing, done, failed, rejected or waiting";
const OWNER: &str = "32 lower-case hex characters";
const COUNT: &str = "0 to 4294967295";
const OBJECT: &str = "provider, container and key, or none of the three";
const TOKEN: &str = "kind and value, or neither";
const RELEASE: &str = "released_at and released_from, or neither";

impl ClaimRow {
    /// The row of a record.
    pub(crate) fn encode(key: &ClaimKey, record: &Record) -> Result<Self, Misfit> {
        let at_most = |column, expected, limit: usize, got: Option<usize>| match got {
            Some(got) if got > limit => {
                let got = format!("{got} bytes");
                Err(Misfit::in_column(key.as_str(), column, expected, &got))
            }
            _ => Ok(()),
        };
        let (result, body) = (record.result.as_ref(), record.body.as_ref());
        at_most(
            "result",
            "at most 16384 bytes",
            Record::MAX_RESULT_BYTES,
            result.map(String::len),
        )?;
        at_most(
            "body",
            "at most 32768 bytes",
            Record::MAX_BODY_BYTES,
            body.map(Vec::len),
        )?;
        let object = record.object.as_ref();
        let token = object.and_then(|object| object.token.as_ref());
        let pipeline = &record.pipeline;
        Ok(Self {
            key: key.to_string(),
            status: record.status.as_str().to_owned(),
            attempt: record.attempt.into(),
            owner: record.owner.map(|owner| owner.to_string()),
            revision: record.revision.map(|revision| revision.to_string()),
            claimed_at: record.claimed_at.0,
            lease_until: record.lease_until.map(|time| time.0),
            waiting_until: record.waiting_until.map(|time| time.0),
            finished_at: record.finished_at.map(|time| time.0),
            expires_at: record.expires_at.map(|time| time.0),
            object_provider: object.map(|object| object.provider.as_str().to_owned()),
            object_account: object.and_then(|object| object.account.clone()),
            object_container: object.map(|object| object.container.clone()),
            object_key: object.map(|object| object.key.clone()),
            object_raw_key: object.and_then(|object| object.raw_key.clone()),
            token_kind: token.map(|(kind, _)| kind.as_str().to_owned()),
            token_value: token.map(|(_, value)| value.clone()),
            pipeline_name: pipeline.name.clone(),
            pipeline_version: pipeline.version.clone(),
            scheme: pipeline.scheme.clone(),
            params_digest: pipeline.params_digest.clone(),
            contract_digest: pipeline.contract_digest.clone(),
            redrives: record.redrives.into(),
            reason: record.reason.map(|reason| reason.as_str().to_owned()),
            error: record.error.clone(),
            result: record.result.clone(),
            body: record.body.clone(),
            released_at: record.released.map(|release| release.at.0),
            released_from: record
                .released
                .map(|release| release.from.as_str().to_owned()),
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
        let owner = |text: &String| {
            Owner::parse(text)
                .filter(|owner| owner.to_string() == *text)
                .ok_or_else(|| misfit("owner", OWNER, text))
        };
        let revision = |text: &String| {
            Revision::parse(text)
                .filter(|revision| revision.to_string() == *text)
                .ok_or_else(|| misfit("revision", "an owner, a dot and a number", text))
        };

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
                value.clone(),
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
                account: self.object_account.clone(),
                container: container.clone(),
                key: key.clone(),
                raw_key: self.object_raw_key.clone(),
                token,
            }),
            part => return Err(misfit("object_provider", OBJECT, &format!("{part:?}"))),
        };
        let released = match (self.released_at, &self.released_from) {
            (None, None) => None,
            (Some(at), Some(from)) => Some(Release {
                at: UnixSeconds(at),
                from: status("released_from", from)?,
            }),
            half => return Err(misfit("released_at", RELEASE, &format!("{half:?}"))),
        };
        let record = Record {
            status: status("status", &self.status)?,
            attempt: count("attempt", self.attempt)?,
            owner: self.owner.as_ref().map(owner).transpose()?,
            revision: self.revision.as_ref().map(revision).transpose()?,
            claimed_at: UnixSeconds(self.claimed_at),
            lease_until: self.lease_until.map(UnixMillis),
            waiting_until: self.waiting_until.map(UnixMillis),
            finished_at: self.finished_at.map(UnixSeconds),
            expires_at: self.expires_at.map(UnixSeconds),
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
                name: self.pipeline_name,
                version: self.pipeline_version,
                scheme: self.scheme,
                params_digest: self.params_digest,
                contract_digest: self.contract_digest,
            },
            error: self.error,
            result: self.result,
            body: self.body,
        };
        Ok((key, record))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::samples;

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
            status: "é".repeat(1_000_000),
            ..bare_row()
        };
        assert_eq!(row.decode().unwrap_err().got, "é".repeat(100));
    }

    fn bare_row() -> ClaimRow {
        let key = ClaimKey::from_digest([1; 32]);
        ClaimRow::encode(&key, &samples::bare(Status::Done, 1)).unwrap()
    }
}
