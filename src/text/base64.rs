//! Base64 encoding and decoding, for the JSON of LLM APIs.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the length of the base64 text for this number of bytes.
pub(crate) fn length_of(bytes: usize) -> usize {
    bytes.div_ceil(3).saturating_mul(4)
}

/// Mark of a byte that is no digit of base64, in [`VALUES`].
const NO_DIGIT: u8 = 0xff;

/// Values of the digits of both alphabets, by their bytes.
const VALUES: [u8; 256] = values();

#[allow(clippy::indexing_slicing, reason = "it runs when this is compiled")]
const fn values() -> [u8; 256] {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0_u8;
    while value < 64 {
        values[DIGITS[value as usize] as usize] = value;
        value = value.wrapping_add(1);
    }
    (values[b'-' as usize], values[b'_' as usize]) = (62, 63);
    values
}

/// Returns the digit for the last six bits of a number.
fn digit(number: usize) -> u8 {
    DIGITS.get(number & 63).copied().unwrap_or_default()
}

/// Returns the four digits of a group of three bytes.
fn digits([a, b, c]: [u8; 3]) -> [u8; 4] {
    let number = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
    [digit(number >> 18), digit(number >> 12), digit(number >> 6), digit(number)]
}

/// Encodes bytes as base64, with padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = Vec::with_capacity(length_of(bytes.len()));
    let (groups, rest) = bytes.as_chunks::<3>();
    groups.iter().for_each(|group| text.extend_from_slice(&digits(*group)));
    match *rest {
        [a] => {
            let [first, second, ..] = digits([a, 0, 0]);
            text.extend_from_slice(&[first, second, b'=', b'=']);
        }
        [a, b] => {
            let [first, second, third, _] = digits([a, b, 0]);
            text.extend_from_slice(&[first, second, third, b'=']);
        }
        _ => {}
    }
    String::from_utf8(text).unwrap_or_default()
}

/// Decodes base64 of either alphabet, with or without padding and line breaks. `None` if the text
/// has other characters.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len().div_ceil(4).saturating_mul(3));
    let value = |letter: u8| VALUES.get(usize::from(letter)).copied().unwrap_or(NO_DIGIT);
    // Nearly all texts have digits only, up to their last group.
    let (groups, _) = text.as_bytes().as_chunks::<4>();
    let whole = groups.iter().map_while(|group| {
        let [a, b, c, d] = group.map(value);
        // Only a byte that is no digit has one of the first two bits.
        let number = [a, b, c, d].iter().fold(0, |number, it| number << 6 | u32::from(*it));
        ((a | b | c | d) & 0xc0 == 0).then_some(number)
    });
    let mut read = 0_usize;
    for number in whole {
        let [_, group @ ..] = number.to_be_bytes();
        bytes.extend_from_slice(&group);
        read = read.saturating_add(4);
    }
    // Last bits that are not part of a decoded byte yet, and their number.
    let (mut number, mut bits) = (0_u32, 0_u32);
    for letter in text.bytes().skip(read) {
        let digit = match value(letter) {
            NO_DIGIT if matches!(letter, b'=' | b' ' | b'\t' | b'\r' | b'\n') => continue,
            NO_DIGIT => return None,
            digit => digit,
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
