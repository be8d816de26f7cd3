//! Buckets that keep versions.

use serde_json::json;
use tests::{
    clouds::{
        Cloud as _, Message,
        aws::{Aws, batch, failures},
    },
    notification,
};

use crate::scenarios::NOTES;

#[test]
fn each_version_of_a_versioned_object_is_read_as_it_was() {
    let cloud = Aws::new(NOTES);
    cloud.version_the_bucket();
    let function = cloud.handler(&[]);
    let versions =
        ["first", "second"].map(|content| cloud.put_version("roads.shp", content).1.unwrap());
    // The older one is delivered last, when the newer has long taken its place.
    for version in versions.iter().rev() {
        let record = json!({
            "eventVersion": "2.1", "eventSource": "aws:s3", "eventName": "ObjectCreated:Put",
            "s3": {"bucket": {"name": cloud.names.bucket}, "object": {"key": "roads.shp", "eTag": "e", "versionId": version}},
        });
        let message = Message::new(version, notification(&[record.to_string()]));
        assert_eq!(
            failures(
                &function
                    .api
                    .invoke(&batch(&cloud.names.queue_arn, &[message]))
            ),
            [""; 0]
        );
    }
    assert_eq!(
        cloud.folder().lines("ran"),
        ["roads.shp 1 second", "roads.shp 1 first"]
    );
    let done = cloud
        .claims()
        .iter()
        .filter(|claim| claim.standing() == ("done", 1))
        .count();
    assert_eq!(done, 2);
}
