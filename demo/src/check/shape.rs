//! Checks of the fields in an object: which are allowed, and which types they have.

use serde_json::{Map, Value};

use super::refusal::*;
use super::{Checked, Refusal};

pub(super) type Fields = Map<String, Value>;

/// Returns the JSON value at `path` as an object, or a refusal if the value is no object.
pub(super) fn object<'a>(value: &'a Value, path: &str) -> Result<&'a Fields, Refusal> {
    value.as_object().ok_or_else(|| wrong_type(path, "an object", value))
}

/// Returns the JSON value at `path` as an array, or a refusal if the value is empty or no array.
pub(super) fn array<'a>(value: &'a Value, path: &str) -> Result<&'a [Value], Refusal> {
    match value {
        Value::Array(list) if list.is_empty() => Err(empty_array(path)),
        Value::Array(list) => Ok(list),
        other => Err(wrong_type(path, "an array of objects", other)),
    }
}

/// Checks that the object at `path` has no other fields than `known`.
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

/// Returns the path of a field, for error messages.
pub(super) fn member(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Returns the value of a field, if the field is present and not null.
pub(super) fn set<'a>(object: &'a Fields, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}

/// Returns the text of an optional field. Fails if the field is no string.
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

/// Returns the text of a required field. Fails if the field is missing or no string.
pub(super) fn needed<'a>(object: &'a Fields, path: &str, name: &str) -> Result<&'a str, Refusal> {
    text(object, path, name)?.ok_or_else(|| missing(&member(path, name)))
}

/// Checks that an optional text field has one of the values in `words`.
pub(super) fn word(object: &Fields, path: &str, name: &str, words: &[&str]) -> Checked {
    match text(object, path, name)? {
        None => Ok(()),
        Some(word) => one_of(word, &member(path, name), words),
    }
}

/// Checks that these optional fields are booleans.
pub(super) fn booleans(object: &Fields, path: &str, names: &[&str]) -> Checked {
    for name in names {
        match set(object, name) {
            None | Some(Value::Bool(_)) => {}
            Some(other) => return Err(wrong_type(&member(path, name), "a boolean", other)),
        }
    }
    Ok(())
}

/// Checks that these optional fields are integers, not below their minimum.
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

/// Checks that these optional fields are numbers between their minimum and maximum.
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
