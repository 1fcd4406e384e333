//! Profiles of upstreams: one documented flag for each way in which upstreams differ.
//!
//! A flag exists only if two upstreams need opposite behaviour. Differences that can be handled by
//! tolerant reading have no flag (see `protocols/chat/read_answer`).

pub(crate) mod effort;
pub mod presets;
mod words;

use crate::json::{Error, Reader};
use crate::setting::{Bounds, Members, Setting, keys};
pub use words::*;

/// Members of a request that Creole writes itself, for at least one kind of upstream.
const OWN_MEMBERS: [&str; 25] = [
    "add_generation_prompt",
    "continue_final_message",
    "enable_thinking",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "model",
    "parallel_tool_calls",
    "prompt_cache_key",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "service_tier",
    "stop",
    "stream",
    "stream_options",
    "temperature",
    "thinking_budget_tokens",
    "thinking_token_budget",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
    "user",
    "web_search_options",
];

/// Members of a Responses request that Creole writes itself, or by which an upstream would store
/// conversations.
const MEMBERS_OF_RESPONSES: [&str; 11] = [
    "background",
    "context_management",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "previous_response_id",
    "store",
    "truncation",
];

/// Objects in a request in which Creole writes only the switch for thinking, so that `extra_body`
/// may add members.
pub(crate) const SHARED_MEMBERS: [&str; 2] = ["chat_template_kwargs", "thinking"];

/// Bounds for `max_id_length`: hashes cannot distinguish shorter ids.
const ID_LENGTH: Bounds = Bounds::ZeroOrAtLeast(9);

/// Bounds for `max_tool_name`: shorter names have no space for a hash.
const NAME_LENGTH: Bounds = Bounds::ZeroOrAtLeast(16);

keys! {
    /// How one upstream wants its requests, and what its answers need. The defaults are for an
    /// unknown server: what most of them accept.
    pub Profile {
        /// Which field carries the output limit. OpenAI's reasoning models refuse `max_tokens`;
        /// many other servers know no other name.
        max_tokens_field: MaxTokensField = MaxTokensField::MaxTokens;
        /// Larger values of the client are lowered to this; 0 sends what the client asked for.
        /// Claude Code asks for up to 128,000 tokens, which some servers refuse.
        max_tokens_max: u64 = 0;
        /// Send `stream_options.include_usage`. Mistral always sends usage and refuses the option.
        stream_usage: bool = true;
        /// Send `top_k`. Not part of Chat Completions; vLLM, SGLang, llama.cpp and Ollama take it.
        top_k: bool = false;
        /// Send `temperature` and `top_p`. OpenAI's reasoning models refuse them. Beside a
        /// temperature of 0, `top_p` says nothing and is never sent: Mistral refuses it there.
        sampling: bool = true;
        /// The values of `reasoning_effort` that the upstream takes, lowest first; empty: never
        /// sent.
        reasoning_effort_values: Vec<Effort> = Vec::new();
        /// How thinking is switched off and on, beside the effort.
        thinking_switch: ThinkingSwitch = ThinkingSwitch::None;
        /// Which field carries the client's `budget_tokens`. Where `max_tokens_max` lowers the
        /// limit of the answer, at most half of that limit is sent, so that the rest is left for
        /// words.
        thinking_budget: ThinkingBudget = ThinkingBudget::None;
        /// Whether reasoning in the history goes back to the upstream. DeepSeek and Kimi refuse a
        /// history that lacks it; OpenAI has no field for it.
        reasoning_history: ReasoningHistory = ReasoningHistory::Auto;
        /// What happens to thinking blocks of another endpoint, or of an upstream with another
        /// `url` or `base_path`.
        foreign_thinking: ForeignThinking = ForeignThinking::Drop;
        /// The field for reasoning that did not come from this upstream. Its own goes back in the
        /// field in which it came. vLLM reads `reasoning`; most other servers read
        /// `reasoning_content`.
        reasoning_field: ReasoningField = ReasoningField::ReasoningContent;
        /// The form of tool call ids. Mistral takes exactly nine letters and digits; Kimi's
        /// template reads the function's name out of `functions.NAME:N`.
        id_style: IdStyle = IdStyle::Any;
        /// Longest tool call id, at least 9; 0 is no limit. OpenAI: 40.
        max_id_length: usize = 0, ID_LENGTH;
        /// Send `stop`. OpenAI's reasoning models refuse it; Creole cuts the text at these
        /// sequences all the same.
        stop: bool = true;
        /// Most `stop` sequences; the rest is cut by Creole. 0 is no limit. OpenAI and vLLM: 4.
        max_stop: usize = 0;
        /// Most tools in a request; more are refused here with a clear text. 0 is no limit.
        /// OpenAI: 128.
        max_tools: usize = 0;
        /// Longest tool name, at least 16; longer ones are shortened with a hash. 0 is no limit.
        /// OpenAI: 64.
        max_tool_name: usize = 64, NAME_LENGTH;
        /// Longest description of a tool, in characters; longer ones are cut. 0 is no limit.
        max_tool_description: usize = 0;
        /// Whether `tool` messages take arrays of parts, and of which kinds.
        tool_content_parts: ToolContentParts = ToolContentParts::No;
        /// Whether `file` parts (PDF) are understood.
        file_parts: bool = false;
        /// Which images are understood. Ollama takes no URLs; a text model takes none at all.
        image_parts: ImageParts = ImageParts::All;
        /// What becomes of a `system` message in the middle. Most chat templates refuse one.
        mid_system: MidSystem = MidSystem::AsUser;
        /// The role of the system prompt. `user`: some templates (Gemma, old Mistral) have no
        /// system role, so its text goes before that of the first user message.
        system_role: SystemRole = SystemRole::System;
        /// Where the user's own text goes when it came with tool results. Mistral refuses a `user`
        /// message directly after `tool` messages.
        text_after_tool_results: TextAfterToolResults = TextAfterToolResults::UserMessage;
        /// Merge neighbouring messages of one role, and let the user begin (templates that insist
        /// on alternation).
        alternating_roles: bool = false;
        /// Split a turn with several calls into one assistant message for each call, followed by
        /// its result (Databricks; the Llama 3.3 template).
        single_tool_call: bool = false;
        /// Send `parallel_tool_calls` when the client disables them.
        parallel_tool_calls: bool = true;
        /// What is sent for the client's `cache_control`. On results only where
        /// `tool_content_parts` is not `no`. That of the whole request goes to the last place for
        /// one.
        cache_breakpoints: CacheBreakpoints = CacheBreakpoints::None;
        /// Send `prompt_cache_key`, made from the session that `session_headers` would tell
        /// (OpenAI).
        prompt_cache_key: bool = false;
        /// Whether `service_tier` is understood (OpenAI).
        service_tier: bool = false;
        /// What becomes of `metadata.user_id`; it can hold account ids, so it is never sent as it
        /// is.
        user_id: UserId = UserId::User;
        /// Join neighbouring texts of a user message into one, with an empty line between them.
        /// Many chat templates write parts without a gap.
        joined_texts: bool = false;
        /// The content of an assistant message that has only tool calls.
        empty_assistant_content: EmptyAssistantContent = EmptyAssistantContent::Null;
        /// The content of a tool result that is empty.
        empty_tool_content: String = String::new();
        /// Send the tool's `name` with each result. Gemini and the templates of some small models
        /// refuse a result without it.
        tool_result_name: bool = false;
        /// Whether a final assistant message (prefill) is sent on.
        prefill: Prefill = Prefill::Send;
        /// What becomes of server tool calls in the history.
        server_history: ServerHistory = ServerHistory::Text;
        /// The word for `tool_choice: any`. Mistral says `any`; some servers know neither.
        tool_choice_any: ToolChoiceAny = ToolChoiceAny::Required;
        /// How one tool is forced. Servers whose `tool_choice` takes only strings get that one tool
        /// and `required`.
        tool_choice_named: ToolChoiceNamed = ToolChoiceNamed::Function;
        /// How `tool_choice: none` is said.
        tool_choice_none: ToolChoiceNone = ToolChoiceNone::None;
        /// Which JSON Schema keywords tool parameters may use.
        tool_schema: ToolSchema = ToolSchema::Full;
        /// Write an empty `description` for a tool that has none: the templates of gpt-oss and
        /// others raise an error where vLLM and SGLang give them a null.
        empty_description: bool = false;
        /// Whether `function.strict` and `json_schema.strict` are understood.
        strict_tools: bool = false;
        /// Which schemas are sent with `strict: true`, where `strict_tools` is on.
        strict_schemas: StrictSchemas = StrictSchemas::Openai;
        /// How the upstream is asked for a token count, where `count_tokens` is `upstream`.
        tokenizer: Tokenizer = Tokenizer::None;
        /// What becomes of Anthropic's web search tool.
        web_search: WebSearch = WebSearch::Drop;
        /// What becomes of the client's MCP servers. `mcp` hands their addresses, and the client's
        /// tokens for them, to this upstream, which then acts there: that is for you to decide.
        mcp: Mcp = Mcp::Reject;
        /// Which structured outputs are understood.
        response_format: ResponseFormat = ResponseFormat::JsonSchema;
        /// What becomes of `inference_geo`, a promise that cannot be kept.
        inference_geo: InferenceGeo = InferenceGeo::Reject;
        /// Responses: ask for reasoning in a form that goes back with the next turn.
        include_encrypted: bool = true;
        /// Responses: which summary of the reasoning is asked for, where the client may see
        /// thinking.
        reasoning_summary: ReasoningSummary = ReasoningSummary::Auto;
        /// Responses: how the upstream is told to store nothing.
        store_field: StoreField = StoreField::False;
        /// Responses: send `max_output_tokens`. Backends of subscriptions refuse it.
        output_limit: bool = true;
        /// Responses: what the result of a tool may hold beside text. The rest follows in a message
        /// of the user.
        tool_output_parts: ToolOutputParts = ToolOutputParts::All;
        /// Responses: where the system prompt stands.
        system_field: SystemField = SystemField::Instructions;
        /// Responses: tell which messages of the assistant came before calls (`phase`), as newer
        /// models of OpenAI want it.
        message_phase: bool = false;
        /// Responses: let the upstream pad its deltas with random text. `false` switches that off.
        obfuscation: bool = true;
        /// Responses: whether the upstream says that an answer reached the limit.
        length_status: LengthStatus = LengthStatus::Reported;
        /// Members that are added to each request, none that Creole writes itself:
        /// `{"min_p": 0.05}`, or vLLM's `repetition_detection`. What is in `chat_template_kwargs`
        /// and `thinking` is added to the switch of thinking there:
        /// `{"chat_template_kwargs": {"preserve_thinking": true}}`.
        extra_body: Members = Members::default();
        /// Leave out Claude Code's first system block, which changes with each request and would
        /// defeat prefix caches.
        strip_billing_header: bool = true;
        /// Turn `<think>…</think>` (or `[THINK]`, `<reasoning>`, …) at the very start of the text
        /// into a thinking block. What stood in `<think>` goes back there.
        inline_think: bool = false;
        /// Turn tool calls that the model wrote as text into calls, in this one syntax. Those at
        /// the end of the reasoning too, if the answer has nothing else.
        text_tool_calls: TextToolCalls = TextToolCalls::Off;
        /// Each chunk of a stream has all of the text and of the reasoning so far, and not what is
        /// new in them (MiniMax, some plans of DashScope). Calls may have either.
        cumulative_text: bool = false;
        /// Remove the final assistant text of the request when the answer starts with it.
        strip_prefill_echo: bool = false;
        /// Whether streams begin with that text, too. llama.cpp repeats it in whole answers only; a
        /// stream that happens to begin with the same words keeps them.
        stream_prefill_echo: bool = true;
        /// What an answer becomes that has reasoning, and neither text nor a call.
        reasoning_only: ReasoningOnly = ReasoningOnly::Keep;
        /// Which model name the client is told.
        response_model: ResponseModel = ResponseModel::Request;
    }
}

impl Profile {
    /// Checks conditions that involve more than one flag.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let own = || Error::value("expected no member that Creole writes itself");
        if let Some(name) = self.extra_body.names().find(|name| OWN_MEMBERS.contains(name)) {
            return Err(own().in_key(name).in_key("extra_body"));
        }
        for name in SHARED_MEMBERS {
            let Some(object) = self.extra_body.get(name) else { continue };
            let added = Members::read(&mut Reader::of(object))
                .map_err(|error| error.in_key(name).in_key("extra_body"))?;
            let switch = self.thinking_switch.member().filter(|(within, _)| *within == name);
            if let Some((_, key)) = switch.filter(|(_, key)| added.get(key).is_some()) {
                return Err(own().in_key(key).in_key(name).in_key("extra_body"));
            }
        }
        Ok(())
    }

    /// Checks that the flags of an upstream that speaks Responses have no forbidden values.
    pub(crate) fn check_responses(&self) -> Result<(), Error> {
        match self.extra_body.names().find(|name| MEMBERS_OF_RESPONSES.contains(name)) {
            Some(name) => {
                let reason = "expected no member that Creole writes itself, or that refers to what the upstream stores";
                Err(Error::value(reason).in_key(name).in_key("extra_body"))
            }
            None => Ok(()),
        }
    }

    /// Checks that an upstream with another protocol has no flag values that need Responses.
    pub(crate) fn check_other_protocol(&self) -> Result<(), Error> {
        match self.mcp {
            Mcp::Reject => Ok(()),
            Mcp::Mcp => {
                let reason = "expected \"reject\": only Responses has tools of MCP servers";
                Err(Error::value(reason).in_key("mcp"))
            }
        }
    }

    /// Returns the members that `extra_body` adds to an object that Creole writes itself.
    pub(crate) fn added_to(&self, name: &str) -> Option<Members> {
        Members::read(&mut Reader::of(self.extra_body.get(name)?)).ok()
    }
}
