//! Log lines on standard error: text for people, or one flat JSON object a line, the same of every program.

use std::io::{self, Write};

use identity_core::text::escaped;
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
    // No colours: their escapes could not be told from those in a key.
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(|| OneLine(io::stderr()));
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

/// Takes an event of the log with each write, and writes it as one line that a terminal only shows: it may quote other
/// people's text.
struct OneLine<W>(W);

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let mut line = escaped(text.strip_suffix('\n').unwrap_or(&text)).into_owned();
        line.push('\n');
        self.0.write_all(line.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_event_is_one_line_whatever_it_quotes() {
        let written = Written::default();
        let to = written.clone();
        let log = tracing_subscriber::fmt()
            .with_ansi(false)
            .without_time()
            .with_writer(move || OneLine(to.clone()))
            .finish();
        tracing::subscriber::with_default(log, || {
            tracing::warn!(
                key = "a\n WARN forged\u{9b}2J",
                "not {}",
                "b\n\u{1b}c\u{202e}"
            );
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.lines().count(), 1, "{text:?}");
        assert!(text.ends_with('\n') && text.contains("forged"), "{text:?}");
        assert!(!text.contains(['\u{9b}', '\u{1b}', '\u{202e}']), "{text:?}");
    }
}
