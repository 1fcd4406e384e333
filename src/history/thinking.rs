//! Selection of thinking blocks of the history that are sent back to the upstream, and their form.

use super::recipient::Recipient;
use crate::carry::signature::{Signature, SignatureField};
use crate::json::Str;
use crate::model::Block;
use crate::observe::warning::Warnings;
use crate::profile::{ForeignThinking, Profile, ReasoningHistory};
use crate::text::names::NameSet;

/// Error: the client changed a thinking block, and strict mode does not drop the block.
pub(crate) struct Modified;

/// Returns the thinking block in the form that is sent back to the recipient; `None` if the block
/// is dropped. Forwarded thinking of another model loses its signature.
///
/// # Errors
///
/// The client changed the block, in strict mode.
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
        .filter(|own| (own.field == SignatureField::Item) == recipient.takes_items);
    if recipient.takes_items {
        // The model reads the reasoning item, and not the text that was shown to the client.
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
        // The changed thinking text is dropped. Reasoning items and signatures of calls do not
        // depend on the text, and are kept.
        let thinking = Str::default();
        return Ok(own.has_items().then_some(Block::Thinking { thinking, signature }));
    }
    // A turn with only a thinking block that the upstream does not read would be an empty message.
    let says_nothing =
        own.field == SignatureField::Marked && !own.has_items() && !is_required(profile);
    Ok((!says_nothing).then_some(Block::Thinking { thinking, signature }))
}

/// Returns true if the upstream refuses tool calls without `reasoning_content`.
pub(crate) fn is_required(profile: &Profile) -> bool {
    use ReasoningHistory::{Required, RequiredOnToolCalls};
    matches!(profile.reasoning_history, RequiredOnToolCalls | Required)
}

/// Thinking of the answer that is being read. Some clients split an answer into several messages,
/// and repeat its thinking in each.
#[derive(Default)]
pub(super) struct SplitThinking<'a> {
    /// Thinking and signatures in the current message.
    signed: Vec<(Str<'a>, Str<'a>)>,
    /// Thinking and signatures of the assistant's previous message, if only tool results came
    /// between.
    signed_before: Vec<(Str<'a>, Str<'a>)>,
}

impl<'a> SplitThinking<'a> {
    /// Begins a new message of the assistant.
    pub(super) fn begin(&mut self) {
        self.signed_before = std::mem::take(&mut self.signed);
    }

    /// Ends the answer, because another side speaks.
    pub(super) fn end(&mut self) {
        self.signed.clear();
    }

    /// Returns true if a message continues the answer of the previous message with its next call.
    /// n8n splits answers so: all messages have the same thinking block. A signature with call ids
    /// belongs to one answer only.
    pub(super) fn goes_on(&self, blocks: &[Block<'a>]) -> bool {
        let [Block::Thinking { thinking, signature }, calls @ ..] = blocks else { return false };
        self.signed.first() == Some(&(*thinking, *signature))
            && !calls.is_empty()
            && calls.iter().all(|block| matches!(block, Block::ToolUse(_)))
            && names(signature, calls)
    }

    /// Returns true if a message has a call that is named in a signature of the current thinking.
    pub(super) fn names_call_of(&self, blocks: &[Block<'a>]) -> bool {
        self.signed.iter().any(|(_, signature)| names(signature, blocks))
    }

    /// Adds a thinking block of the current message. Returns true if the block only repeats the
    /// thinking of the previous message. Blocks with signatures of calls never count as repeated,
    /// because these signatures would be lost.
    pub(super) fn is_repeated(&mut self, thinking: Str<'a>, signature: Str<'a>) -> bool {
        let before = self.signed_before.get(self.signed.len());
        let is_known = !signature.is_empty() && before == Some(&(thinking, signature));
        self.signed.push((thinking, signature));
        is_known && !signs_calls(&signature)
    }
}

/// Returns true if one of Creole's signatures names one of these calls. It names calls with stored
/// inputs, or else the signed calls; Gemini signs only the first call.
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

/// Returns true if one of Creole's signatures holds signatures of calls.
fn signs_calls(signature: &Str<'_>) -> bool {
    Signature::decode(&signature.decode()).is_some_and(|own| !own.call_signatures.is_empty())
}
