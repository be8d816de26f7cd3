//! The canonical texts of parameters, byte for byte.
//!
//! **`strict`** ([`strict`]) is RFC 8785 (JSON Canonicalization Scheme), in UTF-8: no blanks; keys in the order of their
//! UTF-16 code units; strings with `\b \t \n \f \r \" \\`, `\u00xx` (lower case) for the other characters below U+0020,
//! and every other character as itself; numbers as ECMAScript writes doubles: `1` for 1.0, `0` for −0.0, `1e-7`,
//! `1e+21`. An integer beyond ±(2^53 − 1) is refused. So 1 = 1.0 and 0.0 = −0.0, and nothing else is equal.
//!
//! **`reference`** ([`reference()`]) is what the published program's `canonical_params` returns, in ASCII: no blanks; keys
//! in the order of their code points; integers as their digits, of any number; each float as a *string* of it with six
//! decimal places, rounded from the exact binary value, ties to even (`0.1` → `"0.100000"`, `-0.0` → `"-0.000000"`);
//! strings with `\b \t \n \f \r \" \\`, and `\u` with four lower-case hex digits for every other UTF-16 unit outside
//! U+0020..U+007E. The pipeline version is among the top level's keys, as `_pipeline_version`.
//!
//! **exact** ([`exact`]) is `strict` without its refusal: integers of any size, as their digits. It is hashed into
//! [`Params::digest`], never into a job ID.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{Finite, PIPELINE_VERSION_KEY, ParamValue, Params};
use crate::identity::Refusal;

/// The canonical text of the `strict` scheme.
///
/// # Errors
///
/// [`Refusal::InexactInteger`].
pub fn strict(params: &Params) -> Result<String, Refusal> {
    for (key, value) in &params.0 {
        refuse_inexact(value, key)?;
    }
    Ok(exact(params))
}

fn refuse_inexact(value: &ParamValue, at: &str) -> Result<(), Refusal> {
    match value {
        ParamValue::Integer(integer) if !integer.is_exact_double() => {
            Err(Refusal::InexactInteger {
                at: at.to_owned(),
                got: integer.as_str().to_owned(),
            })
        }
        ParamValue::List(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(index, item)| refuse_inexact(item, &format!("{at}[{index}]"))),
        ParamValue::Map(map) => map
            .iter()
            .try_for_each(|(key, item)| refuse_inexact(item, &format!("{at}.{key}"))),
        ParamValue::Null
        | ParamValue::Bool(_)
        | ParamValue::Integer(_)
        | ParamValue::Float(_)
        | ParamValue::String(_) => Ok(()),
    }
}

/// The text of the `strict` scheme, integers of any size included.
#[must_use]
pub fn exact(params: &Params) -> String {
    let mut text = String::new();
    write_map(&mut text, &Jcs, in_utf16_order(&params.0));
    text
}

/// The canonical text of the `reference` scheme.
#[must_use]
pub fn reference(params: &Params, pipeline_version: &str) -> String {
    let version = ParamValue::String(pipeline_version.to_owned());
    // `Params` has no such key, so nothing is overwritten.
    let mut members: BTreeMap<&str, &ParamValue> = params
        .0
        .iter()
        .map(|(key, value)| (key.as_str(), value))
        .collect();
    members.insert(PIPELINE_VERSION_KEY, &version);
    let mut text = String::new();
    write_map(&mut text, &Python, members);
    text
}

/// What differs between the two texts.
trait Form {
    fn float(&self, value: Finite) -> String;
    fn string(&self, out: &mut String, text: &str);
    fn sorted<'a>(&self, map: &'a BTreeMap<String, ParamValue>) -> Vec<(&'a str, &'a ParamValue)>;
}

struct Jcs;

impl Form for Jcs {
    fn float(&self, value: Finite) -> String {
        // ECMAScript's number format knows no negative zero, and ryu-js is that format.
        ryu_js::Buffer::new().format_finite(value.get()).to_owned()
    }

    fn string(&self, out: &mut String, text: &str) {
        write_string(out, text, |c| c >= ' ');
    }

    fn sorted<'a>(&self, map: &'a BTreeMap<String, ParamValue>) -> Vec<(&'a str, &'a ParamValue)> {
        in_utf16_order(map)
    }
}

struct Python;

impl Form for Python {
    fn float(&self, value: Finite) -> String {
        format!("\"{:.6}\"", value.get())
    }

    fn string(&self, out: &mut String, text: &str) {
        write_string(out, text, |c| matches!(c, ' '..='~'));
    }

    fn sorted<'a>(&self, map: &'a BTreeMap<String, ParamValue>) -> Vec<(&'a str, &'a ParamValue)> {
        // UTF-8 sorts by code point, and so do `String`s.
        map.iter()
            .map(|(key, value)| (key.as_str(), value))
            .collect()
    }
}

fn in_utf16_order(map: &BTreeMap<String, ParamValue>) -> Vec<(&str, &ParamValue)> {
    let mut members: Vec<_> = map
        .iter()
        .map(|(key, value)| (key.as_str(), value))
        .collect();
    members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    members
}

fn write_map<'a>(
    out: &mut String,
    form: &impl Form,
    members: impl IntoIterator<Item = (&'a str, &'a ParamValue)>,
) {
    out.push('{');
    for (index, (key, value)) in members.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        form.string(out, key);
        out.push(':');
        write_value(out, form, value);
    }
    out.push('}');
}

fn write_value(out: &mut String, form: &impl Form, value: &ParamValue) {
    match value {
        ParamValue::Null => out.push_str("null"),
        ParamValue::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        ParamValue::Integer(integer) => out.push_str(integer.as_str()),
        ParamValue::Float(value) => out.push_str(&form.float(*value)),
        ParamValue::String(text) => form.string(out, text),
        ParamValue::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(out, form, item);
            }
            out.push(']');
        }
        ParamValue::Map(map) => write_map(out, form, form.sorted(map)),
    }
}

/// A JSON string; characters that are not `plain` are escaped by their UTF-16 units.
fn write_string(out: &mut String, text: &str, plain: impl Fn(char) -> bool) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if plain(c) => out.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a `String` cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn params(json: &str) -> Params {
        Params::from_json(json).unwrap()
    }

    fn strict_of(json: &str) -> String {
        strict(&params(json)).unwrap()
    }

    fn reference_of(json: &str) -> String {
        reference(&params(json), "3.2.0")
    }

    #[test]
    fn strict_numbers_are_ecmascripts() {
        // The first nine are from RFC 8785, appendix B.
        for (written, canonical) in [
            ("0.0", "0"),
            ("-0.0", "0"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("9007199254740992.0", "9007199254740992"),
            ("295147905179352830000.0", "295147905179352830000"),
            ("1e23", "1e+23"),
            ("999999999999999900000.0", "999999999999999900000"),
            ("333333333.33333329", "333333333.3333333"),
            ("1e21", "1e+21"),
            ("1.0", "1"),
            ("1e-6", "0.000001"),
            ("1e-7", "1e-7"),
            ("-0", "0"),
            ("9007199254740991", "9007199254740991"),
        ] {
            assert_eq!(
                strict_of(&format!(r#"{{"x":{written}}}"#)),
                format!(r#"{{"x":{canonical}}}"#)
            );
        }
    }

    #[test]
    fn strict_strings_escape_only_what_json_must() {
        assert_eq!(
            strict_of(r#"{"s":"\u20ac$\u000f\nA'B\"\\\\\"\/\u007f\b\f\r\t"}"#),
            "{\"s\":\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\u{7f}\\b\\f\\r\\t\"}"
        );
    }

    #[test]
    fn strict_keys_sort_by_utf16_units_and_reference_keys_by_code_points() {
        let json = r#"{"\uff5e":1,"\ud83d\ude00":2,"z":{"\uff5e":1,"\ud83d\ude00":2}}"#;
        assert_eq!(
            strict_of(json),
            "{\"z\":{\"\u{1f600}\":2,\"\u{ff5e}\":1},\"\u{1f600}\":2,\"\u{ff5e}\":1}"
        );
        assert_eq!(
            reference_of(json),
            r#"{"_pipeline_version":"3.2.0","z":{"\uff5e":1,"\ud83d\ude00":2},"\uff5e":1,"\ud83d\ude00":2}"#
        );
    }

    #[test]
    fn strict_refuses_an_integer_that_a_double_cannot_hold() {
        for text in [
            "9007199254740992",
            "-9007199254740992",
            "1000000000000000000000",
        ] {
            assert_eq!(
                strict(&params(&format!(r#"{{"a":{{"b":[0,{text}]}}}}"#))),
                Err(Refusal::InexactInteger {
                    at: "a.b[1]".into(),
                    got: text.into()
                })
            );
        }
        assert_eq!(
            exact(&params(r#"{"n":9007199254740993}"#)),
            r#"{"n":9007199254740993}"#
        );
    }

    #[test]
    fn reference_floats_have_six_places_and_ties_go_to_even() {
        for (written, canonical) in [
            ("0.0078125", "0.007812"),
            ("0.0234375", "0.023438"),
            ("-0.0078125", "-0.007812"),
            ("5e-7", "0.000000"),
            ("1.5e-6", "0.000002"),
            ("1.0000005", "1.000001"),
            ("-0.0", "-0.000000"),
            ("-1e-9", "-0.000000"),
            ("1e22", "10000000000000000000000.000000"),
            ("0.9999999", "1.000000"),
        ] {
            assert_eq!(
                reference_of(&format!(r#"{{"x":{written}}}"#)),
                format!(r#"{{"_pipeline_version":"3.2.0","x":"{canonical}"}}"#)
            );
        }
    }

    #[test]
    fn reference_strings_are_ascii() {
        assert_eq!(
            reference_of(r#"{"s":"a\tb\u0001\u007f\"\\/\u00e9\ud83d\uddfa~ \b\f\r\n"}"#),
            r#"{"_pipeline_version":"3.2.0","s":"a\tb\u0001\u007f\"\\/\u00e9\ud83d\uddfa~ \b\f\r\n"}"#
        );
    }

    #[test]
    fn the_pipeline_version_takes_its_place_among_the_keys() {
        assert_eq!(
            reference(
                &params(r#"{"Z":null,"a":{"_pipeline_version":true}}"#),
                "\u{e9}"
            ),
            r#"{"Z":null,"_pipeline_version":"\u00e9","a":{"_pipeline_version":true}}"#
        );
    }

    /// Any parameter value, as JSON can write it.
    fn value() -> impl Strategy<Value = ParamValue> {
        let leaf = prop_oneof![
            Just(ParamValue::Null),
            any::<bool>().prop_map(ParamValue::Bool),
            any::<i64>().prop_map(|value| ParamValue::Integer(value.into())),
            any::<f64>()
                .prop_filter_map("finite", |value| Finite::new(value).map(ParamValue::Float)),
            any::<String>().prop_map(ParamValue::String),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(ParamValue::List),
                prop::collection::btree_map(any::<String>(), inner, 0..4).prop_map(ParamValue::Map),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_exact_text_is_json_that_means_the_same(value in value()) {
            let params = Params([("p".to_owned(), value)].into());
            let text = exact(&params);
            prop_assert_eq!(exact(&Params::from_json(&text).unwrap()), text);
        }

        #[test]
        fn the_reference_text_is_ascii_json(value in value()) {
            let text = reference(&Params([("p".to_owned(), value)].into()), "v");
            prop_assert!(text.is_ascii());
            prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
        }
    }

    #[test]
    fn an_integer_and_the_float_of_its_value_are_one_under_strict_and_two_under_reference() {
        assert_eq!(strict_of(r#"{"x":1}"#), strict_of(r#"{"x":1.0}"#));
        assert_ne!(reference_of(r#"{"x":1}"#), reference_of(r#"{"x":1.0}"#));
    }
}
