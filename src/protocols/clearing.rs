//! Clearing of the history where the client asks for it, for an upstream that does not clear by
//! itself.

use crate::history::clearing;
use crate::model::Request;
use crate::model::context_management::Cleared;
use crate::profile::{Profile, ReasoningHistory};
use crate::tokens::parts::Parts;

/// Marks what is cleared, as [`clearing::mark`] does. Gives nothing where the client asks for
/// nothing of the kind.
pub(super) fn mark(request: &mut Request<'_>, profile: &Profile) -> Option<Cleared> {
    let Request { messages, system, tools, context_management: edits, .. } = request;
    if !edits.clears() {
        return None;
    }
    if profile.reasoning_history == ReasoningHistory::Never {
        // None of it is sent.
        edits.thinking_kept = None;
    }
    Some(clearing::mark(messages, edits, &Parts { system, tools }))
}

/// Clears what is cleared at once. Gives nothing where the client asks for nothing of the kind.
pub(super) fn clear(request: &mut Request<'_>, profile: &Profile) -> Option<Cleared> {
    let cleared = mark(request, profile)?;
    clearing::clear_messages(&mut request.messages);
    Some(cleared)
}
