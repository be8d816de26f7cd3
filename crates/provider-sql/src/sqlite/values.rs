//! How SQLite keeps our values: texts as they are, times as integers.

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::sqlite::{SqliteArgumentsBuffer, SqliteTypeInfo, SqliteValueRef};
use sqlx::{Decode, Encode, Sqlite, Type};

use crate::values::{Millis, Seconds, Text};

macro_rules! kept_as {
    ($($value:ident as $kept:ty;)*) => {$(
        impl Type<Sqlite> for $value {
            fn type_info() -> SqliteTypeInfo {
                <$kept as Type<Sqlite>>::type_info()
            }

            fn compatible(kept: &SqliteTypeInfo) -> bool {
                <$kept as Type<Sqlite>>::compatible(kept)
            }
        }

        impl Encode<'_, Sqlite> for $value {
            fn encode(self, buffer: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
                <$kept as Encode<Sqlite>>::encode(self.0, buffer)
            }

            fn encode_by_ref(&self, buffer: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
                <$kept as Encode<Sqlite>>::encode_by_ref(&self.0, buffer)
            }
        }

        impl<'r> Decode<'r, Sqlite> for $value {
            fn decode(value: SqliteValueRef<'r>) -> Result<Self, BoxDynError> {
                <$kept as Decode<Sqlite>>::decode(value).map(Self)
            }
        }
    )*};
}

kept_as! {
    Text as String;
    Seconds as i64;
    Millis as i64;
}
