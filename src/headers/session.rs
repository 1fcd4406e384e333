//! Session of a request: the conversation that it belongs to, by which routers keep its turns on
//! the replica that has their prefix in its cache.

use super::{Header, Headers as _};
use crate::config::{SessionHeaders, SessionId};
use crate::ids::hex_of_hash;
use crate::json::{self, Reader};
use crate::text::words;

/// Names of the headers that may carry the session: of Claude Code, OpenCode, many others and
/// Codex.
pub(super) const NAMES: [&str; 4] =
    ["x-claude-code-session-id", "x-session-affinity", "x-session-id", "session-id"];

/// Longest session id that is sent as it is, in bytes.
const ID_BYTES_MAX: usize = 128;

/// Returns the session in a client's headers.
pub(crate) fn of_headers(client: &[Header]) -> Option<String> {
    let values = NAMES.iter().filter_map(|name| client.value(name)).map(str::trim);
    values.filter(|id| !id.is_empty()).map(str::to_owned).next()
}

/// Returns the session of a request: of its headers, or of its user id.
pub(crate) fn of(client: &[Header], user_id: Option<&str>) -> Option<String> {
    of_headers(client).or_else(|| user_id.and_then(of_user_id))
}

/// Returns the session in the `metadata` of a request.
pub(crate) fn of_body(body: &str) -> Option<String> {
    let user_id =
        json::member(json::member(body, "metadata")?, "user_id").and_then(json::string)?;
    of_user_id(&user_id.decode())
}

/// Returns the session in a user id of Claude Code: `session_id` of a JSON text, or, in its
/// versions until 2025, what stands behind `_session_`.
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

/// Sets the headers of an upstream that carry the session. An id that a header could not hold, or
/// that is longer than routers take, goes as its hash, which is as stable.
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
