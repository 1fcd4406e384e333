//! `safeguards`: what a client wants the API to judge of an answer.

use crate::json;

/// The type of safeguard that judges tool calls, in requests and in answers.
pub(crate) const DANGEROUS_TOOL_USE: &str = "dangerous_tool_use";

/// The element by which a client asks for verdicts on tool calls.
pub(crate) fn dangerous_tool_use(safeguards: &str) -> Option<&str> {
    json::elements(safeguards).find(|element| {
        let kind = json::member(element, "type").and_then(json::string);
        kind.is_some_and(|kind| kind == DANGEROUS_TOOL_USE)
    })
}
