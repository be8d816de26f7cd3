//! SHA-256 digests as lower-case hexadecimal text.

use sha2::{Digest as _, Sha256};

/// SHA-256 of these bytes: 64 lower-case hex characters.
pub fn sha256_hex(bytes: &[u8]) -> String {
    to_hex(&Sha256::digest(bytes).into())
}

/// Two lower-case hex characters for each byte.
pub fn to_hex(digest: &[u8; 32]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    digest
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 0xf])
        .map(|nibble| DIGITS[usize::from(nibble)])
        .collect()
}

/// The digest that 64 lower-case hex characters stand for, or `None`.
pub(crate) fn from_hex(text: &str) -> Option<[u8; 32]> {
    bytes_of(text)?.try_into().ok()
}

/// The bytes that pairs of lower-case hex characters stand for, or `None`.
pub(crate) fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs
        .iter()
        .map(|[high, low]| Some(nibble(*high)? << 4 | nibble(*low)?))
        .collect()
}

const fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}
