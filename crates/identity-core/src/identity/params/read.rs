//! Reading parameters from TOML and from JSON text, without a rounded number on the way.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{Finite, Integer, ParamValue, Params, ParamsError};
use crate::identity::Refusal;

impl Params {
    /// The parameters in a TOML table.
    ///
    /// # Errors
    ///
    /// [`ParamsError::TooDeep`], and [`ParamsError::Refused`] with [`Refusal::DateParameter`],
    /// [`Refusal::NonFiniteParameter`] or [`Refusal::ReservedParameter`].
    pub fn from_toml(table: &toml::Table) -> Result<Self, ParamsError> {
        Ok(Self::new(toml_map(table, Place::Root)?)?)
    }

    /// The parameters in the text of a JSON object.
    ///
    /// # Errors
    ///
    /// [`ParamsError::Json`], [`ParamsError::NotAnObject`], [`ParamsError::TooDeep`], and [`ParamsError::Refused`] with
    /// [`Refusal::NonFiniteParameter`] or [`Refusal::ReservedParameter`].
    pub fn from_json(text: &str) -> Result<Self, ParamsError> {
        let raw: &RawValue = serde_json::from_str(text).map_err(ParamsError::Json)?;
        match json_value(raw, Place::Root)? {
            ParamValue::Map(map) => Ok(Self::new(map)?),
            ParamValue::Null => Err(ParamsError::NotAnObject("null")),
            ParamValue::Bool(_) => Err(ParamsError::NotAnObject("a boolean")),
            ParamValue::Integer(_) | ParamValue::Float(_) => {
                Err(ParamsError::NotAnObject("a number"))
            }
            ParamValue::String(_) => Err(ParamsError::NotAnObject("a string")),
            ParamValue::List(_) => Err(ParamsError::NotAnObject("a list")),
        }
    }
}

/// Where a value stands, for messages: `window.x[2]`. A chain of borrows, so that it costs nothing until it is shown.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Root,
    Key(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
}

impl Place<'_> {
    fn depth(&self) -> usize {
        match self {
            Self::Root => 0,
            Self::Key(parent, _) | Self::Index(parent, _) => parent.depth() + 1,
        }
    }

    fn check_depth(&self) -> Result<(), ParamsError> {
        if self.depth() < Params::MAX_DEPTH {
            Ok(())
        } else {
            Err(ParamsError::TooDeep)
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(Place::Root, key) => f.write_str(key),
            Self::Key(parent, key) => write!(f, "{parent}.{key}"),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

fn float(value: f64, written: &str, at: Place<'_>) -> Result<ParamValue, Refusal> {
    let finite = Finite::new(value).ok_or_else(|| Refusal::NonFiniteParameter {
        at: at.to_string(),
        got: written.to_owned(),
    })?;
    Ok(ParamValue::Float(finite))
}

fn toml_map(
    table: &toml::Table,
    at: Place<'_>,
) -> Result<BTreeMap<String, ParamValue>, ParamsError> {
    at.check_depth()?;
    table
        .iter()
        .map(|(key, value)| Ok((key.clone(), toml_value(value, Place::Key(&at, key))?)))
        .collect()
}

fn toml_value(value: &toml::Value, at: Place<'_>) -> Result<ParamValue, ParamsError> {
    Ok(match value {
        toml::Value::String(text) => ParamValue::String(text.clone()),
        toml::Value::Integer(integer) => ParamValue::Integer((*integer).into()),
        toml::Value::Float(value) => float(*value, &value.to_string(), at)?,
        toml::Value::Boolean(value) => ParamValue::Bool(*value),
        toml::Value::Datetime(date) => {
            return Err(Refusal::DateParameter {
                at: at.to_string(),
                got: date.to_string(),
            }
            .into());
        }
        toml::Value::Array(items) => {
            at.check_depth()?;
            let items = items.iter().enumerate();
            ParamValue::List(
                items
                    .map(|(index, item)| toml_value(item, Place::Index(&at, index)))
                    .collect::<Result<_, _>>()?,
            )
        }
        toml::Value::Table(table) => ParamValue::Map(toml_map(table, at)?),
    })
}

/// `serde_json` would give a number too long for 64 bits as a rounded double, and only a feature that changes every
/// other user of it in the build would not. So each level is taken apart into raw texts, and numbers are read here.
fn json_value(raw: &RawValue, at: Place<'_>) -> Result<ParamValue, ParamsError> {
    let text = raw.get();
    Ok(match text.as_bytes().first() {
        Some(b'{') => {
            at.check_depth()?;
            let Members(members) = serde_json::from_str(text).map_err(ParamsError::Json)?;
            ParamValue::Map(
                members
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), json_value(value, Place::Key(&at, key))?)))
                    .collect::<Result<_, ParamsError>>()?,
            )
        }
        Some(b'[') => {
            at.check_depth()?;
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(ParamsError::Json)?;
            let items = items.into_iter().enumerate();
            ParamValue::List(
                items
                    .map(|(index, item)| json_value(item, Place::Index(&at, index)))
                    .collect::<Result<_, _>>()?,
            )
        }
        Some(b'-' | b'0'..=b'9') => match Integer::parse(text) {
            Some(integer) => ParamValue::Integer(integer),
            // JSON's grammar is within Rust's, whose parser rounds correctly and overflows to infinity.
            None => float(text.parse().unwrap_or(f64::NAN), text, at)?,
        },
        _ => match serde_json::from_str(text).map_err(ParamsError::Json)? {
            Scalar::Null(()) => ParamValue::Null,
            Scalar::Bool(value) => ParamValue::Bool(value),
            Scalar::String(text) => ParamValue::String(text),
        },
    })
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Scalar {
    Null(()),
    Bool(bool),
    String(String),
}

/// An object's members with their values unread; of a repeated key the last one.
struct Members<'a>(BTreeMap<String, &'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;

        impl<'de> Visitor<'de> for Read {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut members = BTreeMap::new();
                while let Some((key, value)) = access.next_entry()? {
                    members.insert(key, value);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Result<Params, ParamsError> {
        Params::from_json(text)
    }

    fn toml(text: &str) -> Result<Params, ParamsError> {
        Params::from_toml(&text.parse().unwrap())
    }

    fn refused(result: Result<Params, ParamsError>) -> Refusal {
        match result {
            Err(ParamsError::Refused(refusal)) => refusal,
            other => panic!("expected a refusal, got {other:?}"),
        }
    }

    #[test]
    fn toml_and_json_give_the_same_parameters() {
        let from_toml = toml(
            "i = -7\nz = -0\nf = 0.5\nn = -0.0\ns = 'x'\nb = true\nl = [1, [2.5]]\n[t]\nk = ''",
        );
        let from_json =
            json(r#"{"i":-7,"z":-0,"f":0.5,"n":-0.0,"s":"x","b":true,"l":[1,[2.5]],"t":{"k":""}}"#);
        assert_eq!(from_toml.unwrap(), from_json.unwrap());
    }

    #[test]
    fn integers_of_any_size_are_exact() {
        let digits = "123456789012345678901234567890".repeat(20);
        let params = json(&format!(r#"{{"big":-{digits}}}"#)).unwrap();
        assert_eq!(
            params.values()["big"],
            ParamValue::Integer(Integer::parse(&format!("-{digits}")).unwrap())
        );
    }

    #[test]
    fn a_point_or_an_exponent_makes_a_float() {
        for text in ["1.0", "1e0", "1E0", "10e-1"] {
            let params = json(&format!(r#"{{"x":{text}}}"#)).unwrap();
            assert_eq!(
                params.values()["x"],
                ParamValue::Float(Finite(1.0)),
                "{text}"
            );
        }
        let params = json(r#"{"x":9007199254740993.0}"#).unwrap();
        assert_eq!(
            params.values()["x"],
            ParamValue::Float(Finite(9_007_199_254_740_992.0))
        );
    }

    #[test]
    fn of_a_repeated_key_the_last_value_counts() {
        assert_eq!(
            json(r#"{"a":1,"b":{"c":1,"c":2},"a":3}"#).unwrap(),
            json(r#"{"a":3,"b":{"c":2}}"#).unwrap()
        );
        assert_eq!(
            json(r#"{"a":1e999,"a":3}"#).unwrap(),
            json(r#"{"a":3}"#).unwrap()
        );
    }

    #[test]
    fn what_is_not_finite_is_refused_where_it_stands() {
        assert_eq!(
            refused(json(r#"{"w":{"x":[0,1e400]}}"#)),
            Refusal::NonFiniteParameter {
                at: "w.x[1]".into(),
                got: "1e400".into()
            }
        );
        assert_eq!(
            refused(toml("x = -inf")),
            Refusal::NonFiniteParameter {
                at: "x".into(),
                got: "-inf".into()
            }
        );
        assert_eq!(
            refused(toml("x = nan")),
            Refusal::NonFiniteParameter {
                at: "x".into(),
                got: "NaN".into()
            }
        );
        assert!(matches!(json(r#"{"x":NaN}"#), Err(ParamsError::Json(_))));
    }

    #[test]
    fn a_date_is_refused_where_it_stands() {
        assert_eq!(
            refused(toml("[a]\nb = [2026-01-02]")),
            Refusal::DateParameter {
                at: "a.b[0]".into(),
                got: "2026-01-02".into()
            }
        );
    }

    #[test]
    fn the_reserved_name_is_refused_at_the_top_only() {
        assert_eq!(
            refused(json(r#"{"_pipeline_version":"x"}"#)),
            Refusal::ReservedParameter
        );
        assert_eq!(
            refused(toml("_pipeline_version = 1")),
            Refusal::ReservedParameter
        );
        assert!(json(r#"{"a":{"_pipeline_version":"x"}}"#).is_ok());
    }

    #[test]
    fn what_is_no_object_is_named() {
        for (text, name) in [
            ("null", "null"),
            ("true", "a boolean"),
            ("1", "a number"),
            ("1.5", "a number"),
            ("\"\"", "a string"),
            ("[]", "a list"),
        ] {
            assert!(
                matches!(json(text), Err(ParamsError::NotAnObject(got)) if got == name),
                "{text}"
            );
        }
        for text in [
            "",
            "{",
            "{\"a\":01}",
            "{\"a\":+1}",
            "{} {}",
            "{\"a\":\"\\ud800\"}",
            "{\"a\":'x'}",
        ] {
            assert!(matches!(json(text), Err(ParamsError::Json(_))), "{text}");
        }
    }

    #[test]
    fn nesting_ends_at_a_bound_instead_of_the_stack() {
        let nested =
            |levels: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
        assert!(json(&nested(Params::MAX_DEPTH - 1)).is_ok());
        assert!(matches!(
            json(&nested(Params::MAX_DEPTH)),
            Err(ParamsError::TooDeep)
        ));
        assert!(matches!(
            json(&nested(1_000_000)),
            Err(ParamsError::TooDeep | ParamsError::Json(_))
        ));
    }
}
