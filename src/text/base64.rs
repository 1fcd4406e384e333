//! Base64, as JSON of the APIs has it.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// How long the base64 of so many bytes is.
pub(crate) fn length_of(bytes: usize) -> usize {
    bytes.div_ceil(3).saturating_mul(4)
}

/// The base64 of bytes, with its padding.
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
        }
    }
}
