//! Thinking blocks of the history that go back to the upstream, and the form in which they do.

use super::recipient::Recipient;
use crate::carry::signature::{Field, Signature};
use crate::json::Str;
use crate::model::Block;
use crate::observe::warning::Warnings;
use crate::profile::{ForeignThinking, Profile, ReasoningHistory};
use crate::text::names::NameSet;

/// The client changed a thinking block, and strict mode leaves nothing out.
pub(crate) struct Modified;

/// The thinking block in the form that goes back to the upstream with these marks. Another model's,
/// where it is forwarded, has no signature.
///
/// # Errors
/// The client changed it, in strict mode.
pub(crate) fn returned<'a>(
    thinking: Str<'a>,
    signature: Str<'a>,
    recipient: Recipient<'_>,
    warnings: &mut Warnings,
) -> Result<Option<Block<'a>>, Modified> {
    let Recipient { profile, marks, .. } = recipient;
    if profile.reasoning_history == ReasoningHistory::Never {
        return Ok(None);
    }
    let own = Signature::decode(&signature.decode())
        .filter(|own| !own.is_of_another(&marks.upstream, &marks.model))
        .filter(|own| (own.field == Field::Item) == recipient.takes_items);
    if recipient.takes_items {
        // The model reads the item, whatever became of the text that was shown of it.
        let has_item = own.is_some_and(|own| own.opaque.is_some());
        return Ok(has_item.then_some(Block::Thinking { thinking, signature }));
    }
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

/// The thinking of the answer that is read. Clients write an answer as several messages, and its
/// thinking in each.
#[derive(Default)]
pub(super) struct Thought<'a> {
    /// The thinking and its signatures in the message that is read.
    signed: Vec<(Str<'a>, Str<'a>)>,
    /// Thinking and signatures of the assistant's message before it, if only results came after
    /// that.
    signed_before: Vec<(Str<'a>, Str<'a>)>,
}

impl<'a> Thought<'a> {
    /// A message of the assistant begins, which is not the one before it.
    pub(super) fn begin(&mut self) {
        self.signed_before = std::mem::take(&mut self.signed);
    }

    /// Somebody else speaks.
    pub(super) fn end(&mut self) {
        self.signed.clear();
    }

    /// Whether a message is the next call of the answer that the message before it began, as n8n
    /// writes each: all have the same thinking block. One that names calls is of one answer only.
    pub(super) fn goes_on(&self, blocks: &[Block<'a>]) -> bool {
        let [Block::Thinking { thinking, signature }, calls @ ..] = blocks else { return false };
        self.signed.first() == Some(&(*thinking, *signature))
            && !calls.is_empty()
            && calls.iter().all(|block| matches!(block, Block::ToolUse(_)))
            && names(signature, calls)
    }

    /// Whether a message has a call that the thinking before it led to.
    pub(super) fn names_call_of(&self, blocks: &[Block<'a>]) -> bool {
        self.signed.iter().any(|(_, signature)| names(signature, blocks))
    }

    /// Adds a thinking block of the message. Says whether it only repeats the thought of the
    /// message before, to stand with another call. Signatures of calls would be lost with it.
    pub(super) fn is_repeated(&mut self, thinking: Str<'a>, signature: Str<'a>) -> bool {
        let before = self.signed_before.get(self.signed.len());
        let is_known = !signature.is_empty() && before == Some(&(thinking, signature));
        self.signed.push((thinking, signature));
        is_known && !signs_calls(&signature)
    }
}

/// Whether a signature of ours names these calls: those with an input in it, or the first, which
/// Gemini signs alone.
fn names(signature: &Str<'_>, blocks: &[Block<'_>]) -> bool {
    let Some(own) = Signature::decode(&signature.decode()) else { return false };
    let named = match own.call_inputs.is_empty() {
        true => own.call_signatures,
        false => own.call_inputs,
    };
    let mut ids = NameSet::default();
    for (id, _) in named {
        ids.add(id);
    }
    blocks
        .iter()
        .any(|block| matches!(block, Block::ToolUse(call) if ids.contains(&call.id.decode())))
}

/// Whether a signature of ours carries those of calls.
fn signs_calls(signature: &Str<'_>) -> bool {
    Signature::decode(&signature.decode()).is_some_and(|own| !own.call_signatures.is_empty())
}
