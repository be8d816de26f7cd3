//! How the stores that write S3's records encode the key in them: by who wrote the record, for the shape is the same.
//!
//! What is not in the table here, because its source is closed and its documentation does not say (StorageGRID, Wasabi,
//! NooBaa under a name of its own), is a setting. Others tell of objects in shapes of their own, which are not read: OCI,
//! OSS, COS, R2, B2, SeaweedFS; and some do not tell at all: Garage, DigitalOcean Spaces.

use super::{ReadError, error::excerpt};

/// How a key is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyEncoding {
    /// As in a form: `+` is a space, then `%XX`.
    Form,
    /// As it is.
    Verbatim,
}

/// By `eventSource`, with what says so.
const KNOWN: [(&str, KeyEncoding); 8] = [
    // Amazon S3 User Guide, "Event message structure"; emulators write the same.
    ("aws:s3", KeyEncoding::Form),
    // minio/minio, `cmd/event-notification.go`, and its issues 7665 and 15200: `url.QueryEscape`.
    ("minio:s3", KeyEncoding::Form),
    // rustfs/rustfs, `crates/notify/src/event.rs`: `form_urlencoded`; its issue 2647.
    ("rustfs:s3", KeyEncoding::Form),
    // cubefs/cubefs, `SendEventNotification` of its object node: `url.QueryEscape`.
    ("cubefs:s3", KeyEncoding::Form),
    // ceph/ceph, `rgw_pubsub.cc`; suitenumerique/meet issue 1454.
    ("ceph:s3", KeyEncoding::Verbatim),
    // storj/storj, `ConvertModsToEvent`: the key's bytes.
    ("storj:s3", KeyEncoding::Verbatim),
    // scality/backbeat, `extensions/notification/utils/message.js`.
    ("scality:s3", KeyEncoding::Verbatim),
    // noobaa/noobaa-core, `src/util/notifications_util.js`. It writes the name of the installation before `:s3`.
    ("noobaa:s3", KeyEncoding::Verbatim),
];

/// How stores write keys where nobody documents it, or otherwise than they are known to: what is configured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct S3Keys {
    sources: Vec<(String, KeyEncoding)>,
}

impl S3Keys {
    /// What [`S3Keys::parse`] takes, for messages.
    pub const EXPECTED: &str = "SOURCE=form or SOURCE=verbatim, separated by commas, where SOURCE is an eventSource, e.g. `sgws:s3=form`";

    /// Reads `SOURCE=form,SOURCE=verbatim`; `None` if it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut keys = Self::default();
        for entry in text.split(',').filter(|entry| !entry.trim().is_empty()) {
            let (source, encoding) = entry.trim().rsplit_once('=')?;
            let encoding = match encoding.trim() {
                "form" => KeyEncoding::Form,
                "verbatim" => KeyEncoding::Verbatim,
                _ => return None,
            };
            let source = source.trim_end();
            if source.is_empty() || keys.set(source).is_some() {
                return None;
            }
            keys.sources.push((source.to_owned(), encoding));
        }
        Some(keys)
    }

    fn set(&self, source: &str) -> Option<KeyEncoding> {
        let mut sources = self.sources.iter();
        sources
            .find(|(name, _)| name == source)
            .map(|&(_, encoding)| encoding)
    }

    /// How this source writes this key. A record without a source is S3's own, or made after it.
    pub(super) fn of(&self, source: Option<&str>, key: &str) -> Result<KeyEncoding, ReadError> {
        let source = source.unwrap_or("aws:s3");
        let known = || {
            let mut known = KNOWN.iter();
            known
                .find(|(name, _)| *name == source)
                .map(|&(_, encoding)| encoding)
        };
        match self.set(source).or_else(known) {
            Some(encoding) => Ok(encoding),
            // Both readings are one.
            None if !key.contains(['+', '%']) => Ok(KeyEncoding::Verbatim),
            None => Err(ReadError::UnknownKeyEncoding {
                source_name: excerpt(source),
                key: excerpt(key),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_configured_counts_before_what_is_known() {
        let keys = S3Keys::parse("sgws:s3=form, x=y:s3=verbatim,minio:s3=verbatim,").unwrap();
        for (source, encoding) in [
            ("sgws:s3", KeyEncoding::Form),
            ("x=y:s3", KeyEncoding::Verbatim),
            ("minio:s3", KeyEncoding::Verbatim),
            ("aws:s3", KeyEncoding::Form),
        ] {
            assert_eq!(keys.of(Some(source), "a+b").unwrap(), encoding, "{source}");
        }
        assert!(keys.of(Some("Sgws:s3"), "a+b").is_err());
        assert_eq!(S3Keys::parse(""), Some(S3Keys::default()));
        for text in [
            "form",
            "=form",
            "a=b",
            "a=Form",
            "a=form,a=verbatim",
            "a:form",
        ] {
            assert_eq!(S3Keys::parse(text), None, "{text}");
        }
    }
}
