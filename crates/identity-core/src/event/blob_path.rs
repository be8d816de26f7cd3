//! How Azure says which blob: subjects, resource IDs and URLs, and which of them to believe.
//!
//! Sources: Azure documentation, "Azure Blob Storage as an Event Grid source"; "Naming and referencing containers, blobs,
//! and metadata"; Azurite, "Differences between Azurite and Azure Storage" (URLs that begin with the account).

use std::net::IpAddr;

use super::{ReadError, error::excerpt};
use crate::identity::{ObjectKey, Refusal, decode::percent_decode, event_grid_url};

/// The container of blobs whose URL names none. Their names hold no `/` ("Naming and referencing containers, blobs, and
/// metadata", <https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata>;
/// "Working with the root container").
const ROOT: &str = "$root";
/// What stands for a character that was lost.
const LOST: char = '\u{fffd}';

/// A blob within its account.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Blob {
    pub(super) container: String,
    pub(super) key: ObjectKey,
    /// Why `reference` cannot read the URL.
    pub(super) refused_by_reference: Option<Refusal>,
    /// Whether nothing contradicts the name.
    pub(super) agreed: bool,
}

/// The account in a resource ID, `/subscriptions/…/storageAccounts/NAME`.
pub(super) fn account_of_resource(id: &str) -> Option<&str> {
    let mut segments = id.split('/');
    segments.find(|segment| segment.eq_ignore_ascii_case("storageAccounts"))?;
    segments.next().filter(|name| !name.is_empty())
}

/// A blob's URL, of which nothing is decoded or cut: Event Grid does not always escape `?` and `#`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlobUrl<'a> {
    /// The account, unless the host is a domain of the customer's own.
    pub(super) account: Option<&'a str>,
    /// Container and name.
    path: &'a str,
}

impl<'a> BlobUrl<'a> {
    /// Takes a URL apart; `None` if it has no path.
    pub(super) fn parse(url: &'a str) -> Option<Self> {
        let (_, rest) = url.split_once("://")?;
        let (host, path) = rest.split_once('/')?;
        if is_emulator(host) {
            let (account, path) = path.split_once('/')?;
            let account = Some(account).filter(|account| !account.is_empty());
            return Some(Self { account, path });
        }
        let mut labels = host.split('.');
        let account = labels
            .next()
            .filter(|_| labels.any(|label| matches!(label, "blob" | "dfs")));
        Some(Self { account, path })
    }

    /// Container and name, decoded once; `None` if no name is there, or it is not UTF-8.
    fn decoded(&self) -> Option<(String, String)> {
        let path = String::from_utf8(percent_decode(self.path)).ok()?;
        let (container, name) = path.split_once('/').unwrap_or((ROOT, &path));
        (!container.is_empty() && !name.is_empty()).then(|| (container.to_owned(), name.to_owned()))
    }

    fn says(&self, container: &str, name: &str) -> bool {
        let same = |path: &[u8]| {
            let in_root = container == ROOT && path == name.as_bytes();
            let in_container = path
                .strip_prefix(container.as_bytes())
                .and_then(|rest| rest.strip_prefix(b"/"))
                == Some(name.as_bytes());
            in_root || in_container
        };
        same(self.path.as_bytes()) || same(&percent_decode(self.path))
    }
}

/// Emulators have no name for each account: it is the first part of the path.
fn is_emulator(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    host.starts_with('[') || name.parse::<IpAddr>().is_ok() || !name.contains('.')
}

/// The blob of an event: the one that its subject names, as long as its URL does not contradict it.
///
/// `url_decides` is for a rename, whose destination is what the URL says it is.
pub(super) fn of_event(
    subject: &str,
    url: Option<&str>,
    url_field: &'static str,
    url_decides: bool,
) -> Result<Blob, ReadError> {
    let (container, name) = of_subject(subject).ok_or_else(|| no_blob("subject", subject))?;
    let parsed = url.and_then(BlobUrl::parse);
    let (container, name, agreed) = match parsed {
        _ if name.contains(LOST) => {
            let told = parsed
                .filter(|url| !url.path.contains(LOST))
                .and_then(|url| url.decoded())
                .filter(|(told, _)| told == container);
            let (container, name) = told.ok_or_else(|| ReadError::LostCharacters {
                field: "subject",
                got: excerpt(subject),
            })?;
            (container, name, true)
        }
        Some(url) if url.says(container, name) => (container.to_owned(), name.to_owned(), true),
        Some(parsed) if url_decides => {
            let told = parsed.decoded();
            let (container, name) =
                told.ok_or_else(|| no_blob(url_field, url.unwrap_or_default()))?;
            (container, name, true)
        }
        _ => (container.to_owned(), name.to_owned(), url.is_none()),
    };
    Ok(blob(container, name, url, agreed))
}

/// The blob of an absolute URI, percent-encoded as .NET writes it.
pub(super) fn of_uri(uri: &str, field: &'static str) -> Result<Blob, ReadError> {
    let path = uri.split(['?', '#']).next().unwrap_or(uri);
    let (container, name) = BlobUrl::parse(path)
        .and_then(|url| url.decoded())
        .ok_or_else(|| no_blob(field, uri))?;
    Ok(blob(container, name, Some(path), true))
}

fn blob(container: String, name: String, url: Option<&str>, agreed: bool) -> Blob {
    let (raw, refused_by_reference) = match url.map(event_grid_url::container_and_name) {
        // Without a container, Python takes the name for one.
        Some(Ok((raw, nothing))) if container == ROOT && nothing.is_empty() => (Some(raw), None),
        Some(Ok((_, raw))) => (Some(raw), None),
        Some(Err(refusal)) => (None, Some(refusal)),
        None => (None, None),
    };
    let key = match raw {
        Some(raw) => ObjectKey::decoded(raw, name),
        None => ObjectKey::verbatim(name),
    };
    Blob {
        container,
        key,
        refused_by_reference,
        agreed,
    }
}

/// Container and name in `/blobServices/default/containers/CONTAINER/blobs/NAME`; the first slash may be missing.
fn of_subject(subject: &str) -> Option<(&str, &str)> {
    let path = subject.strip_prefix('/').unwrap_or(subject);
    let path = path.strip_prefix("blobServices/default/containers/")?;
    let (container, rest) = path.split_once('/')?;
    let name = rest.strip_prefix("blobs/")?;
    (!container.is_empty() && !name.is_empty()).then_some((container, name))
}

fn no_blob(field: &'static str, got: &str) -> ReadError {
    ReadError::NotABlob {
        field,
        got: excerpt(got),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "https://acct.blob.core.windows.net/";

    fn told(subject: &str, path: &str) -> Result<(String, bool), String> {
        let subject = format!("/blobServices/default/containers/c/blobs/{subject}");
        of_event(&subject, Some(&format!("{HOST}{path}")), "data.url", false)
            .map(|blob| (blob.key.exact().unwrap().to_owned(), blob.agreed))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_url_agrees_as_it_stands_or_decoded_once() {
        for (subject, path) in [
            ("a b+c", "c/a%20b+c"),
            ("a b+c", "c/a b+c"),
            ("a%20b", "c/a%2520b"),
            ("a%20b", "c/a%20b"),
            ("id:0,src.shp", "c/id%3A0%2Csrc.shp"),
            ("a#b?c;d", "c/a#b?c;d"),
            ("a#b?c", "c/a%23b%3Fc"),
            ("/a//b/", "c//a//b/"),
            ("東", "c/%E6%9D%B1"),
        ] {
            assert_eq!(
                told(subject, path),
                Ok((subject.to_owned(), true)),
                "{path}"
            );
        }
    }

    #[test]
    fn a_url_that_says_something_else_leaves_the_subject_in_doubt() {
        for path in ["c/other", "d/a", "c/a/", "c", "c/%2561", "c/%FF"] {
            assert_eq!(told("a", path), Ok(("a".to_owned(), false)), "{path}");
        }
        // Twice decoded is another blob.
        assert_eq!(told("a b", "c/a%2520b"), Ok(("a b".to_owned(), false)));
    }

    #[test]
    fn lost_characters_come_from_the_url_or_from_nowhere() {
        assert_eq!(
            told("\u{fffd}\u{fffd}.shp", "c/%F0%9F%97%BA.shp"),
            Ok(("\u{1f5fa}.shp".to_owned(), true))
        );
        assert_eq!(
            told("\u{fffd}.shp", "c/%EF%BF%BD.shp"),
            Ok(("\u{fffd}.shp".to_owned(), true)),
            "a blob may have it in its name"
        );
        for path in ["c/\u{fffd}.shp", "c/%FF.shp", "d/%F0%9F%97%BA.shp", "c"] {
            assert_eq!(
                told("\u{fffd}.shp", path),
                Err("subject is \"/blobServices/default/containers/c/blobs/\u{fffd}.shp\": characters of the name \
                     were lost, and the URL does not tell them"
                    .to_owned()),
                "{path}"
            );
        }
    }

    #[test]
    fn a_url_without_a_container_names_the_root_container() {
        let subject = "/blobServices/default/containers/$root/blobs/my roads.shp";
        for path in [
            "my%20roads.shp",
            "my roads.shp",
            "$root/my%20roads.shp",
            "%24root/my%20roads.shp",
        ] {
            let blob =
                of_event(subject, Some(&format!("{HOST}{path}")), "data.url", false).unwrap();
            assert_eq!(
                (&*blob.container, blob.key.exact(), blob.agreed),
                ("$root", Some("my roads.shp"), true),
                "{path}"
            );
            let raw = path.rsplit('/').next().unwrap();
            assert_eq!(blob.key.raw(), raw);
            let uri = of_uri(&format!("{HOST}{path}"), "Metadata.Uri").unwrap();
            assert_eq!(
                (&*uri.container, uri.key.exact()),
                ("$root", Some("my roads.shp")),
                "{path}"
            );
        }
        let emulated = of_uri(
            "http://127.0.0.1:10000/devstoreaccount1/a.shp",
            "Metadata.Uri",
        )
        .unwrap();
        assert_eq!(
            (&*emulated.container, emulated.key.exact()),
            ("$root", Some("a.shp"))
        );
        for path in ["other.shp", "c/my%20roads.shp"] {
            let blob =
                of_event(subject, Some(&format!("{HOST}{path}")), "data.url", false).unwrap();
            assert!(!blob.agreed, "{path}");
        }
    }

    #[test]
    fn a_subject_that_names_no_blob_is_told() {
        for subject in [
            "",
            "/blobServices/default/containers/c",
            "/blobServices/default/containers/c/blobs/",
            "/blobServices/default/containers//blobs/a",
            "/blobServices/default/containers/c/d/blobs/a",
        ] {
            let error = of_event(subject, None, "data.url", false).unwrap_err();
            assert!(
                matches!(
                    error,
                    ReadError::NotABlob {
                        field: "subject",
                        ..
                    }
                ),
                "{subject}"
            );
        }
    }

    #[test]
    fn the_account_is_the_hosts_first_label_or_an_emulators_first_segment() {
        let account = |url| BlobUrl::parse(url).unwrap().account;
        for (url, expected) in [
            ("https://acct.blob.core.windows.net/c/k", Some("acct")),
            ("https://acct.dfs.core.windows.net/c/k", Some("acct")),
            ("https://acct.z01.blob.storage.azure.net/c/k", Some("acct")),
            (
                "http://127.0.0.1:10000/devstoreaccount1/c/k",
                Some("devstoreaccount1"),
            ),
            ("http://[::1]:10000/dev/c/k", Some("dev")),
            ("http://azurite:10000/dev/c/k", Some("dev")),
            ("https://maps.example.org/c/k", None),
        ] {
            assert_eq!(account(url), expected, "{url}");
        }
        for url in ["", "c/k", "https://host", "http://127.0.0.1:10000/dev"] {
            assert_eq!(BlobUrl::parse(url), None, "{url}");
        }
        assert_eq!(
            account_of_resource("/subscriptions/s/storageaccounts/acct/x"),
            Some("acct")
        );
        assert_eq!(account_of_resource("/storageAccounts/"), None);
        assert_eq!(account_of_resource("acct"), None);
    }

    #[test]
    fn a_uri_is_decoded_once_and_ends_before_its_query() {
        let blob = of_uri(
            "http://127.0.0.1:10000/dev/c/a%2520%3Fb+c?snapshot=1",
            "Metadata.Uri",
        )
        .unwrap();
        assert_eq!(blob.container, "c");
        assert_eq!(blob.key.exact(), Some("a%20?b+c"));
        for uri in [
            "",
            "https://h.blob.x/",
            "https://h.blob.x/c/",
            "https://h.blob.x/c/%FF",
        ] {
            assert!(of_uri(uri, "Metadata.Uri").is_err(), "{uri}");
        }
    }

    #[test]
    fn the_raw_key_is_what_python_makes_of_the_url() {
        let of = |url: &str| {
            of_event(
                "/blobServices/default/containers/c/blobs/a;b c",
                Some(url),
                "data.url",
                false,
            )
            .unwrap()
        };
        assert_eq!(of("https://h.blob.x/c/a;b%20c").key.raw(), "a");
        assert_eq!(of("https://h.blob.x/c/a%3Bb%20c").key.raw(), "a%3Bb%20c");
        let refused = of("https://[x.blob.y/c/a;b c");
        assert!(matches!(
            refused.refused_by_reference,
            Some(Refusal::UnreadableUrl { .. })
        ));
    }
}
