//! The ledger of uploads in SQLite.

use std::sync::LazyLock;

use async_trait::async_trait;
use identity_core::claim::StoreError;

use super::SqliteStore;
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
        let query = || {
            arguments
                .iter()
                .cloned()
                .fold(sqlx::query(sql), |query, argument| match argument {
                    Argument::Text(text) => query.bind(text),
                    Argument::Number(number) => query.bind(number),
                })
        };
        let rows = if writes {
            self.change(doing, query()).await?
        } else {
            self.read(doing, query).await?
        };
        let rows: Result<_, _> = rows.iter().map(LedgerRow::read).collect();
        rows.map_err(|misfit| self.misfit(misfit))
    }

    fn misfit(&self, misfit: Misfit) -> StoreError {
        misfit.in_store(self)
    }
}
