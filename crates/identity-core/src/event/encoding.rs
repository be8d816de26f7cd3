//! How bytes carry a text: UTF-8, and base64 around it.

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use super::ReadError;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The bytes of a base64 text, with or without its padding.
pub(super) fn decode_base64(text: &str, field: &'static str) -> Result<Vec<u8>, ReadError> {
    BASE64
        .decode(text.trim_ascii())
        .map_err(|source| ReadError::NotBase64 { field, source })
}

/// The text of these bytes.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str, ReadError> {
    std::str::from_utf8(bytes).map_err(|source| ReadError::NotUtf8 { source })
}

/// The text without the byte order mark before it, if there is one: who reads JSON may pass over it (RFC 8259, section 8.1).
pub(super) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}
