//! Removal of newer extensions of the Messages API from a body, for servers that do not know the
//! extensions.

use std::borrow::Cow;

use super::without::Rewritten;
use crate::error::Error;
use crate::json::{rewrite_array, rewrite_object};
use crate::observe::warning::Warnings;

/// Members of requests, tools and blocks that Anthropic's API added later. The answer does not
/// depend on them, and they limit no permission.
const EXTENSIONS: [&str; 5] =
    ["context_management", "caller", "defer_loading", "eager_input_streaming", "input_examples"];

/// Members of `cache_control` that Anthropic's API added later.
const OF_MARKS: [&str; 2] = ["scope", "ttl"];

/// Member name of a mark for the upstream's prompt cache.
const MARK: &str = "cache_control";

/// Members with contents of the client's own, such as schemas and inputs of calls, which are not
/// searched.
const OF_CLIENTS: [&str; 3] = ["input", "input_schema", "input_examples"];

/// Returns the body without extensions, or without cache marks if `marks` is true.
///
/// # Errors
/// Strict mode allows no member to be left out.
pub(super) fn without<'b>(
    body: &'b str,
    marks: bool,
    warnings: &mut Warnings,
) -> Result<Cow<'b, str>, Error> {
    let is_left_out = |within: &str, key: &str| match marks {
        true => key == MARK,
        false => EXTENSIONS.contains(&key) || within == MARK && OF_MARKS.contains(&key),
    };
    value_without(body, "", &is_left_out, warnings)
}

/// Returns a JSON value without some members. `within` is the name of the member that contains the
/// value.
fn value_without<'b>(
    value: &'b str,
    within: &str,
    is_left_out: &dyn Fn(&str, &str) -> bool,
    warnings: &mut Warnings,
) -> Result<Cow<'b, str>, Error> {
    match value.trim_start().as_bytes().first() {
        Some(b'{') => rewrite_object(value, |key, value| {
            if is_left_out(within, key) {
                warnings.dropped(key)?;
                return Rewritten::Ok(None);
            }
            if OF_CLIENTS.contains(&key) {
                return Ok(Some(value.into()));
            }
            value_without(value, key, is_left_out, warnings).map(Some)
        }),
        Some(b'[') => rewrite_array(value, |element| {
            value_without(element, within, is_left_out, warnings).map(Some)
        }),
        _ => Ok(value.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(body: &str, marks: bool) -> String {
        without(body, marks, &mut Warnings::new(false)).unwrap().into_owned()
    }

    #[test]
    fn extensions_are_left_out_and_what_clients_wrote_stays() {
        let body = r#" {"context_management": {"edits":[]}, "system":[{"text":"a","cache_control":{"type":"ephemeral","scope":"org","ttl":"1h"}}],
            "tools":[{"name":"scope","input_schema":{"caller":1},"defer_loading":true,"input_examples":[{"caller":1}]}],
            "messages":[{"content":[{"input":{"context_management":3},"caller":{"type":"direct"}},{"scope":4}]}]}"#;
        let expected = r#"{"system":[{"text":"a","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"scope","input_schema":{"caller":1}}],"messages":[{"content":[{"input":{"context_management":3}},{"scope":4}]}]}"#;
        assert_eq!(left(body, false), expected);
        assert!(!left(body, true).contains(MARK));
        let other = r#"{"messages": [ {"content":"cache_control"} ] , "x":1.0}"#;
        assert_eq!((left(other, false), left(other, true)), (other.to_owned(), other.to_owned()));
    }

    #[test]
    fn a_body_that_is_nested_as_deeply_as_can_be_is_read() {
        let nested = |inside: &str| format!("{}{inside}{}", "{\"a\":[".repeat(60), "]}".repeat(60));
        assert_eq!(left(&nested(r#"{"caller":1}"#), false), nested("{}"));
    }
}
