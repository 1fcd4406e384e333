//! Keywords that are errors for servers which make a grammar of a schema. They are left out: the client looks
//! at inputs itself.

use super::facts::is_path;
use crate::json::{self, Reader, ValueKind};

/// What llama.cpp is told where any value will do. It takes `{}` for any object (`schema.empty()` in its
/// `json-schema-to-grammar.cpp`), and refused a schema with a description alone until 2026 (llama.cpp#19716).
/// No list of types: the templates of Hermes, Command R+ and GigaChat raise an error at one.
pub(super) const ANY: &str = "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"number\"},{\"type\":\"boolean\"},{\"type\":\"object\"},{\"type\":\"array\"},{\"type\":\"null\"}]}";

/// How often llama.cpp lets a rule repeat, by its own bound.
const REPETITIONS_MAX: u64 = 2000;

pub(super) fn mistral_refuses(keyword: &str, mut value: Reader<'_>) -> Result<bool, json::Error> {
    Ok(match keyword {
        "$id" | "$schema" | "strict" => true,
        "additionalProperties" => value.kind()? == ValueKind::Bool && !value.bool()?,
        _ => false,
    })
}

/// llama.cpp makes one grammar of all tools, so one keyword ends every request. Of patterns it takes few: they
/// must have `^` and `$`, and neither `\d` nor groups that look around. Claude Code's `Workflow` has a text of
/// at most 524,288 letters. A reference must be a path. Of a list's `items`, a boolean hides `prefixItems`.
pub(super) fn llama_cpp_refuses(keyword: &str, mut value: Reader<'_>) -> Result<bool, json::Error> {
    Ok(match (keyword, value.kind()?) {
        ("pattern", ValueKind::String) => true,
        ("$ref", ValueKind::String) => !is_path(value.string()?),
        ("items", ValueKind::Bool) => true,
        ("minLength" | "maxLength" | "minItems" | "maxItems", ValueKind::Number) => {
            let times = value.skip()?.parse::<u64>();
            times.map_or(true, |times| times >= REPETITIONS_MAX)
        }
        _ => false,
    })
}
