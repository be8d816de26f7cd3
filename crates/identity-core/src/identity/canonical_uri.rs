//! The two canonical URIs that are hashed, as borrowed parts, so that a job ID needs no copy of them.
//!
//! `strict`: `SCHEME://CONTAINER/KEY`, at Azure `azblob://ACCOUNT/CONTAINER/KEY`, where SCHEME is `s3`, `gs`, `azblob`
//! or `file`. The key is exact. Azure's account and container are in ASCII lower case (they are case-insensitive by
//! rule); nothing else is folded. Container and account are not empty and hold no `/`; the key is UTF-8 and not empty:
//! so no two objects have one URI.
//!
//! `reference`: `SCHEME://CONTAINER/KEY`, where CONTAINER is stripped of blanks at both ends and lower-cased as Python's
//! `str.strip().lower()` do it, and KEY is the payload's key, form-decoded (`urllib.parse.unquote_plus`, what is not
//! UTF-8 becoming U+FFFD), without its empty segments. There is no account. At S3 the exact key *is* the payload's,
//! form-decoded, whichever envelope it came in; Cloud Storage's and Azure's names are form-decoded although they are
//! not form-encoded, because the reference does it.

use std::borrow::Cow;

use super::{ObjectAddress, Provider, Refusal, decode::form_decode};

/// The URI of the `strict` scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrictUri<'a> {
    prefix: &'static str,
    account: Option<Cow<'a, str>>,
    container: Cow<'a, str>,
    key: &'a str,
}

impl<'a> StrictUri<'a> {
    /// The URI of this object.
    ///
    /// # Errors
    ///
    /// [`Refusal::EmptyName`], [`Refusal::SlashInName`], [`Refusal::MissingAccount`], [`Refusal::UnexpectedAccount`],
    /// [`Refusal::KeyNotUtf8`], [`Refusal::EmptyKey`].
    pub fn of(address: &'a ObjectAddress) -> Result<Self, Refusal> {
        let provider = address.provider;
        let what = match provider {
            Provider::S3 | Provider::Gcs => "bucket",
            Provider::Azure => "container",
            Provider::File => "folder",
        };
        let fold = |name: &'a str| match provider {
            Provider::Azure => lower_ascii(name),
            Provider::S3 | Provider::Gcs | Provider::File => Cow::Borrowed(name),
        };
        let account = match (provider, address.account.as_deref()) {
            (Provider::Azure, Some(account)) => Some(fold(named("account", account)?)),
            (Provider::Azure, None) => {
                return Err(Refusal::MissingAccount {
                    container: address.container.clone(),
                });
            }
            (_, Some(account)) => {
                return Err(Refusal::UnexpectedAccount {
                    provider,
                    account: account.to_owned(),
                });
            }
            (_, None) => None,
        };
        let container = fold(named(what, &address.container)?);
        let key = address
            .key
            .exact()
            .ok_or_else(|| Refusal::KeyNotUtf8(address.key.display().into_owned()))?;
        if key.is_empty() {
            return Err(Refusal::EmptyKey);
        }
        Ok(Self {
            prefix: provider.uri_prefix(),
            account,
            container,
            key,
        })
    }

    /// Length in bytes.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        let account = self
            .account
            .as_deref()
            .map_or(0, |account| account.len() + 1);
        self.prefix.len() + account + self.container.len() + 1 + self.key.len()
    }

    /// Hands the URI's bytes to `sink`, in order, in as many pieces as there are parts.
    pub fn write(&self, mut sink: impl FnMut(&[u8])) {
        sink(self.prefix.as_bytes());
        if let Some(account) = &self.account {
            sink(account.as_bytes());
            sink(b"/");
        }
        sink(self.container.as_bytes());
        sink(b"/");
        sink(self.key.as_bytes());
    }
}

fn named<'a>(what: &'static str, name: &'a str) -> Result<&'a str, Refusal> {
    if name.is_empty() {
        return Err(Refusal::EmptyName(what));
    }
    // Without an early end this is a few instructions for all of a short name.
    if name
        .bytes()
        .fold(false, |found, byte| found | (byte == b'/'))
    {
        return Err(Refusal::SlashInName {
            what,
            name: name.to_owned(),
        });
    }
    Ok(name)
}

fn lower_ascii(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}

/// The URI of the `reference` scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferenceUri<'a> {
    prefix: &'static str,
    container: Cow<'a, str>,
    /// Decoded; empty segments are still in it.
    key: Cow<'a, str>,
}

impl<'a> ReferenceUri<'a> {
    /// The URI of this object. Every address has one, an empty key included.
    #[must_use]
    pub fn of(address: &'a ObjectAddress) -> Self {
        Self {
            prefix: address.provider.uri_prefix(),
            container: strip_and_lower(&address.container),
            key: match address.provider {
                Provider::S3 | Provider::File => address.key.display(),
                Provider::Gcs | Provider::Azure => unquote_plus(address.key.raw()),
            },
        }
    }

    /// Its length in bytes if no segment falls out: it is never longer.
    #[must_use]
    pub fn max_byte_len(&self) -> usize {
        self.prefix.len() + self.container.len() + 1 + self.key.len()
    }

    /// Hands the URI's bytes to `sink`, in order, in pieces.
    pub fn write(&self, mut sink: impl FnMut(&[u8])) {
        sink(self.prefix.as_bytes());
        sink(self.container.as_bytes());
        sink(b"/");
        if !has_empty_segment(&self.key) {
            return sink(self.key.as_bytes());
        }
        let segments = self.key.split('/').filter(|segment| !segment.is_empty());
        for (index, segment) in segments.enumerate() {
            if index > 0 {
                sink(b"/");
            }
            sink(segment.as_bytes());
        }
    }
}

fn has_empty_segment(key: &str) -> bool {
    let key = key.as_bytes();
    key.first() == Some(&b'/')
        || key.last() == Some(&b'/')
        || key.array_windows().any(|pair| pair == b"//")
}

/// Python's `urllib.parse.unquote_plus`: UTF-8, with U+FFFD for each maximal part of an invalid sequence.
pub(super) fn unquote_plus(text: Cow<'_, str>) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return text;
    }
    match String::from_utf8_lossy(&form_decode(&text)) {
        Cow::Borrowed(valid) => Cow::Owned(valid.to_owned()),
        Cow::Owned(replaced) => Cow::Owned(replaced),
    }
}

/// Python's `str.strip().lower()`.
fn strip_and_lower(container: &str) -> Cow<'_, str> {
    // Python counts the four separators U+001C..U+001F among the blanks, Unicode's White_Space does not.
    let stripped =
        container.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}'));
    lower(stripped)
}

/// Python's `str.lower()`, in the Unicode of Python 3.11.
pub(super) fn lower(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        lower_ascii(text)
    } else {
        // An unassigned character has no case and ends a word, so the pieces around it are lowered as the whole would be.
        let pieces = text.split_inclusive(has_case_only_since_unicode_14);
        Cow::Owned(
            pieces
                .map(|piece| match piece.char_indices().next_back() {
                    Some((at, last)) if has_case_only_since_unicode_14(last) => {
                        piece[..at].to_lowercase() + &piece[at..]
                    }
                    _ => piece.to_lowercase(),
                })
                .collect(),
        )
    }
}

/// Characters that later versions of Unicode, and so Rust, give a lower case, and Python 3.11 does not. An ID must not
/// change with the toolchain: a test pins the whole mapping.
fn has_case_only_since_unicode_14(c: char) -> bool {
    matches!(c, '\u{1c89}' | '\u{a7cb}' | '\u{a7cc}' | '\u{a7ce}' | '\u{a7d2}' | '\u{a7d4}' | '\u{a7da}' | '\u{a7dc}'
        | '\u{10d50}'..='\u{10d65}' | '\u{16ea0}'..='\u{16eb8}')
}

impl std::fmt::Display for StrictUri<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&text_of(|sink| self.write(sink)))
    }
}

impl std::fmt::Display for ReferenceUri<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&text_of(|sink| self.write(sink)))
    }
}

fn text_of(write: impl FnOnce(&mut dyn FnMut(&[u8]))) -> String {
    let mut bytes = Vec::new();
    write(&mut |piece| bytes.extend_from_slice(piece));
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::ObjectKey;

    fn address(
        provider: Provider,
        account: Option<&str>,
        container: &str,
        key: ObjectKey,
    ) -> ObjectAddress {
        ObjectAddress {
            provider,
            account: account.map(str::to_owned),
            container: container.to_owned(),
            key,
        }
    }

    fn strict(
        provider: Provider,
        account: Option<&str>,
        container: &str,
        key: &str,
    ) -> Result<String, Refusal> {
        let address = address(provider, account, container, ObjectKey::verbatim(key));
        let uri = StrictUri::of(&address)?;
        assert_eq!(uri.byte_len(), uri.to_string().len());
        Ok(uri.to_string())
    }

    fn reference(provider: Provider, container: &str, raw: &str) -> String {
        let key = match provider {
            Provider::S3 => ObjectKey::decoded(raw, form_decode(raw)),
            _ => ObjectKey::verbatim(raw),
        };
        ReferenceUri::of(&address(provider, Some("ACCT"), container, key)).to_string()
    }

    #[test]
    fn a_strict_uri_holds_the_exact_key() {
        assert_eq!(
            strict(Provider::S3, None, "Geo", "/A//b c+%2B\u{e9}/"),
            Ok("s3://Geo//A//b c+%2B\u{e9}/".into())
        );
        assert_eq!(strict(Provider::Gcs, None, "g", "k"), Ok("gs://g/k".into()));
        assert_eq!(
            strict(Provider::File, None, "in", "a/k"),
            Ok("file://in/a/k".into())
        );
        assert_eq!(
            strict(Provider::Azure, Some("ACCT"), "Scenes", "A.tif"),
            Ok("azblob://acct/scenes/A.tif".into())
        );
    }

    #[test]
    fn a_strict_uri_that_could_name_two_objects_is_refused() {
        assert_eq!(
            strict(Provider::S3, None, "", "k"),
            Err(Refusal::EmptyName("bucket"))
        );
        assert_eq!(
            strict(Provider::Azure, Some(""), "c", "k"),
            Err(Refusal::EmptyName("account"))
        );
        assert_eq!(
            strict(Provider::File, None, "a/b", "k"),
            Err(Refusal::SlashInName {
                what: "folder",
                name: "a/b".into()
            })
        );
        assert_eq!(
            strict(Provider::Azure, None, "c", "k"),
            Err(Refusal::MissingAccount {
                container: "c".into()
            })
        );
        assert_eq!(
            strict(Provider::S3, Some("a"), "c", "k"),
            Err(Refusal::UnexpectedAccount {
                provider: Provider::S3,
                account: "a".into()
            })
        );
        assert_eq!(strict(Provider::S3, None, "b", ""), Err(Refusal::EmptyKey));
        let invalid = address(Provider::S3, None, "b", ObjectKey::decoded("%FF", *b"\xff"));
        assert_eq!(
            StrictUri::of(&invalid),
            Err(Refusal::KeyNotUtf8("\u{fffd}".into()))
        );
    }

    #[test]
    fn a_reference_uri_is_decoded_and_collapsed() {
        assert_eq!(
            reference(Provider::S3, " B\u{1f}", "//a//b%2F%2Fc+d/"),
            "s3://b/a/b/c d"
        );
        assert_eq!(reference(Provider::Gcs, "b", "a+b%2B"), "gs://b/a b+");
        assert_eq!(
            reference(Provider::Azure, "c", "%C3/\u{e9}%"),
            "azblob://c/\u{fffd}/\u{e9}%"
        );
        assert_eq!(reference(Provider::S3, "b", "a/"), "s3://b/a");
        assert_eq!(reference(Provider::S3, "b", "/a"), "s3://b/a");
        assert_eq!(reference(Provider::S3, "b", "///"), "s3://b/");
        assert_eq!(reference(Provider::S3, "b", ""), "s3://b/");
    }

    #[test]
    fn a_verbatim_s3_key_is_not_decoded_again() {
        let verbatim = address(Provider::S3, None, "b", ObjectKey::verbatim("a+b%20"));
        assert_eq!(ReferenceUri::of(&verbatim).to_string(), "s3://b/a+b%20");
    }

    #[test]
    fn blanks_and_case_of_a_container_go_as_python_removes_them() {
        for blank in [
            '\t', '\u{1c}', '\u{1f}', ' ', '\u{85}', '\u{a0}', '\u{2003}', '\u{3000}',
        ] {
            assert_eq!(
                reference(Provider::S3, &format!("{blank}B{blank}"), "k"),
                "s3://b/k",
                "{blank:?}"
            );
        }
        for kept in ['\0', '\u{1b}', '\u{200b}', '\u{feff}'] {
            let expected = format!("s3://{kept}b/k");
            assert_eq!(
                reference(Provider::S3, &format!("{kept}B"), "k"),
                expected,
                "{kept:?}"
            );
        }
        assert_eq!(
            reference(Provider::S3, "\u{130}\u{391}\u{3a3}", "k"),
            "s3://i\u{307}\u{3b1}\u{3c2}/k"
        );
    }

    #[test]
    fn every_character_has_the_lower_case_of_unicode_14() {
        let mapping: String = ('\0'..=char::MAX)
            .filter_map(|c| {
                let lower = strip_and_lower(c.encode_utf8(&mut [0; 4])).into_owned();
                // What is stripped is a blank, and has no case.
                (!lower.is_empty() && lower != c.to_string()).then(|| format!("{c}{lower}\n"))
            })
            .collect();
        // The same text over `str.lower` of Python 3.11: 1,433 lines.
        assert_eq!(
            crate::identity::hex::sha256_hex(mapping.as_bytes()),
            "8647a3ad65e5e131c83de32c112718ff861f461158f6a2c8753eaed66aa1d23e"
        );
        assert_eq!(
            strip_and_lower("\u{391}\u{3a3}\u{a7d4}\u{391}"),
            "\u{3b1}\u{3c2}\u{a7d4}\u{3b1}"
        );
    }

    #[test]
    fn replacement_is_pythons_one_mark_for_each_maximal_part() {
        // b'\xe1\x80\xe2\xf0\x90\x80\xc0\xaf\xed\xa0\x80'.decode('utf-8', 'replace')
        let raw = "%E1%80%E2%F0%90%80%C0%AF%ED%A0%80";
        assert_eq!(unquote_plus(raw.into()), "\u{fffd}".repeat(8));
    }
}
