//! How PostgreSQL keeps our values: texts without U+0000, times as `timestamptz`.
//!
//! # Texts
//!
//! PostgreSQL's `text` holds every character but U+0000, and object keys, tokens and a job's last words may hold that
//! one. A claim that could never be written would be delivered for ever, so nothing is refused: U+0000 is kept as `␛0`
//! and `␛` (U+241B) as `␛␛`. Every other text is kept as it is, so that people and programs read it with plain SQL. A
//! `␛` of another program that is followed by neither stands for itself.
//!
//! # Times
//!
//! The columns are `timestamptz(0)` for seconds and `timestamptz(3)` for milliseconds, so that no program can put a time
//! between two of ours, where a page of a listing could not begin. A time outside PostgreSQL's 4714 BC to 294276 AD is
//! refused; the two ends of our range are its `-infinity` and `infinity`.

use std::borrow::Cow;

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgTypeInfo, PgValueRef};
use sqlx::{Decode, Encode, Postgres, Type};

use sqlx::Row;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;

use identity_core::claim::ClaimKey;
use identity_core::claim::fields::{Field, Kind, Value};

use crate::columns::{ClaimRow, Columns, Misfit, TYPED};

/// Any text, U+0000 included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) String);

/// Unix seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seconds(pub(crate) i64);

/// Unix milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Millis(pub(crate) i64);

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// A statement with its parameters so far.
pub(super) type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// Binds every column, in order.
pub(super) fn bind<'q>(
    row: &ClaimRow,
    key: &ClaimKey,
    mut query: Statement<'q>,
) -> Result<Statement<'q>, Misfit> {
    let mut fields = row.fields().peekable();
    for &field in Field::ALL {
        let value = fields.next_if(|(of, _)| *of == field);
        // A null has its column's type, too.
        let bound = match (field.kind(), value.map(|(_, value)| value)) {
            (_, Some(Value::Text(text))) => query.try_bind(Some(Text::from(text.as_str()))),
            (_, Some(Value::Bytes(bytes))) => query.try_bind(Some(bytes.clone())),
            (Kind::Seconds, Some(Value::Number(time))) => query.try_bind(Some(Seconds(*time))),
            (Kind::Millis, Some(Value::Number(time))) => query.try_bind(Some(Millis(*time))),
            (_, Some(Value::Number(number))) => query.try_bind(Some(*number)),
            (Kind::Text, None) => query.try_bind(None::<Text>),
            (Kind::Bytes, None) => query.try_bind(None::<Vec<u8>>),
            (Kind::Seconds, None) => query.try_bind(None::<Seconds>),
            (Kind::Millis, None) => query.try_bind(None::<Millis>),
            (Kind::Count, None) => query.try_bind(None::<i64>),
        };
        bound.map_err(|error| {
            Misfit::in_column(key.as_str(), field.name(), TYPED, &error.to_string())
        })?;
    }
    Ok(query)
}
impl Columns for PgRow {
    fn text(&self, column: &'static str) -> Result<Option<String>, String> {
        let text: Result<Option<Text>, _> = self.try_get(column);
        text.map(|text| text.map(|text| text.0)).map_err(cause)
    }

    fn number(&self, column: &'static str) -> Result<Option<i64>, String> {
        self.try_get(column).map_err(cause)
    }

    fn seconds(&self, column: &'static str) -> Result<Option<i64>, String> {
        let time: Result<Option<Seconds>, _> = self.try_get(column);
        time.map(|time| time.map(|time| time.0)).map_err(cause)
    }

    fn millis(&self, column: &'static str) -> Result<Option<i64>, String> {
        let time: Result<Option<Millis>, _> = self.try_get(column);
        time.map(|time| time.map(|time| time.0)).map_err(cause)
    }

    fn bytes(&self, column: &'static str) -> Result<Option<Vec<u8>>, String> {
        self.try_get(column).map_err(cause)
    }
}

/// Why a value cannot be read, without the column's name.
fn cause(error: sqlx::Error) -> String {
    match error {
        sqlx::Error::ColumnDecode { source, .. } => source.to_string(),
        error => error.to_string(),
    }
}

const ESCAPE: char = '␛';

fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return text.into();
    }
    let doubled = text.replace(ESCAPE, "␛␛");
    doubled.replace('\0', "␛0").into()
}

fn unescaped(kept: String) -> String {
    if !kept.contains(ESCAPE) {
        return kept;
    }
    let mut text = String::with_capacity(kept.len());
    let mut rest = kept.as_str();
    while let Some((before, after)) = rest.split_once(ESCAPE) {
        text.push_str(before);
        let (character, length) = match after.chars().next() {
            Some('0') => ('\0', 1),
            Some(ESCAPE) => (ESCAPE, ESCAPE.len_utf8()),
            _ => (ESCAPE, 0),
        };
        text.push(character);
        rest = after.get(length..).unwrap_or_default();
    }
    text.push_str(rest);
    text
}

impl Type<Postgres> for Text {
    fn type_info() -> PgTypeInfo {
        <String as Type<Postgres>>::type_info()
    }

    fn compatible(kept: &PgTypeInfo) -> bool {
        <String as Type<Postgres>>::compatible(kept)
    }
}

impl Encode<'_, Postgres> for Text {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        <&str as Encode<Postgres>>::encode(escaped(&self.0).as_ref(), buffer)
    }
}

impl<'r> Decode<'r, Postgres> for Text {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        <String as Decode<Postgres>>::decode(value).map(|kept| Self(unescaped(kept)))
    }
}

/// The type's number, which is the same in every database: `SELECT oid FROM pg_type WHERE typname = 'timestamptz'`.
const TIMESTAMPTZ: Oid = Oid(1184);
/// 2000-01-01T00:00:00Z, from which PostgreSQL counts, in Unix seconds.
const EPOCH: i64 = 946_684_800;
/// The first microsecond that a `timestamptz` can be, from [`EPOCH`], and the first one after the last.
const MICROS: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;

/// A time as PostgreSQL sends it: microseconds from [`EPOCH`]. `per_second` is our unit's.
fn micros(time: i64, per_second: i64) -> Option<i64> {
    if matches!(time, i64::MIN | i64::MAX) {
        return Some(time); // this is how infinities are sent
    }
    let from_epoch = time.checked_sub(EPOCH * per_second)?;
    let micros = from_epoch.checked_mul(1_000_000 / per_second)?;
    MICROS.contains(&micros).then_some(micros)
}

fn from_micros(micros: i64, per_second: i64) -> i64 {
    if matches!(micros, i64::MIN | i64::MAX) {
        return micros;
    }
    micros.div_euclid(1_000_000 / per_second) + EPOCH * per_second
}

impl Seconds {
    /// This time, or the infinity beyond it if PostgreSQL has no such time: as the bound of a range it is the same.
    pub(crate) fn as_bound(self) -> Self {
        match micros(self.0, 1) {
            Some(_) => self,
            None if self.0 < 0 => Self(i64::MIN),
            None => Self(i64::MAX),
        }
    }
}

macro_rules! timestamptz {
    ($($value:ident: $per_second:literal,)*) => {$(
        impl Type<Postgres> for $value {
            fn type_info() -> PgTypeInfo {
                PgTypeInfo::with_oid(TIMESTAMPTZ)
            }
        }

        impl Encode<'_, Postgres> for $value {
            fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
                let micros = micros(self.0, $per_second)
                    .ok_or_else(|| format!("{}, which is outside 4714 BC to 294276 AD", self.0))?;
                <i64 as Encode<Postgres>>::encode(micros, buffer)
            }
        }

        impl<'r> Decode<'r, Postgres> for $value {
            fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
                let micros = <i64 as Decode<Postgres>>::decode(value)?;
                Ok(Self(from_micros(micros, $per_second)))
            }
        }
    )*};
}

timestamptz! {
    Seconds: 1,
    Millis: 1_000,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_text_comes_back_and_none_is_kept_with_a_nul(text in "[\0␛0a\\\\]{0,12}|\\PC*") {
            let kept = escaped(&text).into_owned();
            prop_assert!(!kept.contains('\0'));
            prop_assert_eq!(unescaped(kept), text);
        }

        #[test]
        fn every_kept_text_is_read(kept in "[␛0a]{0,12}") {
            let text = unescaped(kept.clone());
            prop_assert_eq!(unescaped(escaped(&text).into_owned()), text);
        }

        #[test]
        fn every_time_in_the_range_comes_back(micros in MICROS) {
            for per_second in [1, 1_000] {
                let time = from_micros(micros, per_second);
                let kept = super::micros(time, per_second);
                // The first moments of the range lie in a second that begins before it: none, but none otherwise.
                prop_assert_eq!(kept.map(|kept| from_micros(kept, per_second)), Some(time));
                prop_assert!(micros - kept.unwrap() < 1_000_000 / per_second);
            }
        }

        #[test]
        fn times_keep_their_order(one: i64, other: i64) {
            let (one, other) = (one.min(other), one.max(other));
            let bound = |time| micros(Seconds(time).as_bound().0, 1).unwrap();
            prop_assert!(bound(one) <= bound(other));
        }
    }

    #[test]
    fn a_plain_text_is_kept_as_it_is_and_a_stray_escape_stands_for_itself() {
        for text in ["", "uploads/東京 (é)\\0/roads.shp", "{\"a\": \"\\u0000\"}"] {
            assert_eq!(escaped(text), text);
        }
        assert_eq!(escaped("a\0b␛0"), "a␛0b␛␛0");
        assert_eq!(unescaped("a␛b␛".to_owned()), "a␛b␛");
    }

    #[test]
    fn the_ends_of_the_range_are_postgresql_s() {
        assert_eq!(micros(EPOCH, 1), Some(0));
        assert_eq!(micros(0, 1_000), Some(-946_684_800_000_000));
        assert_eq!(from_micros(-1, 1_000), EPOCH * 1_000 - 1);
        let last = MICROS.end / 1_000_000 + EPOCH - 1;
        assert!(micros(last, 1).is_some());
        for time in [last + 1, i64::MAX - 1, i64::MIN + 1] {
            assert_eq!(micros(time, 1), None, "{time}");
        }
        assert_eq!(micros(i64::MAX, 1), Some(i64::MAX));
        assert_eq!(Seconds(last + 1).as_bound(), Seconds(i64::MAX));
        assert_eq!(Seconds(i64::MIN + 1).as_bound(), Seconds(i64::MIN));
    }
}
