//! How SQLite finds a page.

use identity_core::claim::Status;

use crate::sqlite::fixture::Fixture;
use crate::statements;

#[tokio::test]
async fn a_listing_reads_the_index_and_sorts_nothing() {
    let fixture = Fixture::new().await;
    for statuses in 1..=Status::ALL.len() {
        let mut sql = format!("EXPLAIN QUERY PLAN {}", statements::list(statuses));
        for (parameter, value) in [("$1", "0"), ("$2", "''"), ("$3", "10")] {
            sql = sql.replace(parameter, value);
        }
        for (index, status) in Status::ALL.into_iter().enumerate() {
            sql = sql.replace(&format!("${}", index + 4), &format!("'{status}'"));
        }
        let plan = fixture.plan(&sql);
        let searches = plan.iter().filter(|step| {
            step.contains(
                "SEARCH firstclaim_claims USING INDEX firstclaim_claims_by_status (status=? AND",
            )
        });
        assert_eq!(searches.count(), statuses, "{plan:#?}");
        let other = ["SCAN", "TEMP B-TREE"];
        let bad = |step: &String| other.iter().any(|word| step.contains(word));
        assert!(!plan.iter().any(bad), "{plan:#?}");
    }
}
