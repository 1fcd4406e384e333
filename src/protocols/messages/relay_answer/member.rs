//! Access to the members of JSON objects by name, and replacement of members.

use crate::json::{self, Reader, Str, ValueKind, Writer};
pub(super) use crate::json::{elements, members, quoted, string};

/// Returns the value of the member `name` of a JSON object; `None` if the member is absent or null.
pub(super) fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    json::member(object, name).filter(|value| *value != "null")
}

/// Returns true if a JSON object has the member `name`, even if the member's value is null.
pub(super) fn has(object: &str, name: &str) -> bool {
    json::member(object, name).is_some()
}

/// Returns the value of the member `name` of a JSON object, if the value is a string.
pub(super) fn text<'a>(object: &'a str, name: &str) -> Option<Str<'a>> {
    member(object, name).and_then(string)
}

/// Returns the value of the member `name` of a JSON object as a whole number.
pub(super) fn count(object: &str, name: &str) -> Option<u64> {
    member(object, name)?.parse().ok()
}

/// Returns the type of a JSON value, such as object or string.
pub(super) fn kind(value: &str) -> Option<ValueKind> {
    Reader::of(value).kind().ok()
}

/// Returns a JSON object with new values for some members, in their old positions; new members are
/// added at the end. A value that is not an object counts as empty.
pub(super) fn with(object: &str, changes: &[(&'static str, &str)]) -> String {
    let mut out = Vec::with_capacity(object.len().saturating_add(64));
    let mut json = Writer::new(&mut out);
    let mut done = vec![false; changes.len()];
    json.begin_object();
    for (key, value) in members(object) {
        let change = changes.iter().zip(&mut done).find(|((name, _), _)| key == **name);
        let value = match change {
            // A duplicate member of this name would undo the change.
            Some((_, true)) => continue,
            Some(((_, value), done)) => {
                *done = true;
                value
            }
            None => value,
        };
        json.key_str(key);
        json::compact(json.out(), value);
    }
    for ((name, value), done) in changes.iter().zip(done) {
        if !done {
            json.key(name).raw(value);
        }
    }
    json.end_object();
    // The replaced value can be long, so unused capacity is freed.
    if out.len() < out.capacity() / 2 {
        out.shrink_to_fit();
    }
    String::from_utf8(out).unwrap_or_default()
}

/// Copies the members of `object` whose names `keep` accepts.
pub(super) fn copy(object: &str, json: &mut Writer<'_>, keep: &dyn Fn(&str) -> bool) {
    for (key, value) in members(object) {
        if keep(&key.decode()) {
            json.key_str(key);
            json::compact(json.out(), value);
        }
    }
}
