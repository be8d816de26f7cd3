//! The vectors of every scheme pass, and every row of their files was run.

use identity_core::identity::vectors::{self, VectorsError};

fn all_pass(json_text: &str, rows: usize) -> Result<(), VectorsError> {
    let report = vectors::run(json_text)?;
    assert_eq!(report.failures, []);
    assert_eq!(report.passed, rows);
    Ok(())
}

#[test]
fn the_published_job_ids_are_derived() -> Result<(), VectorsError> {
    all_pass(include_str!("../../vectors/job_ids.json"), 37)
}

#[test]
fn the_published_ingest_ids_are_derived() -> Result<(), VectorsError> {
    all_pass(include_str!("../../vectors/ingest_ids.json"), 4)
}

#[test]
fn the_strict_job_ids_are_derived() -> Result<(), VectorsError> {
    all_pass(include_str!("../../vectors/strict_ids.json"), 55)
}
