//! Members of JSON objects by name, and objects with some of them replaced.

use crate::json::{self, Reader, Str, ValueKind, Writer};
pub(super) use crate::json::{elements, members, quoted, string};

/// Returns the member `name`; absent and null mean the same.
pub(super) fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    json::member(object, name).filter(|value| *value != "null")
}

/// Returns true if there is a member `name`, even if it is null.
pub(super) fn has(object: &str, name: &str) -> bool {
    json::member(object, name).is_some()
}

/// Returns the text of the member `name`.
pub(super) fn text<'a>(object: &'a str, name: &str) -> Option<Str<'a>> {
    member(object, name).and_then(string)
}

/// Returns the whole number of the member `name`.
pub(super) fn count(object: &str, name: &str) -> Option<u64> {
    member(object, name)?.parse().ok()
}

/// Returns the kind of a JSON value.
pub(super) fn kind(value: &str) -> Option<ValueKind> {
    Reader::of(value).kind().ok()
}

/// Returns the object with other values for some members, in their old places; those that it had
/// not come last. What is not an object has no members.
pub(super) fn with(object: &str, changes: &[(&'static str, &str)]) -> String {
    let mut out = Vec::with_capacity(object.len().saturating_add(64));
    let mut json = Writer::new(&mut out);
    let mut done = vec![false; changes.len()];
    json.begin_object();
    for (key, value) in members(object) {
        let change = changes.iter().zip(&mut done).find(|((name, _), _)| key == **name);
        let value = match change {
            // A second member of that name would undo the change.
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
    // What was replaced can be long.
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
