//! Which thinking blocks of the history go back to the upstream, and in which form.

use crate::carry::marks::Marks;
use crate::carry::signature::{Field, Signature};
use crate::dialect::profile::{ForeignThinking, Profile, ReasoningHistory};
use crate::json::Str;
use crate::model::Block;
use crate::observe::warning::Warnings;

/// The client changed a thinking block, and strict mode leaves nothing out.
pub(crate) struct Modified;

/// The thinking block in the form that goes back to the upstream with these marks. Another model's, where it
/// is forwarded, has no signature.
///
/// # Errors
/// The client changed it, in strict mode.
pub(crate) fn returned<'a>(
    thinking: Str<'a>,
    signature: Str<'a>,
    profile: &Profile,
    marks: &Marks,
    warnings: &mut Warnings,
) -> Result<Option<Block<'a>>, Modified> {
    if profile.reasoning_history == ReasoningHistory::Never {
        return Ok(None);
    }
    let own = Signature::decode(&signature.decode())
        .filter(|own| !own.is_of_another(&marks.upstream, &marks.model));
    let Some(own) = own else {
        let forwards = profile.foreign_thinking == ForeignThinking::Forward && !thinking.is_empty();
        return Ok(forwards.then(|| Block::Thinking { thinking, signature: Str::default() }));
    };
    if !own.matches(&thinking.decode()) {
        if warnings.strict() {
            return Err(Modified);
        }
        warnings.add("thinking_modified");
        // The text is dropped. Items and signatures of calls, which do not depend on it, are kept.
        let thinking = Str::default();
        return Ok(own.has_items().then_some(Block::Thinking { thinking, signature }));
    }
    // An assistant's turn of nothing else would be an empty message.
    let says_nothing = own.field == Field::Marked && !own.has_items() && !is_required(profile);
    Ok((!says_nothing).then_some(Block::Thinking { thinking, signature }))
}

/// Whether the upstream refuses tool calls without `reasoning_content`.
pub(crate) fn is_required(profile: &Profile) -> bool {
    use ReasoningHistory::{Required, RequiredOnToolCalls};
    matches!(profile.reasoning_history, RequiredOnToolCalls | Required)
}
