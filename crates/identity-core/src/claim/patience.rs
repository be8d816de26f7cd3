//! How long one call to a store, an object store or a queue may take: a part of the claim protocol, since a call that takes
//! longer than a lease is worth nothing. Each provider tells its client these.

use std::time::Duration;

/// How long one try may take, from the request to the head of the answer.
pub const TRY: Duration = Duration::from_secs(3);
/// How long a call may take with all its tries: well within a lease.
pub const CALL: Duration = Duration::from_secs(10);
/// How long to wait for a connection, TLS included.
pub const CONNECT: Duration = Duration::from_secs(2);
/// How often a call is tried at most.
pub const TRIES: u32 = 3;
/// How long the first pause between tries may be; each is random, and the next may be twice as long.
pub const PAUSE: Duration = Duration::from_millis(50);

// All tries fit into a call.
const _: () = assert!(CALL.as_millis() >= TRY.as_millis() * TRIES as u128 + 3 * PAUSE.as_millis());
