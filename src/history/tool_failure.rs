//! Failures of server tools in a form that another model reads.

use crate::json::{self, Str, escape};

/// Appends the error of a server tool, and what the model can do about it, escaped for the inside
/// of a JSON string. `content`: the JSON text of the result.
pub(super) fn push_failure(out: &mut Vec<u8>, content: &str) {
    let text = |name| json::member(content, name).and_then(json::string);
    let code = text("error_code").unwrap_or(Str::plain("unavailable"));
    escape(out, "Error: ");
    out.extend_from_slice(code.raw().as_bytes());
    if let Some(message) = text("error_message") {
        escape(out, ": ");
        out.extend_from_slice(message.raw().as_bytes());
    }
    escape(
        out,
        match code.decode().as_ref() {
            "max_uses_exceeded" => ". Answer from what you have.",
            "url_not_in_prior_context" => ". Only addresses from the conversation can be fetched.",
            _ => ". Go on without it, and say so if it matters.",
        },
    );
}
