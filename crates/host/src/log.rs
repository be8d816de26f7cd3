//! Log lines on standard error: text for people, or one flat JSON object a line, the same of every program.

use std::io::IsTerminal as _;

use tracing_subscriber::{EnvFilter, filter::ParseError};

use crate::settings::{LogFormat, Settings};

/// A log filter that is none.
#[derive(Debug, thiserror::Error)]
#[error("FIRSTCLAIM_LOG is no log filter: {got:?}")]
pub struct FilterError {
    /// What it is.
    pub got: String,
    /// What is wrong with it.
    #[source]
    pub source: ParseError,
}

/// Starts the log as the settings have it. One that was started before stays.
///
/// # Errors
///
/// [`FilterError`].
pub fn start(settings: &Settings) -> Result<(), FilterError> {
    let filter = EnvFilter::try_new(&settings.log).map_err(|source| FilterError {
        got: settings.log.clone(),
        source,
    })?;
    start_with(filter, settings.log_format);
    Ok(())
}

/// Starts the log, unless it has been started, for the one line that says why the settings cannot be used: in the format
/// that this program has by default.
pub fn start_anyway(format: LogFormat) {
    start_with(EnvFilter::new("info"), format);
}

fn start_with(filter: EnvFilter, format: LogFormat) {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // A log that is there stays.
    let _ = match format {
        LogFormat::Text => builder
            .with_ansi(std::io::stderr().is_terminal())
            .try_init(),
        LogFormat::Json => builder
            .with_ansi(false)
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .try_init(),
    };
}
