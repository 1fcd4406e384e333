//! Texts of search results that travel in the client's history, as `encrypted_content`.
//!
//! A sealed text is neither secret nor authenticated: a client that changes the text changes what
//! its own model reads.
//! Contents that another server has sealed do not begin with the same bytes, and are not opened.

use crate::text::base64;

/// First bytes of a sealed text: the letters `CRC` and the version.
const CONTENT: [u8; 4] = *b"CRC\x01";

/// Tag of the record that holds the text of a result.
const TEXT: u8 = 1;

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
    if is_whole { String::from_utf8(text.to_vec()).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

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
