//! A request, read whole: of a body no more than fits is ever held.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, Request, StatusCode, header::CONTENT_LENGTH},
    response::{IntoResponse, Response},
};
use futures_util::StreamExt as _;
use identity_core::event::Delivery;

/// How long a body may take to arrive.
const LONGEST_ARRIVAL: Duration = Duration::from_secs(30);

/// A request and all of its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Bytes,
}

/// Why a request was not read. As a response it is 400, 408 or 413, with a sentence.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The body is too long; the rest of it is not read.
    #[error("the body is longer than the {most} bytes that are taken")]
    TooLong {
        /// How many bytes are.
        most: usize,
    },
    /// The body did not arrive in time.
    #[error("the body did not arrive within {} seconds", LONGEST_ARRIVAL.as_secs())]
    TooSlow,
    /// The body broke off, or is not framed as HTTP has it.
    #[error("the body cannot be read")]
    Broken(#[source] axum::Error),
}

impl Received {
    /// Reads a request whose body has at most this many bytes, however it is framed.
    ///
    /// # Errors
    ///
    /// [`RequestError`].
    pub async fn read(request: Request<Body>, longest: usize) -> Result<Self, RequestError> {
        let (head, body) = request.into_parts();
        let body = tokio::time::timeout(LONGEST_ARRIVAL, whole(&head.headers, body, longest));
        let body = body.await.map_err(|_| RequestError::TooSlow)??;
        // What is no UTF-8 becomes U+FFFD, and a name with one in a header is recorded as unreadable.
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        Ok(Self {
            method: head.method.as_str().to_owned(),
            path: head.uri.to_string(),
            headers: head
                .headers
                .iter()
                .map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes())))
                .collect(),
            body,
        })
    }

    /// As the core reads it.
    #[must_use]
    pub fn delivery(&self) -> Delivery<'_> {
        Delivery {
            method: Some(&self.method),
            path: Some(&self.path),
            headers: &self.headers,
            body: &self.body,
        }
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Whether this asks what is allowed, and delivers nothing.
    #[must_use]
    pub fn is_question(&self) -> bool {
        self.method == "OPTIONS"
    }
}

async fn whole(headers: &HeaderMap, body: Body, most: usize) -> Result<Bytes, RequestError> {
    // What is announced to be too long is not even begun with.
    let announced = headers.get(CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let fits = |length: u64| usize::try_from(length).is_ok_and(|length| length <= most);
    if announced.is_some_and(|length| !fits(length)) {
        return Err(RequestError::TooLong { most });
    }
    let mut whole = Vec::new();
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(RequestError::Broken)?;
        if chunk.len() > most - whole.len() {
            return Err(RequestError::TooLong { most });
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.into())
}

impl IntoResponse for RequestError {
    fn into_response(self) -> Response {
        let status = match self {
            Self::TooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        };
        (status, format!("{self}\n")).into_response()
    }
}
