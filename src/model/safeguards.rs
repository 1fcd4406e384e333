//! Request member `safeguards`: judgements of the answer that a client asks the API for.

use crate::json;

/// Type of the safeguard that judges tool calls, in requests and in answers.
pub(crate) const DANGEROUS_TOOL_USE: &str = "dangerous_tool_use";

/// Returns the element of `safeguards` that asks for verdicts on tool calls.
pub(crate) fn dangerous_tool_use(safeguards: &str) -> Option<&str> {
    json::elements(safeguards).find(|element| {
        let kind = json::member(element, "type").and_then(json::string);
        kind.is_some_and(|kind| kind == DANGEROUS_TOOL_USE)
    })
}
