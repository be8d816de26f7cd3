//! Objects in S3: what is there now, reads pinned to one version, and listings.

use std::num::NonZeroU32;

use async_trait::async_trait;
use aws_sdk_s3::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    operation::list_objects_v2::ListObjectsV2Output,
    types::{EncodingType, Object},
};
use identity_core::{
    claim::UnixMillis,
    identity::{
        ObjectAddress, ObjectKey, ObjectVersion, Provider, TokenKind, VersionToken,
        decode::form_decode,
    },
    object::{Head, Listed, ObjectError, ObjectStore, ObjectStream},
};

use crate::error;

/// The most objects that S3 lists at once.
const PAGE: u32 = 1_000;

/// Every bucket that the credentials may read, in the client's region. Which buckets an event may name is for the gate's
/// allow-list to say.
///
/// What the credentials need: `GetObject`, with versioning also `GetObjectVersion`, and `ListBucket` for what begins as the
/// keys do. S3 answers 404 for an object that is gone if the whole bucket may be listed, and 403 otherwise: a listing of the
/// key alone tells then. A bucket that is not there is no object
/// that is gone: the store is unavailable then, since the endpoint or the account may be the wrong one.
#[derive(Debug, Clone)]
pub struct S3Objects {
    client: Client,
    /// How many objects are listed at once.
    page: u32,
}

impl S3Objects {
    /// The objects that this client may read.
    pub fn new(client: Client) -> Self {
        Self { client, page: PAGE }
    }
}

#[async_trait]
impl ObjectStore for S3Objects {
    fn reads(&self, provider: Provider) -> bool {
        provider == Provider::S3
    }

    async fn head(&self, address: &ObjectAddress) -> Result<Option<Head>, ObjectError> {
        let key = named(address)?;
        let request = self
            .client
            .head_object()
            .bucket(&address.container)
            .key(key);
        let head = match request.send().await {
            Ok(head) => head,
            Err(error) => {
                return match status(&error) {
                    Some(404) => self.none_in(address).await,
                    Some(403) if self.lists_none(address, key).await => Ok(None),
                    _ => Err(refused(address, error, READING)),
                };
            }
        };
        let token = |kind, value: Option<&str>| match value {
            None => Ok(None),
            Some(value) => VersionToken::new(kind, value).map(Some),
        };
        // While versioning is suspended, every write has the version ID "null".
        let version = head.version_id().filter(|id| !matches!(*id, "" | "null"));
        let (version, etag) = token(TokenKind::VersionId, version)
            .and_then(|version| Ok((version, token(TokenKind::ETag, head.e_tag())?)))
            .map_err(|refusal| ObjectError::unavailable(address, refusal))?;
        let Some(token) = version.or_else(|| etag.clone()) else {
            return Err(ObjectError::unavailable(address, Unusable::NoToken));
        };
        Ok(Some(Head {
            token,
            etag,
            size: u64::try_from(head.content_length().unwrap_or(0)).unwrap_or(0),
        }))
    }

    async fn read(&self, object: &ObjectVersion) -> Result<ObjectStream, ObjectError> {
        let (address, token) = (&object.address, &object.token);
        let request = self
            .client
            .get_object()
            .bucket(&address.container)
            .key(named(address)?);
        let request = match token.kind() {
            TokenKind::VersionId => request.version_id(token.value()),
            TokenKind::ETag => request.if_match(format!("\"{}\"", token.value())),
            _ => {
                return Err(ObjectError::unavailable(
                    address,
                    Unusable::Token(token.clone()),
                ));
            }
        };
        match request.send().await {
            Ok(read) => Ok(Box::new(read.body.into_async_read())),
            Err(error) => match status(&error) {
                _ if error.code() == Some("NoSuchBucket") => {
                    Err(ObjectError::unavailable(address, Unusable::NoBucket))
                }
                // Overwritten; removed; the version is a deletion.
                Some(412 | 404 | 405) => Err(ObjectError::Changed),
                _ => Err(refused(address, error, READING)),
            },
        }
    }

    /// Tells no token: a listing has ETags and no version IDs, and whether HEAD would tell one it does not say. Counts
    /// each folder of objects that begin so once: S3 does, too.
    async fn list(
        &self,
        prefix: &ObjectAddress,
        most: NonZeroU32,
    ) -> Result<Vec<Listed>, ObjectError> {
        let begin = named(prefix)?;
        let most_at_once = most.get().saturating_add(1).min(self.page);
        let mut pages = self
            .client
            .list_objects_v2()
            .bucket(&prefix.container)
            .prefix(begin)
            .delimiter("/")
            // Keys may hold characters that XML 1.0 cannot.
            .encoding_type(EncodingType::Url)
            .into_paginator()
            .page_size(i32::try_from(most_at_once).unwrap_or(i32::MAX))
            .send();
        let (mut listed, mut folders, mut more) = (Vec::new(), 0, false);
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| match error.code() {
                Some("NoSuchBucket") => ObjectError::unavailable(prefix, Unusable::NoBucket),
                _ => refused(prefix, error, LISTING),
            })?;
            more = page.is_truncated() == Some(true);
            folders += page.common_prefixes().len();
            for object in page.contents() {
                let told = entry(prefix, begin, &page, object);
                listed.push(told.map_err(|error| ObjectError::unavailable(prefix, error))?);
            }
            if listed.len() + folders > usize::try_from(most.get()).unwrap_or(usize::MAX) {
                return Err(ObjectError::too_many(prefix, most));
            }
        }
        // The SDK ends its pages without a word where a server has more and does not say where they go on.
        if more {
            return Err(ObjectError::unavailable(prefix, Unusable::CutShort));
        }
        // S3's order is that of UTF-8, which directory buckets do not keep to.
        listed.sort_by(|a, b| a.address.key.exact_bytes().cmp(b.address.key.exact_bytes()));
        Ok(listed)
    }
}

/// One object of a page. Servers that do not encode keys do not say that they have.
fn entry(
    prefix: &ObjectAddress,
    begin: &str,
    page: &ListObjectsV2Output,
    object: &Object,
) -> Result<Listed, Unusable> {
    let told = object.key().ok_or(Unusable::NoKey)?;
    let key = match page.encoding_type() {
        // As a form: a blank is `+`.
        Some(EncodingType::Url) => ObjectKey::from_bytes(form_decode(told)),
        _ => ObjectKey::verbatim(told),
    };
    if !key.exact_bytes().starts_with(begin.as_bytes()) {
        return Err(Unusable::ElsewhereListed(told.to_owned()));
    }
    let size = object.size().and_then(|size| u64::try_from(size).ok());
    let modified = object.last_modified().and_then(|at| at.to_millis().ok());
    Ok(Listed {
        size: size.ok_or_else(|| Unusable::NoSize(told.to_owned()))?,
        address: prefix.beside(key),
        modified: modified.map(UnixMillis),
        token: None,
    })
}

impl S3Objects {
    /// There is no such object, unless the bucket itself is missing: a wrong endpoint or account has not seen the object go.
    /// The answer to a HEAD has no body that would tell the two apart.
    async fn none_in(&self, address: &ObjectAddress) -> Result<Option<Head>, ObjectError> {
        let request = self.client.head_bucket().bucket(&address.container);
        match request.send().await {
            Ok(_) => Ok(None),
            Err(error) => match status(&error) {
                Some(404) => Err(ObjectError::unavailable(address, Unusable::NoBucket)),
                // It is there, and may not be asked for.
                Some(403) => Ok(None),
                _ => Err(refused(address, error, LISTING)),
            },
        }
    }

    /// Whether S3 lists no object with this key. To who may list only what begins so, it does not say that one is gone:
    /// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html>
    async fn lists_none(&self, address: &ObjectAddress, key: &str) -> bool {
        let request = self
            .client
            .list_objects_v2()
            .bucket(&address.container)
            .prefix(key)
            .max_keys(1)
            .encoding_type(EncodingType::Url);
        let Ok(page) = request.send().await else {
            return false;
        };
        // In S3's order none that begins with this key is before it.
        match page.contents().first() {
            None => page.key_count() == Some(0),
            Some(object) => entry(address, key, &page, object)
                .is_ok_and(|listed| listed.address.key != address.key),
        }
    }
}

/// Why an object cannot be asked for.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("it is not in S3")]
    Provider,
    #[error("its key is not UTF-8, which S3 keys are")]
    Key,
    #[error("S3 knows no version {0}")]
    Token(VersionToken),
    #[error("there is no such bucket at this endpoint")]
    NoBucket,
    #[error("S3 told neither a version ID nor an ETag")]
    NoToken,
    #[error("S3 listed an object without a key")]
    NoKey,
    #[error("S3 listed {0:?} without a size")]
    NoSize(String),
    #[error("S3 listed {0:?}, which does not begin so")]
    ElsewhereListed(String),
    #[error("S3 said that there are more objects, and not where they go on")]
    CutShort,
}

/// The key to ask S3 for.
fn named(address: &ObjectAddress) -> Result<&str, ObjectError> {
    if address.provider != Provider::S3 {
        return Err(ObjectError::unavailable(address, Unusable::Provider));
    }
    address
        .key
        .exact()
        .ok_or_else(|| ObjectError::unavailable(address, Unusable::Key))
}

/// The HTTP status of an answer.
fn status<E>(error: &SdkError<E>) -> Option<u16> {
    error
        .raw_response()
        .map(|response| response.status().as_u16())
}

/// What credentials need for one object.
const READING: &str = "these credentials need s3:GetObject (with versioning, s3:GetObjectVersion); without s3:ListBucket for \
                       its key, S3 answers so for an object that is gone, too";

/// What an object needs that is in an archive: <https://docs.aws.amazon.com/AmazonS3/latest/userguide/restoring-objects.html>
const ARCHIVED: &str =
    "the object is archived, and cannot be read before it is restored (aws s3api restore-object)";

/// What credentials need for an object that a key of KMS encrypts.
const DECRYPTING: &str =
    "these credentials need kms:Decrypt on the key that encrypts the object, which must be enabled";

/// What credentials need for a listing.
const LISTING: &str = "these credentials need s3:ListBucket on the bucket, to list what begins so";

/// What an answer means that is none, to credentials that may lack `needed`.
fn refused<E>(address: &ObjectAddress, error: SdkError<E>, needed: &str) -> ObjectError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let of_key = error.code().is_some_and(|code| code.starts_with("KMS."))
        || error.message().is_some_and(|said| said.contains("kms:"));
    let hint = match status(&error) {
        _ if error.code() == Some("InvalidObjectState") => ARCHIVED.to_owned(),
        _ if of_key => DECRYPTING.to_owned(),
        Some(301 | 307) => {
            let region = error
                .raw_response()
                .and_then(|response| response.headers().get("x-amz-bucket-region"))
                .unwrap_or("another one");
            format!("the bucket's region is {region}: run this with AWS_REGION={region}")
        }
        Some(403) => needed.to_owned(),
        _ => String::new(),
    };
    ObjectError::unavailable(address, error::cause_with(error, &hint))
}

#[cfg(test)]
mod tests;
