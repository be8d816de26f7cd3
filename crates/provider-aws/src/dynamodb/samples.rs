//! Records and keys for tests.

use identity_core::claim::{
    ClaimKey, Owner, Record, RecordedObject, RecordedPipeline, Revision, Status, UnixSeconds,
};
use identity_core::identity::{Provider, TokenKind};

/// A claim with nothing but a revision.
pub(crate) fn bare(status: Status, write: u32) -> Record {
    let owner = Owner(7);
    Record {
        status,
        attempt: 1,
        owner: None,
        revision: Some(Revision { owner, write }),
        claimed_at: UnixSeconds(1_700_000_000),
        lease_until: None,
        waiting_until: None,
        finished_at: None,
        expires_at: None,
        object: None,
        pipeline: RecordedPipeline::default(),
        redrives: 0,
        reason: None,
        error: None,
        result: None,
        body: None,
        released: None,
    }
}

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
