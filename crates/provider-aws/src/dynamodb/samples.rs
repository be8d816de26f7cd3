//! Claims and keys for the tests on emulators.

use identity_core::claim::conformance::samples::bare;
use identity_core::claim::{ClaimKey, Owner, Record, RecordedObject, Revision, Status};
use identity_core::identity::{Provider, TokenKind};

/// A claim by this caller.
pub(crate) fn claim(caller: u128, write: u32) -> Record {
    let owner = Owner(caller);
    Record {
        owner: Some(owner),
        revision: Some(Revision { owner, write }),
        object: Some(RecordedObject {
            provider: Provider::S3,
            account: None,
            container: "geo-uploads".to_owned(),
            key: "parcels/county.shp".to_owned(),
            raw_key: None,
            token: Some((TokenKind::ETag, "9b2cf5".to_owned())),
        }),
        ..bare(Status::Processing, write)
    }
}

/// The key number `number`: a different first character for each of 16 in a row, so that all shards are used.
pub(crate) fn numbered_key(number: u64) -> ClaimKey {
    let mut digest = [0; 32];
    digest[0] = u8::try_from(number % 16).unwrap_or(0) << 4;
    digest[1..9].copy_from_slice(&number.to_be_bytes());
    ClaimKey::from_digest(digest)
}
