//! JSON objects whose strings contain unescaped control characters.

use super::json_scan::DEPTH_MAX;
use crate::json::{self, Reader};

/// Returns the JSON object at the start of a text, with control characters escaped, and the
/// object's length in the original. Models write line breaks and tabs in strings unescaped, which
/// is invalid but unambiguous.
pub(crate) fn escaped(text: &str) -> Option<(String, usize)> {
    let (mut out, mut copied) = (Vec::new(), 0);
    let (mut depth, mut in_string, mut is_escape) = (0usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        let end = at.saturating_add(1);
        match byte {
            _ if is_escape => is_escape = false,
            b'\\' => is_escape = in_string,
            b'"' => in_string = !in_string,
            ..b' ' if in_string => {
                out.extend_from_slice(text.get(copied..at)?.as_bytes());
                json::escape(&mut out, text.get(at..end)?);
                copied = end;
            }
            b'{' | b'[' if !in_string => depth = depth.saturating_add(1),
            b'}' | b']' if !in_string => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    out.extend_from_slice(text.get(copied..end)?.as_bytes());
                    let object = String::from_utf8(out).ok()?;
                    let is_json = Reader::new(&object, DEPTH_MAX).is_whole();
                    return is_json.then_some((object, end));
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns the JSON object in `text`, with control characters escaped, if `text` contains nothing
/// else.
pub(crate) fn all_escaped(text: &str) -> Option<String> {
    let text = text.trim();
    let (object, length) = escaped(text)?;
    (length == text.len()).then_some(object)
}
