//! Deadlines that no job can meet, and such as are none.

use std::time::Duration;

use tests::{
    clouds::{
        Cloud as _, Message,
        aws::{Aws, batch, failures},
    },
    runtime_api::deadline_in,
};

use super::delivery;
use crate::scenarios::{WAITS, go};

#[test]
fn without_time_nothing_is_claimed_and_nonsense_is_no_deadline() {
    let cloud = Aws::new(WAITS);
    go(&cloud);
    let function = cloud.handler(&[]);
    let delivery = delivery(&cloud);
    assert_eq!(
        failures(
            &function
                .api
                .send(&delivery, deadline_in(Duration::ZERO))
                .answer()
        ),
        ["m"]
    );
    assert_eq!(cloud.claims().len(), 0);
    // An emulator's deadline, in 1970; then one that no clock reaches; each an object of its own.
    for (number, deadline) in [600_000, 0, u64::MAX].into_iter().enumerate() {
        let key = format!("{number}.shp");
        let message = Message::new("m", cloud.notified(&key, &key));
        let delivery = batch(&cloud.names.queue_arn, &[message]);
        assert_eq!(
            failures(&function.api.send(&delivery, deadline).answer()),
            [""; 0],
            "{deadline}"
        );
        assert_eq!(cloud.claim_of(&key).standing(), ("done", 1));
    }
}
