//! What the store promises, against real files and real processes.

mod claims;
mod files;
mod listing;
mod processes;

use std::error::Error;

/// An error and its causes, as a person is told them.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
