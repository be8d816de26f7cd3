//! The columns of `firstclaim_claims`, and the mapping between them and a record's fields. No SQL and no database here.

use identity_core::claim::{
    ClaimKey, Record, StoreError, Stored, Version,
    fields::{self, Field, Kind, Value, beginning},
};

/// A row of `firstclaim_claims`: every field has a column of its name.
#[derive(Debug, Clone)]
pub(crate) struct ClaimRow(Vec<(Field, Value)>);

/// A row that a database returned. An error says why the value in a column is none of the column's type.
pub(crate) trait Columns {
    fn text(&self, column: &'static str) -> Result<Option<String>, String>;
    /// A count.
    fn number(&self, column: &'static str) -> Result<Option<i64>, String>;
    /// Unix seconds.
    fn seconds(&self, column: &'static str) -> Result<Option<i64>, String>;
    /// Unix milliseconds.
    fn millis(&self, column: &'static str) -> Result<Option<i64>, String>;
    fn bytes(&self, column: &'static str) -> Result<Option<Vec<u8>>, String>;
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
    /// The columns' names, in the order of a statement's parameters. The key is the first.
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
        let fields = fields.map_err(|misfit| Misfit::of_claim(key.as_str(), misfit))?;
        Ok(Self(fields))
    }

    /// The fields that have a value, in the order of the columns.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &(Field, Value)> {
        self.0.iter()
    }

    /// The row in a list: where it stands, and the claim in it if one can be read.
    pub(crate) fn listed(row: &impl Columns) -> Result<Listed, Misfit> {
        let unreadable =
            |column| move |got: String| Misfit::in_row("claim", "", column, TYPED, &got);
        let time = row
            .seconds("claimed_at")
            .map_err(unreadable("claimed_at"))?;
        let key = row.text("key").map_err(unreadable("key"))?;
        Ok(Listed {
            position: (time.unwrap_or_default(), key.unwrap_or_default()),
            claim: Self::read(row),
        })
    }

    /// The claim in a row that has every column, and its version.
    pub(crate) fn read(row: &impl Columns) -> Result<(ClaimKey, Stored), Misfit> {
        let read = fields::read(|field| {
            let column = field.name();
            let value = match field.kind() {
                Kind::Text => row.text(column).map(|text| text.map(Value::Text)),
                Kind::Count => row.number(column).map(|number| number.map(Value::Number)),
                Kind::Seconds => row.seconds(column).map(|time| time.map(Value::Number)),
                Kind::Millis => row.millis(column).map(|time| time.map(Value::Number)),
                Kind::Bytes => row.bytes(column).map(|bytes| bytes.map(Value::Bytes)),
            };
            value.map_err(|got| fields::Misfit::new(field, TYPED, &got))
        });
        let (key, record) = read.map_err(|misfit| {
            let key = row.text("key").ok().flatten();
            Misfit::of_claim(&key.unwrap_or_default(), misfit)
        })?;
        let version = row
            .text("version")
            .map_err(|got| Misfit::in_column(key.as_str(), "version", TYPED, &got))?;
        let version = Version(version.unwrap_or_default());
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
