//! What reading gathers, and where in the delivery it is. What is read where is the envelopes' own.

use std::{borrow::Cow, sync::Arc};

use super::{
    Carrier, Carriers, Item, MAX_ITEMS, Origin, ReadContext, ReadError, Reading, S3Keys, Unreadable,
};

/// Where the reader is.
#[derive(Default)]
pub(super) struct Place {
    /// The element of the outermost list that is being read, once one has been entered.
    pub(super) origin: Option<Arc<Origin>>,
    /// How many texts lie around this one.
    pub(super) depth: usize,
    /// What carries them.
    pub(super) carriers: Carriers,
}

impl Place {
    /// In the text that a message of this place carries.
    pub(super) fn inside(&self, carrier: Carrier) -> Self {
        Self {
            origin: self.origin.clone(),
            depth: self.depth + 1,
            carriers: self.carriers.and(carrier),
        }
    }
}

/// What has been read so far.
pub(super) struct Reader<'c> {
    pub(super) items: Vec<Item>,
    /// The storage account of blobs whose event names none.
    pub(super) azure_account: Option<&'c str>,
    /// How stores write keys, as far as that is configured.
    pub(super) s3_keys: Cow<'c, S3Keys>,
}

impl<'c> Reader<'c> {
    pub(super) fn new(context: &ReadContext<'c>) -> Self {
        let s3_keys = context.s3_keys;
        Self {
            items: Vec::new(),
            azure_account: context.azure_account,
            s3_keys: s3_keys.map_or_else(Cow::default, Cow::Borrowed),
        }
    }

    pub(super) fn push(&mut self, reading: Reading, place: &Place) {
        self.items.push(Item {
            carriers: place.carriers,
            origin: place.origin.clone().unwrap_or_default(),
            redriven: None,
            reading,
        });
    }

    pub(super) fn unreadable(&mut self, error: ReadError, bytes: impl AsRef<[u8]>, place: &Place) {
        let bytes = bytes.as_ref().to_vec();
        self.push(Reading::Unreadable(Unreadable { error, bytes }), place);
    }

    pub(super) fn push_result<'t>(
        &mut self,
        result: Result<Reading, ReadError>,
        text: &dyn Fn() -> &'t str,
        place: &Place,
    ) {
        match result {
            Ok(reading) => self.push(reading, place),
            Err(error) => self.unreadable(error, text(), place),
        }
    }
}

pub(super) const fn too_many(field: &'static str, got: usize) -> ReadError {
    ReadError::TooManyItems {
        field,
        got,
        limit: MAX_ITEMS,
    }
}
