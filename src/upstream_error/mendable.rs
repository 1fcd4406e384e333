//! Errors of a request that Claude Code mends by itself and sends again, in the words by which it knows them. To all
//! clients they name what they have sent: the upstream names what Creole made of it.

use super::window::leading_number;
use super::without_quotes;
use crate::error::Reason;
use crate::model::request_context::RequestContext;
use crate::text::words::{self, phrases};

/// The words of the real API, in lower case: that of an upstream that speaks Messages may have them, and some are
/// Creole's by now.
const KNOWN: &str = phrases![
    "prompt is too long",
    "exceed context limit",
    "maximum allowed number of output tokens",
    "effort parameter",
    "could not process image",
    "does not support pdf input",
    ".custom.input_schema",
];

/// How the effort is called.
const EFFORTS: &str = phrases![
    "reasoning_effort",
    "reasoning.effort",
    "output_config.effort",
    "unknown field output_config"
];

/// What is said where `thinking` may not be of the type `adaptive`: by pydantic, and by servers of Rust.
const NOT_ADAPTIVE: &str =
    phrases!["enabled or disabled", "enabled | disabled", "unknown variant adaptive"];

/// A document that a server does not know as a block or as a part.
const NO_DOCUMENT: &str = phrases![
    "unknown variant document",
    "unknown variant file",
    "input: document",
    "input: file",
    "content type file",
    "part type: file",
    // DashScope. Tools have values like `file_search`.
    "value: file.",
];

/// How documents are called otherwise, and what is said of them.
const DOCUMENTS: &str = phrases!["pdf", "documents ", "document input"];
const REFUSALS: &str = phrases!["not support", "unsupported", "t support"];

/// Where servers number the tools that they got: Gemini, and the others.
const NUMBERED: &str = phrases!["function_declarations[", "tools[", "tools."];

/// What is said of a call or a message, and not of a tool.
const OF_CALLS: &str = phrases!["tool call", "tool_call", "tool_use_failed", "messages["];

/// What an error with status 400 means of the members that Claude Code mends by itself.
pub(super) fn reasons(message: &str, context: &RequestContext) -> Vec<Reason> {
    let text = without_quotes(message);
    let has = |any: &str| words::has_one_of(&text, any);
    if has(KNOWN) {
        return vec![Reason::ClientsWords];
    }
    let mut reasons = Vec::new();
    if has(EFFORTS) && !has("supported parameters") {
        reasons.push(Reason::EffortNamed);
    }
    if is_system(message) {
        reasons.push(Reason::SystemRole);
    }
    if has("thinking") && has(NOT_ADAPTIVE) {
        reasons.push(Reason::AdaptiveThinking);
    }
    reasons.extend(place_of_tool(message, &text, context).map(Reason::ToolSchema));
    reasons
}

/// Whether an error says that a model takes no PDFs.
pub(super) fn is_documents(message: &str) -> bool {
    let text = without_quotes(message);
    let has = |any: &str| words::has_one_of(&text, any);
    has(NO_DOCUMENT) || has(DOCUMENTS) && has(REFUSALS)
}

/// Whether an error says that a message of the system may not stand where one does, as templates and MiniMax do.
pub(super) fn is_system(message: &str) -> bool {
    let text = without_quotes(message);
    let has = |any: &str| words::has_one_of(&text, any);
    has(phrases!["system message must be at the beginning", "system message must be the first"])
        || has(phrases!["role: system", "role system", "role=system"])
            && has(phrases!["invalid", "unexpected", "not support", "不支持"])
}

/// The position, among the client's `tools`, of the one whose schema is refused.
fn place_of_tool(message: &str, text: &str, context: &RequestContext) -> Option<usize> {
    let is_of_schema =
        words::has_one_of(text, phrases!["schema", "function.parameters", "].parameters"]);
    if !is_of_schema || words::has_one_of(text, OF_CALLS) {
        return None;
    }
    let named = context.tools.iter().find(|tool| is_quoted(message, &tool.outgoing));
    let number = || words::each(NUMBERED).find_map(|word| position_behind(text, word));
    named.or_else(|| context.tools.iter().nth(number()?))?.place
}

fn is_quoted(message: &str, name: &str) -> bool {
    let is_quote = |byte: Option<&u8>| matches!(byte, Some(b'\'' | b'"' | b'`'));
    !name.is_empty()
        && words::places(message, name).any(|at| {
            let (before, behind) = message.split_at_checked(at).unwrap_or_default();
            is_quote(before.as_bytes().last()) && is_quote(behind.as_bytes().get(name.len()))
        })
}

fn position_behind(text: &str, word: &str) -> Option<usize> {
    let (_, rest) = words::split_once(text, word)?;
    usize::try_from(leading_number(rest)?).ok()
}

#[cfg(test)]
mod tests;
