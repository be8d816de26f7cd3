//! Records for the tests of stores: the bare one, the full one, and records of every shape.

use std::ops::RangeInclusive;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

use crate::claim::record::{
    ClaimKey, Owner, Reason, Record, RecordedObject, RecordedPipeline, Release, Revision, Status,
    UnixMillis, UnixSeconds,
};
use crate::identity::{Provider, TokenKind};

/// A claim with nothing but a revision.
pub fn bare(status: Status, write: u32) -> Record {
    Record {
        attempt: 1,
        revision: Some(Revision {
            owner: Owner(7),
            write,
        }),
        ..Record::new(
            status,
            UnixSeconds(1_700_000_000),
            RecordedPipeline::default(),
        )
    }
}

/// A record with every field set, to something that a careless encoding would lose.
pub fn full() -> Record {
    let owner = Owner(1);
    Record {
        status: Status::Rejected,
        attempt: u32::MAX,
        owner: Some(owner),
        revision: Some(Revision {
            owner,
            write: u32::MAX,
        }),
        claimed_at: UnixSeconds(1),
        lease_until: Some(UnixMillis(1_767_323_165_001)),
        waiting_until: Some(UnixMillis(1_767_323_165_002)),
        finished_at: Some(UnixSeconds(1_767_323_165)),
        expires_at: Some(UnixSeconds(i64::from(u32::MAX) + 1)),
        object: Some(RecordedObject {
            provider: Provider::Azure,
            account: Some("acct".into()),
            container: "geo".into(),
            key: "العربية/地図/🗺 'quoted' \"twice\" \\ \t%2F.shp ".into(),
            raw_key: Some(" raw+%20 ".into()),
            token: Some((
                TokenKind::VersionId,
                "3HL4kqtJlcpXroDTDmJ.rmSpXd3dIbrHY".into(),
            )),
        }),
        pipeline: RecordedPipeline {
            name: "naïve".into(),
            version: "1.0.0-β".into(),
            scheme: "reference".into(),
            params_digest: "a".repeat(64),
            contract_digest: "b".repeat(64),
        },
        redrives: 3,
        reason: Some(Reason::Exhausted),
        error: Some("first line\nsecond line: 'é'".into()),
        result: Some(format!(
            "{{\"text\":\"{}\"}}",
            "x".repeat(Record::MAX_RESULT_BYTES - 11)
        )),
        body: Some(
            (0..Record::MAX_BODY_BYTES)
                .map(|at| u8::try_from(at % 256).unwrap_or(0))
                .collect(),
        ),
        released: Some(Release {
            at: UnixSeconds(1_767_323_165),
            from: Status::Done,
            attempt: 7,
        }),
        uncounted: 5,
    }
}

/// The key number `number`; keys sort as their numbers do.
pub fn numbered_key(number: u64) -> ClaimKey {
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&number.to_be_bytes());
    ClaimKey::from_digest(digest)
}

/// Any key.
pub fn key() -> impl Strategy<Value = ClaimKey> {
    any::<[u8; 32]>().prop_map(ClaimKey::from_digest)
}

/// Any record: texts of any characters, U+0000 among them, and the longest result and body that a store keeps.
pub fn record() -> impl Strategy<Value = Record> {
    record_within(i64::MIN..=i64::MAX)
}

/// Any record whose times lie within these seconds.
pub fn record_within(times: RangeInclusive<i64>) -> impl Strategy<Value = Record> {
    let millis = times.start().saturating_mul(1_000)..=times.end().saturating_mul(1_000);
    let status = || select(Status::ALL.to_vec());
    let reason = select(Reason::all().collect::<Vec<_>>());
    let owner = || any::<u128>().prop_map(Owner);
    let seconds = || times.clone().prop_map(UnixSeconds);
    let millis = || millis.clone().prop_map(UnixMillis);
    let revision = (owner(), any::<u32>()).prop_map(|(owner, write)| Revision { owner, write });
    let release = (seconds(), status(), any::<u32>()).prop_map(|(at, from, attempt)| Release {
        at,
        from,
        attempt,
    });
    let result = prop_oneof![
        any::<String>(),
        Just("é".repeat(Record::MAX_RESULT_BYTES / 2))
    ];
    let body = prop_oneof![
        vec(any::<u8>(), 0..64),
        Just(vec![0xff; Record::MAX_BODY_BYTES])
    ];
    let who = (
        status(),
        any::<u32>(),
        of(owner()),
        of(revision),
        any::<u32>(),
    );
    let times = (
        seconds(),
        of(millis()),
        of(millis()),
        of(seconds()),
        of(seconds()),
    );
    let what = (of(object()), pipeline());
    let why = (
        of(reason),
        of(any::<String>()),
        of(result),
        of(body),
        (of(release), any::<u32>()),
    );
    (who, times, what, why).prop_map(
        |(
            (status, attempt, owner, revision, redrives),
            (claimed_at, lease_until, waiting_until, finished_at, expires_at),
            (object, pipeline),
            (reason, error, result, body, (released, uncounted)),
        )| Record {
            status,
            attempt,
            owner,
            revision,
            claimed_at,
            lease_until,
            waiting_until,
            finished_at,
            expires_at,
            object,
            pipeline,
            redrives,
            reason,
            error,
            result,
            body,
            released,
            uncounted,
        },
    )
}

fn object() -> impl Strategy<Value = RecordedObject> {
    use {Provider as P, TokenKind as T};
    let provider = select(vec![P::S3, P::Gcs, P::Azure, P::File]);
    let kind = select(vec![T::VersionId, T::ETag, T::Generation, T::Content]);
    let text = any::<String>;
    (
        provider,
        of(text()),
        text(),
        text(),
        of(text()),
        of((kind, text())),
    )
        .prop_map(
            |(provider, account, container, key, raw_key, token)| RecordedObject {
                provider,
                account,
                container,
                key,
                raw_key,
                token,
            },
        )
}

fn pipeline() -> impl Strategy<Value = RecordedPipeline> {
    any::<[String; 5]>().prop_map(|[name, version, scheme, params_digest, contract_digest]| {
        RecordedPipeline {
            name,
            version,
            scheme,
            params_digest,
            contract_digest,
        }
    })
}
