//! Event files and standard input: bytes of a file → what the core reads events from.

use std::{
    io::{self, Read as _},
    path::Path,
};

use identity_core::event::{self, Item, ReadContext, http_file::OwnedDelivery};

use crate::failure::Failure;

/// The events of a file, in order; never none.
pub(crate) fn events(path: &Path, context: &ReadContext<'_>) -> Result<Vec<Item>, Failure> {
    let bytes = read(path).map_err(|error| {
        Failure::failed(format!("{} cannot be read", name(path))).because(error)
    })?;
    let delivery = OwnedDelivery::from_file(bytes);
    Ok(event::read_in(&delivery.as_delivery(), context))
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
