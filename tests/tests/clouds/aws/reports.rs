//! What Lambda and CloudWatch are told of deliveries.

use serde_json::Value;
use tests::clouds::{
    Cloud as _,
    aws::{Aws, metrics},
};

use super::delivery;
use crate::scenarios::NOTES;

#[test]
fn each_delivery_is_counted_and_logged_under_its_request() {
    let cloud = Aws::new(NOTES);
    let function = cloud.handler(&[]);
    let delivery = delivery(&cloud);
    for _ in 0..2 {
        function.api.invoke(&delivery).unwrap();
    }
    let counts: Vec<_> = metrics(&function)
        .iter()
        .map(|line| {
            (
                line["claimed"].as_u64().unwrap(),
                line["duplicate"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(counts, [(1, 0), (0, 1)]);
    let log = function.log();
    let line = log
        .lines()
        .find(|line| line.contains("\"outcome\":\"done\""))
        .unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    assert!(
        line["span"]["request_id"]
            .as_str()
            .unwrap()
            .starts_with("request-"),
        "{line}"
    );
}

#[test]
fn a_claim_store_that_is_away_is_counted_and_an_error_where_there_is_no_queue() {
    let cloud = Aws::new(NOTES);
    let function = cloud.handler(&[cloud.no_store()]);
    function.api.invoke(&delivery(&cloud)).unwrap();
    assert_eq!(metrics(&function)[0]["unavailable"], 1);
    let direct = cloud.notified("other.shp", "x");
    assert!(function.api.invoke(&direct).is_err());
    assert_eq!(cloud.folder().lines("ran").len(), 0);
}
