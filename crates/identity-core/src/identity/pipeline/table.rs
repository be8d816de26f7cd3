//! Reading one table of the contract: known keys only, and types named when they are wrong.

use toml::{Table, Value};

use super::error::ContractError;
use crate::text::nearest;

/// A table whose keys are all known.
pub(super) struct Section<'a> {
    /// Its name, empty at the top.
    name: &'static str,
    table: &'a Table,
}

impl<'a> Section<'a> {
    pub(super) fn new(
        name: &'static str,
        table: &'a Table,
        known: &[&'static str],
    ) -> Result<Self, ContractError> {
        match table.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => Err(ContractError::UnknownKey {
                table: name,
                key: key.clone(),
                nearest: nearest(key, known.iter().copied()).map(str::to_owned),
            }),
            None => Ok(Self { name, table }),
        }
    }

    /// The full name of a key, for messages.
    pub(super) fn at(&self, key: &str) -> String {
        match self.name {
            "" => key.to_owned(),
            name => format!("{name}.{key}"),
        }
    }

    pub(super) fn missing(&self, key: &'static str) -> ContractError {
        ContractError::MissingKey {
            table: self.name,
            key,
        }
    }

    pub(super) fn required_string(&self, key: &'static str) -> Result<&'a str, ContractError> {
        let value = self.table.get(key).ok_or_else(|| self.missing(key))?;
        string(value, &|| self.at(key))
    }

    pub(super) fn table(&self, key: &'static str) -> Result<Option<&'a Table>, ContractError> {
        let Some(value) = self.table.get(key) else {
            return Ok(None);
        };
        let table = value
            .as_table()
            .ok_or_else(|| wrong_type(self.at(key), "a table", value))?;
        Ok(Some(table))
    }

    pub(super) fn integer(&self, key: &'static str) -> Result<Option<i64>, ContractError> {
        let Some(value) = self.table.get(key) else {
            return Ok(None);
        };
        integer(value, &|| self.at(key)).map(Some)
    }

    pub(super) fn boolean(&self, key: &'static str) -> Result<Option<bool>, ContractError> {
        let Some(value) = self.table.get(key) else {
            return Ok(None);
        };
        let truth = value.as_bool();
        truth
            .map(Some)
            .ok_or_else(|| wrong_type(self.at(key), "true or false", value))
    }

    pub(super) fn strings(&self, key: &'static str) -> Result<Option<Vec<&'a str>>, ContractError> {
        self.list(key, string)
    }

    pub(super) fn integers(&self, key: &'static str) -> Result<Option<Vec<i64>>, ContractError> {
        self.list(key, integer)
    }

    fn list<T>(
        &self,
        key: &'static str,
        item: impl Fn(&'a Value, &dyn Fn() -> String) -> Result<T, ContractError>,
    ) -> Result<Option<Vec<T>>, ContractError> {
        let Some(value) = self.table.get(key) else {
            return Ok(None);
        };
        let items = value
            .as_array()
            .ok_or_else(|| wrong_type(self.at(key), "a list", value))?;
        items
            .iter()
            .enumerate()
            .map(|(index, value)| item(value, &|| format!("{}[{index}]", self.at(key))))
            .collect::<Result<_, _>>()
            .map(Some)
    }
}

fn string<'a>(value: &'a Value, at: &dyn Fn() -> String) -> Result<&'a str, ContractError> {
    value
        .as_str()
        .ok_or_else(|| wrong_type(at(), "a string", value))
}

fn integer(value: &Value, at: &dyn Fn() -> String) -> Result<i64, ContractError> {
    value
        .as_integer()
        .ok_or_else(|| wrong_type(at(), "an integer", value))
}

fn wrong_type(at: String, expected: &'static str, got: &Value) -> ContractError {
    ContractError::WrongType {
        at,
        expected,
        got: match got {
            Value::String(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Boolean(_) => "a boolean",
            Value::Datetime(_) => "a date",
            Value::Array(_) => "a list",
            Value::Table(_) => "a table",
        },
    }
}
