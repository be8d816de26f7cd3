//! The three ways to derive a job ID, and which of an event's tokens each of them hashes.

use super::{Refusal, TokenKind, VersionToken};

/// How a job ID is derived. The encodings are in [`job_id`](super::job_id).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// For every new pipeline: exact keys, exact parameters, framed fields.
    Strict,
    /// The published Python program, for fleets that share a table with Python workers.
    Reference,
    /// The published S3 ingest handler, for tables that it wrote.
    Ingest,
}

impl Scheme {
    /// All schemes, in the order in which they are listed to people.
    pub const ALL: [Self; 3] = [Self::Strict, Self::Reference, Self::Ingest];

    /// The name in contracts and records: `strict`, `reference`, `ingest`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Reference => "reference",
            Self::Ingest => "ingest",
        }
    }

    /// The scheme that [`Scheme::as_str`] names, or `None`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scheme| scheme.as_str() == name)
    }

    /// Which of an event's tokens this scheme hashes; `None` if the event does not carry it, so that the store must be
    /// asked (HEAD).
    ///
    /// `best` is the strongest token that the event carries, `etag` its ETag, also where `best` is a version ID. The
    /// ingest handler never looks at the version ID: only the ETag gives the IDs that its tables hold.
    #[must_use]
    pub fn token<'a>(
        self,
        best: Option<&'a VersionToken>,
        etag: Option<&'a VersionToken>,
    ) -> Option<&'a VersionToken> {
        match self {
            Self::Strict | Self::Reference => best,
            Self::Ingest => etag.or_else(|| best.filter(|token| token.kind() == TokenKind::ETag)),
        }
    }
}

impl std::fmt::Display for Scheme {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl VersionToken {
    /// The token of an S3 object: its version ID where the bucket gives a real one, else its ETag, else `None`.
    ///
    /// A version ID that is absent, empty or `null` is none: `null` is what suspended versioning gives to every write.
    /// An empty ETag is none either.
    ///
    /// # Errors
    ///
    /// [`Refusal::QuotesOnlyToken`] and [`Refusal::ControlCharacterInToken`] for the value that is chosen.
    pub fn for_s3(version_id: Option<&str>, etag: Option<&str>) -> Result<Option<Self>, Refusal> {
        let version_id = version_id.filter(|id| !id.is_empty() && *id != "null");
        let etag = etag.filter(|etag| !etag.is_empty());
        match (version_id, etag) {
            (Some(id), _) => Self::new(TokenKind::VersionId, id).map(Some),
            (None, Some(etag)) => Self::new(TokenKind::ETag, etag).map(Some),
            (None, None) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(kind: TokenKind, value: &str) -> VersionToken {
        VersionToken::new(kind, value).unwrap()
    }

    #[test]
    fn a_name_names_its_scheme() {
        for scheme in Scheme::ALL {
            assert_eq!(Scheme::from_name(scheme.as_str()), Some(scheme));
        }
        assert_eq!(Scheme::from_name("Strict"), None);
    }

    #[test]
    fn a_version_id_that_is_no_version_gives_way_to_the_etag() {
        let etag = token(TokenKind::ETag, "aa");
        for none in [None, Some(""), Some("null")] {
            assert_eq!(
                VersionToken::for_s3(none, Some("\"aa\"")),
                Ok(Some(etag.clone()))
            );
            assert_eq!(VersionToken::for_s3(none, None), Ok(None));
            assert_eq!(VersionToken::for_s3(none, Some("")), Ok(None));
        }
        assert_eq!(
            VersionToken::for_s3(Some("v1"), Some("aa")),
            Ok(Some(token(TokenKind::VersionId, "v1")))
        );
    }

    #[test]
    fn a_chosen_token_of_quotes_only_is_refused() {
        let refused = Err(Refusal::QuotesOnlyToken("\"\"".into()));
        assert_eq!(VersionToken::for_s3(Some("\"\""), Some("aa")), refused);
        assert_eq!(VersionToken::for_s3(Some("null"), Some("\"\"")), refused);
    }

    #[test]
    fn ingest_takes_the_etag_although_the_version_id_is_better() {
        let (version, etag) = (
            token(TokenKind::VersionId, "v1"),
            token(TokenKind::ETag, "aa"),
        );
        let choose = |scheme: Scheme| scheme.token(Some(&version), Some(&etag));
        assert_eq!(choose(Scheme::Strict), Some(&version));
        assert_eq!(choose(Scheme::Reference), Some(&version));
        assert_eq!(choose(Scheme::Ingest), Some(&etag));
        assert_eq!(Scheme::Ingest.token(Some(&version), None), None);
        assert_eq!(Scheme::Ingest.token(Some(&etag), None), Some(&etag));
    }
}
