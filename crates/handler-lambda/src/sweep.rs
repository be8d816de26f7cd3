//! The scheduled invocation `{"firstclaim":{"sweep":{}}}`: events that nobody delivers again are sent to the queue again.

use std::time::Duration;

use identity_core::{
    claim::{ClaimKey, Record, ResendError, Resent},
    text::error_chain,
};
use lambda_runtime::Diagnostic;
use serde_json::{Value, json};

use crate::{deadline, handler::Handler, metrics};

/// Nothing longer is looked at twice: the schedule's input is constant.
const LONGEST: usize = 256;

/// Whether a payload asks for a sweep.
pub(crate) fn is_wanted(payload: &str) -> bool {
    payload.len() <= LONGEST
        && serde_json::from_str::<Value>(payload)
            .is_ok_and(|value| value == json!({"firstclaim": {"sweep": {}}}))
}

impl Handler {
    /// Sweeps, in the time that there is: the next sweep does what is left.
    ///
    /// # Errors
    ///
    /// A [`Diagnostic`] if there is no queue, or if the table or the queue cannot be used.
    pub(crate) async fn sweep(
        &self,
        request_id: &str,
        left: Option<Duration>,
    ) -> Result<Value, Diagnostic> {
        let Some(resender) = &self.resender else {
            return Err(failed(
                "FIRSTCLAIM_REDRIVE_QUEUE is not set: there is no queue to send events to"
                    .to_owned(),
            ));
        };
        let mut stuck = 0;
        let mut count = |key: &ClaimKey, _: &Record, resent: &Resent| {
            stuck += 1;
            tell(key, resent);
        };
        let swept = match left.map(deadline::for_jobs) {
            None => Some(resender.sweep(false, &mut count).await),
            Some(time) => tokio::select! {
                swept = resender.sweep(false, &mut count) => Some(swept),
                () = self.clock.sleep(time) => None,
            },
        };
        if let Some(Err(ResendError::Claim { .. } | ResendError::Outbox { .. })) = &swept {
            // The one that could not be sent is stuck all the more.
            stuck += 1;
        }
        metrics::emit(
            &self
                .metrics
                .sweep(request_id, self.clock.unix_millis(), stuck),
        );
        match swept {
            Some(Ok(swept)) => Ok(json!(swept)),
            Some(Err(error)) => Err(failed(error_chain(&error))),
            None => Err(failed(format!(
                "the invocation's time is over after {stuck} claims: the next sweep goes on"
            ))),
        }
    }
}

fn tell(key: &ClaimKey, resent: &Resent) {
    match resent {
        Resent::Obstacle(obstacle) => {
            tracing::warn!(job_id = %key, error = %obstacle, "stuck, and not sent again");
        }
        Resent::Sent { redrives } => tracing::warn!(job_id = %key, redrives, "stuck: sent again"),
        Resent::WouldBeSent | Resent::Left => {}
    }
}

fn failed(error_message: String) -> Diagnostic {
    Diagnostic {
        error_type: "firstclaim.Sweep".to_owned(),
        error_message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_schedules_input_is_a_sweep() {
        for wanted in [
            r#"{"firstclaim":{"sweep":{}}}"#,
            "{ \"firstclaim\": {\"sweep\": {} } }\n",
        ] {
            assert!(is_wanted(wanted), "{wanted}");
        }
        for other in [
            "",
            "{}",
            r#"{"firstclaim":{}}"#,
            r#"{"firstclaim":{"sweep":{},"version":1}}"#,
            r#"{"Records":[]}"#,
        ] {
            assert!(!is_wanted(other), "{other}");
        }
        let long = format!(
            "{{\"firstclaim\":{{\"sweep\":{{}}}}}}{}",
            " ".repeat(LONGEST)
        );
        assert!(!is_wanted(&long));
    }
}
