//! Clearing of old parts of the history at the client's request (`context_management`), for
//! upstreams that cannot clear the history themselves.

use crate::history::clearing;
use crate::model::Request;
use crate::model::context_management::Cleared;
use crate::profile::{Profile, ReasoningHistory};
use crate::tokens::parts::CountedParts;

/// Marks, with [`clearing::mark`], the parts of the history to clear. Returns `None` if the client
/// does not request clearing.
pub(super) fn mark(request: &mut Request<'_>, profile: &Profile) -> Option<Cleared> {
    let Request { messages, system, tools, context_management: edits, .. } = request;
    if !edits.clears() {
        return None;
    }
    if profile.reasoning_history == ReasoningHistory::Never {
        // The upstream receives no thinking anyway.
        edits.thinking_kept = None;
    }
    Some(clearing::mark(messages, edits, &CountedParts { system, tools }))
}

/// Marks and clears parts of the history at once. Returns `None` if the client does not request
/// clearing.
pub(super) fn clear(request: &mut Request<'_>, profile: &Profile) -> Option<Cleared> {
    let cleared = mark(request, profile)?;
    clearing::clear_messages(&mut request.messages);
    Some(cleared)
}
