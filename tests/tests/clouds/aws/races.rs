//! Many functions at once, where DynamoDB does not say what stands under a key that was not written.

use tests::{clouds::aws::Aws, server};

use crate::scenarios::{RACED, race};

#[test]
fn racing_deliveries_run_each_job_once_on_dynalite() {
    race(&Aws::on(
        server("TEST_MOTO_URL"),
        server("TEST_DYNALITE_URL"),
        RACED,
    ));
}
