//! Objects in S3: what is there now, and reads pinned to one version.

use async_trait::async_trait;
use aws_sdk_s3::Client;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use identity_core::identity::{ObjectAddress, ObjectVersion, Provider, TokenKind, VersionToken};
use identity_core::object::{Head, ObjectError, ObjectStore, ObjectStream};

use crate::error::{self, Cause};

/// Every bucket that the credentials may read, in the client's region. Which buckets an event may name is for the gate's
/// allow-list to say.
///
/// What the credentials need: `GetObject`, with versioning also `GetObjectVersion`, and `ListBucket` on the bucket, without
/// which S3 answers 403 instead of 404 for an object that is gone. A bucket that is not there is no object that is gone: the
/// store is unavailable then, since the endpoint or the account may be the wrong one.
#[derive(Debug, Clone)]
pub struct S3Objects {
    client: Client,
}

impl S3Objects {
    /// The objects that this client may read.
    pub fn new(client: Client) -> Self {
        Self { client }
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
                    _ => Err(unavailable(address, error)),
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
            .map_err(|refusal| because(address, refusal))?;
        let Some(token) = version.or_else(|| etag.clone()) else {
            return Err(because(address, Unusable::NoToken));
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
            TokenKind::Generation | TokenKind::Content => {
                return Err(because(address, Unusable::Token(token.clone())));
            }
        };
        match request.send().await {
            Ok(read) => Ok(Box::new(read.body.into_async_read())),
            Err(error) => match status(&error) {
                _ if error.code() == Some("NoSuchBucket") => {
                    Err(because(address, Unusable::NoBucket))
                }
                // Overwritten; removed; the version is a deletion.
                Some(412 | 404 | 405) => Err(ObjectError::Changed),
                _ => Err(unavailable(address, error)),
            },
        }
    }
}

impl S3Objects {
    /// There is no such object, unless the bucket itself is missing: a wrong endpoint or account has not seen the object go.
    /// The answer to a HEAD has no body that would tell the two apart.
    async fn none_in(&self, address: &ObjectAddress) -> Result<Option<Head>, ObjectError> {
        let request = self.client.head_bucket().bucket(&address.container);
        match request.send().await {
            Err(error) if status(&error) == Some(404) => Err(because(address, Unusable::NoBucket)),
            _ => Ok(None),
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
}

/// The key to ask S3 for.
fn named(address: &ObjectAddress) -> Result<&str, ObjectError> {
    if address.provider != Provider::S3 {
        return Err(because(address, Unusable::Provider));
    }
    address
        .key
        .exact()
        .ok_or_else(|| because(address, Unusable::Key))
}

fn because(address: &ObjectAddress, source: impl Into<Cause>) -> ObjectError {
    ObjectError::Unavailable {
        address: address.to_string(),
        source: source.into(),
    }
}

/// The HTTP status of an answer.
fn status<E>(error: &SdkError<E>) -> Option<u16> {
    error
        .raw_response()
        .map(|response| response.status().as_u16())
}

fn unavailable<E>(address: &ObjectAddress, error: SdkError<E>) -> ObjectError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let hint = match status(&error) {
        Some(301 | 307) => {
            let region = error
                .raw_response()
                .and_then(|response| response.headers().get("x-amz-bucket-region"))
                .unwrap_or("another one");
            format!("the bucket's region is {region}: run this with AWS_REGION={region}")
        }
        Some(403) => "these credentials need s3:GetObject (with versioning, s3:GetObjectVersion); without s3:ListBucket on \
                      the bucket, S3 answers so for an object that is gone, too"
            .to_owned(),
        _ => String::new(),
    };
    because(address, error::cause_with(error, &hint))
}

#[cfg(test)]
mod tests;
