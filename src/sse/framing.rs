//! Parser for the data of a server-sent event that is not exactly one JSON object.
//!
//! Gateways make framing mistakes: the field name is repeated, two events are joined, a heartbeat
//! is not JSON, a JSON array holds many chunks. The answer is still usable.
//!
//! ```text
//! data: data: {…}                the field name again
//! {…}data: {…}[DONE]             several events in one line
//! [{…},{…}]                      a list of chunks, or of one error
//! ping                           a sign of life
//! {"logprob": NaN}               JSON as some libraries write it
//! ```

use super::DONE;
use crate::json::{self, Reader};
use crate::text::words;

/// Characters that may surround a keep-alive word.
const AROUND: &[u8] = b"[]\": \n";

/// Item in the data of an event, which may hold several items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payload<'a> {
    /// JSON object.
    Object(&'a str),
    /// End mark of the stream, such as `[DONE]`.
    Done,
    /// Data without meaning: other JSON values, and words that keep a connection alive.
    SignOfLife,
    /// Text that cannot be parsed: an invalid or truncated object, or text before the next object.
    Unreadable(&'a str),
}

/// Words that servers send to keep a connection alive, perhaps in brackets.
const SIGNS_OF_LIFE: [&str; 6] =
    ["ping", "pong", "heartbeat", "keepalive", "keep-alive", "keep_alive"];

/// Maximum length of a keep-alive text with its brackets, in bytes.
const SIGN_OF_LIFE_BYTES_MAX: usize = 24;

/// Removes and returns the first item of `data`; `None` at the end.
pub(crate) fn next<'a>(data: &mut &'a str) -> Option<Payload<'a>> {
    let mut rest = std::mem::take(data).trim_start();
    if let Some(done) = after_done(rest) {
        *data = done;
        return Some(Payload::Done);
    }
    if rest.len() <= SIGN_OF_LIFE_BYTES_MAX {
        let word = words::trim_end(words::trim_start(rest, AROUND), AROUND);
        if SIGNS_OF_LIFE.iter().any(|known| word.eq_ignore_ascii_case(known)) {
            return Some(Payload::SignOfLife);
        }
    }
    loop {
        // Elements of an array are read like separate objects.
        let bare = rest.strip_prefix("data:").or_else(|| rest.strip_prefix(['[', ',', ']']));
        match bare {
            Some(after) => rest = after.trim_start(),
            None => break,
        }
        if let Some(done) = after_done(rest) {
            *data = done;
            return Some(Payload::Done);
        }
    }
    if rest.is_empty() {
        return None;
    }
    let mut reader = Reader::of(rest);
    match reader.skip() {
        Ok(value) => {
            *data = rest.get(reader.offset()..).unwrap_or_default();
            Some(if value.starts_with('{') { Payload::Object(value) } else { Payload::SignOfLife })
        }
        Err(_) => {
            let (broken, after) = rest.split_at_checked(broken_len(rest)).unwrap_or((rest, ""));
            *data = after;
            Some(Payload::Unreadable(broken))
        }
    }
}

/// Returns the length of the invalid data at the start of `text`. An object ends at its matching
/// bracket, other data at the next object or end mark.
fn broken_len(text: &str) -> usize {
    if !text.starts_with('{') {
        let object = text.find('{').unwrap_or(text.len());
        // The search ends at the object: an event can alternate between junk and objects millions
        // of times.
        return text.get(..object).and_then(|junk| words::find(junk, DONE)).unwrap_or(object);
    }
    let (mut depth, mut in_string, mut escaped) = (0_u32, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if std::mem::take(&mut escaped) => {}
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth = depth.saturating_add(1),
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at.saturating_add(1);
        }
    }
    text.len()
}

/// Returns the object inside of a JSON string: some servers serialise each chunk twice.
pub(crate) fn unquoted(data: &str) -> Option<String> {
    let inside = json::string(data)?.decode();
    inside.trim_start().starts_with('{').then(|| inside.into_owned())
}

/// Returns the text after the end mark, if `text` begins with that mark.
fn after_done(text: &str) -> Option<&str> {
    match text.strip_prefix('"') {
        Some(text) => words::after_start(text, DONE).map(|rest| words::trim_start(rest, b"\"")),
        None => words::after_start(text, DONE),
    }
}

/// Repairs `text` if it differs from JSON only in known faults of libraries. These are `NaN` and
/// `Infinity` as numbers, control characters in strings, unknown escapes, and a comma after the
/// last member. Returns `None` if `text` has no such fault.
pub(crate) fn repaired(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_string = false;
    while let Some(letter) = rest.chars().next() {
        let (mut taken, mut instead) = (letter.len_utf8(), None);
        if in_string {
            match letter {
                '"' => in_string = false,
                '\\' => match rest.get(1..).and_then(|rest| rest.chars().next()) {
                    Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u') => taken = 2,
                    _ => instead = Some("\\\\".to_owned()),
                },
                '\0'..='\x1f' => {
                    let mut escaped = Vec::new();
                    json::escape(&mut escaped, letter.encode_utf8(&mut [0; 4]));
                    instead = Some(String::from_utf8_lossy(&escaped).into_owned());
                }
                _ => {}
            }
        } else if letter == '"' {
            in_string = true;
        } else if letter == ',' {
            let after = rest.get(1..).unwrap_or_default().trim_start();
            if after.starts_with(['}', ']']) {
                instead = Some(String::new());
            }
        } else if let Some(word) =
            ["NaN", "Infinity", "-Infinity", "-NaN"].into_iter().find(|word| rest.starts_with(word))
        {
            (taken, instead) = (word.len(), Some("null".to_owned()));
        }
        let (head, tail) = rest.split_at_checked(taken).unwrap_or((rest, ""));
        out.push_str(instead.as_deref().unwrap_or(head));
        rest = tail;
    }
    (out != text).then_some(out)
}

#[cfg(test)]
mod tests;
