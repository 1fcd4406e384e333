//! Events of an answer: all that an upstream can send, in the order in which the client gets it.
//!
//! The reader of an upstream's protocol turns chunks into events; the writer of the client's
//! protocol turns events into bytes. Blocks come one after another, each between its begin and its
//! end. Texts are borrowed from the upstream's JSON and keep their escapes.

use super::context_management::Cleared;
use super::counts::Counts;
use super::hosted::HostedCall;
use super::search::Citation;
use crate::StopReason;

/// Event of an answer, independent of the wire protocol.
#[derive(Clone, Copy, Debug)]
pub enum Event<'e> {
    /// Event: the answer begins. The final token counts are not known yet.
    Started {
        /// Model name that the client uses.
        model: &'e str,
        /// Number of input tokens of the request: an estimate, or the upstream's count.
        input_tokens: u64,
    },
    /// Event: a text block begins.
    TextBegins,
    /// Event: the next piece of the open text block, JSON-escaped. A surrogate pair is never split.
    Text(&'e str),
    /// Event: a reasoning block begins.
    ThinkingBegins,
    /// Event: the next piece of the open reasoning block, JSON-escaped. A surrogate pair is never
    /// split.
    Thinking(&'e str),
    /// Event: the signature of the reasoning, after all its text. The client must send the
    /// signature back with the text.
    Signature(&'e str),
    /// Event: a tool call begins.
    CallBegins(CallStart<'e>),
    /// Event: the next piece of the open call's input, as JSON text that is not escaped.
    Input(&'e str),
    /// Event: a citation, which gives the source of words in the open text block.
    Citation(&'e Citation),
    /// Event: a call that the upstream ran by itself, with its result. The client gets two blocks.
    Hosted(&'e HostedCall),
    /// Event: the open block is complete.
    BlockEnds,
    /// Event: the answer is complete.
    Stopped(&'e Stop<'e>),
}

/// First part of a tool call: id, name and toolset, without the input.
#[derive(Clone, Copy, Debug)]
pub struct CallStart<'e> {
    /// Id of the tool call, as sent to the client.
    pub id: &'e str,
    /// Client's name of the tool.
    pub name: &'e str,
    /// Client's toolset that the tool belongs to, such as `computer`.
    pub toolset: Option<&'static str>,
}

/// End of an answer: the stop reason and the token counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stop<'e> {
    /// Member `stop_reason` of the Messages API.
    pub reason: StopReason,
    /// Client's stop sequence that ended the answer, if any.
    pub sequence: Option<&'e str>,
    /// Text in which the model refused to answer, JSON-escaped.
    pub explanation: &'e str,
    /// Model name that the client uses.
    pub model: &'e str,
    /// Token counts of the whole answer.
    pub counts: Counts,
    /// Number of web searches that the upstream ran.
    pub searches: u64,
    /// Service tier that served the request, as a value of the Messages API.
    pub service_tier: Option<&'static str>,
    /// Counts of what was cleared from the history; `None` if the client did not ask for clearing.
    pub cleared: Option<Cleared>,
}
