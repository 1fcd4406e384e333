//! Base64 encoding and decoding, for the JSON of LLM APIs.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the length of the base64 text for this number of bytes.
pub(crate) fn length_of(bytes: usize) -> usize {
    bytes.div_ceil(3).saturating_mul(4)
}

/// Encodes bytes as base64, with padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(length_of(bytes.len()));
    for group in bytes.chunks(3) {
        let byte = |at: usize| usize::from(group.get(at).copied().unwrap_or_default());
        let number = byte(0) << 16 | byte(1) << 8 | byte(2);
        for (at, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let digit = DIGITS.get(number >> shift & 63).copied().unwrap_or_default();
            text.push(if at > group.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

/// Decodes base64 of either alphabet, with or without padding and line breaks. `None` if the text
/// has other characters.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len().div_ceil(4).saturating_mul(3));
    // Last bits that are not part of a decoded byte yet, and their number.
    let (mut number, mut bits) = (0_u32, 0_u32);
    for letter in text.bytes() {
        let digit = match letter {
            b'A'..=b'Z' => letter.wrapping_sub(b'A'),
            b'a'..=b'z' => letter.wrapping_sub(b'a').wrapping_add(26),
            b'0'..=b'9' => letter.wrapping_sub(b'0').wrapping_add(52),
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' | b' ' | b'\t' | b'\r' | b'\n' => continue,
            _ => return None,
        };
        number = number << 6 | u32::from(digit);
        bits = bits.saturating_add(6);
        if let Some(left) = bits.checked_sub(8) {
            let [.., byte] = number.wrapping_shr(left).to_be_bytes();
            bytes.push(byte);
            bits = left;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;

    use super::*;

    #[test]
    fn each_length_has_its_padding() {
        let bytes: Vec<u8> = (0..=255).rev().collect();
        for length in 0..bytes.len() {
            let bytes = &bytes[..length];
            let text = encode(bytes);
            assert_eq!(text, BASE64_STANDARD.encode(bytes));
            assert_eq!(text.len(), length_of(length));
            assert_eq!(decode(&text).as_deref(), Some(bytes));
        }
    }

    #[test]
    fn base64_is_read_as_mail_and_urls_have_it_and_nothing_else_is() {
        assert_eq!(decode("_-8\r\nB"), decode("/+8B=="));
        assert_eq!(decode("_-8\r\nB").unwrap(), [0xff, 0xef, 0x01]);
        assert_eq!(decode("AA*A"), None);
        assert_eq!(decode(""), Some(Vec::new()));
    }
}
