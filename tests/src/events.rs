//! Events of S3, as JSON texts.

/// An S3 record of a put into the bucket `geo-in`, as JSON text.
pub fn record(key: &str, etag: &str) -> String {
    record_in("geo-in", key, etag)
}

/// The same of another bucket.
pub fn record_in(bucket: &str, key: &str, etag: &str) -> String {
    serde_json::json!({
        "eventVersion": "2.1", "eventSource": "aws:s3", "eventName": "ObjectCreated:Put",
        "s3": {"bucket": {"name": bucket}, "object": {"key": key, "eTag": etag}},
    })
    .to_string()
}

/// A notification of these records.
pub fn notification(records: &[String]) -> String {
    format!("{{\"Records\":[{}]}}", records.join(","))
}
