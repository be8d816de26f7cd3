//! A file that an earlier version wrote.

use tests::upgrade;

#[test]
fn a_file_of_an_earlier_version_is_read_and_used() {
    let store = "sqlite:earlier.db";
    let bench = upgrade::workbench(store);
    std::fs::copy(upgrade::file("sqlite.db"), bench.path("earlier.db")).unwrap();
    upgrade::check(&bench, store, "sqlite.jsonl", &|_| {});
}
