//! Detection of errors about the order of roles: the user must begin, and the roles must alternate.

use super::wordings::{BEGINNINGS, PhraseRole, TURNS};
use crate::text::words;

/// Returns true if an error demands that user and assistant messages alternate, or that the user
/// begins. `text`: the message without quotes.
pub(super) fn is_turns(text: &str) -> bool {
    // A template names the role before the word, a server quotes the role:
    // `message with role user`.
    let of_user = words::places(text, "user").any(|at| is_of_role(text, at));
    let begins =
        BEGINNINGS.has(PhraseRole::Refusal, text) && !BEGINNINGS.has(PhraseRole::Other, text);
    TURNS.says(text) || of_user && begins
}

/// Returns true if the word `user` at this position is a role: it stands beside a word such as
/// `message`, `turn` or `role`.
fn is_of_role(text: &str, at: usize) -> bool {
    const BESIDE_BYTES: usize = 24;
    let (before, behind) = text.split_at_checked(at).unwrap_or_default();
    let start = before.len().saturating_sub(BESIDE_BYTES);
    let start = (start..=before.len()).find(|at| before.is_char_boundary(*at)).unwrap_or_default();
    let before = before.get(start..).unwrap_or_default();
    let behind = words::beginning(behind, BESIDE_BYTES);
    let beside =
        |text: &str| words::has_any(text, &["role", "message", "turn", "query", "content"]);
    beside(before) || beside(behind)
}

#[cfg(test)]
mod tests;
