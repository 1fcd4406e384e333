//! Hints for a configuration key in the wrong object. The error names the objects to which the key
//! belongs, instead of all keys that are valid here.

use crate::setting::{Field, UNKNOWN_KEY, ValueType};

/// Returns the reason for which a document was refused at `path`. If the key is unknown there but
/// known in other objects, the reason names these objects.
pub(super) fn reason(path: &str, reason: String, document: [&[Field]; 2]) -> String {
    if !reason.starts_with(UNKNOWN_KEY) {
        return reason;
    }
    let key = path.rsplit('.').next().unwrap_or_default();
    let mut places = Vec::new();
    for fields in document {
        collect(fields, "", key, &mut places);
    }
    if places.is_empty() {
        return reason;
    }
    format!("unknown key here, expected in {}", places.join(" or "))
}

/// Adds the paths of objects, from `place` downwards, that have the key.
fn collect(fields: &[Field], place: &str, key: &str, found: &mut Vec<String>) {
    if fields.iter().any(|field| field.name == key) {
        found.push(if place.is_empty() { "the document itself" } else { place }.to_owned());
    }
    let dot = if place.is_empty() { "" } else { "." };
    for field in fields {
        let inside = [place, dot, field.name].concat();
        match field.value_type {
            ValueType::Object(fields) | ValueType::Overrides(fields) => {
                collect(fields, &inside, key, found);
            }
            ValueType::Map(ValueType::Object(fields)) => {
                collect(fields, &[&inside, ".NAME"].concat(), key, found);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    #[test]
    fn a_key_in_the_wrong_place_is_told_the_right_one() {
        for (text, expected) in [
            (
                r#"{"reasoning_only":"text"}"#,
                "reasoning_only: unknown key here, expected in upstreams.NAME.profile_overrides",
            ),
            (
                r#"{"upstreams":{"a":{"reasoning_only":"text"}}}"#,
                "upstreams.a.reasoning_only: unknown key here, expected in upstreams.NAME.profile_overrides",
            ),
            (
                r#"{"session_headers":["x-session-id"]}"#,
                "session_headers: unknown key here, expected in upstreams.NAME",
            ),
            (
                r#"{"upstreams":{"a":{"profile_overrides":{"tool_arguments":"mend"}}}}"#,
                "upstreams.a.profile_overrides.tool_arguments: unknown key here, expected in the document itself",
            ),
            (
                r#"{"pairing":"repair"}"#,
                "pairing: unknown key here, expected in upstreams.NAME.guards or guards",
            ),
            (
                r#"{"vision":{"profile":"vllm"}}"#,
                "vision.profile: unknown key here, expected in upstreams.NAME",
            ),
        ] {
            let error = Config::from_json(text, |_| None).unwrap_err().to_string();
            assert_eq!(error, format!("configuration: {expected}"));
        }
    }

    #[test]
    fn a_key_that_is_known_nowhere_is_told_what_is_known_there() {
        let error = Config::from_json(r#"{"strikt":true}"#, |_| None).unwrap_err().to_string();
        assert!(
            error.contains("strikt: unknown key; did you mean strict? Expected one of upstreams, "),
            "{error}"
        );
    }
}
