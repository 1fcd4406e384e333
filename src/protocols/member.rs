//! A written request without one of its members, in any protocol.

use std::borrow::Cow;
use std::convert::Infallible;

use crate::json::{rewrite_array, rewrite_object};

/// Members whose inside is the client's own: schemas, and inputs of calls.
const OF_CLIENTS: [&str; 4] = ["arguments", "input_schema", "parameters", "schema"];

/// Rewritten value; `None` leaves it out.
type Rewritten<'b> = Result<Option<Cow<'b, str>>, Infallible>;

/// Returns the body without the member at this path, if it has that. `*` is any position of a list,
/// `**` any place outside of schemas and inputs.
pub(super) fn without(body: &str, path: &[&str]) -> Option<String> {
    let rewritten = match path {
        ["**", name] => without_name(body, name, true),
        path => without_path(body, path),
    };
    match rewritten {
        Cow::Owned(without) => Some(without),
        Cow::Borrowed(_) => None,
    }
}

fn without_path<'b>(value: &'b str, path: &[&str]) -> Cow<'b, str> {
    let rewritten = match path {
        ["*", rest @ ..] if !rest.is_empty() => {
            rewrite_array(value, |element| Rewritten::Ok(Some(without_path(element, rest))))
        }
        [name, rest @ ..] => rewrite_object(value, |key, value| {
            Rewritten::Ok(match rest {
                _ if key != *name => Some(value.into()),
                [] => None,
                rest => Some(without_path(value, rest)),
            })
        }),
        [] => return value.into(),
    };
    let Ok(rewritten) = rewritten;
    rewritten
}

fn without_name<'b>(value: &'b str, name: &str, is_top: bool) -> Cow<'b, str> {
    let rewritten = match value.as_bytes().first() {
        Some(b'{') => rewrite_object(value, |key, value| {
            // `input` of the request itself is its conversation.
            let is_of_client = OF_CLIENTS.contains(&key) || key == "input" && !is_top;
            Rewritten::Ok(match () {
                () if key == name => None,
                () if is_of_client => Some(value.into()),
                () => Some(without_name(value, name, false)),
            })
        }),
        Some(b'[') => {
            rewrite_array(value, |element| Rewritten::Ok(Some(without_name(element, name, false))))
        }
        _ => return value.into(),
    };
    let Ok(rewritten) = rewritten;
    rewritten
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(body: &str, path: &str) -> Option<String> {
        without(body, &path.split('.').collect::<Vec<_>>())
    }

    #[test]
    fn a_member_is_left_out_at_each_position_of_its_path() {
        let body = r#"{"a": [{"b": 1, "c":2},{"c":3}, 4], "b" : 1.0}"#;
        for (path, expected) in [
            ("a.*.b", Some(r#"{"a":[{"c":2},{"c":3},4],"b":1.0}"#)),
            ("a", Some(r#"{"b":1.0}"#)),
            ("**.b", Some(r#"{"a":[{"c":2},{"c":3},4]}"#)),
            ("a.*.d", None),
            ("a.b", None),
            ("**.e", None),
            ("*", None),
        ] {
            assert_eq!(left(body, path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn what_a_client_wrote_into_schemas_and_inputs_stays() {
        let body = r#"{"input":[{"type":"x","scope":1}],"tools":[{"parameters":{"scope":1}},{"input_schema":{"scope":2}}],
            "messages":[{"content":[{"input":{"scope":3}},{"scope":4}]}]}"#;
        let expected = r#"{"input":[{"type":"x"}],"tools":[{"parameters":{"scope":1}},{"input_schema":{"scope":2}}],"messages":[{"content":[{"input":{"scope":3}},{}]}]}"#;
        assert_eq!(left(body, "**.scope").as_deref(), Some(expected));
    }

    #[test]
    fn a_body_that_is_nested_as_deeply_as_can_be_is_read() {
        let depth = 60;
        let body = format!("{}{{\"b\":1}}{}", "{\"a\":[".repeat(depth), "]}".repeat(depth));
        let expected = format!("{}{{}}{}", "{\"a\":[".repeat(depth), "]}".repeat(depth));
        assert_eq!(left(&body, "**.b"), Some(expected));
    }
}
