//! One request of a vectors file: an event in its scheme's shape, the parameters, the pipeline → a job ID.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::chain;
use crate::identity::{
    Deriver, JobId, ObjectAddress, ObjectKey, ObjectVersion, Params, Provider, Refusal, Scheme,
    TokenKind, VersionToken, decode::form_decode, event_grid_url::container_and_name, hex,
};

/// What a request gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The job ID, or why there is none, in words.
    pub job_id: Result<JobId, String>,
    /// The parameters as they are hashed; `None` if they are refused, and under `ingest`.
    pub canonical_params: Option<String>,
}

/// Why a text is no request of its scheme. Unlike a refusal, this is never what a row expects.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// It is not a JSON object, or has a key that no request has.
    #[error("the request cannot be read")]
    Shape(#[source] serde_json::Error),
    /// A key that its scheme needs is not there.
    #[error("the request has no {0:?}")]
    Missing(&'static str),
    /// A key's value is not among those that its scheme knows.
    #[error("{key}: expected {expected}, got {got:?}")]
    Unknown {
        /// The key.
        key: &'static str,
        /// The known values.
        expected: &'static str,
        /// The value.
        got: String,
    },
}

/// A row of a vectors file, or one request on its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request<'a> {
    pub(super) name: Option<String>,
    scheme: Option<String>,
    event: Option<String>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    pipeline_name: Option<String>,
    pipeline_version: Option<String>,
    // `ingest` without an envelope.
    bucket: Option<String>,
    key: Option<String>,
    etag: Option<String>,
    // What the row expects.
    pub(super) job_id: Option<String>,
    pub(super) refused: Option<String>,
    pub(super) canonical_params: Option<String>,
}

/// A refusal in words, for a request that is one.
type Refused = String;

impl<'a> Request<'a> {
    /// Reads the text of one request.
    ///
    /// # Errors
    ///
    /// [`RequestError::Shape`].
    pub fn parse(json_text: &'a str) -> Result<Self, RequestError> {
        serde_json::from_str(json_text).map_err(RequestError::Shape)
    }

    /// The scheme that the request names; in a file it is the file that names it.
    ///
    /// # Errors
    ///
    /// [`RequestError::Unknown`].
    pub fn scheme(&self) -> Result<Option<Scheme>, RequestError> {
        self.scheme
            .as_deref()
            .map(|name| {
                Scheme::from_name(name)
                    .ok_or_else(|| unknown("scheme", "strict, reference or ingest", name))
            })
            .transpose()
    }

    /// What the request gives under this scheme.
    ///
    /// # Errors
    ///
    /// [`RequestError::Missing`] and [`RequestError::Unknown`].
    pub fn answer(&self, scheme: Scheme) -> Result<Answer, RequestError> {
        let object = match scheme {
            Scheme::Strict => self.strict_object()?,
            Scheme::Reference => self.reference_object()?,
            Scheme::Ingest => self.ingest_object()?,
        };
        let deriver = self.deriver(scheme)?;
        let canonical_params = deriver
            .as_ref()
            .ok()
            .and_then(Deriver::canonical_params)
            .map(str::to_owned);
        let job_id = deriver.and_then(|deriver| {
            let object = object?;
            deriver.job_id(&object).map_err(|refusal| chain(&refusal))
        });
        Ok(Answer {
            job_id,
            canonical_params,
        })
    }

    fn deriver(&self, scheme: Scheme) -> Result<Result<Deriver, Refused>, RequestError> {
        let name = match scheme {
            Scheme::Strict => needed("pipeline_name", &self.pipeline_name)?,
            Scheme::Reference => "",
            Scheme::Ingest => return Ok(Ok(Deriver::without_params("", "", scheme))),
        };
        let version = needed("pipeline_version", &self.pipeline_version)?;
        let params = self.params.ok_or(RequestError::Missing("params"))?;
        Ok(Params::from_json(params.get())
            .map_err(|error| chain(&error))
            .and_then(|params| {
                Deriver::new(name, version, scheme, &params).map_err(|refusal| chain(&refusal))
            }))
    }

    fn strict_object(&self) -> Result<Result<ObjectVersion, Refused>, RequestError> {
        match self.event()? {
            "parts" => {}
            got => return Err(unknown("event", "parts", got)),
        }
        let parts: StrictParts = match self.read()? {
            Ok(parts) => parts,
            Err(refused) => return Ok(Err(refused)),
        };
        let provider = provider(&parts.scheme)?;
        let kind = TokenKind::from_tag(&parts.token_kind)
            .ok_or_else(|| unknown("token_kind", TokenKind::EXPECTED, &parts.token_kind))?;
        let key = match (parts.key, parts.key_hex) {
            (Some(key), None) => ObjectKey::verbatim(key),
            (None, Some(text)) => {
                let bytes = hex::bytes_of(&text)
                    .ok_or_else(|| unknown("key_hex", "pairs of lower-case hex digits", &text))?;
                ObjectKey::decoded("", bytes)
            }
            _ => {
                return Err(RequestError::Missing(
                    "either key or key_hex in the payload",
                ));
            }
        };
        let address = ObjectAddress {
            provider,
            account: parts.account,
            container: parts.container,
            key,
        };
        Ok(version(address, VersionToken::new(kind, parts.token)))
    }

    fn reference_object(&self) -> Result<Result<ObjectVersion, Refused>, RequestError> {
        Ok(match self.event()? {
            "s3" => self.read()?.and_then(|event: S3Event<'_>| {
                let object = &event.s3.object;
                let version_id = text(object.version_id)?;
                let token = match VersionToken::for_s3(version_id.as_deref(), None) {
                    Ok(None) => VersionToken::for_s3(None, text(object.etag)?.as_deref()),
                    chosen => chosen,
                };
                let token = token.and_then(|token| token.ok_or(Refusal::EmptyToken));
                version(s3(&event.s3.bucket.name, &object.key), token)
            }),
            "gcs" => self.read()?.and_then(|event: GcsAttributes| {
                let key = ObjectKey::verbatim(event.object_id);
                version(
                    address(Provider::Gcs, event.bucket_id, key),
                    VersionToken::new(TokenKind::Generation, event.object_generation),
                )
            }),
            "event_grid" => self.read()?.and_then(|event: EventGridData| {
                let (container, name) =
                    container_and_name(&event.url).map_err(|refusal| chain(&refusal))?;
                version(
                    address(Provider::Azure, container, ObjectKey::verbatim(name)),
                    VersionToken::new(TokenKind::ETag, event.etag),
                )
            }),
            "parts" => {
                let parts: ReferenceParts = match self.read()? {
                    Ok(parts) => parts,
                    Err(refused) => return Ok(Err(refused)),
                };
                let exact = form_decode(&parts.raw_key);
                let key = ObjectKey::decoded(parts.raw_key, exact);
                // Which kind of token it is has no part in the `reference` scheme.
                version(
                    address(provider(&parts.scheme)?, parts.container, key),
                    VersionToken::new(TokenKind::ETag, parts.version_token.unwrap_or_default()),
                )
            }
            got => return Err(unknown("event", "s3, gcs, event_grid or parts", got)),
        })
    }

    fn ingest_object(&self) -> Result<Result<ObjectVersion, Refused>, RequestError> {
        let etag =
            |etag: Option<&str>| VersionToken::new(TokenKind::ETag, etag.unwrap_or_default());
        match self.event.as_deref() {
            None => {
                let bucket = needed("bucket", &self.bucket)?.to_owned();
                let key = ObjectKey::verbatim(needed("key", &self.key)?);
                let etag = etag(Some(needed("etag", &self.etag)?));
                Ok(version(address(Provider::S3, bucket, key), etag))
            }
            Some("s3") => Ok(self.read()?.and_then(|event: S3Event<'_>| {
                let object = &event.s3.object;
                let etag = etag(text(object.etag)?.as_deref());
                version(s3(&event.s3.bucket.name, &object.key), etag)
            })),
            Some(got) => Err(unknown("event", "s3, or bucket, key and etag", got)),
        }
    }

    fn event(&self) -> Result<&str, RequestError> {
        needed("event", &self.event)
    }

    /// The payload, or the refusal of one that the event's reader cannot read.
    fn read<T: Deserialize<'a>>(&self) -> Result<Result<T, Refused>, RequestError> {
        let payload = self.payload.ok_or(RequestError::Missing("payload"))?;
        Ok(serde_json::from_str(payload.get()).map_err(|error| format!("payload: {error}")))
    }
}

/// The parts of the `strict` identity; unlike the other payloads it is ours, and holds no other keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StrictParts {
    scheme: String,
    account: Option<String>,
    container: String,
    key: Option<String>,
    /// In the place of `key`, where it is not UTF-8.
    key_hex: Option<String>,
    token_kind: String,
    token: String,
}

#[derive(Deserialize)]
struct ReferenceParts {
    scheme: String,
    container: String,
    raw_key: String,
    version_token: Option<String>,
}

#[derive(Deserialize)]
struct S3Event<'a> {
    #[serde(borrow)]
    s3: S3Entity<'a>,
}

#[derive(Deserialize)]
struct S3Entity<'a> {
    bucket: S3Bucket,
    #[serde(borrow)]
    object: S3Object<'a>,
}

#[derive(Deserialize)]
struct S3Bucket {
    name: String,
}

/// The tokens are read only where they are used: what the published programs do not look at, they do not refuse.
#[derive(Deserialize)]
struct S3Object<'a> {
    /// Form-encoded.
    key: String,
    #[serde(borrow, rename = "eTag")]
    etag: Option<&'a RawValue>,
    #[serde(borrow, rename = "versionId")]
    version_id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GcsAttributes {
    bucket_id: String,
    object_id: String,
    object_generation: String,
}

#[derive(Deserialize)]
struct EventGridData {
    url: String,
    #[serde(rename = "eTag")]
    etag: String,
}

fn text(value: Option<&RawValue>) -> Result<Option<String>, Refused> {
    value
        .map(|value| serde_json::from_str(value.get()).map_err(|error| format!("token: {error}")))
        .transpose()
}

fn s3(bucket: &str, raw_key: &str) -> ObjectAddress {
    let key = ObjectKey::decoded(raw_key, form_decode(raw_key));
    address(Provider::S3, bucket.to_owned(), key)
}

fn address(provider: Provider, container: String, key: ObjectKey) -> ObjectAddress {
    ObjectAddress {
        provider,
        account: None,
        container,
        key,
    }
}

fn version(
    address: ObjectAddress,
    token: Result<VersionToken, Refusal>,
) -> Result<ObjectVersion, Refused> {
    let token = token.map_err(|refusal| chain(&refusal))?;
    Ok(ObjectVersion { address, token })
}

fn provider(uri_scheme: &str) -> Result<Provider, RequestError> {
    Provider::from_uri_scheme(uri_scheme)
        .ok_or_else(|| unknown("payload.scheme", "s3, gs, azblob or file", uri_scheme))
}

fn needed<'a>(key: &'static str, value: &'a Option<String>) -> Result<&'a str, RequestError> {
    value.as_deref().ok_or(RequestError::Missing(key))
}

fn unknown(key: &'static str, expected: &'static str, got: &str) -> RequestError {
    RequestError::Unknown {
        key,
        expected,
        got: got.to_owned(),
    }
}
