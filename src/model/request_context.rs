//! Facts about a request that are needed to read its answer.
//!
//! An upstream's protocol fills in a [`RequestContext`] with the request, and the reader of the
//! answer uses it. It owns its texts: the request's body is gone by then.

use std::sync::Arc;

use super::context_management::Cleared;
use super::request::{Thinking, ThinkingMode};
use crate::config::Reasoning;
use crate::observe::report::RequestCounts;
use crate::profile::Profile;
use crate::text::names::NameSet;

/// Facts about a request that are needed to read its answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestContext {
    /// Model that the client named, which the answer reports.
    pub model: String,
    /// True if the upstream knows the model by another name.
    pub model_mapped: bool,
    /// Name of the model in the upstream's request.
    pub upstream_model: String,
    /// Limits at which the answer ends, if the model does not end it before.
    pub limits: AnswerLimits,
    /// True if the client wants a stream.
    pub stream: bool,
    /// True if the upstream is asked for a stream. It differs from `stream` if the upstream serves
    /// only the other kind of answer.
    pub upstream_stream: bool,
    /// Tools that were sent to the upstream.
    pub tools: Tools,
    /// Treatment of the reasoning in the answer.
    pub thinking: ThinkingContext,
    /// Tools that a guard withheld or the client forbids, which the model may call all the same.
    pub withheld: Withheld,
    /// Ids of all `tool_use` blocks in the history; a new id must differ from them.
    pub ids_used: NameSet<'static>,
    /// Estimated input tokens, for `message_start`, which comes before the upstream's usage.
    pub input_tokens: u64,
    /// Part of `input_tokens` that is known before the request is translated: without reasoning,
    /// and without a schema that is written as words.
    pub input_estimate: u64,
    /// True if the upstream got the gateway's own credential: what it says of that credential is
    /// not for the client.
    pub edge_key: bool,
    /// Final text of the assistant in the request, where the profile says that the upstream repeats
    /// it.
    pub prefill: String,
    /// Parts of the request that the upstream may refuse.
    pub refusable: Refusable,
    /// Hash of what names the conversation in the request's body; 0 where nothing names it.
    pub conversation: u64,
    /// Numbers of messages, tools, tool results and tool ids in the request.
    pub counts: RequestCounts,
    /// Counts of what was cleared of the history; `None` where the client did not ask for that.
    pub cleared: Option<Cleared>,
    /// True if the upstream may search the web by itself.
    pub searches: bool,
    /// True if the upstream may call tools of MCP servers by itself.
    pub calls_mcp: bool,
    /// True if the client asks for verdicts on tool calls, and there is a judge.
    pub is_judged: bool,
    /// Settings of the upstream that reading its answers needs.
    pub profile: Profile,
}

/// Limits at which an answer ends, if the model does not end it before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerLimits {
    /// Limit of the answer in the upstream's request, in tokens; 0 where that is not known.
    pub max_tokens: u64,
    /// Size of the model's context window, in tokens; 0 where that is not known.
    pub window: u64,
    /// Stop sequences of the client. The text is cut in Creole too: the upstream may not know all
    /// of them (`stop`, `max_stop`), or ignore them.
    pub stop_sequences: Vec<String>,
    /// True if the client allows one tool call only (`disable_parallel_tool_use`).
    pub one_tool_call: bool,
}

/// Treatment of the reasoning in an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThinkingContext {
    /// Form in which the client gets to see the reasoning.
    pub display: Display,
    /// True if reasoning must come back with tool calls (`reasoning_history`), so a thinking block
    /// carries it even when its text is not shown.
    pub returns: bool,
    /// Mark of the upstream that thinks, for the signature of thinking blocks; empty where there is
    /// only one upstream.
    pub upstream_mark: String,
    /// Mark of the upstream and the model that think, for reasoning that no other model takes.
    pub model_mark: String,
}

/// Parts of a request that the upstream may refuse. If the request lacks a part, an error that
/// names it means something else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusable {
    /// True if the request has images.
    pub images: bool,
    /// True if one of the images is new: the user has just given it.
    pub new_image: bool,
    /// Hosts from which the upstream has to fetch some of the images, in lower case.
    pub image_hosts: Vec<String>,
    /// True if the request has documents that are not text.
    pub documents: bool,
    /// True if one of the documents is new: the user has just given it.
    pub new_document: bool,
    /// True if the request has a schema of the answer.
    pub schema: bool,
    /// True if the request has reasoning of earlier turns.
    pub reasoning: bool,
    /// Message and block, by their positions in the client's request, of the first reasoning item
    /// of Responses.
    pub thought_at: Option<(usize, usize)>,
    /// True if the request has `temperature` or `top_p`.
    pub sampling: bool,
    /// True if the request has `top_k`.
    pub top_k: bool,
    /// True if anything in the request tells the model to think, or not to think.
    pub thinking: bool,
    /// True if the request has `metadata.user_id`.
    pub user: bool,
    /// True if the request has `service_tier` or `speed`.
    pub service_tier: bool,
    /// True if assistant messages are neighbours, or one is the first message.
    pub neighbours: bool,
    /// True if messages of the assistant have calls, and no text for their content.
    pub silent_calls: bool,
}

/// Form in which reasoning is shown to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Display {
    /// No thinking blocks.
    #[default]
    Hidden,
    /// Thinking blocks with empty text (`display: "omitted"`).
    Omitted,
    /// Thinking blocks with their text.
    Shown,
}

impl RequestContext {
    /// Asks for a whole answer instead of a stream, as the answer to a token count is.
    pub(crate) fn ask_for_whole(&mut self) {
        (self.stream, self.upstream_stream) = (false, false);
    }
}

impl Display {
    /// Returns the form of reasoning for a client that sent this `thinking`.
    pub(crate) fn of(thinking: Option<Thinking>, reasoning: Reasoning) -> Self {
        let is_wanted = thinking.is_some_and(|thinking| {
            matches!(thinking.mode, ThinkingMode::Adaptive | ThinkingMode::Enabled(_))
        });
        let is_omitted = thinking.is_some_and(|thinking| thinking.omitted);
        match reasoning {
            Reasoning::Never => Self::Hidden,
            Reasoning::OnRequest if !is_wanted => Self::Hidden,
            Reasoning::OnRequest | Reasoning::Always if is_omitted => Self::Omitted,
            Reasoning::OnRequest | Reasoning::Always => Self::Shown,
        }
    }
}

/// Tools whose calls are not passed on to the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Withheld {
    /// No tools.
    #[default]
    Nothing,
    /// Tools with these names, which are the upstream's.
    These(Vec<String>),
    /// Every tool that was not sent: the model must answer by calling one of the sent tools.
    Unsent,
    /// Every tool: the model must answer in words.
    All,
    /// Every tool, because the client forbids calls (`tool_choice: none`), which some servers do
    /// not read.
    Forbidden,
}

/// Longest name of a tool, in bytes. A longer text is no name; the Messages API allows 128 letters.
pub(crate) const NAME_BYTES_MAX: usize = 512;

/// Tools that were sent to the upstream, and deferred tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    pub(crate) sent: Vec<Tool>,
    /// Tools with `defer_loading` that nothing has loaded, so they were not sent. A model that
    /// knows their names may call them all the same.
    pub(crate) deferred: Vec<Tool>,
}

/// Tool with its two names, one for the upstream and one for the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tool {
    /// Name of the tool for the upstream.
    pub outgoing: String,
    /// Name of the tool for the client.
    pub name: String,
    /// Toolset of the client's of which the tool is a member (`computer`, `browser`).
    pub toolset: Option<&'static str>,
    /// Position of the tool among the client's `tools`, if it is one of them by itself.
    pub place: Option<usize>,
    /// JSON Schema of the input, kept only where the answer needs it: tool calls written as text,
    /// inputs that are checked or mended.
    pub schema: Option<Arc<str>>,
}

impl Tools {
    /// Adds a tool that was sent.
    pub fn push(&mut self, tool: Tool) {
        self.sent.push(tool);
    }

    /// Returns the client's name of a tool that the upstream knows by another name.
    pub(crate) fn client_name(&self, outgoing: &str) -> Option<&str> {
        let is_renamed = |tool: &Tool| tool.outgoing != tool.name;
        if !self.sent.iter().any(is_renamed) {
            return None;
        }
        let tool = self.meant_by(outgoing).filter(|tool| is_renamed(tool) && tool.name != outgoing);
        tool.map(|tool| tool.name.as_str())
    }

    /// Adds a tool that was not sent, because nothing has loaded it.
    pub fn push_deferred(&mut self, tool: Tool) {
        self.deferred.push(tool);
    }

    /// Returns the tools that were sent, in the order of the request.
    pub fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.sent.iter()
    }

    /// Returns true if no tools were sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }
}
