//! The vectors of every scheme pass.

use identity_core::identity::vectors;

#[track_caller]
fn all_pass(json_text: &str, rows: usize) {
    let report = vectors::run(json_text).unwrap();
    assert_eq!(report.failures, []);
    assert_eq!(report.passed, rows);
}

#[test]
fn the_published_job_ids_are_derived() {
    all_pass(include_str!("job_ids.json"), 37);
}

#[test]
fn the_published_ingest_ids_are_derived() {
    all_pass(include_str!("ingest_ids.json"), 4);
}

#[test]
fn the_strict_job_ids_are_derived() {
    all_pass(include_str!("strict_ids.json"), 37);
}
