//! A blob trigger posts the whole blob with its event: reading that must not take memory for it. A test of its own, since
//! memory is measured for the whole process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(
    clippy::disallowed_methods,
    reason = "the system knows how much memory was taken"
)]

use identity_core::event::{Delivery, Reading, read};

/// The most memory that this process has had at once, in bytes.
fn peak_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let kib: usize = line.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    kib * 1024
}

#[test]
fn a_blob_of_200_mb_in_its_event_takes_no_memory_to_read() {
    const BLOB: usize = 200 << 20;
    let uri = "https://acct.blob.core.windows.net/geo-in/in/a.tif";
    let mut body = String::with_capacity(BLOB + 1_000);
    body.push_str(r#"{"Data":{"blob":""#);
    body.extend(std::iter::repeat_n('A', BLOB));
    body.push_str(r#""},"Metadata":{"Uri":""#);
    let good = body.len();
    body.push_str(uri);
    body.push_str(r#""}}"#);

    let before = peak_memory();
    let items = read(&Delivery::from_body(body.as_bytes()));
    assert!(
        matches!(&items[..], [item] if matches!(&item.reading, Reading::Event(event) if event.token.is_none()))
    );
    // A URI that cannot be read does not keep the blob either.
    body.replace_range(good..good + uri.len(), &"x".repeat(uri.len()));
    let items = read(&Delivery::from_body(body.as_bytes()));
    assert!(
        matches!(&items[..], [item] if matches!(&item.reading, Reading::Unreadable(unreadable) if unreadable.bytes.len() < 200))
    );
    let grown = peak_memory() - before;
    assert!(grown < 4 << 20, "{grown} bytes more");
    assert!(before > BLOB, "the measure measures");
}
