//! The claim ledger in SQL: one table, one row a claim, compare-and-swap in one statement.
//!
//! The reader's way: [`SqliteStore`] (the embedded default) → `columns` (record ↔ row), `listing` (pages) and
//! `statements` (the SQL, in the dialect that SQLite and PostgreSQL share). No claim protocol here: that is
//! [`identity_core::claim`]'s, which asks a store only for compare-and-swap.

#[cfg(feature = "sqlite")]
mod columns;
#[cfg(feature = "sqlite")]
mod listing;
#[cfg(feature = "sqlite")]
mod statements;
#[cfg(feature = "sqlite")]
mod values;

#[cfg(feature = "sqlite")]
#[cfg(test)]
mod samples;

#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "sqlite")]
pub use sqlite::{LockHeld, OpenError, SqliteStore};
