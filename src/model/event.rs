//! Events of an answer: everything that an upstream can say, in the order in which a client gets
//! it.
//!
//! A reader of an upstream's protocol makes events of what comes; a writer of the client's protocol
//! makes bytes of events. Blocks come one after another, each between its begin and its end. Texts
//! are borrowed and stay as they came: inside of a JSON string, with all escapes.

use super::context_management::Cleared;
use super::counts::Counts;
use super::hosted::HostedCall;
use super::search::Citation;
use crate::StopReason;

/// Event of an answer, in no protocol's form.
#[derive(Clone, Copy, Debug)]
pub enum Event<'e> {
    /// The answer begins. Its token counts are not known yet.
    Started {
        /// Name of the model, as the client knows it.
        model: &'e str,
        /// Input tokens of the request: an estimate, or the upstream's count.
        input_tokens: u64,
    },
    /// A block of text begins.
    TextBegins,
    /// Next piece of the open text block, escaped; never the half of a surrogate pair.
    Text(&'e str),
    /// A block of reasoning begins.
    ThinkingBegins,
    /// Next piece of the open reasoning block, escaped; never the half of a surrogate pair.
    Thinking(&'e str),
    /// Signature of the reasoning, after all its text; the client must send it back with the text.
    Signature(&'e str),
    /// A tool call begins.
    CallBegins(CallStart<'e>),
    /// Next piece of the open call's input: JSON text, not escaped.
    Input(&'e str),
    /// Citation: the source of words in the open text block.
    Citation(&'e Citation),
    /// Call that the upstream ran itself, and its result: two blocks of their own.
    Hosted(&'e HostedCall),
    /// The open block is complete.
    BlockEnds,
    /// The answer is complete.
    Stopped(&'e Stop<'e>),
}

/// Beginning of a tool call, before its input.
#[derive(Clone, Copy, Debug)]
pub struct CallStart<'e> {
    /// Id of the call, as the client gets it.
    pub id: &'e str,
    /// Name of the tool, as the client knows it.
    pub name: &'e str,
    /// Toolset of the client's that the tool belongs to.
    pub toolset: Option<&'static str>,
}

/// End of an answer: the stop reason, and the counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stop<'e> {
    /// `stop_reason` of the Messages API.
    pub reason: StopReason,
    /// Stop sequence of the client's at which the answer ends, if any.
    pub sequence: Option<&'e str>,
    /// Words in which the model refused, escaped.
    pub explanation: &'e str,
    /// Name of the model, as the client knows it.
    pub model: &'e str,
    /// Token counts of the whole answer.
    pub counts: Counts,
    /// Number of web searches that the upstream ran.
    pub searches: u64,
    /// Tier in which the request was served, in the words of the Messages API.
    pub service_tier: Option<&'static str>,
    /// Counts of what was cleared of the history, where the client asked for that.
    pub cleared: Option<Cleared>,
}
