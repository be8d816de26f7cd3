//! The version token: what changes when the bytes of an object change.

use super::Refusal;

/// Which of a provider's values a token is. The kind is part of the `strict` identity (`etag:…`), so that a version ID
/// never equals an ETag of the same text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TokenKind {
    /// S3 `versionId`: unique per write in a bucket with versioning.
    VersionId,
    /// S3 or Azure ETag, without its quotes. Opaque: not an MD5 for multipart or KMS-encrypted objects.
    ETag,
    /// Cloud Storage generation, in decimal. Never the metageneration, which changes without the bytes.
    Generation,
    /// SHA-256 of a local file's bytes, in lower-case hex.
    Content,
}

impl TokenKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::VersionId, Self::ETag, Self::Generation, Self::Content];

    /// What is expected where another kind is named.
    pub const EXPECTED: &'static str = "version-id, etag, generation or content";

    /// The name in every output: `version-id`, `etag`, `generation`, `content`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::VersionId => "version-id",
            Self::ETag => "etag",
            Self::Generation => "generation",
            Self::Content => "content",
        }
    }

    /// The name and a colon, as they stand before the value in the `strict` material.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::VersionId => "version-id:",
            Self::ETag => "etag:",
            Self::Generation => "generation:",
            Self::Content => "content:",
        }
    }

    /// The kind that [`TokenKind::as_str`] names, or `None`.
    pub fn from_tag(tag: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == tag)
    }
}

/// A version token that identity accepts: not empty, not only quotes, no control character.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VersionToken {
    kind: TokenKind,
    value: String,
}

impl VersionToken {
    /// Checks and normalises a token. An ETag loses the quotes that HTTP headers and some payloads put around it
    /// (RFC 9110 §8.8.3: they are not part of the opaque tag's value); other kinds are kept as they are.
    ///
    /// # Errors
    ///
    /// [`Refusal::EmptyToken`], [`Refusal::QuotesOnlyToken`], [`Refusal::ControlCharacterInToken`].
    pub fn new(kind: TokenKind, value: impl Into<String>) -> Result<Self, Refusal> {
        let value = value.into();
        if value.is_empty() {
            return Err(Refusal::EmptyToken);
        }
        let unquoted = value.trim_matches('"');
        if unquoted.is_empty() {
            return Err(Refusal::QuotesOnlyToken(value));
        }
        if value.chars().any(char::is_control) {
            return Err(Refusal::ControlCharacterInToken(value));
        }
        let value = if kind == TokenKind::ETag && unquoted.len() != value.len() {
            unquoted.to_owned()
        } else {
            value
        };
        Ok(Self { kind, value })
    }

    /// Which of the provider's values this is.
    pub fn kind(&self) -> TokenKind {
        self.kind
    }

    /// The value, without quotes if it is an ETag.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The value as the `reference` program hashes it: no quotes at either end, whatever the kind.
    pub fn unquoted(&self) -> &str {
        self.value.trim_matches('"')
    }
}

impl std::fmt::Display for VersionToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.kind.as_str(), self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_loses_its_quotes_and_a_version_id_keeps_its_text() {
        assert_eq!(
            VersionToken::new(TokenKind::ETag, "\"abc-12\"")
                .unwrap()
                .value(),
            "abc-12"
        );
        assert_eq!(
            VersionToken::new(TokenKind::VersionId, "\"v\"")
                .unwrap()
                .value(),
            "\"v\""
        );
        assert_eq!(
            VersionToken::new(TokenKind::VersionId, "\"v\"")
                .unwrap()
                .unquoted(),
            "v"
        );
    }

    #[test]
    fn each_unusable_token_is_refused_by_name() {
        assert_eq!(
            VersionToken::new(TokenKind::ETag, ""),
            Err(Refusal::EmptyToken)
        );
        assert_eq!(
            VersionToken::new(TokenKind::ETag, "\"\""),
            Err(Refusal::QuotesOnlyToken("\"\"".into()))
        );
        assert_eq!(
            VersionToken::new(TokenKind::Generation, "1\u{1f}2"),
            Err(Refusal::ControlCharacterInToken("1\u{1f}2".into()))
        );
    }

    #[test]
    fn a_tag_names_its_kind() {
        for kind in TokenKind::ALL {
            assert_eq!(TokenKind::from_tag(kind.as_str()), Some(kind));
            assert_eq!(kind.tag(), format!("{}:", kind.as_str()));
            assert!(TokenKind::EXPECTED.contains(kind.as_str()));
        }
        assert_eq!(TokenKind::from_tag("md5"), None);
    }
}
