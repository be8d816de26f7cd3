//! What S3's answers mean, from scripted servers; and, with the feature `emulators`, objects on an emulator.

use std::sync::atomic::Ordering;

use identity_core::identity::ObjectKey;
use identity_core::text::error_chain;
use tokio::io::AsyncReadExt as _;

use super::*;
use crate::testing::{Says, configuration, server};

/// The objects of whatever answers here: in the path, as `Aws` has it for an emulator.
async fn objects(url: &str) -> S3Objects {
    let config = aws_sdk_s3::config::Builder::from(&configuration(url).await);
    S3Objects::new(Client::from_conf(config.force_path_style(true).build()))
}

fn address(bucket: &str, key: &str) -> ObjectAddress {
    ObjectAddress {
        provider: Provider::S3,
        account: None,
        container: bucket.to_owned(),
        key: ObjectKey::verbatim(key),
    }
}

fn version(address: &ObjectAddress, kind: TokenKind, token: &str) -> ObjectVersion {
    ObjectVersion {
        address: address.clone(),
        token: VersionToken::new(kind, token).unwrap(),
    }
}

/// What a HEAD and a read of one object get from a server that always says this, and how often both asked.
async fn asked(
    says: Says,
) -> (
    Result<Option<Head>, ObjectError>,
    Result<(), ObjectError>,
    usize,
) {
    let (url, asked) = server(vec![says]);
    let objects = objects(&url).await;
    let address = address("uploads", "a.tif");
    let head = objects.head(&address).await;
    let read = objects
        .read(&version(&address, TokenKind::ETag, "9b2cf5"))
        .await;
    (head, read.map(|_| ()), asked.load(Ordering::SeqCst))
}

#[tokio::test]
async fn only_an_object_that_is_not_there_is_gone_or_changed() {
    // The bucket is there, or may not be asked for.
    for bucket in [200, 403] {
        let (url, _) = server(vec![Says::answer(404, ""), Says::answer(bucket, "")]);
        let head = objects(&url).await.head(&address("uploads", "a.tif")).await;
        assert!(matches!(head, Ok(None)), "{head:?}");
    }
    let (_, read, _) = asked(Says::answer(404, "")).await;
    assert!(matches!(read, Err(ObjectError::Changed)), "{read:?}");
    for status in [400, 403, 429, 500, 503] {
        let (head, read, _) = asked(Says::answer(status, "")).await;
        for refused in [head.map(|_| ()), read] {
            assert!(
                matches!(refused, Err(ObjectError::Unavailable { .. })),
                "{status}: {refused:?}"
            );
        }
    }
    let (head, read, _) = asked(Says::Nothing).await;
    for refused in [head.map(|_| ()), read] {
        assert!(
            matches!(refused, Err(ObjectError::Unavailable { .. })),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn an_object_of_a_missing_bucket_is_not_gone() {
    let error = "<Error><Code>NoSuchBucket</Code><Message>none</Message></Error>";
    let (head, read, _) = asked(Says::answer(404, error)).await;
    for refused in [head.map(|_| ()), read] {
        let told = error_chain(&refused.unwrap_err());
        assert!(told.contains("no such bucket"), "{told}");
    }
}

#[tokio::test]
async fn a_version_that_is_overwritten_or_a_deletion_is_changed() {
    for status in [412, 405] {
        let (_, read, _) = asked(Says::answer(status, "")).await;
        assert!(
            matches!(read, Err(ObjectError::Changed)),
            "{status}: {read:?}"
        );
    }
}

#[tokio::test]
async fn a_service_in_trouble_is_asked_three_times() {
    let (_, _, times) = asked(Says::answer(503, "")).await;
    assert_eq!(times, 6, "HEAD and GET");
    let (_, _, times) = asked(Says::answer(403, "")).await;
    assert_eq!(times, 2, "HEAD and GET");
}

#[tokio::test]
async fn what_a_person_must_mend_is_said() {
    let elsewhere = Says::Answer {
        status: 301,
        header: "x-amz-bucket-region: eu-west-3",
        body: String::new(),
        missing: 0,
    };
    for (says, hint) in [
        (elsewhere, "run this with AWS_REGION=eu-west-3"),
        (Says::answer(403, ""), "s3:ListBucket"),
    ] {
        let (head, read, _) = asked(says).await;
        for refused in [head.unwrap_err(), read.unwrap_err()] {
            let told = error_chain(&refused);
            assert!(
                told.contains("s3://uploads/a.tif") && told.contains(hint),
                "{told}"
            );
        }
    }
}

#[tokio::test]
async fn a_head_without_any_token_is_no_version() {
    let (head, ..) = asked(Says::answer(200, "")).await;
    let told = error_chain(&head.unwrap_err());
    assert!(told.contains("neither a version ID nor an ETag"), "{told}");
}

/// What S3 sends while versioning is suspended, and a gateway that sends an empty header.
#[tokio::test]
async fn a_version_id_that_names_no_one_version_is_no_token() {
    for header in [
        "ETag: \"9b2cf5\"\r\nx-amz-version-id: null",
        "ETag: \"9b2cf5\"\r\nx-amz-version-id: ",
    ] {
        let (head, ..) = asked(Says::Answer {
            status: 200,
            header,
            body: String::new(),
            missing: 0,
        })
        .await;
        let head = head.unwrap().unwrap();
        assert_eq!(
            (head.token.kind(), head.token.value()),
            (TokenKind::ETag, "9b2cf5")
        );
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_an_error_and_no_end() {
    let (url, _) = server(vec![Says::Answer {
        status: 200,
        header: "ETag: \"9b2cf5\"",
        body: "half".to_owned(),
        missing: 4,
    }]);
    let object = version(&address("uploads", "a.tif"), TokenKind::ETag, "9b2cf5");
    let mut read = objects(&url).await.read(&object).await.unwrap();
    let mut bytes = Vec::new();
    let end = read.read_to_end(&mut bytes).await;
    assert!(end.is_err(), "{end:?}: {bytes:?}");
}

#[tokio::test]
async fn what_is_not_in_s3_is_not_asked_for() {
    let (url, asked) = server(vec![Says::answer(200, "")]);
    let objects = objects(&url).await;
    assert!(objects.reads(Provider::S3) && !objects.reads(Provider::Gcs));
    let elsewhere = ObjectAddress {
        provider: Provider::Gcs,
        ..address("uploads", "a.tif")
    };
    assert!(objects.head(&elsewhere).await.is_err());
    let foreign = version(&address("uploads", "a.tif"), TokenKind::Generation, "1");
    assert!(objects.read(&foreign).await.is_err());
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[cfg(feature = "emulators")]
mod emulated;
