//! Handshakes: what a source asks before it delivers, and the answer that lets it.
//!
//! Sources: Azure Event Grid documentation, "Webhook event delivery" and "Endpoint validation with CloudEvents schema";
//! CloudEvents, "HTTP 1.1 Web Hooks for Event Delivery", section 4.

use serde::Serialize;

use super::{Delivery, ReadError, error::excerpt};

/// The answer to a handshake, to be given as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status. Event Grid takes no other 2xx for it.
    pub status: u16,
    /// Headers, by their names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The body, a JSON text (`application/json`); `None` for an empty one.
    pub body: Option<String>,
}

/// The answer to a code that is to be sent back: Event Grid's own schema.
pub(super) fn echo(validation_code: &str) -> Result<Reply, ReadError> {
    #[derive(Serialize)]
    struct Body<'a> {
        #[serde(rename = "validationResponse")]
        validation_response: &'a str,
    }
    let body = Body {
        validation_response: validation_code,
    };
    let body = serde_json::to_string(&body).map_err(|source| ReadError::NotJson { source })?;
    Ok(Reply {
        status: 200,
        headers: Vec::new(),
        body: Some(body),
    })
}

/// The answer to a request that asks for permission: CloudEvents. `None` if this is another request.
pub(super) fn permission(delivery: &Delivery<'_>) -> Option<Result<Reply, ReadError>> {
    const ORIGIN: &str = "WebHook-Request-Origin";
    if !delivery.method?.eq_ignore_ascii_case("OPTIONS") {
        return None;
    }
    let origin = delivery.header(ORIGIN)?;
    // It goes back into a header, where a line end would begin another one.
    if origin.is_empty() || !origin.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some(Err(ReadError::UnusableHeader {
            name: ORIGIN,
            got: excerpt(origin),
            expected: "a DNS name",
        }));
    }
    let mut headers = vec![("webhook-allowed-origin", origin.to_owned())];
    // Requests a minute: whatever is asked for is granted, since the claim store is what limits.
    if let Some(rate) = delivery
        .header("WebHook-Request-Rate")
        .filter(|rate| is_rate(rate))
    {
        headers.push(("webhook-allowed-rate", rate.to_owned()));
    }
    headers.push(("allow", "POST, OPTIONS".to_owned()));
    Some(Ok(Reply {
        status: 200,
        headers,
        body: None,
    }))
}

fn is_rate(text: &str) -> bool {
    text == "*" || !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
