//! Input of a tool call, normalized so that the judge reads exactly what the tool will run.

use crate::json::{Error, Reader, ValueKind, Writer};
use crate::text::names::NameSet;

/// Returns true if an object in the input has two members with the same name. JSON parsers differ
/// in the member they choose: the judge could read the first one, and the client run the second.
pub(super) fn has_twins(input: &str) -> bool {
    walk(&mut Reader::of(input), &mut None).unwrap_or(true)
}

/// Writes a JSON value without white space and without needless escapes, which can hide text from
/// the judge.
pub(super) fn write_plain(json: &mut Writer<'_>, input: &str) {
    let input = if input.trim().is_empty() { "{}" } else { input };
    if !Reader::of(input).is_whole() {
        json.text(input);
        return;
    }
    // The input was just checked as a whole, so the output cannot be incomplete.
    let _ = walk(&mut Reader::of(input), &mut Some(json));
}

/// Reads a JSON value, and writes the value to `to` if given. Returns true if an object in the
/// value has two members with the same name.
fn walk(reader: &mut Reader<'_>, to: &mut Option<&mut Writer<'_>>) -> Result<bool, Error> {
    let mut has_twins = false;
    match reader.kind()? {
        ValueKind::Object => {
            let mut names = NameSet::default();
            reader.begin_object()?;
            to.iter_mut().for_each(|json| _ = json.begin_object());
            while let Some(key) = reader.next_key()? {
                let key = key.decode();
                to.iter_mut().for_each(|json| _ = json.key_text(&key));
                has_twins |= !names.add(key);
                has_twins |= walk(reader, to)?;
            }
            to.iter_mut().for_each(|json| _ = json.end_object());
        }
        ValueKind::Array => {
            reader.begin_array()?;
            to.iter_mut().for_each(|json| _ = json.begin_array());
            while reader.next_element()? {
                has_twins |= walk(reader, to)?;
            }
            to.iter_mut().for_each(|json| _ = json.end_array());
        }
        ValueKind::String => {
            let text = reader.string()?.decode();
            to.iter_mut().for_each(|json| _ = json.text(&text));
        }
        ValueKind::Number | ValueKind::Bool | ValueKind::Null => {
            let text = reader.skip()?;
            to.iter_mut().for_each(|json| _ = json.raw(text));
        }
    }
    Ok(has_twins)
}
