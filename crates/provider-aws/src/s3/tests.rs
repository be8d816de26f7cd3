//! What S3's answers mean, from scripted servers; and, with the feature `emulators`, objects on an emulator.

use std::sync::atomic::Ordering;

use identity_core::identity::ObjectKey;
use identity_core::text::error_chain;
use tokio::io::AsyncReadExt as _;

use super::*;
use crate::testing::{Says, configuration, recording_server, server};

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

/// What S3 answers to who may list only what begins with a prefix: 403, whether the object is gone or may not be read.
#[tokio::test]
async fn an_object_that_a_listing_has_not_is_gone() {
    let page = |count: u32, key: &str| {
        let object = format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>");
        let object = if key.is_empty() { "" } else { &object };
        format!(
            "<ListBucketResult><Name>uploads</Name><KeyCount>{count}</KeyCount><EncodingType>url</EncodingType>\
             <IsTruncated>false</IsTruncated>{object}</ListBucketResult>"
        )
    };
    for (listing, gone) in [
        (Says::answer(200, page(0, "")), true),
        (Says::answer(200, page(1, "a.tif.aux.xml")), true),
        (Says::answer(200, page(1, "a.tif")), false),
        // No answer of S3's.
        (Says::answer(200, "<html></html>"), false),
        (Says::answer(403, ""), false),
    ] {
        let (url, requests) = recording_server(vec![Says::answer(403, ""), listing]);
        let head = objects(&url).await.head(&address("uploads", "a.tif")).await;
        let requests = requests.lock().unwrap();
        let asked = &requests[1];
        assert!(asked.contains("prefix=a.tif"), "{asked}");
        match head {
            Ok(None) => assert!(gone, "{asked}"),
            told => assert!(!gone && told.is_err(), "{told:?}"),
        }
    }
}

#[tokio::test]
async fn a_bucket_that_does_not_answer_may_be_another_one() {
    for says in [Says::answer(503, ""), Says::Nothing] {
        let (url, _) = server(vec![Says::answer(404, ""), says]);
        let head = objects(&url).await.head(&address("uploads", "a.tif")).await;
        assert!(head.is_err(), "{head:?}");
    }
}

/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html#API_GetObject_Errors>
#[tokio::test]
async fn a_refusal_is_told_by_its_code() {
    let error = |code: &str, message: &str| {
        format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>")
    };
    let kms = "User: r is not authorized to perform: kms:Decrypt on resource: k";
    for (status, code, message, hint) in [
        (403, "InvalidObjectState", "not valid", "restore-object"),
        (403, "AccessDenied", kms, "kms:Decrypt on the key"),
        (
            400,
            "KMS.DisabledException",
            "off",
            "kms:Decrypt on the key",
        ),
        (403, "AccessDenied", "Access Denied", "s3:GetObject"),
    ] {
        let (_, read, _) = asked(Says::answer(status, error(code, message))).await;
        let told = error_chain(&read.unwrap_err());
        assert!(told.contains(hint), "{told}");
    }
}

#[tokio::test]
async fn a_service_in_trouble_is_asked_three_times() {
    let (_, _, times) = asked(Says::answer(503, "")).await;
    assert_eq!(times, 6, "HEAD and GET");
    let (_, _, times) = asked(Says::answer(403, "")).await;
    assert_eq!(times, 3, "HEAD, a listing and GET");
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

/// The first page as S3 documents it, and as it answers `encoding-type=url`: a blank is `+`, `/` stands for itself, and
/// what XML cannot hold is escaped. <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>
const FIRST_PAGE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>uploads</Name><Prefix>in/a+%28%2B%29.</Prefix>
<NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</NextContinuationToken><KeyCount>3</KeyCount>
<MaxKeys>11</MaxKeys><Delimiter>/</Delimiter><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>
<Contents><Key>in/a+%28%2B%29.%2520%01%0D%0A</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified>
<ETag>&quot;9b2cf535f27731c974343645a3985328&quot;</ETag><Size>5368709121</Size><StorageClass>STANDARD</StorageClass></Contents>
<Contents><Key>in/a+%28%2B%29.%E6%9D%B1%E4%BA%AC.shp</Key><LastModified>2026-01-02T03:04:06.789Z</LastModified>
<ETag>&quot;x&quot;</ETag><Size>0</Size></Contents>
<CommonPrefixes><Prefix>in/a+%28%2B%29.d/</Prefix></CommonPrefixes></ListBucketResult>"#;

const LAST_PAGE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>
<Contents><Key>in/a+%28%2B%29.%FF</Key><LastModified>2026-01-02T03:04:05Z</LastModified><Size>1</Size></Contents></ListBucketResult>"#;

fn eleven() -> NonZeroU32 {
    NonZeroU32::new(11).unwrap()
}

#[tokio::test]
async fn keys_that_xml_cannot_hold_are_asked_for_encoded_and_decoded_once() {
    let says = vec![Says::answer(200, FIRST_PAGE), Says::answer(200, LAST_PAGE)];
    let (url, requests) = recording_server(says);
    let prefix = address("uploads", "in/a (+).");
    let listed = objects(&url).await.list(&prefix, eleven()).await.unwrap();
    let told: Vec<_> = listed
        .iter()
        .map(|entry| {
            let key = entry.address.key.exact_bytes();
            (key, entry.size, entry.modified.unwrap().0)
        })
        .collect();
    assert_eq!(
        told,
        [
            (
                &b"in/a (+).%20\x01\r\n"[..],
                5_368_709_121,
                1_767_323_045_000
            ),
            ("in/a (+).東京.shp".as_bytes(), 0, 1_767_323_046_789),
            (b"in/a (+).\xff", 1, 1_767_323_045_000),
        ]
    );
    assert!(listed.iter().all(|entry| entry.token.is_none()));
    let requests = requests.lock().unwrap();
    assert_eq!(requests.len(), 2);
    for asked in requests.iter() {
        for wanted in [
            "GET /uploads/?",
            "list-type=2",
            "prefix=in%2Fa%20%28%2B%29.",
            "delimiter=%2F",
            "encoding-type=url",
            "max-keys=12",
        ] {
            assert!(asked.contains(wanted), "{wanted}: {asked}");
        }
    }
    let next = "continuation-token=1ueGcxLPRx1Tr%2FXYExHnhbYLgveDs2J%2Fwm36Hy4vbOwM%3D";
    assert!(requests[1].contains(next), "{}", requests[1]);
}

/// As a server answers that does not know `encoding-type`.
#[tokio::test]
async fn keys_that_a_server_does_not_encode_are_taken_as_they_are() {
    let page = "<ListBucketResult><Contents><Key>a+b%20&amp;.shp</Key><Size>1</Size></Contents></ListBucketResult>";
    let (url, _) = server(vec![Says::answer(200, page)]);
    let listed = objects(&url).await;
    let listed = listed
        .list(&address("uploads", "a+"), eleven())
        .await
        .unwrap();
    assert_eq!(listed[0].address, address("uploads", "a+b%20&.shp"));
    assert_eq!(listed[0].modified, None);
}

#[tokio::test]
async fn a_listing_that_cannot_be_believed_is_an_error_and_no_part_of_one() {
    let entry =
        |entry: &str| format!("<ListBucketResult><Contents>{entry}</Contents></ListBucketResult>");
    for (page, wrong) in [
        (entry("<Size>1</Size>"), "without a key"),
        (entry("<Key>a.shp</Key>"), "without a size"),
        (entry("<Key>b.shp</Key><Size>1</Size>"), "does not begin so"),
        (
            "<ListBucketResult><IsTruncated>true</IsTruncated><NextMarker>a.shp</NextMarker><Contents><Key>a.shp</Key>\
             <Size>1</Size></Contents></ListBucketResult>"
                .to_owned(),
            "not where they go on",
        ),
    ] {
        let (url, _) = server(vec![Says::answer(200, page)]);
        let listed = objects(&url).await;
        let listed = listed.list(&address("uploads", "a."), eleven()).await;
        let told = error_chain(&listed.unwrap_err());
        assert!(
            told.contains("s3://uploads/a.") && told.contains(wrong),
            "{told}"
        );
    }
    // The second page does not come.
    let (url, _) = server(vec![Says::answer(200, FIRST_PAGE), Says::answer(503, "")]);
    let prefix = address("uploads", "in/a (+).");
    let listed = objects(&url).await.list(&prefix, eleven()).await;
    assert!(
        matches!(listed, Err(ObjectError::Unavailable { .. })),
        "{listed:?}"
    );
}

#[tokio::test]
async fn folders_of_objects_that_begin_so_do_not_make_a_listing_endless() {
    let (url, asked) = server(vec![Says::answer(200, FIRST_PAGE)]);
    let prefix = address("uploads", "in/a (+).");
    let two = NonZeroU32::new(2).unwrap();
    let listed = objects(&url).await.list(&prefix, two).await;
    assert!(
        matches!(listed, Err(ObjectError::TooMany { .. })),
        "{listed:?}"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn who_may_not_list_is_told_what_is_needed() {
    let none = "<Error><Code>NoSuchBucket</Code><Message>none</Message></Error>";
    for (status, body, hint) in [(403, "", "s3:ListBucket"), (404, none, "no such bucket")] {
        let (url, _) = server(vec![Says::answer(status, body)]);
        let listed = objects(&url).await;
        let listed = listed.list(&address("uploads", "a."), eleven()).await;
        let told = error_chain(&listed.unwrap_err());
        assert!(
            told.contains("s3://uploads/a.") && told.contains(hint),
            "{told}"
        );
    }
}

#[cfg(feature = "emulators")]
mod emulated;
