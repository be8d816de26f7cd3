//! Log lines on standard error, which Lambda keeps: JSON unless it is asked for text, each with its invocation's request ID.

use identity_core::settings::{LogFormat, Settings};
use tracing_subscriber::{EnvFilter, filter::ParseError};

/// Starts the log as the settings have it.
///
/// # Errors
///
/// [`ParseError`] of a filter that is none.
pub(crate) fn start(settings: &Settings) -> Result<(), ParseError> {
    start_with(EnvFilter::try_new(&settings.log)?, settings.log_format);
    Ok(())
}

/// Starts the log, unless it has been started, for the one line that says why the settings cannot be used.
pub(crate) fn start_anyway() {
    start_with(EnvFilter::new("info"), LogFormat::Json);
}

fn start_with(filter: EnvFilter, format: LogFormat) {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false);
    // A log that is there stays.
    let _ = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .try_init(),
    };
}
