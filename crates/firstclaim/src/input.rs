//! Event files and standard input: bytes of a file, or of each of its lines → what the core reads events from.

use std::{
    io::{self, Read as _},
    path::Path,
};

use identity_core::event::{self, Item, ReadContext, http_file::OwnedDelivery};
use serde::de::IgnoredAny;

use crate::failure::Failure;

/// The events of a file, in order: of one delivery, or of as many as it has lines of JSON. None only if standard input is
/// empty.
pub(crate) fn events(path: &Path, context: &ReadContext<'_>) -> Result<Vec<Item>, Failure> {
    let bytes = read(path).map_err(|error| {
        Failure::failed(format!("{} cannot be read", name(path))).because(error)
    })?;
    // A queue that has nothing, or a sweep that found nothing, prints nothing.
    if is_stdin(path) && bytes.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    let lines = lines(&bytes).map(|lines| lines.map(<[u8]>::to_vec).collect());
    let deliveries: Vec<_> = lines.unwrap_or_else(|| vec![bytes]);
    let read = |bytes| {
        let delivery = OwnedDelivery::from_file(bytes);
        event::read_in(&delivery.as_delivery(), context)
    };
    Ok(deliveries.into_iter().flat_map(read).collect())
}

/// The lines of a file that has a JSON value in each; `None` if it is one delivery. The first line decides, so that one bad
/// line does not take the others with it.
fn lines(bytes: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let is_json = |bytes: &[u8]| serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
    let filled = |line: &&[u8]| !line.trim_ascii().is_empty();
    let mut lines = bytes.split(|byte| *byte == b'\n').filter(filled);
    let first = lines.next()?;
    let one = lines.next().is_none() || !is_json(first) || is_json(bytes);
    (!one).then(|| bytes.split(|byte| *byte == b'\n').filter(filled))
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    if is_stdin(path) {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    std::fs::read(path)
}

/// Whether the argument stands for standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// What a file is called in messages.
pub(crate) fn name(path: &Path) -> String {
    if is_stdin(path) {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_begin_with_a_whole_value_are_deliveries_of_their_own() {
        let count = |text: &str| lines(text.as_bytes()).map(Iterator::count);
        assert_eq!(count("{}\n\n[1]\r\n"), Some(2));
        assert_eq!(count("{}\n{\n"), Some(2), "a bad line is its own");
        for one in ["", "{}", "{}\n", "{\n}\n", "[1,\n2]", "{\n{}", "\u{0}\n{}"] {
            assert_eq!(count(one), None, "{one:?}");
        }
    }
}
