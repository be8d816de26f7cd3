//! The ledger of uploads in PostgreSQL. Its table may be older than this program, and typed in other ways.

use std::sync::LazyLock;

use async_trait::async_trait;
use identity_core::claim::StoreError;

use super::PostgresStore;
use super::values::Text;
use crate::columns::Misfit;
use crate::ledger::{self, Argument, Dialect, LedgerRow, LedgerSql, LedgerTable};

static SQL: LazyLock<LedgerSql> = LazyLock::new(|| {
    LedgerSql::new(&Dialect {
        now: "now()",
        seconds: "CAST(floor(extract(epoch FROM {})) AS bigint)",
        time: "timestamptz",
        first: "-infinity",
    })
});

ledger::keep_uploads!(PostgresStore);

#[async_trait]
impl LedgerTable for PostgresStore {
    fn sql(&self) -> &'static LedgerSql {
        &SQL
    }

    async fn run(
        &self,
        doing: &'static str,
        _writes: bool,
        sql: &'static str,
        arguments: Vec<Argument>,
    ) -> Result<Vec<LedgerRow>, StoreError> {
        let query =
            arguments
                .into_iter()
                .fold(sqlx::query(sql), |query, argument| match argument {
                    Argument::Text(text) => query.bind(Text(text)),
                    Argument::Number(number) => query.bind(number),
                });
        let rows = self.rows(doing, query).await?;
        let rows: Result<_, _> = rows.iter().map(LedgerRow::read).collect();
        rows.map_err(|misfit| self.misfit(misfit))
    }

    fn misfit(&self, misfit: Misfit) -> StoreError {
        misfit.in_store(self)
    }
}
