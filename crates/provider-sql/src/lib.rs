//! The claim ledger in SQL: one table, one row a claim, compare-and-swap in one statement; and the ledger of uploads.
//!
//! The reader's way: [`SqliteStore`] (the embedded default) and `PostgresStore` (feature `postgres`) → `columns` (record ↔
//! row), `values` (what a column holds), `listing` (pages) and `statements` (the SQL, in the dialect that both share).
//! [`Ledger`] keeps uploads by their content. No claim protocol here: that is [`identity_core::claim`]'s, which asks a store
//! only for compare-and-swap.

#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod columns;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod ledger;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod listing;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod statements;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod values;

#[cfg(any(feature = "sqlite", feature = "postgres"))]
#[cfg(test)]
mod cases;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use ledger::{
    Holder, Ledger, LedgerCursor, LedgerEntry, LedgerPage, Uncompleted, Upload, UploadClaim,
    UploadState,
};
#[cfg(feature = "postgres")]
pub use postgres::{ConnectError, PostgresStore, PostgresUrl, UrlError};
#[cfg(feature = "sqlite")]
pub use sqlite::{LockHeld, OpenError, SqliteStore};
