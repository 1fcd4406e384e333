//! Hash of the conversation that a request's body belongs to.

use crate::headers::session;
use crate::model::{Block, Request, Role};
use crate::text::hash::{bytes, mix};

/// Maximum number of bytes of the user's first text that are hashed.
const WORDS_BYTES_MAX: usize = 4 << 10;

/// Returns the hash of the session in the user id, else of the user id and the user's first text,
/// or 0 without such data.
pub(super) fn hash_of(request: &Request<'_>) -> u64 {
    let user_id = request.user_id.map(|id| id.decode()).unwrap_or_default();
    if let Some(session) = session::of_user_id(&user_id) {
        return bytes(1, session.as_bytes());
    }
    let first = request.messages.iter().find(|message| message.role == Role::User);
    let text = first.and_then(|message| {
        message.content.iter().find_map(|block| match block {
            Block::Text(text) => Some(text.text.raw().as_bytes()),
            _ => None,
        })
    });
    let words = text.map(|text| text.get(..WORDS_BYTES_MAX).unwrap_or(text));
    words.map_or(0, |words| mix(bytes(2, user_id.as_bytes()), bytes(3, words)))
}
