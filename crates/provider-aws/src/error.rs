//! What the services' errors mean: the only place that knows their codes.
//!
//! <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html>,
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>

use std::error::Error;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

/// The cause of an error, for people.
pub(crate) type Cause = Box<dyn Error + Send + Sync>;

/// What a service said, and what to do about it where that is known.
#[derive(Debug, thiserror::Error)]
#[error("{message} ({code}){hint}")]
struct ServiceError {
    code: String,
    message: String,
    hint: String,
}

/// The cause with the service's own words, or what came instead of an answer.
pub(crate) fn cause<E, R>(error: SdkError<E, R>) -> Cause
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    R: std::fmt::Debug + Send + Sync + 'static,
{
    cause_with(error, "")
}

/// As [`cause`], with a hint for people after the service's words.
pub(crate) fn cause_with<E, R>(error: SdkError<E, R>, hint: &str) -> Cause
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    R: std::fmt::Debug + Send + Sync + 'static,
{
    if error.code().is_none() && hint.is_empty() {
        return Box::new(error);
    }
    let code = error.code().unwrap_or("no code").to_owned();
    let message = error
        .message()
        .unwrap_or("the service gives no reason")
        .to_owned();
    let hint = if hint.is_empty() {
        String::new()
    } else {
        format!("; {hint}")
    };
    Box::new(ServiceError {
        code,
        message,
        hint,
    })
}
