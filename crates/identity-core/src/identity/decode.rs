//! Percent- and form-decoding, in one place and in one pass. Which of them a key needs is its envelope's to say.

/// The bytes that a form-encoded text stands for: `+` is a space, then [`percent_decode`].
///
/// S3 notification records carry their keys so. `%2B` is a plus sign and stays one: the order of the two steps is what
/// keeps `a+b` and `a%2Bb` apart.
#[must_use]
pub fn form_decode(text: &str) -> Vec<u8> {
    decode(text, true)
}

/// The bytes that a percent-encoded text stands for, decoded exactly once (`%2520` is `%20`).
///
/// A `%` that two hex digits do not follow stands for itself, as it does for Python's `urllib.parse.unquote`. The
/// bytes need not be UTF-8.
#[must_use]
pub fn percent_decode(text: &str) -> Vec<u8> {
    decode(text, false)
}

fn decode(text: &str, plus_is_space: bool) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut decoded = Vec::with_capacity(rest.len());
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'+' if plus_is_space => decoded.push(b' '),
            b'%' => match escape(after) {
                Some((value, after)) => {
                    decoded.push(value);
                    rest = after;
                }
                None => decoded.push(b'%'),
            },
            other => decoded.push(other),
        }
    }
    decoded
}

/// The byte that the two hex digits at the start of `rest` name, and what follows them.
fn escape(rest: &[u8]) -> Option<(u8, &[u8])> {
    let (&[high, low], after) = rest.split_first_chunk()?;
    Some((hex_digit(high)? << 4 | hex_digit(low)?, after))
}

const fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_form_has_spaces_for_plus_signs_and_an_escaped_plus_stays_one() {
        assert_eq!(
            form_decode("p/VJ9B+-+Copy+%282%29%2Bx.tif"),
            b"p/VJ9B - Copy (2)+x.tif"
        );
        assert_eq!(form_decode("Stra%C3%9fen"), "Straßen".as_bytes());
        assert_eq!(percent_decode("a+b%20c"), b"a+b c");
    }

    #[test]
    fn an_incomplete_sequence_stays() {
        for text in ["50%", "50%/x%2.tif", "%", "%%", "%G0", "%0G", "%é0"] {
            assert_eq!(percent_decode(text), text.as_bytes(), "{text}");
        }
        assert_eq!(percent_decode("%%41"), b"%A");
    }

    #[test]
    fn nothing_is_decoded_twice() {
        assert_eq!(form_decode("5%253A00.shp"), b"5%3A00.shp");
        assert_eq!(form_decode("%252B"), b"%2B");
    }

    #[test]
    fn bytes_that_are_not_utf8_come_out_as_they_are() {
        assert_eq!(form_decode("bad%FF%fename"), b"bad\xff\xfename");
    }

    proptest! {
        #[test]
        fn what_was_encoded_comes_back(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let encoded: String = bytes.iter().map(|byte| format!("%{byte:02X}")).collect();
            prop_assert_eq!(form_decode(&encoded), bytes);
        }

        #[test]
        fn text_without_escapes_is_its_own_bytes(text in "[^%+]*") {
            prop_assert_eq!(form_decode(&text), text.as_bytes());
        }
    }
}
