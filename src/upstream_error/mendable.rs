//! Detection of errors that Claude Code repairs by itself, by changing and resending the request.
//! The client's error names the parts of the client's request, while the upstream's message names
//! parts of Creole's request.

use super::number_beside::leading_number;
use super::wordings::{
    ADAPTIVE_THINKING, CLIENTS_WORDS, EFFORT_NAMED, NUMBERED_TOOLS, PhraseRole, SYSTEM_ROLE,
    TOOL_SCHEMA,
};
use crate::error::Reason;
use crate::model::request_context::RequestContext;
use crate::text::words;

/// Returns the reasons in an error with status 400 that are about members that Claude Code changes
/// by itself.
pub(super) fn reasons(message: &str, text: &str, context: &RequestContext) -> Vec<Reason> {
    if CLIENTS_WORDS.any(text) {
        return vec![Reason::ClientsWords];
    }
    let mut reasons = Vec::new();
    for (wordings, reason) in [
        (&EFFORT_NAMED, Reason::EffortNamed),
        (&SYSTEM_ROLE, Reason::SystemRole),
        (&ADAPTIVE_THINKING, Reason::AdaptiveThinking),
    ] {
        reasons.extend(wordings.says(text).then_some(reason));
    }
    reasons.extend(place_of_tool(message, text, context).map(Reason::ToolSchema));
    reasons
}

/// Returns the position of the tool whose schema is refused, among the client's `tools`.
fn place_of_tool(message: &str, text: &str, context: &RequestContext) -> Option<usize> {
    if !TOOL_SCHEMA.says(text) {
        return None;
    }
    let named = context.tools.iter().find(|tool| is_quoted(message, &tool.outgoing));
    let number =
        || NUMBERED_TOOLS.phrases(PhraseRole::After).find_map(|word| position_behind(text, word));
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
