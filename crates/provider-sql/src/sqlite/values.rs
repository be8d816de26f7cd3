//! How SQLite keeps our values: texts as they are, times as integers.

use rusqlite::types::ValueRef;
use rusqlite::{Row, Statement, ToSql, types::Value as Kept};

use identity_core::claim::fields::{Field, Value};

use crate::columns::{ClaimRow, Columns};

/// The statement as SQLite counts its parameters: `?1` is the first one wherever it stands, `$1` would be a name.
pub(crate) fn numbered(sql: &str) -> String {
    sql.replace('$', "?")
}

/// Binds every column, in order.
pub(super) fn bind(row: &ClaimRow, statement: &mut Statement<'_>) -> rusqlite::Result<()> {
    let mut fields = row.fields().peekable();
    for (index, field) in Field::ALL.iter().enumerate() {
        let value = fields.next_if(|(of, _)| of == field);
        let kept: &dyn ToSql = match value {
            Some((_, Value::Text(text))) => text,
            Some((_, Value::Bytes(bytes))) => bytes,
            Some((_, Value::Number(number))) => number,
            None => &Kept::Null,
        };
        statement.raw_bind_parameter(index + 1, kept)?;
    }
    Ok(())
}
impl Columns for Row<'_> {
    fn text(&self, column: &'static str) -> Result<Option<String>, String> {
        match value(self, column)? {
            ValueRef::Null => Ok(None),
            ValueRef::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => Ok(Some(text.to_owned())),
                Err(error) => Err(error.to_string()),
            },
            other => Err(of_type(other)),
        }
    }

    fn number(&self, column: &'static str) -> Result<Option<i64>, String> {
        match value(self, column)? {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(number) => Ok(Some(number)),
            other => Err(of_type(other)),
        }
    }

    fn seconds(&self, column: &'static str) -> Result<Option<i64>, String> {
        self.number(column)
    }

    fn millis(&self, column: &'static str) -> Result<Option<i64>, String> {
        self.number(column)
    }

    fn bytes(&self, column: &'static str) -> Result<Option<Vec<u8>>, String> {
        match value(self, column)? {
            ValueRef::Null => Ok(None),
            ValueRef::Blob(bytes) => Ok(Some(bytes.to_owned())),
            other => Err(of_type(other)),
        }
    }
}

fn value<'a>(row: &'a Row<'_>, column: &'static str) -> Result<ValueRef<'a>, String> {
    row.get_ref(column).map_err(|error| error.to_string())
}

fn of_type(value: ValueRef<'_>) -> String {
    format!("one of type {}", value.data_type())
}
