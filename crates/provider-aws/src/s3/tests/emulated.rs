//! Objects on moto: unversioned, versioned and suspended buckets, and reads pinned to what is, or is no longer, there.

use std::sync::Arc;

use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{
    BucketLocationConstraint, BucketVersioningStatus, CreateBucketConfiguration,
    VersioningConfiguration,
};

use identity_core::object::conformance;

use super::*;
use crate::testing::{emulator, unused_name};

/// A key that every place which encodes or shortens names would change.
const KEY: &str = "a//b ü+%2B &amp; ?#c.txt";

/// A bucket of the test's own.
struct Bucket {
    objects: S3Objects,
    client: Client,
    name: String,
}

impl Bucket {
    async fn new() -> Self {
        let objects = objects(&emulator("TEST_MOTO_URL")).await;
        let (client, name) = (objects.client.clone(), unused_name("objects"));
        let place = CreateBucketConfiguration::builder()
            .location_constraint(BucketLocationConstraint::EuCentral1)
            .build();
        let create = client.create_bucket().bucket(&name);
        let create = create.create_bucket_configuration(place);
        create.send().await.unwrap();
        Self {
            objects,
            client,
            name,
        }
    }

    async fn versioning(&self, status: BucketVersioningStatus) {
        let versioning = VersioningConfiguration::builder().status(status).build();
        let put = self.client.put_bucket_versioning().bucket(&self.name);
        let put = put.versioning_configuration(versioning);
        put.send().await.unwrap();
    }

    fn address(&self) -> ObjectAddress {
        address(&self.name, KEY)
    }

    async fn head(&self) -> Option<Head> {
        self.objects.head(&self.address()).await.unwrap()
    }

    /// Writes the object; what a HEAD says then.
    async fn put(&self, text: &str) -> Head {
        let put = self.client.put_object().bucket(&self.name).key(KEY);
        let body = ByteStream::from(text.as_bytes().to_vec());
        let written = put.body(body).send().await.unwrap();
        let head = self.head().await.unwrap();
        assert_eq!(head.size, u64::try_from(text.len()).unwrap());
        let etag = VersionToken::new(TokenKind::ETag, written.e_tag().unwrap()).unwrap();
        assert_eq!(head.etag, Some(etag));
        if head.token.kind() == TokenKind::VersionId {
            assert_eq!(Some(head.token.value()), written.version_id());
        } else {
            assert_eq!(Some(&head.token), head.etag.as_ref());
        }
        head
    }

    /// Removes the object, or one version of it; the version ID of the deletion, where there is one.
    async fn remove(&self, version: Option<&str>) -> Option<String> {
        let delete = self.client.delete_object().bucket(&self.name).key(KEY);
        let delete = delete.set_version_id(version.map(str::to_owned));
        delete.send().await.unwrap().version_id
    }

    /// What a read of this version gives; `None` if the object has changed.
    async fn read(&self, token: &VersionToken) -> Option<String> {
        let object = ObjectVersion {
            address: self.address(),
            token: token.clone(),
        };
        match self.objects.read(&object).await {
            Ok(mut stream) => {
                let mut text = String::new();
                stream.read_to_string(&mut text).await.unwrap();
                Some(text)
            }
            Err(ObjectError::Changed) => None,
            Err(error) => panic!("{}", error_chain(&error)),
        }
    }
}

#[tokio::test]
async fn without_versioning_the_etag_pins_a_read() {
    let bucket = Bucket::new().await;
    assert_eq!(bucket.head().await, None);
    let first = bucket.put("first").await;
    assert_eq!(first.token.kind(), TokenKind::ETag);
    assert_eq!(bucket.read(&first.token).await.as_deref(), Some("first"));
    let second = bucket.put("the second").await;
    assert_eq!(bucket.read(&first.token).await, None);
    let read = bucket.read(&second.token).await;
    assert_eq!(read.as_deref(), Some("the second"));
    bucket.remove(None).await;
    assert_eq!(bucket.read(&second.token).await, None);
    assert_eq!(bucket.head().await, None);
}

#[tokio::test]
async fn with_versioning_a_version_is_read_after_others_have_come() {
    let bucket = Bucket::new().await;
    bucket.versioning(BucketVersioningStatus::Enabled).await;
    let first = bucket.put("first").await;
    // The same bytes again are another version.
    let second = bucket.put("first").await;
    assert_eq!(first.token.kind(), TokenKind::VersionId);
    assert_ne!(first.token, second.token);
    assert_eq!(first.etag, second.etag);
    bucket.put("third").await;
    assert_eq!(bucket.read(&first.token).await.as_deref(), Some("first"));

    let deletion = bucket.remove(None).await.unwrap();
    assert_eq!(bucket.head().await, None);
    assert_eq!(bucket.read(&first.token).await.as_deref(), Some("first"));
    let deletion = VersionToken::new(TokenKind::VersionId, deletion).unwrap();
    assert_eq!(bucket.read(&deletion).await, None);

    bucket.remove(Some(first.token.value())).await;
    assert_eq!(bucket.read(&first.token).await, None);
}

#[tokio::test]
async fn while_versioning_is_suspended_the_etag_is_the_token() {
    let bucket = Bucket::new().await;
    bucket.versioning(BucketVersioningStatus::Enabled).await;
    bucket.put("versioned").await;
    bucket.versioning(BucketVersioningStatus::Suspended).await;
    let first = bucket.put("first").await;
    assert_eq!(first.token.kind(), TokenKind::ETag);
    bucket.put("second").await;
    assert_eq!(bucket.read(&first.token).await, None);
}

#[async_trait]
impl conformance::Subject for Bucket {
    fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::new(self.objects.clone())
    }
    fn container(&self) -> ObjectAddress {
        self.address()
    }
    fn missing_container(&self) -> ObjectAddress {
        address(&unused_name("nowhere"), KEY)
    }
    /// S3 has keys with line breaks, and moto has none: it answers such a PUT with 404.
    fn can_hold(&self, key: &[u8]) -> bool {
        std::str::from_utf8(key).is_ok_and(|key| !key.contains(['\n', '\r']))
    }
    fn page(&self) -> usize {
        usize::try_from(self.objects.page).unwrap()
    }
    async fn put(&self, address: &ObjectAddress, content: &[u8]) {
        let put = self.client.put_object().bucket(&self.name);
        let put = put.key(address.key.exact().unwrap());
        let body = ByteStream::from(content.to_vec());
        put.body(body).send().await.unwrap();
    }
    async fn delete(&self, address: &ObjectAddress) {
        let delete = self.client.delete_object().bucket(&self.name);
        let delete = delete.key(address.key.exact().unwrap());
        delete.send().await.unwrap();
    }
}

#[tokio::test]
async fn a_bucket_conforms_with_and_without_versioning() {
    let bucket = Bucket::new().await;
    let failures = conformance::run(&bucket).await;
    assert!(failures.is_empty(), "{failures:#?}");

    let mut bucket = Bucket::new().await;
    bucket.versioning(BucketVersioningStatus::Enabled).await;
    // A thousand objects were more than a page once: that is enough.
    bucket.objects.page = 7;
    let failures = conformance::run(&bucket).await;
    assert!(failures.is_empty(), "versioned: {failures:#?}");
}

#[tokio::test]
async fn a_bucket_that_is_not_there_is_an_error() {
    let objects = objects(&emulator("TEST_MOTO_URL")).await;
    let nowhere = address(&unused_name("nowhere"), KEY);
    let head = objects.head(&nowhere).await.map(|_| ());
    let object = version(&nowhere, TokenKind::ETag, "9b2cf5");
    let read = objects.read(&object).await.map(|_| ());
    for refused in [head, read] {
        let told = error_chain(&refused.unwrap_err());
        assert!(told.contains("no such bucket"), "{told}");
    }
}
