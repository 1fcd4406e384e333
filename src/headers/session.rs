//! Session id of a request, which identifies its conversation. Routers use the id to keep a
//! conversation on the replica that has its prompt in the cache.

use super::{Header, Headers as _};
use crate::config::{SessionHeaders, SessionId};
use crate::ids::hex_of_hash;
use crate::json::{self, Reader};
use crate::text::words;

/// Names of the headers that may carry the session id: from Claude Code, OpenCode, many other
/// clients, and Codex.
pub(super) const NAMES: [&str; 4] =
    ["x-claude-code-session-id", "x-session-affinity", "x-session-id", "session-id"];

/// Maximum length of a session id that is sent unchanged, in bytes.
const ID_BYTES_MAX: usize = 128;

/// Returns the session id in a client's headers.
pub(crate) fn of_headers(client: &[Header]) -> Option<String> {
    let values = NAMES.iter().filter_map(|name| client.value(name)).map(str::trim);
    values.filter(|id| !id.is_empty()).map(str::to_owned).next()
}

/// Returns the session id of a request, from its headers or from its user id.
pub(crate) fn of(client: &[Header], user_id: Option<&str>) -> Option<String> {
    of_headers(client).or_else(|| user_id.and_then(of_user_id))
}

/// Returns the session id in the `metadata` of a request's body.
pub(crate) fn of_body(body: &str) -> Option<String> {
    let user_id =
        json::member(json::member(body, "metadata")?, "user_id").and_then(json::string)?;
    of_user_id(&user_id.decode())
}

/// Returns the session id in a user id of Claude Code: the member `session_id` of a JSON text or,
/// until 2025, the text after `_session_`.
pub(crate) fn of_user_id(user_id: &str) -> Option<String> {
    if !user_id.trim_start().starts_with('{') {
        let (_, session) = words::split_once(user_id, "_session_")?;
        return Some(session.to_owned()).filter(|session| !session.is_empty());
    }
    let mut reader = Reader::new(user_id, 16);
    reader.begin_object().ok()?;
    while let Some(key) = reader.next_key().ok()? {
        if key == "session_id" {
            let session = reader.string().ok()?;
            return Some(session.decode().into_owned()).filter(|session| !session.is_empty());
        }
        reader.skip().ok()?;
    }
    None
}

/// Sets the upstream's session headers. A session id that is invalid in a header, or too long for
/// routers, is replaced by its hash.
pub(crate) fn set(session: &str, of: &SessionHeaders, headers: &mut Vec<Header>) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    let as_it_is =
        of.id == SessionId::Plain && session.len() <= ID_BYTES_MAX && session.bytes().all(plain);
    for name in &of.names {
        let id = if as_it_is { session.to_owned() } else { hex_of_hash(session.as_bytes()) };
        headers.retain(|(known, _)| known != name);
        headers.push((name.clone(), id));
    }
}

#[cfg(test)]
mod tests;
