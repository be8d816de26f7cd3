//! What a column of ours holds, whatever the database: how each keeps it is said in the folder of the database.

use std::fmt;

macro_rules! values {
    ($($(#[$doc:meta])* $value:ident($kept:ty) $($copy:ident)?;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, $($copy)?)]
        pub(crate) struct $value(pub(crate) $kept);

        // What is told of a row is what is in it.
        impl fmt::Debug for $value {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

values! {
    /// Any text, U+0000 included.
    Text(String);
    /// Unix seconds.
    Seconds(i64) Copy;
    /// Unix milliseconds.
    Millis(i64) Copy;
}

impl std::ops::Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}
