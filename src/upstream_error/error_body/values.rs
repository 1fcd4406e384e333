//! Helpers that read values which occur in many shapes of errors.

use crate::json::{self, Reader, ValueKind};

/// Returns true if a text is a sentence: more than a word, a path or a number.
pub(super) fn is_sentence(text: &str) -> bool {
    text.trim().bytes().any(|byte| byte == b' ')
}

/// Reads the members of an object; other values are skipped. `take` reads a member's value, or
/// returns false to skip it.
pub(super) fn members<'a>(
    reader: &mut Reader<'a>,
    take: &mut dyn FnMut(&str, &mut Reader<'a>) -> Result<bool, json::Error>,
) -> Result<(), json::Error> {
    if reader.kind()? != ValueKind::Object {
        reader.skip()?;
        return Ok(());
    }
    reader.begin_object()?;
    while let Some(key) = reader.next_key()? {
        if !take(&key.decode(), reader)? {
            reader.skip()?;
        }
    }
    Ok(())
}

/// Reads a validation error of FastAPI, and returns a text of the form `loc: msg`.
pub(super) fn complaint(reader: &mut Reader<'_>) -> Result<String, json::Error> {
    let (mut path, mut text) = (String::new(), String::new());
    members(reader, &mut |key, reader| {
        match (key, reader.kind()?) {
            ("loc", ValueKind::Array) => {
                reader.begin_array()?;
                while reader.next_element()? {
                    path.push_str(if path.is_empty() { "" } else { "." });
                    match reader.kind()? {
                        ValueKind::String => path.push_str(&reader.string()?.decode()),
                        _ => path.push_str(reader.skip()?),
                    }
                }
            }
            ("msg" | "message", ValueKind::String) => text = reader.string()?.decode().into_owned(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(match (path.is_empty(), text.is_empty()) {
        (false, false) => format!("{path}: {text}"),
        _ => text,
    })
}
