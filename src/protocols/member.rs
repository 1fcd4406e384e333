//! A written request without one of its members, in any protocol.

use std::borrow::Cow;
use std::convert::Infallible;

use crate::json::{rewrite_array, rewrite_object};

/// Members whose inside is the client's own: schemas, and inputs of calls.
const OF_CLIENTS: [&str; 4] = ["arguments", "input_schema", "parameters", "schema"];

/// What becomes of a value.
type Rewritten<'b> = Result<Option<Cow<'b, str>>, Infallible>;

/// The body without the member at this path, if it has that. `*` is any position of a list, `**` any place outside of
/// schemas and inputs.
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
