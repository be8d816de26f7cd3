//! The parameters of a pipeline: every knob that changes the output, kept exactly as written.
//!
//! | written as | kept as |
//! |---|---|
//! | JSON or TOML integer | its decimal digits, of any number; `-0` is `0` |
//! | JSON number with `.`, `e` or `E`; TOML float | the nearest double, finite |
//! | string, boolean, `null`, list, table | itself |
//! | a key twice in one JSON object | its last value |
//! | TOML date or time, `inf`, `nan`, a JSON number beyond the doubles | refused |
//!
//! The order of keys is not kept: it has no part in any identity. The two canonical texts are in [`canonical`].

pub mod canonical;
mod read;

use std::collections::BTreeMap;

use super::{Refusal, hex};

/// The name under which the `reference` scheme hashes the pipeline version: no parameter may have it.
pub const PIPELINE_VERSION_KEY: &str = "_pipeline_version";

/// The parameters of a pipeline, by name. The name `_pipeline_version` is not among them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Params(BTreeMap<String, ParamValue>);

/// One parameter's value.
#[derive(Debug, Clone, PartialEq)]
pub enum ParamValue {
    /// JSON's `null`. TOML has none.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer, exact.
    Integer(Integer),
    /// A double, finite.
    Float(Finite),
    /// Text.
    String(String),
    /// A list; its order counts.
    List(Vec<ParamValue>),
    /// A table; its order does not count.
    Map(BTreeMap<String, ParamValue>),
}

/// An integer of any size as its decimal digits: no leading zeros, a minus sign only before a number below zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integer(String);

impl Integer {
    /// The integer with these digits, with or without a minus sign; `None` if they are none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let significant = digits.trim_start_matches('0');
        Some(Self(match significant {
            "" => "0".to_owned(),
            _ if text.starts_with('-') => format!("-{significant}"),
            _ => significant.to_owned(),
        }))
    }

    /// Its decimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether every integer between it and zero is a double of its own: at most 2^53 − 1 either way.
    #[must_use]
    pub fn is_exact_double(&self) -> bool {
        const LARGEST: i64 = (1 << 53) - 1;
        self.0
            .parse()
            .is_ok_and(|value: i64| (-LARGEST..=LARGEST).contains(&value))
    }
}

impl From<i64> for Integer {
    fn from(value: i64) -> Self {
        Self(value.to_string())
    }
}

/// A double that is neither infinite nor NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finite(f64);

impl Finite {
    /// This double, or `None` if it is infinite or NaN.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self(value))
    }

    /// The double.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

/// Why a text or table holds no parameters.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParamsError {
    /// It is not JSON. A `\ud800` without its other half is not: it is no text that UTF-8 could hold.
    #[error("the parameters cannot be read as JSON")]
    Json(#[source] serde_json::Error),
    /// It is JSON, but no object.
    #[error("the parameters are {0}, expected an object")]
    NotAnObject(&'static str),
    /// It is nested too deeply.
    #[error(
        "the parameters are nested more than {} levels deep",
        Params::MAX_DEPTH
    )]
    TooDeep,
    /// It holds what no parameter can be.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl Params {
    /// How many lists and tables may stand inside one another, the outermost included.
    pub const MAX_DEPTH: usize = 100;

    /// Parameters with these values.
    ///
    /// # Errors
    ///
    /// [`Refusal::ReservedParameter`] if one of them is named `_pipeline_version`. Deeper inside, the name is legal.
    pub fn new(values: BTreeMap<String, ParamValue>) -> Result<Self, Refusal> {
        if values.contains_key(PIPELINE_VERSION_KEY) {
            return Err(Refusal::ReservedParameter);
        }
        Ok(Self(values))
    }

    /// Their values by name.
    #[must_use]
    pub fn values(&self) -> &BTreeMap<String, ParamValue> {
        &self.0
    }

    /// SHA-256 of [`canonical::exact`], 64 lower-case hex characters. It exists for all parameters and differs wherever
    /// they do, also where the scheme takes them for the same: two jobs that a scheme collapses can so be told apart.
    #[must_use]
    pub fn digest(&self) -> String {
        hex::sha256_hex(canonical::exact(self).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_has_one_spelling() {
        for (text, digits) in [
            ("0", "0"),
            ("-0", "0"),
            ("007", "7"),
            ("-007", "-7"),
            ("-00", "0"),
        ] {
            assert_eq!(Integer::parse(text).unwrap().as_str(), digits);
        }
        for text in ["", "-", "+1", "1.0", "--1", "1_0", "\u{663}"] {
            assert_eq!(Integer::parse(text), None, "{text}");
        }
        assert_eq!(Integer::from(i64::MIN).as_str(), "-9223372036854775808");
    }

    #[test]
    fn integers_are_exact_doubles_up_to_two_to_the_53rd_less_one() {
        for (text, exact) in [
            ("9007199254740991", true),
            ("-9007199254740991", true),
            ("9007199254740992", false),
            ("-9007199254740992", false),
            ("100000000000000000000000000", false),
        ] {
            assert_eq!(
                Integer::parse(text).unwrap().is_exact_double(),
                exact,
                "{text}"
            );
        }
    }

    #[test]
    fn the_digest_tells_apart_what_reference_takes_for_the_same() {
        let digest = |json| Params::from_json(json).unwrap().digest();
        assert_ne!(digest(r#"{"t":1e-7}"#), digest(r#"{"t":3e-7}"#));
        assert_ne!(digest(r#"{"t":0.1}"#), digest(r#"{"t":"0.100000"}"#));
        assert_ne!(
            digest(r#"{"n":9007199254740993}"#),
            digest(r#"{"n":9007199254740992}"#)
        );
        assert_eq!(digest(r#"{"a":1,"b":2}"#), digest(r#"{"b":2,"a":1}"#));
    }

    #[test]
    fn the_digest_of_parameters_that_strict_takes_is_over_its_canonical_text() {
        let params = Params::from_json(r#"{"b":1.50,"a":[1,"x"]}"#).unwrap();
        assert_eq!(
            params.digest(),
            hex::sha256_hex(br#"{"a":[1,"x"],"b":1.5}"#)
        );
    }
}
