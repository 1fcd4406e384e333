//! Everything that an upstream can say, in the order in which a client gets it.
//!
//! A reader of an upstream's protocol makes events of what comes; a writer of the client's protocol makes bytes of
//! events. Blocks come one after another, each between its begin and its end. Texts are borrowed and stay as they came:
//! inside of a JSON string, with all escapes.

use super::context_management::Cleared;
use super::counts::Counts;
use super::hosted::HostedCall;
use super::search::Citation;

/// One thing that an upstream says.
#[derive(Clone, Copy, Debug)]
pub enum Event<'e> {
    /// The answer begins. Its counts are not known yet.
    Started {
        /// The name of the model for the client.
        model: &'e str,
        /// An estimate, or the upstream's count.
        input_tokens: u64,
    },
    /// A block of text begins.
    TextBegins,
    /// More of the text, escaped; never the half of a surrogate pair.
    Text(&'e str),
    /// A block of reasoning begins.
    ThinkingBegins,
    /// More of the reasoning, escaped; never the half of a surrogate pair.
    Thinking(&'e str),
    /// All text of the reasoning has come; the client must send this back with it.
    Signature(&'e str),
    /// A tool call begins.
    CallBegins(CallStart<'e>),
    /// More of the call's input: JSON text, not escaped.
    Input(&'e str),
    /// The text that is open comes from there.
    Citation(&'e Citation),
    /// A call that the upstream ran, and its result: two blocks of their own.
    Hosted(&'e HostedCall),
    /// The block that is open is complete.
    BlockEnds,
    /// The answer is complete.
    Stopped(&'e Stop<'e>),
}

/// A tool call, before its input.
#[derive(Clone, Copy, Debug)]
pub struct CallStart<'e> {
    /// The client's id of the call.
    pub id: &'e str,
    /// The client's name of the tool.
    pub name: &'e str,
    /// The client's toolset of which the tool is a member.
    pub toolset: Option<&'static str>,
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stop<'e> {
    /// Why the model stopped, in the words of the Messages API.
    pub reason: &'static str,
    /// The client's stop sequence, if the answer ends at one.
    pub sequence: Option<&'e str>,
    /// What the model said as it refused, escaped.
    pub explanation: &'e str,
    /// The name of the model for the client.
    pub model: &'e str,
    /// The counts of the whole answer.
    pub counts: Counts,
    /// How often the upstream searched the web.
    pub searches: u64,
    /// The tier in which the request was served, in the words of the Messages API.
    pub service_tier: Option<&'static str>,
    /// What was cleared of the history, where the client asked for it.
    pub cleared: Option<Cleared>,
}
