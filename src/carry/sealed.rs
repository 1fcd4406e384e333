//! Texts of search results that travel in the client's history, as `encrypted_content`, and numbers
//! of cited results, as `encrypted_index`.
//!
//! A sealed text is neither secret nor authenticated: a client that changes the text changes what
//! its own model reads.
//! Contents that another server has sealed do not begin with the same bytes, and are not opened.

use super::signature::fnv1a64;
use crate::text::{base64, words};

/// First bytes of a sealed text: the letters `CRC` and the version.
const CONTENT: [u8; 4] = *b"CRC\x01";

/// Beginnings of the members that Creole has sealed, as base64 in a JSON string.
pub(crate) const BEGINNINGS: [&str; 2] = ["\"Q1JDAQ", "\"Q1JJAQ"];

/// Tag of the record that holds the text of a result.
const TEXT: u8 = 1;

/// Number of bytes before the text of a result.
const HEAD_BYTES: usize = 9;

/// First bytes of a sealed number: the letters `CRI` and the version.
const INDEX: [u8; 4] = *b"CRI\x01";

/// Length of a sealed number, as base64.
const INDEX_LETTERS: usize = 24;

/// Returns the `encrypted_content` for the text of a search result. A text that is longer than its
/// length field can say is left out.
pub(crate) fn seal(text: &str) -> String {
    let (length, text) = match u32::try_from(text.len()) {
        Ok(length) => (length, text),
        Err(_) => (0, ""),
    };
    let length = length.to_be_bytes();
    base64::encode(&[&CONTENT[..], &[TEXT], &length, text.as_bytes()].concat())
}

/// Returns the text of a search result from its `encrypted_content`; `None` if the content was not
/// sealed by [`seal`].
pub(crate) fn open(sealed: &str) -> Option<String> {
    let bytes = base64::decode(sealed)?;
    let record = bytes.strip_prefix(&CONTENT)?.strip_prefix(&[TEXT])?;
    let (length, text) = record.split_first_chunk()?;
    let is_whole = usize::try_from(u32::from_be_bytes(*length)) == Ok(text.len());
    let text = String::from_utf8(text.to_vec()).ok().filter(|_| is_whole)?;
    // A control character takes six bytes in JSON, and the texts that Creole seals have none.
    let is_control = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    (!text.contains(is_control)).then_some(text)
}

/// Returns the first characters of the text in an `encrypted_content`, at most `letters`. The rest
/// is not decoded. Empty if the content was not sealed by [`seal`].
pub(crate) fn beginning(sealed: &str, letters: usize) -> String {
    let bytes = HEAD_BYTES.saturating_add(letters.saturating_mul(4));
    let start = words::beginning(sealed, base64::length_of(bytes));
    let Some(decoded) = base64::decode(start) else { return String::new() };
    let Some(record) = decoded.strip_prefix(&CONTENT).and_then(|it| it.strip_prefix(&[TEXT]))
    else {
        return String::new();
    };
    let Some((_, text)) = record.split_first_chunk::<4>() else { return String::new() };
    let text = text.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    text.chars().take(letters).collect()
}

/// Returns the `encrypted_index` for a citation: the number of a page in the conversation, and the
/// hash of the page's address.
pub(crate) fn seal_index(number: u32, url: &str) -> String {
    let hash = fnv1a64(url.as_bytes()).to_be_bytes();
    base64::encode(&[&INDEX[..], &number.to_be_bytes(), &hash].concat())
}

/// Returns the number of the cited page; `None` if the index was not sealed by [`seal_index`].
pub(crate) fn open_index(sealed: &str) -> Option<u32> {
    let bytes = base64::decode(sealed).filter(|_| sealed.len() <= INDEX_LETTERS)?;
    let (number, hash) = bytes.strip_prefix(&INDEX)?.split_first_chunk()?;
    (hash.len() == 8).then(|| u32::from_be_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_number_has_the_documented_bytes_and_opens_to_the_same_number() {
        let sealed = seal_index(7, "https://a.example/x");
        let bytes = base64::decode(&sealed).unwrap();
        assert_eq!(bytes.len(), 16);
        assert_eq!(bytes[..8], *b"CRI\x01\0\0\0\x07");
        assert_eq!(open_index(&sealed), Some(7));
        assert_ne!(seal_index(7, "https://a.example/y"), sealed);
        assert_ne!(seal_index(8, "https://a.example/x"), sealed);
        for foreign in ["", "not base64!", "EpwBCioIChABGAIqQA==", &seal("text"), "Q1JJAQAAAAc="] {
            assert_eq!(open_index(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn the_beginning_of_a_sealed_text_is_read_without_the_rest() {
        for text in ["", "a", "é€𝄞", &"x".repeat(5000), &"𝄞".repeat(400)] {
            let expected: String = text.chars().take(150).collect();
            assert_eq!(beginning(&seal(text), 150), expected);
        }
        let cut = seal(&"x".repeat(5000)) + "!not base64";
        assert_eq!(beginning(&cut, 150), "x".repeat(150), "the rest is not decoded");
        assert_eq!(beginning("EpwBCioIChABGAIqQA==", 150), "");
    }

    #[test]
    fn a_sealed_text_has_the_documented_bytes_and_opens_to_the_same_text() {
        let sealed = seal("é");
        assert_eq!(base64::decode(&sealed).unwrap(), b"CRC\x01\x01\0\0\0\x02\xc3\xa9");
        assert_eq!(sealed, "Q1JDAQEAAAACw6k=");
        for text in ["", "é", "line\nline", &"x".repeat(5000)] {
            let sealed = seal(text);
            assert_eq!(open(&sealed).as_deref(), Some(text));
            assert!(sealed.bytes().all(|it| it.is_ascii_alphanumeric() || b"+/=".contains(&it)));
        }
    }

    #[test]
    fn contents_that_were_not_sealed_here_are_not_opened() {
        let changed = |change: fn(&mut Vec<u8>)| {
            let mut bytes = base64::decode(&seal("text")).unwrap();
            change(&mut bytes);
            open(&base64::encode(&bytes))
        };
        assert_eq!(changed(|_| {}).as_deref(), Some("text"));
        let changes: [fn(&mut Vec<u8>); 7] = [
            |bytes| bytes[0] = b'X',
            |bytes| bytes[3] = 2,
            |bytes| bytes[4] = 2,
            |bytes| bytes[5] = 0xff,
            |bytes| bytes.truncate(bytes.len() - 1),
            |bytes| bytes.truncate(7),
            |bytes| *bytes.last_mut().unwrap() = 0xff,
        ];
        for change in changes {
            assert_eq!(changed(change), None);
        }
        for foreign in ["", "not base64!", "EpwBCioIChABGAIqQA==", "plain text of a page"] {
            assert_eq!(open(foreign), None, "{foreign}");
        }
    }
}
