//! JSON that is taken as it comes: fields of any type parse, and are judged only where they are needed.
//!
//! What identity or the envelope may need is a [`Text`], a [`Json`] object or a [`List`], which say what stood in their
//! place. All else is [`Raw`] text. Everything borrows from the input, one pass over it suffices, and a field that
//! nobody asks for can never fail an event.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;

use super::{MAX_DEPTH, MAX_ITEMS, ReadError, error::excerpt};

/// A field that nobody depends on: its JSON text; `None` if it is absent or null.
pub(super) type Raw<'a> = Option<&'a RawValue>;

const NULL: &str = "null";
const BOOLEAN: &str = "a boolean";
pub(super) const NUMBER: &str = "a number";
pub(super) const STRING: &str = "a string";
pub(super) const ARRAY: &str = "an array";
pub(super) const OBJECT: &str = "an object";

/// What a JSON text holds, in words.
pub(super) fn kind(json: &str) -> &'static str {
    match json.trim_start().as_bytes().first() {
        Some(b'{') => OBJECT,
        Some(b'[') => ARRAY,
        Some(b'"') => STRING,
        Some(b't' | b'f') => BOOLEAN,
        Some(b'n') => NULL,
        _ => NUMBER,
    }
}

/// The text or the number of a field that nobody depends on; `None` for anything else and for nothing.
pub(super) fn shown(raw: Raw<'_>) -> Option<String> {
    let json = raw?.get();
    match kind(json) {
        STRING => string(json)
            .filter(|text| !text.is_empty())
            .map(Cow::into_owned),
        NUMBER => Some(json.to_owned()),
        _ => None,
    }
}

/// The object in a field that nobody depends on; `None` for anything else. A pass of its own over it, so that no flaw in
/// it reaches what stands around it.
pub(super) fn unneeded<'a, T: Deserialize<'a>>(raw: Raw<'a>) -> Option<T> {
    match serde_json::from_str(raw?.get()) {
        Ok(Json::Object(object)) => Some(object),
        Ok(Json::Absent | Json::Other(_)) | Err(_) => None,
    }
}

/// The text of an object's first field, if that has this name (in its quotes) and is a string without escapes.
pub(super) fn first_text(raw: Raw<'_>, name: &str) -> Option<String> {
    let fields = raw?.get().strip_prefix('{')?.trim_start();
    let value = fields.strip_prefix(name)?.trim_start().strip_prefix(':')?;
    let (text, _) = value.trim_start().strip_prefix('"')?.split_once('"')?;
    (!text.is_empty() && !text.contains('\\')).then(|| text.to_owned())
}

/// A whole number, written as a number or as a string.
pub(super) fn integer(raw: Raw<'_>) -> Option<u64> {
    raw?.get().trim_matches('"').parse().ok()
}

/// Checks a version of the form `major.minor`: the major must be this one, the minor is free. Absent is any version.
pub(super) fn check_major(
    raw: Raw<'_>,
    major: &str,
    field: &'static str,
    expected: &'static str,
) -> Result<(), ReadError> {
    let Some(raw) = raw else { return Ok(()) };
    let version = match kind(raw.get()) {
        STRING => string(raw.get()).unwrap_or_default(),
        NUMBER => Cow::Borrowed(raw.get()),
        got => {
            return Err(ReadError::WrongType {
                field,
                expected: STRING,
                got,
            });
        }
    };
    if version.split('.').next() == Some(major) {
        return Ok(());
    }
    Err(ReadError::UnsupportedVersion {
        field,
        got: excerpt(&version),
        expected,
    })
}

/// The text of a JSON string; `None` for half of a surrogate pair.
pub(super) fn string(json: &str) -> Option<Cow<'_, str>> {
    let quoted = json
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    match quoted {
        // The quotes are all that JSON adds to it.
        Some(text) if !text.contains('\\') => Some(Cow::Borrowed(text)),
        _ => serde_json::from_str(json).ok().map(Cow::Owned),
    }
}

/// The text behind JSON strings in a string, as hosts make them that encode a value more than once.
pub(super) fn unquoted(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for _ in 0..MAX_DEPTH {
        if !text.starts_with('"') {
            break;
        }
        match serde_json::from_str(&text) {
            Ok(inner) => text = Cow::Owned(inner),
            Err(_) => break,
        }
    }
    text
}

/// The object that a text holds.
pub(super) fn object<'a, T: Deserialize<'a>>(
    text: &'a str,
    field: &'static str,
) -> Result<T, ReadError> {
    match serde_json::from_str(text).map_err(|source| ReadError::NotJson { source })? {
        Json::Object(object) => Ok(object),
        Json::Absent => Err(ReadError::MissingField { field }),
        Json::Other(got) => Err(ReadError::WrongType {
            field,
            expected: OBJECT,
            got,
        }),
    }
}

/// What a field holds, parsed as an object.
pub(super) fn parsed<'a, T: Deserialize<'a>>(raw: Raw<'a>) -> Result<Json<T>, ReadError> {
    raw.map_or(Ok(Json::Absent), |raw| {
        serde_json::from_str(raw.get()).map_err(|source| ReadError::NotJson { source })
    })
}

/// A string where one is expected, or the name of what stands there.
#[derive(Debug, Default)]
pub(super) enum Text<'a> {
    /// Absent or null.
    #[default]
    Absent,
    /// The string's text.
    String(Cow<'a, str>),
    /// Something else.
    Other(&'static str),
}

impl<'a> Text<'a> {
    /// Whether there is anything but null.
    pub(super) const fn is_present(&self) -> bool {
        !matches!(self, Self::Absent)
    }

    /// The text, or the error that says what is there instead; `None` if it is absent.
    pub(super) const fn get(
        &self,
        field: &'static str,
    ) -> Result<Option<&Cow<'a, str>>, ReadError> {
        match self {
            Self::Absent => Ok(None),
            Self::String(text) => Ok(Some(text)),
            Self::Other(got) => Err(ReadError::WrongType {
                field,
                expected: STRING,
                got,
            }),
        }
    }

    /// The same, as a plain text.
    pub(super) fn optional(&self, field: &'static str) -> Result<Option<&str>, ReadError> {
        Ok(self.get(field)?.map(|text| &**text))
    }

    /// The text of a field that must be there and hold something.
    pub(super) fn required(&self, field: &'static str) -> Result<&Cow<'a, str>, ReadError> {
        match self.get(field)? {
            None => Err(ReadError::MissingField { field }),
            Some(text) if text.is_empty() => Err(ReadError::EmptyField { field }),
            Some(text) => Ok(text),
        }
    }
}

/// An object where one is expected, or the name of what stands there.
#[derive(Debug, Default)]
pub(super) enum Json<T> {
    /// Absent or null.
    #[default]
    Absent,
    /// The object.
    Object(T),
    /// Something else.
    Other(&'static str),
}

impl<T> Json<T> {
    /// The object, or the error that says what is there instead.
    pub(super) const fn object(&self, field: &'static str) -> Result<&T, ReadError> {
        match self {
            Self::Object(object) => Ok(object),
            Self::Absent => Err(ReadError::MissingField { field }),
            Self::Other(got) => Err(ReadError::WrongType {
                field,
                expected: OBJECT,
                got,
            }),
        }
    }

    /// The object, if there is one.
    pub(super) const fn as_object(&self) -> Option<&T> {
        match self {
            Self::Object(object) => Some(object),
            Self::Absent | Self::Other(_) => None,
        }
    }

    /// Whether there is anything but null.
    pub(super) const fn is_present(&self) -> bool {
        !matches!(self, Self::Absent)
    }
}

/// A list where one is expected, or the name of what stands there.
#[derive(Debug, Default)]
pub(super) enum List<T> {
    /// Absent or null.
    #[default]
    Absent,
    /// Its elements.
    Elements(Vec<Json<T>>),
    /// How many elements it has: more than are read.
    TooMany(usize),
    /// Something else.
    Other(&'static str),
}

/// Accepts whatever comes, as a `T`.
struct Lenient<T>(PhantomData<T>);

macro_rules! scalars {
    ($absent:expr, $other:path) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any JSON value")
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($absent)
        }
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($other(BOOLEAN))
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($other(NUMBER))
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($other(NUMBER))
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($other(NUMBER))
        }
    };
}

impl<'de: 'a, 'a> Visitor<'de> for Lenient<Text<'a>> {
    type Value = Text<'a>;

    scalars!(Text::Absent, Text::Other);

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'a>, E> {
        Ok(Text::String(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Text<'a>, E> {
        Ok(Text::String(Cow::Owned(text.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Text<'a>, A::Error> {
        skip_map(map).map(|()| Text::Other(OBJECT))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Text<'a>, A::Error> {
        skip_seq(seq).map(|_| Text::Other(ARRAY))
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Lenient<Json<T>> {
    type Value = Json<T>;

    scalars!(Json::Absent, Json::Other);

    fn visit_str<E>(self, _: &str) -> Result<Json<T>, E> {
        Ok(Json::Other(STRING))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Json<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Json::Object)
    }

    // A derived struct would take an array for its fields in order: `["geo-in"]` is no bucket.
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Json<T>, A::Error> {
        skip_seq(seq).map(|_| Json::Other(ARRAY))
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Lenient<List<T>> {
    type Value = List<T>;

    scalars!(List::Absent, List::Other);

    fn visit_str<E>(self, _: &str) -> Result<List<T>, E> {
        Ok(List::Other(STRING))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<List<T>, A::Error> {
        skip_map(map).map(|()| List::Other(OBJECT))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<T>, A::Error> {
        let mut elements = Vec::new();
        while elements.len() < MAX_ITEMS {
            match seq.next_element()? {
                Some(element) => elements.push(element),
                None => return Ok(List::Elements(elements)),
            }
        }
        Ok(match skip_seq(seq)? {
            0 => List::Elements(elements),
            more => List::TooMany(elements.len() + more),
        })
    }
}

fn skip_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

/// How many elements were left.
fn skip_seq<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<usize, A::Error> {
    let mut count = 0;
    while seq.next_element::<IgnoredAny>()?.is_some() {
        count += 1;
    }
    Ok(count)
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Lenient::<Self>(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Json<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Lenient::<Self>(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Lenient::<Self>(PhantomData))
    }
}

/// How many of an object's fields a message names.
const NAMED: usize = 8;

/// What a JSON text holds, in words for a message: of an object, its first fields too.
pub(super) fn describe(json: &str) -> String {
    let Ok(Names { first, count }) = serde_json::from_str(json) else {
        return kind(json).to_owned();
    };
    if count == 0 {
        return "an object without fields".to_owned();
    }
    let more = if count > first.len() { ", …" } else { "" };
    format!("an object with the fields {}{more}", first.join(", "))
}

/// The first names of an object's fields, and how many there are.
struct Names {
    first: Vec<String>,
    count: usize,
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(OBJECT)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Names, A::Error> {
                let mut names = Names {
                    first: Vec::new(),
                    count: 0,
                };
                while let Some((name, IgnoredAny)) = map.next_entry::<String, _>()? {
                    names.count += 1;
                    if names.first.len() < NAMED {
                        names.first.push(format!("{:?}", excerpt(&name)));
                    }
                }
                Ok(names)
            }
        }
        deserializer.deserialize_map(Collect)
    }
}
