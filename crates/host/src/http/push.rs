//! The endpoint whose answer is one status for a whole delivery: Pub/Sub's push, Eventarc, Event Grid's webhook.

use std::time::Duration;

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{
        HeaderName, HeaderValue, StatusCode,
        header::{ALLOW, CONNECTION, CONTENT_TYPE, RETRY_AFTER},
    },
    response::{IntoResponse, Response},
    routing::{MethodFilter, on},
};
use identity_core::{event::Reply, text::error_chain};
use serde_json::{Map, Value, json};

use crate::{
    call::Settlement,
    http::{
        intake::{Delivered, Intake},
        request::Received,
    },
    sweep::{NoRedriveQueue, Sweep},
};

/// Bounds of what `Retry-After` says.
const LEAST_PAUSE: Duration = Duration::from_secs(1);
const MOST_PAUSE: Duration = Duration::from_secs(600);

/// How a source is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answers {
    /// Everything is recorded: do not deliver again. With a status that allows a body the counts are told in it.
    pub acknowledged: StatusCode,
    /// Something must come again, and so all of it.
    pub again: StatusCode,
    /// After how long, where nothing better is known.
    pub pause: Duration,
    /// How many bytes a body may have.
    pub longest_body: usize,
}

impl Default for Answers {
    /// 200 and 503, after 10 seconds, and bodies of 16 MiB: more than any of these sources sends.
    fn default() -> Self {
        Self {
            acknowledged: StatusCode::OK,
            again: StatusCode::SERVICE_UNAVAILABLE,
            pause: Duration::from_secs(10),
            longest_body: 16 * 1024 * 1024,
        }
    }
}

/// Takes deliveries at this path, by `POST`; handshakes also by `OPTIONS`. Any other method is 405.
pub fn at(path: &str, intake: Intake, answers: Answers) -> Router {
    let take = move |request: Request| {
        let intake = intake.clone();
        async move { answer(&intake, answers, request).await }
    };
    let methods = MethodFilter::POST.or(MethodFilter::OPTIONS);
    Router::new().route(path, on(methods, take))
}

async fn answer(intake: &Intake, answers: Answers, request: Request<Body>) -> Response {
    let received = match Received::read(request, answers.longest_body).await {
        Ok(received) => received,
        Err(error) => {
            tracing::warn!(error = error_chain(&error), "a request was not read");
            return error.into_response();
        }
    };
    if received.is_question() {
        return match intake.question(&received) {
            Some(reply) => replied(reply),
            None => (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "POST")]).into_response(),
        };
    }
    match intake.take(received).await {
        Delivered::Reply(reply) => replied(reply),
        Delivered::Settled(settlement) => answers.settled(intake, &settlement),
        Delivered::Swept(swept) => answers.swept(swept),
        Delivered::Closed => {
            let again = answers.again(answers.pause, "this process ends");
            ([(CONNECTION, "close")], again).into_response()
        }
        Delivered::Died(error) => answers.again(answers.pause, &error),
    }
}

impl Answers {
    fn settled(&self, intake: &Intake, settlement: &Settlement) -> Response {
        let Some(again) = settlement.again() else {
            let counts = settlement.counted();
            let counts = counts.map(|(name, count)| (name.to_owned(), count.into()));
            return self.acknowledge(Value::Object(counts.collect::<Map<_, _>>()));
        };
        let now = intake.worker().clock().unix_millis();
        let pause = again.not_before().map_or(self.pause, |until| {
            let millis = until.0.saturating_sub(now.0).max(0).unsigned_abs();
            Duration::from_millis(millis)
        });
        self.again(pause, &again.to_string())
    }

    fn swept(&self, swept: Result<Sweep, NoRedriveQueue>) -> Response {
        match swept {
            Ok(Sweep {
                ended: Ok(swept), ..
            }) => self.acknowledge(json!(swept)),
            Ok(Sweep {
                ended: Err(error), ..
            }) => {
                let what = error_chain(&error);
                tracing::warn!(error = what, "the sweep did not come to its end");
                self.again(self.pause, &what)
            }
            // Nothing that comes again would find another answer.
            Err(error) => {
                tracing::error!(error = %error, "there is no sweep");
                (StatusCode::NOT_IMPLEMENTED, format!("{error}\n")).into_response()
            }
        }
    }

    fn acknowledge(&self, counts: Value) -> Response {
        if self.acknowledged == StatusCode::NO_CONTENT {
            return self.acknowledged.into_response();
        }
        let json = [(CONTENT_TYPE, "application/json")];
        (self.acknowledged, json, counts.to_string()).into_response()
    }

    fn again(&self, pause: Duration, why: &str) -> Response {
        let pause = pause.clamp(LEAST_PAUSE, MOST_PAUSE);
        let seconds = pause.as_secs() + u64::from(pause.subsec_nanos() > 0);
        let after = [(RETRY_AFTER, seconds.to_string())];
        (self.again, after, format!("{why}\n")).into_response()
    }
}

/// A handshake's answer, as it stands.
fn replied(reply: Reply) -> Response {
    let Ok(status) = StatusCode::from_u16(reply.status) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let mut response = status.into_response();
    for (name, value) in reply.headers {
        // The core has checked that it is visible ASCII.
        if let Ok(value) = HeaderValue::from_str(&value) {
            response
                .headers_mut()
                .insert(HeaderName::from_static(name), value);
        }
    }
    if let Some(body) = reply.body {
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        *response.body_mut() = Body::from(body);
    }
    response
}
