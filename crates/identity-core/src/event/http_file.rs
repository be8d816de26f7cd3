//! An HTTP request that was written to a file, for the command line and for tests.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{
    Delivery,
    json::{self, Raw},
};

/// A [`Delivery`] that owns what it holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnedDelivery {
    /// The request's method, as written.
    pub method: Option<String>,
    /// The request's path, as written.
    pub path: Option<String>,
    /// The request's headers, by name.
    pub headers: Vec<(String, String)>,
    /// The payload.
    pub body: Vec<u8>,
}

impl OwnedDelivery {
    /// The delivery that a file holds: a request, or the payload itself.
    ///
    /// A request is a JSON object that has a string `method`, and no fields but `method`, `path`, `headers` and `body`;
    /// no envelope looks like that. `path` is a string. `headers` is an object of strings, or of lists of strings for
    /// a header that came more than once. A `body` that is a string is the payload's text; an absent one or null is
    /// the empty payload; any other JSON is the payload as it stands in the file. Every other file is a payload, byte
    /// for byte: a request with a slip in it is not half understood, it is an unknown envelope whose fields are told.
    #[must_use]
    pub fn from_file(bytes: Vec<u8>) -> Self {
        request(&bytes).unwrap_or_else(|| Self {
            body: bytes,
            ..Self::default()
        })
    }

    /// The same, borrowed.
    #[must_use]
    pub fn as_delivery(&self) -> Delivery<'_> {
        Delivery {
            method: self.method.as_deref(),
            path: self.path.as_deref(),
            headers: &self.headers,
            body: &self.body,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request<'a> {
    method: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    headers: Option<HeaderFields>,
    #[serde(borrow, default)]
    body: Raw<'a>,
}

/// Headers as JSON: by name, a value or a list of them.
#[derive(Deserialize, Default)]
pub(super) struct HeaderFields(BTreeMap<String, HeaderValues>);

impl HeaderFields {
    /// A pair for each value.
    pub(super) fn into_pairs(self) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        for (name, values) in self.0 {
            match values {
                HeaderValues::One(value) => headers.push((name, value)),
                HeaderValues::Many(values) => {
                    headers.extend(values.into_iter().map(|value| (name.clone(), value)));
                }
            }
        }
        headers
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum HeaderValues {
    One(String),
    Many(Vec<String>),
}

fn request(bytes: &[u8]) -> Option<OwnedDelivery> {
    let text = std::str::from_utf8(bytes).ok()?;
    // A derived struct would take an array for its fields in order.
    if json::kind(text) != json::OBJECT {
        return None;
    }
    let request: Request<'_> = serde_json::from_str(text).ok()?;
    let body = match request.body {
        None => Vec::new(),
        Some(body) if json::kind(body.get()) == json::STRING => {
            json::string(body.get())?.into_owned().into_bytes()
        }
        Some(body) => body.get().as_bytes().to_vec(),
    };
    Some(OwnedDelivery {
        method: Some(request.method),
        path: request.path,
        headers: request.headers.unwrap_or_default().into_pairs(),
        body,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_text(text: &str) -> OwnedDelivery {
        OwnedDelivery::from_file(text.as_bytes().to_vec())
    }

    #[test]
    fn a_request_gives_its_parts_and_its_body_as_it_stands_in_the_file() {
        let delivery = from_text(
            r#"{"method":"POST","path":"/a?b=c","headers":{"Ce-Id":"1","X":["2","3"]},"body":{ "a" : 1.0 }}"#,
        );
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            delivery,
            OwnedDelivery {
                method: Some("POST".into()),
                path: Some("/a?b=c".into()),
                headers: vec![header("Ce-Id", "1"), header("X", "2"), header("X", "3")],
                body: br#"{ "a" : 1.0 }"#.to_vec(),
            }
        );
        assert_eq!(delivery.as_delivery().body, delivery.body);
        assert_eq!(delivery.as_delivery().method, Some("POST"));
    }

    #[test]
    fn a_text_body_is_the_payload_and_a_null_body_is_an_empty_one() {
        assert_eq!(
            from_text(r#"{"method":"POST","body":"{\"a\":\"\u00e9\"}"}"#).body,
            "{\"a\":\"é\"}".as_bytes()
        );
        for text in [
            r#"{"method":"OPTIONS","headers":{},"body":null}"#,
            r#"{"method":"OPTIONS","path":"/"}"#,
        ] {
            let delivery = from_text(text);
            assert_eq!(delivery.method.as_deref(), Some("OPTIONS"));
            assert!(delivery.body.is_empty());
        }
    }

    #[test]
    fn whatever_is_not_wholly_a_request_is_a_payload_byte_for_byte() {
        for text in [
            "",
            "\u{feff}{}",
            "{}",
            "[]",
            r#"["POST","/",{},null]"#,
            r#"{"method":1,"body":{}}"#,
            r#"{"body":{}}"#,
            r#"{"method":"POST","body":{},"Records":[]}"#,
            r#"{"method":"POST","headers":{"a":1},"body":{}}"#,
            r#"{"method":"POST","headers":[],"body":{}}"#,
            r#"{"method":"POST","path":1,"body":{}}"#,
            r#"{"method":"POST","body":"\ud800"}"#,
            r#"{"method":"POST","body":{}"#,
            r#"{"Records":[]}"#,
            r#"{"messageId":"1","body":"{}"}"#,
        ] {
            let delivery = from_text(text);
            assert_eq!(delivery.body, text.as_bytes());
            assert_eq!(delivery.method, None, "{text}");
        }
        let garbage = vec![0xff, 0x00, b'{'];
        assert_eq!(OwnedDelivery::from_file(garbage.clone()).body, garbage);
    }
}
