//! Tests for JSON values of `error` members: whether a value is empty, and whether it means
//! success.

use crate::json::{Error, Reader, ValueKind};

/// Reads a JSON value, and returns its text unless the value is empty or means success.
pub(crate) fn something<'a>(reader: &mut Reader<'a>) -> Result<Option<&'a str>, Error> {
    Ok(Some(reader.skip()?).filter(|raw| says_something(raw)))
}

/// Returns true if the value of an `error` member is an error. `""`, `{}`, `false`, `"success"` and
/// objects of such values are no errors: gateways with fixed structures send them with every chunk.
pub(crate) fn says_something(raw: &str) -> bool {
    !says_nothing(&mut Reader::of(raw)).unwrap_or(false)
}

/// Returns true if a code or a message means success.
pub(crate) fn says_well(raw: &str) -> bool {
    let word = unquoted(raw);
    let said = word.strip_suffix('.').or_else(|| word.strip_suffix('!')).unwrap_or(word);
    matches!(word, "0" | "200" | "true")
        || ["ok", "success", "successful", "succeeded"]
            .iter()
            .any(|well| said.eq_ignore_ascii_case(well))
}

/// Returns the inside of a JSON string, or the text itself if it is no string.
pub(crate) fn unquoted(raw: &str) -> &str {
    raw.strip_prefix('"').and_then(|inside| inside.strip_suffix('"')).unwrap_or(raw)
}

/// Reads a JSON value, and returns true if the value is empty or means success.
fn says_nothing(reader: &mut Reader<'_>) -> Result<bool, Error> {
    let mut nothing = true;
    match reader.kind()? {
        ValueKind::Object => {
            reader.begin_object()?;
            while reader.next_key()?.is_some() {
                nothing &= says_nothing(reader)?;
            }
        }
        ValueKind::Array => {
            reader.begin_array()?;
            while reader.next_element()? {
                nothing &= says_nothing(reader)?;
            }
        }
        ValueKind::String => {
            let text = reader.string()?;
            nothing = text.is_blank() || (text.raw() != "true" && says_well(text.raw()));
        }
        ValueKind::Number | ValueKind::Bool | ValueKind::Null => {
            nothing = matches!(reader.skip()?, "null" | "false" | "0" | "200");
        }
    }
    Ok(nothing)
}
