//! Log lines on standard error, which Lambda keeps: JSON unless it is asked for text, each with its invocation's request ID.

use identity_core::settings::{LogFormat, Settings};
use tracing_subscriber::{EnvFilter, filter::ParseError};

/// Starts the log as the settings have it.
///
/// # Errors
///
/// [`ParseError`] of a filter that is none.
pub(crate) fn start(settings: &Settings) -> Result<(), ParseError> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_new(&settings.log)?)
        .with_writer(std::io::stderr)
        .with_ansi(false);
    match settings.log_format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .init(),
    }
    Ok(())
}
