//! A database that an earlier version wrote.

use tests::upgrade;

use super::{database, psql};

#[test]
fn a_database_of_an_earlier_version_is_read_and_used() {
    let url = database("upgrade");
    psql(
        &url,
        &std::fs::read_to_string(upgrade::file("postgres.sql")).unwrap(),
    );
    let bench = upgrade::workbench(&url);
    upgrade::check(&bench, &url, "postgres.jsonl", &|_| {});
}
