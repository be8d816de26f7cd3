//! The ledger of uploads in SQLite.

use std::sync::LazyLock;

use async_trait::async_trait;
use identity_core::claim::StoreError;
use rusqlite::{Connection, ToSql, params_from_iter};

use super::SqliteStore;
use super::values::numbered;
use crate::columns::Misfit;
use crate::ledger::{self, Argument, Dialect, LedgerRow, LedgerSql, LedgerTable};

static SQL: LazyLock<LedgerSql> = LazyLock::new(|| {
    LedgerSql::new(&Dialect {
        now: "unixepoch()",
        seconds: "{}",
        time: "INTEGER",
        first: "-9223372036854775808",
    })
});

ledger::keep_uploads!(SqliteStore);

#[async_trait]
impl LedgerTable for SqliteStore {
    fn sql(&self) -> &'static LedgerSql {
        &SQL
    }

    async fn run(
        &self,
        doing: &'static str,
        writes: bool,
        sql: &'static str,
        arguments: Vec<Argument>,
    ) -> Result<Vec<LedgerRow>, StoreError> {
        let sql = numbered(sql);
        let run = move |connection: &Connection| -> rusqlite::Result<Vec<_>> {
            let mut statement = connection.prepare_cached(&sql)?;
            let arguments = arguments.iter().map(|argument| match argument {
                Argument::Text(text) => text as &dyn ToSql,
                Argument::Number(number) => number,
            });
            let rows =
                statement.query_map(params_from_iter(arguments), |row| Ok(LedgerRow::read(row)))?;
            rows.collect()
        };
        let rows = if writes {
            self.change(doing, run).await?
        } else {
            self.read(doing, run).await?
        };
        let rows: Result<_, _> = rows.into_iter().collect();
        rows.map_err(|misfit| self.misfit(misfit))
    }

    fn misfit(&self, misfit: Misfit) -> StoreError {
        misfit.in_store(self)
    }
}
