//! Access to members, elements and strings of a JSON text. A value of another kind has no members;
//! a text with a syntax error has only the members before the error.

use std::iter;

use crate::{Reader, Str};

/// Returns the JSON text of the member `name`. If several members have this name, the last one
/// counts, as in most JSON readers. Returns `None` if no member has the name, or if `object` is not
/// an object.
#[must_use]
pub fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let mut reader = Reader::of(object);
    reader.begin_object().ok()?;
    let mut found = None;
    while let Some(key) = reader.next_key().ok()? {
        let value = reader.skip().ok()?;
        if key == *name {
            found = Some(value);
        }
    }
    found
}

/// Returns the members of an object: each name, with the JSON text of its value.
pub fn members(object: &str) -> impl Iterator<Item = (Str<'_>, &str)> {
    let mut reader = Reader::of(object);
    let mut is_open = reader.begin_object().is_ok();
    iter::from_fn(move || {
        let mut read = || Some((reader.next_key().ok()??, reader.skip().ok()?));
        let next = if is_open { read() } else { None };
        is_open = next.is_some();
        next
    })
}

/// Returns the JSON texts of the elements of an array.
pub fn elements(array: &str) -> impl Iterator<Item = &str> {
    let mut reader = Reader::of(array);
    let mut is_open = reader.begin_array().is_ok();
    iter::from_fn(move || {
        is_open = is_open && reader.next_element().unwrap_or(false);
        let next = if is_open { reader.skip().ok() } else { None };
        is_open = next.is_some();
        next
    })
}

/// Returns the string in a JSON text; `None` if the text is not a string.
#[must_use]
pub fn string(text: &str) -> Option<Str<'_>> {
    let mut reader = Reader::new(text, 1);
    let string = reader.string().ok()?;
    reader.end().ok()?;
    Some(string)
}

#[cfg(test)]
mod tests;
