//! The claim ledger in SQL: one table, one row a claim, compare-and-swap in one statement; and the ledger of uploads.
//!
//! The reader's way: [`SqliteStore`] (the embedded default) and `PostgresStore` (feature `postgres`) → `columns` (record ↔
//! row; how a database keeps a value is in its own `values`), `listing` (pages) and `statements` (the SQL, in the dialect that both share).
//! Each store is a [`Ledger`](identity_core::ledger::Ledger) of uploads, too. No claim protocol here: that is
//! [`identity_core::claim`]'s, which asks a store only for compare-and-swap.

#[cfg(not(any(feature = "sqlite", feature = "postgres")))]
compile_error!(
    "provider-sql is a store in one database or two: choose the feature `sqlite`, `postgres` or both"
);

mod columns;
mod ledger;
mod listing;
mod statements;

#[cfg(test)]
mod cases;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "postgres")]
pub use postgres::{ConnectError, PostgresStore, PostgresUrl, UrlError};
#[cfg(feature = "sqlite")]
pub use sqlite::{LockHeld, OpenError, SqliteStore};
