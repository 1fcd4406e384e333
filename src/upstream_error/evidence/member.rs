//! Members of the request that neither a server nor any row knows: an extra of one vendor, or of a
//! later version of the client.

use super::echoes::{has_key, has_value, quoted};
use super::{PATHS_MAX, paths_in, resolved, steps};
use crate::error::Rejection;

/// Names of members without which a request, a message, a part or a tool is none.
const ESSENTIAL: [&str; 46] = [
    "arguments",
    "call_id",
    "content",
    "data",
    "encrypted_content",
    "file",
    "file_data",
    "filename",
    "format",
    "function",
    "id",
    "image_url",
    "input",
    "input_schema",
    "instructions",
    "json_schema",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "mcp_servers",
    "media_type",
    "messages",
    "model",
    "name",
    "output",
    "parameters",
    "properties",
    "required",
    "role",
    "safeguards",
    "schema",
    "signature",
    "source",
    "stream",
    "summary",
    "system",
    "text",
    "thinking",
    "thread",
    "tool_call_id",
    "tool_calls",
    "tool_choice",
    "tool_use_id",
    "tools",
    "type",
    "url",
];

/// Names of members whose inside is the client's own: schemas, and inputs of calls.
const OF_CLIENTS: [&str; 5] = ["arguments", "input", "input_schema", "parameters", "schema"];

/// Returns the path of the member that a rejection names and the request can be without. `**`
/// stands before a name that is told without its path. `is_unknown`: the server does not know the
/// member, so that it needs none at that place.
pub(super) fn of(rejection: &Rejection, sent: &str, is_unknown: bool) -> Option<String> {
    let message = &rejection.message;
    let before_colons = message.split_inclusive(char::is_whitespace).filter_map(|word| {
        let word = word.trim_end().strip_suffix(':')?;
        Some(word).filter(|word| is_name(word))
    });
    let names = quoted(message).into_iter().filter(|name| is_name(name)).chain(before_colons);
    let named = paths_in(message, Some(sent)).chain(names).take(PATHS_MAX);
    let mut all = rejection.parameter.as_deref().into_iter().chain(named);
    all.find_map(|path| optional(path, sent, is_unknown))
}

/// Returns the path of a member that is there and that the request can be without.
fn optional(path: &str, sent: &str, is_unknown: bool) -> Option<String> {
    let name = steps(path).last().filter(|name| is_name(name))?;
    if ESSENTIAL.contains(&name) && !(is_unknown && steps(path).nth(2).is_some()) {
        return None;
    }
    match resolved(path, sent).filter(|found| found.last().is_some_and(|last| last == name)) {
        Some(found) => {
            let mut inside = found.iter().skip(1);
            let is_ours = !inside.any(|step| OF_CLIENTS.contains(&step.as_str()));
            is_ours.then(|| found.join("."))
        }
        // A word of the user may be the name of a member somewhere.
        None => {
            let is_alone = steps(path).nth(1).is_none();
            let is_member = is_alone && has_key(sent, name) && !has_value(sent, name);
            is_member.then(|| format!("**.{name}"))
        }
    }
}

/// Returns true if a text can be the name of a member, and is no number.
fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    text.bytes().all(is_letter) && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}
