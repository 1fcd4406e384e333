//! Members of objects: which there may be, and of which type they are.

use serde_json::{Map, Value};

use super::refusal::*;
use super::{Checked, Refusal};

pub(super) type Fields = Map<String, Value>;

/// The object at `path`.
pub(super) fn object<'a>(value: &'a Value, path: &str) -> Result<&'a Fields, Refusal> {
    value.as_object().ok_or_else(|| wrong_type(path, "an object", value))
}

/// The array at `path`, with one element at least.
pub(super) fn array<'a>(value: &'a Value, path: &str) -> Result<&'a [Value], Refusal> {
    match value {
        Value::Array(list) if list.is_empty() => Err(empty_array(path)),
        Value::Array(list) => Ok(list),
        other => Err(wrong_type(path, "an array of objects", other)),
    }
}

/// The object at `path` has no members but these.
pub(super) fn only(object: &Fields, path: &str, known: &[&str]) -> Checked {
    match object.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let at = member(path, name);
            let message = format!("Unknown parameter: '{at}'.");
            Err(Refusal::invalid(message).at(at).code("unknown_parameter"))
        }
    }
}

/// The path of a member.
pub(super) fn member(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A member that is set and not null.
pub(super) fn set<'a>(object: &'a Fields, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}

/// A text that may be left out.
pub(super) fn text<'a>(
    object: &'a Fields,
    path: &str,
    name: &str,
) -> Result<Option<&'a str>, Refusal> {
    match set(object, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong_type(&member(path, name), "a string", other)),
    }
}

/// A text that must be there.
pub(super) fn needed<'a>(object: &'a Fields, path: &str, name: &str) -> Result<&'a str, Refusal> {
    text(object, path, name)?.ok_or_else(|| missing(&member(path, name)))
}

/// Checks an optional member whose text must be one of `words`.
pub(super) fn word(object: &Fields, path: &str, name: &str, words: &[&str]) -> Checked {
    match text(object, path, name)? {
        None => Ok(()),
        Some(word) => one_of(word, &member(path, name), words),
    }
}

/// Booleans that may be left out.
pub(super) fn booleans(object: &Fields, path: &str, names: &[&str]) -> Checked {
    for name in names {
        match set(object, name) {
            None | Some(Value::Bool(_)) => {}
            Some(other) => return Err(wrong_type(&member(path, name), "a boolean", other)),
        }
    }
    Ok(())
}

/// Integers that may be left out, each with its least value.
pub(super) fn integers(object: &Fields, least: &[(&str, i64)]) -> Checked {
    for (name, least) in least {
        let Some(value) = set(object, name) else { continue };
        match value.as_i64() {
            None => return Err(wrong_type(name, "an integer", value)),
            Some(number) if number < *least => return Err(below(name, *least, number)),
            Some(_) => {}
        }
    }
    Ok(())
}

/// Decimals that may be left out, each with its least and its greatest value.
pub(super) fn decimals(object: &Fields, between: &[(&str, f64, f64)]) -> Checked {
    for (name, low, high) in between {
        let Some(value) = set(object, name) else { continue };
        let Some(number) = value.as_f64() else { return Err(wrong_type(name, "a decimal", value)) };
        let (side, sign, bound, code) = if number < *low {
            ("below minimum", ">=", low, "decimal_below_min_value")
        } else if number > *high {
            ("above maximum", "<=", high, "decimal_above_max_value")
        } else {
            continue;
        };
        let message = format!(
            "Invalid '{name}': decimal {side} value. Expected a value {sign} {bound}, but got {number} instead."
        );
        return Err(Refusal::invalid(message).at(*name).code(code));
    }
    Ok(())
}
