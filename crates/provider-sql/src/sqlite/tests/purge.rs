//! How SQLite finds the ends whose time is over.

use crate::sqlite::fixture::Fixture;
use crate::sqlite::purge::DELETE;

#[tokio::test]
async fn a_purge_reads_the_index_of_what_is_over_and_the_rows_that_it_deletes() {
    let fixture = Fixture::new().await;
    let sql = format!("EXPLAIN QUERY PLAN {DELETE}");
    let plan = fixture.plan(&sql.replace("?1", "9").replace("?2", "10"));
    for step in [
        "SEARCH firstclaim_claims USING COVERING INDEX firstclaim_claims_over (expires_at<?)",
        "SEARCH firstclaim_claims USING PRIMARY KEY (key=?)",
    ] {
        assert!(plan.iter().any(|found| found == step), "{plan:#?}");
    }
    let other = ["SCAN", "TEMP B-TREE"];
    let bad = |step: &String| other.iter().any(|word| step.contains(word));
    assert!(!plan.iter().any(bad), "{plan:#?}");
}
