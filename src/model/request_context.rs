//! Facts about a request that are needed to read its answer.
//!
//! An upstream's protocol fills in a [`RequestContext`] with the request, and the reader of the
//! answer uses it. It owns its texts: the request's body is gone by then.

use std::sync::Arc;

use super::context_management::Cleared;
use super::member_places::MemberPlaces;
use super::own_tool::OwnTool;
use super::request::{Thinking, ThinkingMode};
use super::search::NumberedPages;
use crate::config::Reasoning;
use crate::observe::report::RequestCounts;
use crate::profile::Profile;
use crate::text::names::NameSet;

/// Facts about a request that are needed to read its answer. The texts are owned, because the
/// request's body is freed before the answer comes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestContext {
    /// Model that the client asked for, and that the answer reports.
    pub model: String,
    /// True if the upstream has another name for the model.
    pub model_mapped: bool,
    /// Model name in the upstream's request.
    pub upstream_model: String,
    /// Limits at which the answer ends, if the model does not end the answer earlier.
    pub limits: AnswerLimits,
    /// True if the client wants a stream.
    pub stream: bool,
    /// True if the upstream is asked for a stream. The value differs from `stream` if the upstream
    /// serves only the other kind of answer.
    pub upstream_stream: bool,
    /// Tools that were sent to the upstream.
    pub tools: Tools,
    /// Rules for the reasoning in the answer.
    pub thinking: ThinkingContext,
    /// Tools that a guard withheld or the client forbids. The model may call them nevertheless.
    pub withheld: Withheld,
    /// Ids of all `tool_use` blocks in the history. The ids of new calls must differ from them.
    pub ids_used: NameSet<'static>,
    /// Estimated number of input tokens, for the event `message_start`, which is sent before the
    /// upstream reports usage.
    pub input_tokens: u64,
    /// Part of `input_tokens` that is known before the translation: without reasoning, and without
    /// a schema that is written into the prompt as text.
    pub input_estimate: u64,
    /// True if the upstream got the gateway's own credential. Upstream errors about that credential
    /// are not passed on to the client.
    pub edge_key: bool,
    /// Final assistant text of the request, if the profile says that the upstream repeats that text
    /// in its answer.
    pub prefill: String,
    /// Features of the request that the upstream may refuse.
    pub refusable: Refusable,
    /// Hash of the request fields that identify the conversation; 0 if no field does.
    pub conversation: u64,
    /// Numbers of messages, tools, tool results and tool ids in the request.
    pub counts: RequestCounts,
    /// Counts of what was cleared from the history; `None` if the client did not ask for clearing.
    pub cleared: Option<Cleared>,
    /// True if the upstream may search the web by itself.
    pub searches: bool,
    /// True if the upstream may call tools of MCP servers by itself.
    pub calls_mcp: bool,
    /// True if calls of the tools that Creole runs are left out, in the last round of an answer.
    pub withholds_own_tools: bool,
    /// True if a service may have to be asked before the request is sent: the request offers server
    /// tools that Creole runs, or names MCP servers.
    pub may_ask_services: bool,
    /// Places of the members of the body that further rounds of the answer change.
    pub places: MemberPlaces,
    /// Server tools of the request that Creole runs.
    pub own_tools: Vec<Arc<OwnTool>>,
    /// Pages of web searches in the history, which the answer can cite; empty if the model is not
    /// asked for marks.
    pub pages: NumberedPages,
    /// True if the client asks for verdicts on tool calls, and a judge is configured.
    pub is_judged: bool,
    /// Upstream settings that are needed to read its answers.
    pub profile: Profile,
}

/// Limits at which an answer ends, if the model does not end the answer earlier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerLimits {
    /// Maximum length of the answer in the upstream's request, in tokens; 0 if unknown.
    pub max_tokens: u64,
    /// Size of the model's context window, in tokens; 0 if unknown.
    pub window: u64,
    /// Stop sequences of the client. Creole cuts the text as well, because the upstream may ignore
    /// them or support only some (`stop`, `max_stop`).
    pub stop_sequences: Vec<String>,
    /// True if the client allows only one tool call (`disable_parallel_tool_use`).
    pub one_tool_call: bool,
}

/// Rules for the reasoning in an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThinkingContext {
    /// Form in which reasoning is shown to the client.
    pub display: Display,
    /// True if the upstream wants reasoning back together with tool calls (`reasoning_history`).
    /// Thinking blocks then carry the reasoning even if their text is hidden.
    pub returns: bool,
    /// Identifier of the upstream, stored in the signature of thinking blocks; empty if only one
    /// upstream is configured.
    pub upstream_mark: String,
    /// Identifier of the upstream and the model, stored with reasoning that other models refuse.
    pub model_mark: String,
}

/// Features of a request that the upstream may refuse. An error that names a feature which the
/// request lacks means something else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusable {
    /// True if the request has images.
    pub images: bool,
    /// True if at least one image is new: the user added the image in the last turn.
    pub new_image: bool,
    /// Hosts from which the upstream has to fetch images, in lower case.
    pub image_hosts: Vec<String>,
    /// True if the request has documents other than plain text.
    pub documents: bool,
    /// True if at least one document is new: the user added the document in the last turn.
    pub new_document: bool,
    /// True if the request has a schema for the answer.
    pub schema: bool,
    /// True if the request has reasoning of earlier turns.
    pub reasoning: bool,
    /// Position of the first reasoning item of the Responses API: message and block in the client's
    /// request.
    pub thought_at: Option<(usize, usize)>,
    /// True if the request has `temperature` or `top_p`.
    pub sampling: bool,
    /// True if the request has `top_k`.
    pub top_k: bool,
    /// True if any member of the upstream's request turns reasoning on or off.
    pub thinking: bool,
    /// True if the request has `metadata.user_id`.
    pub user: bool,
    /// True if the request has `service_tier` or `speed`.
    pub service_tier: bool,
    /// True if two assistant messages are adjacent, or an assistant message is the first.
    pub neighbours: bool,
    /// True if an assistant message has tool calls and no text.
    pub silent_calls: bool,
}

/// Form in which reasoning is shown to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Display {
    /// No thinking blocks are shown.
    #[default]
    Hidden,
    /// Thinking blocks are shown with empty text (`display: "omitted"`).
    Omitted,
    /// Thinking blocks are shown with their text.
    Shown,
}

impl RequestContext {
    /// Withholds the tools that Creole runs from a model that repeats its calls.
    pub(crate) fn withhold_own_tools(&mut self) {
        let own = self.tools.iter().filter(|tool| tool.own.is_some());
        let own: Vec<String> = own.map(|tool| tool.outgoing.clone()).collect();
        match &mut self.withheld {
            // Creole itself forbids all calls if there are no other tools.
            Withheld::Nothing | Withheld::Forbidden => self.withheld = Withheld::These(own),
            Withheld::These(names) => names.extend(own),
            Withheld::Unsent | Withheld::All => {}
        }
    }

    /// Requests a whole answer instead of a stream, such as for a token count.
    pub(crate) fn ask_for_whole(&mut self) {
        (self.stream, self.upstream_stream) = (false, false);
    }
}

impl Display {
    /// Returns the form of reasoning for a client that sent this `thinking` setting.
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
    /// No tools are withheld.
    #[default]
    Nothing,
    /// Tools with these names are withheld; the names are those that the upstream uses.
    These(Vec<String>),
    /// Tools that were not sent are withheld: the model must call one of the sent tools.
    Unsent,
    /// Every tool is withheld: the model must answer with text.
    All,
    /// Every tool is withheld, because the client forbids calls. Some servers ignore `tool_choice:
    /// none`.
    Forbidden,
}

/// Maximum length of a tool's name, in bytes. A longer text cannot be a name; the Messages API
/// allows 128 characters.
pub(crate) const NAME_BYTES_MAX: usize = 512;

/// Tools that were sent to the upstream, and deferred tools, which were not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    pub(crate) sent: Vec<Tool>,
    /// Tools with `defer_loading` that no tool search has loaded yet, so they were not sent. A
    /// model that knows their names may call them nevertheless.
    pub(crate) deferred: Vec<Tool>,
}

/// Tool with its two names: the upstream's and the client's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tool {
    /// Name of the tool in the upstream's request.
    pub outgoing: String,
    /// Name of the tool in the client's request.
    pub name: String,
    /// Client's toolset that the tool is a member of (`computer`, `browser`).
    pub toolset: Option<&'static str>,
    /// Index of the tool in the client's `tools`; `None` for a member of a toolset.
    pub place: Option<usize>,
    /// Server tool that Creole runs, if the tool is one.
    pub own: Option<Arc<OwnTool>>,
    /// JSON Schema of the tool's input. It is kept only to read tool calls written as text, and to
    /// check or repair inputs.
    pub schema: Option<Arc<str>>,
}

impl Tools {
    /// Adds a tool that was sent to the upstream.
    pub fn push(&mut self, tool: Tool) {
        self.sent.push(tool);
    }

    /// Returns the client's name of a tool for which the upstream has another name.
    pub(crate) fn client_name(&self, outgoing: &str) -> Option<&str> {
        let is_renamed = |tool: &Tool| tool.outgoing != tool.name;
        if !self.sent.iter().any(is_renamed) {
            return None;
        }
        let tool = self.meant_by(outgoing).filter(|tool| is_renamed(tool) && tool.name != outgoing);
        tool.map(|tool| tool.name.as_str())
    }

    /// Adds a tool that was not sent to the upstream, because no tool search has loaded it.
    pub fn push_deferred(&mut self, tool: Tool) {
        self.deferred.push(tool);
    }

    /// Returns the tools that were sent to the upstream, in the order of the request.
    pub fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.sent.iter()
    }

    /// Returns true if no tools were sent to the upstream.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }
}
