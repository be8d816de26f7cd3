//! The SQL of the claim ledger, in the dialect that SQLite and PostgreSQL share: `$1` parameters, `ON CONFLICT`,
//! `RETURNING`. What a table is made of is each database's own.

use std::fmt::Write as _;
use std::sync::LazyLock;

use crate::columns::ClaimRow;

/// What a row's version is made of. Programs that know nothing of revisions flip the status or put a row of their own
/// in the place of ours: owner, attempt and status are part of it, and a revision may be missing.
const VERSION: &str =
    "coalesce(revision, '-') || ' ' || coalesce(owner, '-') || ' ' || attempt || ' ' || status";

/// One row by its key, `$1`; its version comes last, as `version`.
pub(crate) static GET: LazyLock<String> = LazyLock::new(|| {
    let columns = ClaimRow::COLUMNS.join(", ");
    format!("SELECT {columns}, {VERSION} AS version FROM firstclaim_claims WHERE key = $1")
});

/// A new row, its columns in the order of [`ClaimRow::COLUMNS`]; returns its version, or no row if the key is taken.
pub(crate) static INSERT: LazyLock<String> = LazyLock::new(|| {
    let (columns, values) = (ClaimRow::COLUMNS.join(", "), parameters(1));
    format!(
        "INSERT INTO firstclaim_claims ({columns}) VALUES ({values}) ON CONFLICT (key) DO NOTHING \
         RETURNING {VERSION} AS version"
    )
});

/// A row, as for [`INSERT`], in the place of the one whose version is the parameter after its columns;
/// returns its version, or no row if no such row stands there.
pub(crate) static UPDATE: LazyLock<String> = LazyLock::new(|| {
    let (columns, values) = (
        ClaimRow::COLUMNS.get(1..).unwrap_or_default().join(", "),
        parameters(2),
    );
    let version = ClaimRow::COLUMNS.len() + 1;
    format!(
        "UPDATE firstclaim_claims SET ({columns}) = ({values}) WHERE key = $1 AND {VERSION} = ${version} \
         RETURNING {VERSION} AS version"
    )
});

/// Rows in the order of `(claimed_at, key)`: those after the row `($1, $2)`, at most `$3`, with one of `statuses` statuses,
/// `$4` and following.
///
/// One arm a status, each a range of the index by status: the arms are merged, so that a page costs what it holds,
/// however many rows there are. PostgreSQL merges only what each arm says that it is sorted by.
pub(crate) fn list(statuses: usize) -> String {
    let columns = ClaimRow::COLUMNS.join(", ");
    let mut sql = String::new();
    for parameter in 4..4 + statuses {
        let and = if sql.is_empty() { "" } else { " UNION ALL " };
        // writing to a String cannot fail
        let _ = write!(
            sql,
            "{and}SELECT * FROM (SELECT {columns}, {VERSION} AS version FROM firstclaim_claims \
             WHERE status = ${parameter} AND (claimed_at, key) > ($1, $2) \
             ORDER BY claimed_at, key) AS status_{parameter}"
        );
    }
    sql.push_str(" ORDER BY claimed_at, key LIMIT $3");
    sql
}

/// `$first, …` up to the last column's.
fn parameters(first: usize) -> String {
    let each: Vec<_> = (first..=ClaimRow::COLUMNS.len())
        .map(|number| format!("${number}"))
        .collect();
    each.join(", ")
}
