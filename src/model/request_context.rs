//! What an answer must know about its request.
//!
//! An upstream's protocol writes it with the request, and whatever reads the answer reads it. It owns its texts: the
//! request's body is gone by then.

use std::sync::Arc;

use super::context_management::Cleared;
use super::request::{Thinking, ThinkingMode};
use crate::config::Reasoning;
use crate::dialect::profile::Profile;
use crate::observe::report::RequestCounts;
use crate::text::names::NameSet;

/// What an answer must know about its request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestContext {
    /// The model that the client named, which the answer reports.
    pub model: String,
    /// The upstream knows it by another name.
    pub model_mapped: bool,
    /// That name: what the upstream is asked for.
    pub upstream_model: String,
    /// Where an answer ends.
    pub limits: AnswerLimits,
    /// Whether the client wants a stream.
    pub stream: bool,
    /// Whether the upstream is asked for one: it may serve only the other kind of answers.
    pub upstream_stream: bool,
    /// The tools that were sent to the upstream.
    pub tools: Tools,
    /// What becomes of reasoning.
    pub thinking: ThinkingContext,
    /// The tools that a guard withheld or the client forbids, which the model may call all the same.
    pub withheld: Withheld,
    /// The ids of all `tool_use` blocks in the history; a new id must differ from them.
    pub ids_used: NameSet<'static>,
    /// Estimated input tokens, for `message_start`, which comes before the upstream's usage.
    pub input_tokens: u64,
    /// The part of them that is known before the request is translated: without reasoning and a schema in words.
    pub input_estimate: u64,
    /// The upstream got the gateway's own credential: what it says of that is not for the client.
    pub edge_key: bool,
    /// The final assistant text, where the profile says that the upstream repeats it.
    pub prefill: String,
    /// What the upstream may refuse of the request.
    pub refusable: Refusable,
    /// Hash of what names the conversation in the request's body; 0 where nothing does.
    pub conversation: u64,
    /// What shape the request had.
    pub counts: RequestCounts,
    /// What was cleared of the history; nothing where the client did not ask for it.
    pub cleared: Option<Cleared>,
    /// The upstream may search the web by itself.
    pub searches: bool,
    /// The upstream may call tools of MCP servers by itself.
    pub calls_mcp: bool,
    /// The client asks for verdicts on tool calls, and there is a judge.
    pub is_judged: bool,
    /// What the upstream's answers need.
    pub profile: Profile,
}

/// Where an answer ends, if the model does not end it before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerLimits {
    /// The limit of the answer in the upstream's request; 0 where that is not known.
    pub max_tokens: u64,
    /// How many tokens the model's window has; 0 where that is not known.
    pub window: u64,
    /// The client's stop sequences. The text is cut here too: the upstream may not know all of them
    /// (`stop`, `max_stop`), or ignore them.
    pub stop_sequences: Vec<String>,
    /// The client allows one tool call only (`disable_parallel_tool_use`).
    pub one_tool_call: bool,
}

/// What becomes of the reasoning in an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThinkingContext {
    /// Whether it is shown.
    pub display: Display,
    /// It must come back with tool calls (`reasoning_history`), so a thinking block carries it even when its text is
    /// not shown.
    pub returns: bool,
    /// Which upstream thinks, for the signature of thinking blocks; empty where there is only one.
    pub upstream_mark: String,
    /// Which model thinks, for reasoning that no other model takes.
    pub model_mark: String,
}

/// What the upstream may refuse of a request that has it. Where it has not, an error that names it means something
/// else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusable {
    /// Images.
    pub images: bool,
    /// One of the images is new: the user has just given it.
    pub new_image: bool,
    /// The hosts from which the upstream has to fetch some of the images, in lower case.
    pub image_hosts: Vec<String>,
    /// Documents that are not text.
    pub documents: bool,
    /// One of the documents is new: the user has just given it.
    pub new_document: bool,
    /// A schema of the answer.
    pub schema: bool,
    /// Reasoning of earlier turns.
    pub reasoning: bool,
    /// Where the first reasoning item of Responses stands in the client's request: its message and its block.
    pub thought_at: Option<(usize, usize)>,
    /// `temperature` or `top_p`
    pub sampling: bool,
    /// `top_k`
    pub top_k: bool,
    /// Whatever tells the model to think, or not to.
    pub thinking: bool,
    /// `metadata.user_id`
    pub user: bool,
    /// `service_tier` or `speed`
    pub service_tier: bool,
    /// Neighbouring messages of the assistant, or one at the beginning.
    pub neighbours: bool,
    /// Messages of the assistant with calls, and no text for their content.
    pub silent_calls: bool,
}

/// Whether reasoning is shown to the client.
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
    /// Asks for a whole answer, as the answer to a count is.
    pub(crate) fn ask_for_whole(&mut self) {
        (self.stream, self.upstream_stream) = (false, false);
    }
}

impl Display {
    /// What a client that sent this `thinking` is shown of the reasoning.
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

/// The tools whose calls are not passed on to the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Withheld {
    /// None.
    #[default]
    Nothing,
    /// These, as the upstream knows them.
    These(Vec<String>),
    /// All but those that were sent: the model must answer by calling one of these.
    Unsent,
    /// All: the model must answer.
    All,
    /// All, because the client forbids calls (`tool_choice: none`), which some servers do not read.
    Forbidden,
}

/// What is longer is taken for no name of a tool; the Messages API allows 128 letters.
pub(crate) const NAME_BYTES_MAX: usize = 512;

/// The tools that were sent to the upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    pub(crate) sent: Vec<Tool>,
    /// Those that the client would load first. A model that knows their names may call them all the same.
    pub(crate) deferred: Vec<Tool>,
}

/// One tool, under both its names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tool {
    /// What the upstream knows it as.
    pub outgoing: String,
    /// What the client knows it as.
    pub name: String,
    /// The client's toolset of which it is a member (`computer`, `browser`).
    pub toolset: Option<&'static str>,
    /// Its position among the client's `tools`, if it is one of them by itself.
    pub place: Option<usize>,
    /// Its JSON Schema, kept only where the answer needs it: tool calls written as text, inputs that are checked or
    /// mended.
    pub schema: Option<Arc<str>>,
}

impl Tools {
    /// Adds a tool.
    pub fn push(&mut self, tool: Tool) {
        self.sent.push(tool);
    }

    /// What the client knows a tool as that the upstream knows by another name.
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

    /// All of them, in the order of the request.
    pub fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.sent.iter()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }
}
