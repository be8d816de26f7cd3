//! Event Grid's `data.url` as the `reference` program reads it: Python 3.11's `urllib.parse.urlparse(url).path`.
//!
//! Not a URL parser for anything else: it cuts blob names at `;`, `?` and `#`, which Event Grid does not always escape.
//! `strict` takes the exact name from the event instead.

use std::net::Ipv6Addr;

use super::Refusal;

/// The URL schemes whose last path segment Python cuts at `;`. The empty one stands for a URL without a scheme.
const SCHEMES_WITH_PARAMS: [&str; 16] = [
    "", "ftp", "hdl", "prospero", "http", "imap", "https", "shttp", "rtsp", "rtsps", "rtspu",
    "sip", "sips", "mms", "sftp", "tel",
];

/// All characters beyond ASCII whose NFKC form holds one of `/ ? # @ :`, by Unicode 14. None of the five composes with
/// a neighbour, so looking at one character at a time is enough.
const LOOKALIKES: &str = "\u{2047}\u{2048}\u{2049}\u{2100}\u{2101}\u{2105}\u{2106}\u{2a74}\u{fe13}\u{fe16}\u{fe55}\
     \u{fe56}\u{fe5f}\u{fe6b}\u{ff03}\u{ff0f}\u{ff1a}\u{ff1f}\u{ff20}";

/// Container and blob name as they stand in a blob's URL, still encoded: `(container, name)`.
///
/// The name is what [`ObjectKey::decoded`](super::ObjectKey::decoded) takes as the raw key of an Event Grid event.
///
/// # Errors
///
/// [`Refusal::UnreadableUrl`] where Python raises a `ValueError`: brackets in the host that hold no IPv6 address, or a
/// host with a character that would turn into a delimiter under NFKC.
pub fn container_and_name(url: &str) -> Result<(String, String), Refusal> {
    let path = path(url)?;
    let path = path.trim_start_matches('/');
    let (container, name) = path.split_once('/').unwrap_or((path, ""));
    Ok((container.to_owned(), name.to_owned()))
}

fn path(url: &str) -> Result<String, Refusal> {
    let refused = |reason| Refusal::UnreadableUrl {
        url: url.to_owned(),
        reason,
    };
    let cleaned: String = url
        .trim_start_matches(|c| c <= ' ')
        .chars()
        .filter(|c| !matches!(c, '\t' | '\r' | '\n'))
        .collect();
    let (scheme, mut rest) = split_scheme(&cleaned);
    let mut host = "";
    if let Some(after) = rest.strip_prefix("//") {
        (host, rest) = after.split_at(after.find(['/', '?', '#']).unwrap_or(after.len()));
        if host.contains('[') != host.contains(']') {
            return Err(refused("a bracket in the host has no partner"));
        }
        if let Some((_, after)) = host.split_once('[') {
            let inner = after.split(']').next().unwrap_or(after);
            if !is_bracketed_host(inner) {
                return Err(refused("the brackets in the host hold no IPv6 address"));
            }
        }
    }
    rest = rest.split('#').next().unwrap_or(rest);
    rest = rest.split('?').next().unwrap_or(rest);
    if host.contains(|c| LOOKALIKES.contains(c)) {
        return Err(refused("a character in the host stands for a delimiter"));
    }
    if SCHEMES_WITH_PARAMS.contains(&scheme.as_str()) {
        let last_segment = rest.rfind('/').unwrap_or(0);
        if let Some(semicolon) = rest[last_segment..].find(';') {
            rest = &rest[..last_segment + semicolon];
        }
    }
    Ok(rest.to_owned())
}

/// The scheme in lower case, empty if there is none, and what follows its colon.
fn split_scheme(url: &str) -> (String, &str) {
    match url.split_once(':') {
        Some((scheme, rest))
            if scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')) =>
        {
            (scheme.to_ascii_lowercase(), rest)
        }
        _ => (String::new(), url),
    }
}

/// What Python's `_check_bracketed_host` accepts: `v1F.anything`, or an IPv6 address with or without a scope.
fn is_bracketed_host(host: &str) -> bool {
    if let Some(future) = host.strip_prefix('v') {
        return future.split_once('.').is_some_and(|(version, address)| {
            !version.is_empty()
                && version.bytes().all(|b| b.is_ascii_hexdigit())
                && !address.is_empty()
        });
    }
    let (address, scope) = match host.split_once('%') {
        Some((address, scope)) => (address, Some(scope)),
        None => (host, None),
    };
    address.parse::<Ipv6Addr>().is_ok()
        && scope.is_none_or(|scope| !scope.is_empty() && !scope.contains('%'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> (String, String) {
        container_and_name(url).unwrap()
    }

    fn pair(container: &str, name: &str) -> (String, String) {
        (container.to_owned(), name.to_owned())
    }

    #[test]
    fn container_and_name_come_out_still_encoded() {
        assert_eq!(
            read("https://acct.blob.core.windows.net/Rasters/my%20scene/a%2Fb.tif"),
            pair("Rasters", "my%20scene/a%2Fb.tif")
        );
        assert_eq!(
            read("https://acct.blob.core.windows.net//c//k"),
            pair("c", "/k")
        );
        assert_eq!(read("https://acct.blob.core.windows.net/c"), pair("c", ""));
        assert_eq!(read("https://acct.blob.core.windows.net"), pair("", ""));
    }

    #[test]
    fn a_name_is_cut_at_the_first_delimiter_as_python_cuts_it() {
        for cut in ["k;v=1.tif", "k?x.tif", "k#x.tif", "k;a;b", "k#a?b;c"] {
            assert_eq!(read(&format!("https://h/c/{cut}")), pair("c", "k"), "{cut}");
        }
        assert_eq!(read("https://h/c/a;b/k"), pair("c", "a;b/k"));
        assert_eq!(read("wasbs://h/c/k;v"), pair("c", "k;v"), "no params there");
        assert_eq!(read("c/k;v"), pair("c", "k"));
        assert_eq!(read(";c/k"), pair(";c", "k"));
        assert_eq!(read(";c"), pair("", ""));
    }

    #[test]
    fn blanks_and_line_ends_go_where_python_removes_them() {
        assert_eq!(read("\u{1} https://h/c/a\tb\r\nc "), pair("c", "abc "));
        assert_eq!(read("ht\ntps://h/c/k;v"), pair("c", "k"));
        assert_eq!(read("1http://h/c/k"), pair("1http:", "/h/c/k"));
    }

    #[test]
    fn a_host_that_python_refuses_is_refused() {
        for host in [
            "[",
            "]",
            "[::1",
            "[127.0.0.1]",
            "[x]",
            "[]",
            "[::1%]",
            "[v.x]",
            "[vF.]",
            "a\u{2100}b",
            "a\u{ff0f}b",
        ] {
            let url = format!("https://{host}/c/k");
            assert!(
                matches!(container_and_name(&url), Err(Refusal::UnreadableUrl { url: named, .. }) if named == url),
                "{host}"
            );
        }
        for host in [
            "[::1]:80",
            "[fe80::1%eth0]",
            "[vF.x]",
            "user@h",
            "h\u{e9}",
            "x[::1]y",
        ] {
            assert_eq!(
                read(&format!("https://{host}/c/k")),
                pair("c", "k"),
                "{host}"
            );
        }
    }
}
