//! The columns of `firstclaim_claims`, and the mapping between them and a record's fields. No SQL and no database here.

use identity_core::claim::{
    ClaimKey, Record, StoreError, Stored, Version,
    fields::{self, Field, Kind, Value, beginning},
};
use sqlx::database::Database;
use sqlx::query::Query;
use sqlx::{ColumnIndex, Decode, Encode, Row, Type};

use crate::values::{Millis, Seconds, Text};

/// A row of `firstclaim_claims`: every field has a column of its name.
#[derive(Debug, Clone)]
pub(crate) struct ClaimRow {
    key: String,
    fields: Vec<(Field, Value)>,
}

/// A row of a list.
#[derive(Debug)]
pub(crate) struct Listed {
    /// Where it stands there: `claimed_at` in Unix seconds, and the key.
    pub(crate) position: (i64, String),
    /// The claim in it, if one can be read.
    pub(crate) claim: Result<(ClaimKey, Stored), Misfit>,
}

impl ClaimRow {
    /// The columns' names, in the order in which [`ClaimRow::bind`] binds them. The key is the first.
    pub(crate) const COLUMNS: &[&str] = &{
        let mut names = [""; Field::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = Field::ALL[at].name();
            at += 1;
        }
        names
    };

    /// The row of a record.
    pub(crate) fn encode(key: &ClaimKey, record: &Record) -> Result<Self, Misfit> {
        let fields = fields::write(key, record);
        Ok(Self {
            key: key.to_string(),
            fields: fields.map_err(|misfit| Misfit::of_claim(key.as_str(), misfit))?,
        })
    }

    /// Binds every column, in order.
    pub(crate) fn bind<'q, DB>(
        self,
        mut query: Query<'q, DB, DB::Arguments>,
    ) -> Result<Query<'q, DB, DB::Arguments>, Misfit>
    where
        DB: Database,
        Option<Text>: Encode<'q, DB> + Type<DB>,
        Option<i64>: Encode<'q, DB> + Type<DB>,
        Option<Seconds>: Encode<'q, DB> + Type<DB>,
        Option<Millis>: Encode<'q, DB> + Type<DB>,
        Option<Vec<u8>>: Encode<'q, DB> + Type<DB>,
    {
        let mut fields = self.fields.into_iter().peekable();
        for &field in Field::ALL {
            let value = fields.next_if(|(of, _)| *of == field);
            // A null has its column's type, too.
            let bound = match (field.kind(), value.map(|(_, value)| value)) {
                (_, Some(Value::Text(text))) => query.try_bind(Some(Text(text))),
                (_, Some(Value::Bytes(bytes))) => query.try_bind(Some(bytes)),
                (Kind::Seconds, Some(Value::Number(time))) => query.try_bind(Some(Seconds(time))),
                (Kind::Millis, Some(Value::Number(time))) => query.try_bind(Some(Millis(time))),
                (_, Some(Value::Number(number))) => query.try_bind(Some(number)),
                (Kind::Text, None) => query.try_bind(None::<Text>),
                (Kind::Bytes, None) => query.try_bind(None::<Vec<u8>>),
                (Kind::Seconds, None) => query.try_bind(None::<Seconds>),
                (Kind::Millis, None) => query.try_bind(None::<Millis>),
                (Kind::Count, None) => query.try_bind(None::<i64>),
            };
            bound.map_err(|error| {
                Misfit::in_column(&self.key, field.name(), TYPED, &error.to_string())
            })?;
        }
        Ok(query)
    }

    /// The row in a list: where it stands, and the claim in it if one can be read.
    pub(crate) fn listed<R: Row>(row: &R) -> Result<Listed, Misfit>
    where
        &'static str: ColumnIndex<R>,
        for<'r> Text: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> Seconds: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> Millis: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
    {
        let position = || -> Result<_, sqlx::Error> {
            let time: Seconds = row.try_get("claimed_at")?;
            let key: Text = row.try_get("key")?;
            Ok((time.0, key.0))
        };
        let position = position().map_err(|error| Misfit::unreadable("claim", "", &error))?;
        Ok(Listed {
            position,
            claim: Self::read(row),
        })
    }

    /// The claim in a row that has every column, and its version.
    pub(crate) fn read<R: Row>(row: &R) -> Result<(ClaimKey, Stored), Misfit>
    where
        &'static str: ColumnIndex<R>,
        for<'r> Text: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> Seconds: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> Millis: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
    {
        let name = || {
            row.try_get::<Text, _>("key")
                .map_or_else(|_| String::new(), |key| key.0)
        };
        let value = |field: Field| -> Result<Option<Value>, sqlx::Error> {
            let column = field.name();
            Ok(match field.kind() {
                Kind::Text => {
                    let text: Option<Text> = row.try_get(column)?;
                    text.map(|text| Value::Text(text.0))
                }
                Kind::Count => row.try_get::<Option<i64>, _>(column)?.map(Value::Number),
                Kind::Seconds => {
                    let time: Option<Seconds> = row.try_get(column)?;
                    time.map(|time| Value::Number(time.0))
                }
                Kind::Millis => {
                    let time: Option<Millis> = row.try_get(column)?;
                    time.map(|time| Value::Number(time.0))
                }
                Kind::Bytes => row.try_get::<Option<Vec<u8>>, _>(column)?.map(Value::Bytes),
            })
        };
        let read = fields::read(|field| {
            value(field).map_err(|error| fields::Misfit::new(field, TYPED, &cause(&error).1))
        });
        let (key, record) = read.map_err(|misfit| Misfit::of_claim(&name(), misfit))?;
        let version: Text = row
            .try_get("version")
            .map_err(|error| Misfit::unreadable("claim", key.as_str(), &error))?;
        let version = Version(version.0);
        Ok((key, Stored { record, version }))
    }
}

/// A value that no claim, and no query for claims, can hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    pub(crate) what: String,
    pub(crate) expected: &'static str,
    pub(crate) got: String,
}

impl Misfit {
    /// The misfit in one field of a claim.
    fn of_claim(key: &str, misfit: fields::Misfit) -> Self {
        Self::in_column(key, misfit.field.name(), misfit.expected, &misfit.got)
    }

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
        Self {
            what: format!("{row} {}, column {column}", beginning(key)),
            expected,
            got: beginning(got),
        }
    }

    /// A column whose bytes are not what its type says, text that is not UTF-8 for example. `row` says of which table.
    pub(crate) fn unreadable(row: &str, key: &str, error: &sqlx::Error) -> Self {
        let (column, got) = cause(error);
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

/// In which column a value cannot be read, and why.
fn cause(error: &sqlx::Error) -> (&str, String) {
    match error {
        sqlx::Error::ColumnDecode { index, source } => (index.as_str(), source.to_string()),
        error => ("", error.to_string()),
    }
}

/// What is expected where a database's own type is all that a value has to fit.
pub(crate) const TYPED: &str = "a value of the column's type";

#[cfg(test)]
mod tests {
    use identity_core::claim::conformance::samples;

    use super::*;

    #[test]
    fn the_columns_are_the_fields_and_the_key_is_the_first() {
        assert_eq!(ClaimRow::COLUMNS[0], "key");
        let names = Field::ALL.iter().map(|field| field.name());
        assert!(names.eq(ClaimRow::COLUMNS.iter().copied()));
    }

    #[test]
    fn what_no_column_takes_is_named_by_row_and_column() {
        let key = samples::numbered_key(1);
        let record = Record {
            result: Some("x".repeat(Record::MAX_RESULT_BYTES + 1)),
            ..samples::full()
        };
        let misfit = ClaimRow::encode(&key, &record).unwrap_err();
        assert_eq!(misfit.what, format!("claim {key}, column result"));
        assert_eq!(
            (misfit.expected, &*misfit.got),
            ("at most 16384 bytes", "16385 bytes")
        );
    }
}
