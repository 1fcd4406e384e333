//! Profiles of upstreams: one documented flag for each way in which upstreams differ.
//!
//! A flag exists only if two upstreams need opposite behaviour. Differences that can be handled by
//! tolerant reading have no flag (see `protocols/chat/read_answer`).

pub(crate) mod effort;
pub mod presets;
mod words;

use crate::json::{Error, Reader};
use crate::setting::{Bounds, Setting, UnreadMembers, keys};
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
    /// Profile: the form of requests that one upstream takes, and the needs of its answers. The
    /// defaults are for an unknown server: values that most servers accept.
    pub Profile {
        /// Field for the output limit. OpenAI's reasoning models refuse `max_tokens`; many other
        /// servers know no other name.
        max_tokens_field: MaxTokensField = MaxTokensField::MaxTokens;
        /// Maximum of the output limit, to which larger values of the client are lowered; 0 sends
        /// the client's value. Claude Code requests up to 128,000 tokens, which some servers
        /// refuse.
        max_tokens_max: u64 = 0;
        /// Send `stream_options.include_usage`. Mistral always sends usage and refuses the option.
        stream_usage: bool = true;
        /// Send `top_k`, which is not part of Chat Completions; vLLM, SGLang, llama.cpp and Ollama
        /// take it.
        top_k: bool = false;
        /// Send `temperature` and `top_p`. OpenAI's reasoning models refuse them. Beside a
        /// temperature of 0, `top_p` says nothing and is never sent: Mistral refuses it there.
        sampling: bool = true;
        /// The values of `reasoning_effort` that the upstream takes, lowest first; empty: never
        /// sent.
        reasoning_effort_values: Vec<Effort> = Vec::new();
        /// Switch that turns thinking off and on, beside the effort.
        thinking_switch: ThinkingSwitch = ThinkingSwitch::None;
        /// Field for the client's `budget_tokens`. Where `max_tokens_max` lowers the limit of the
        /// answer, at most half of that limit is sent, so that the rest is left for words.
        thinking_budget: ThinkingBudget = ThinkingBudget::None;
        /// Handling of reasoning in the history. DeepSeek and Kimi refuse a history that lacks it;
        /// OpenAI has no field for it.
        reasoning_history: ReasoningHistory = ReasoningHistory::Auto;
        /// Handling of thinking blocks of another endpoint, or of an upstream with another `url` or
        /// `base_path`.
        foreign_thinking: ForeignThinking = ForeignThinking::Drop;
        /// Field for reasoning that did not come from this upstream. The upstream's own reasoning
        /// goes back in the field in which it came. vLLM reads `reasoning`; most other servers read
        /// `reasoning_content`.
        reasoning_field: ReasoningField = ReasoningField::ReasoningContent;
        /// The form of tool call ids. Mistral takes exactly nine letters and digits; Kimi's
        /// template reads the function's name out of `functions.NAME:N`.
        id_style: IdStyle = IdStyle::Any;
        /// Longest tool call id, at least 9; 0 is no limit. OpenAI: 40.
        max_id_length: usize = 0, ID_LENGTH;
        /// Send `stop`. OpenAI's reasoning models refuse it; Creole cuts the text at the client's
        /// stop sequences all the same.
        stop: bool = true;
        /// Most `stop` sequences in a request; Creole cuts the text at further sequences. 0 is no
        /// limit. OpenAI and vLLM: 4.
        max_stop: usize = 0;
        /// Most tools in a request; Creole refuses a request with more tools, with a clear text. 0
        /// is no limit. OpenAI: 128.
        max_tools: usize = 0;
        /// Longest tool name, at least 16; longer ones are shortened with a hash. 0 is no limit.
        /// OpenAI: 64.
        max_tool_name: usize = 64, NAME_LENGTH;
        /// Longest description of a tool, in characters; longer ones are cut. 0 is no limit.
        max_tool_description: usize = 0;
        /// Kinds of parts in arrays that `tool` messages take, if any.
        tool_content_parts: ToolContentParts = ToolContentParts::No;
        /// True if the upstream understands `file` parts (PDF).
        file_parts: bool = false;
        /// Images that the upstream understands. Ollama takes no URLs; a text model takes no images
        /// at all.
        image_parts: ImageParts = ImageParts::All;
        /// Handling of a `system` message in the middle of a conversation, which most chat
        /// templates refuse.
        mid_system: MidSystem = MidSystem::AsUser;
        /// The role of the system prompt. `user`: some templates (Gemma, old Mistral) have no
        /// system role, so its text goes before that of the first user message.
        system_role: SystemRole = SystemRole::System;
        /// Place of the user's own text that came with tool results. Mistral refuses a `user`
        /// message directly after `tool` messages.
        text_after_tool_results: TextAfterToolResults = TextAfterToolResults::UserMessage;
        /// Merge neighbouring messages of one role, and let the user begin (templates that insist
        /// on alternation).
        alternating_roles: bool = false;
        /// Split a turn with several calls into one assistant message for each call, followed by
        /// its result (Databricks; the Llama 3.3 template).
        single_tool_call: bool = false;
        /// Send `parallel_tool_calls` when the client disables parallel calls.
        parallel_tool_calls: bool = true;
        /// Form in which the client's `cache_control` is sent. Results have a mark only where
        /// `tool_content_parts` is not `no`. The mark of the whole request goes to the last place
        /// for a mark.
        cache_breakpoints: CacheBreakpoints = CacheBreakpoints::None;
        /// Send `prompt_cache_key`, made from the conversation's id that `session_headers` would
        /// carry (OpenAI).
        prompt_cache_key: bool = false;
        /// True if the upstream understands `service_tier` (OpenAI).
        service_tier: bool = false;
        /// Form in which `metadata.user_id` is sent; it can hold account ids, so it is never sent
        /// as it is.
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
        /// Handling of a final assistant message (prefill).
        prefill: Prefill = Prefill::Send;
        /// Handling of server tool calls in the history.
        server_history: ServerHistory = ServerHistory::Text;
        /// Value that is sent for `tool_choice: any`. Mistral takes `any`; some servers take
        /// neither `any` nor `required`.
        tool_choice_any: ToolChoiceAny = ToolChoiceAny::Required;
        /// Form that forces one tool. Servers whose `tool_choice` takes only strings get that one
        /// tool and `required`.
        tool_choice_named: ToolChoiceNamed = ToolChoiceNamed::Function;
        /// Form in which `tool_choice: none` is sent.
        tool_choice_none: ToolChoiceNone = ToolChoiceNone::None;
        /// Dialect of JSON Schema for tool parameters, which decides the allowed keywords.
        tool_schema: ToolSchema = ToolSchema::Full;
        /// Write an empty `description` for a tool that has none: the templates of gpt-oss and
        /// others raise an error where vLLM and SGLang give them a null.
        empty_description: bool = false;
        /// True if the upstream understands `function.strict` and `json_schema.strict`.
        strict_tools: bool = false;
        /// Schemas that are sent with `strict: true`, where `strict_tools` is on.
        strict_schemas: StrictSchemas = StrictSchemas::Openai;
        /// Endpoint of the upstream that counts tokens, where `count_tokens` is `upstream`.
        tokenizer: Tokenizer = Tokenizer::None;
        /// Handling of Anthropic's web search tool.
        web_search: WebSearch = WebSearch::Drop;
        /// Handling of the client's MCP servers. `mcp` hands their addresses, and the client's
        /// tokens for them, to this upstream, which then acts there: that is for you to decide.
        mcp: Mcp = Mcp::Reject;
        /// Structured outputs that the upstream understands.
        response_format: ResponseFormat = ResponseFormat::JsonSchema;
        /// Handling of `inference_geo`, a promise that cannot be kept.
        inference_geo: InferenceGeo = InferenceGeo::Reject;
        /// Responses: request reasoning in a form that goes back with the next turn.
        include_encrypted: bool = true;
        /// Responses: summary of the reasoning that is requested, where the client may see
        /// thinking.
        reasoning_summary: ReasoningSummary = ReasoningSummary::Auto;
        /// Responses: form in which the upstream is instructed to store nothing.
        store_field: StoreField = StoreField::False;
        /// Responses: send `max_output_tokens`. Backends of subscriptions refuse it.
        output_limit: bool = true;
        /// Responses: parts that the result of a tool may hold beside text. Other parts follow in a
        /// message of the user.
        tool_output_parts: ToolOutputParts = ToolOutputParts::All;
        /// Responses: place of the system prompt.
        system_field: SystemField = SystemField::Instructions;
        /// Responses: send `phase`, which marks the messages of the assistant that came before
        /// calls, as newer models of OpenAI want.
        message_phase: bool = false;
        /// Responses: let the upstream pad its deltas with random text. `false` switches the
        /// padding off.
        obfuscation: bool = true;
        /// Responses: the upstream's report that an answer reached the limit.
        length_status: LengthStatus = LengthStatus::Reported;
        /// Members that are added to each request, except members that Creole writes itself:
        /// `{"min_p": 0.05}`, or vLLM's `repetition_detection`. Members of `chat_template_kwargs`
        /// and `thinking` are added to the switch of thinking in that object:
        /// `{"chat_template_kwargs": {"preserve_thinking": true}}`.
        extra_body: UnreadMembers = UnreadMembers::default();
        /// Leave out Claude Code's first system block, which changes with each request and would
        /// defeat prefix caches.
        strip_billing_header: bool = true;
        /// Turn `<think>…</think>` (or `[THINK]`, `<reasoning>`, …) at the very start of the text
        /// into a thinking block. Reasoning that came in `<think>` goes back in `<think>`.
        inline_think: bool = false;
        /// Turn tool calls that the model wrote as text, in one syntax, into calls. Calls at the
        /// end of the reasoning count, too, if the answer has nothing else.
        text_tool_calls: TextToolCalls = TextToolCalls::Off;
        /// Chunks of a stream have all of the text and of the reasoning so far, instead of the new
        /// part (MiniMax, some plans of DashScope). Calls may come in either form.
        cumulative_text: bool = false;
        /// Remove the final assistant text of the request when the answer starts with it.
        strip_prefill_echo: bool = false;
        /// True if streams, too, begin with the final assistant text of the request. llama.cpp
        /// repeats that text in whole answers only; a stream that happens to begin with the same
        /// words keeps them.
        stream_prefill_echo: bool = true;
        /// Handling of an answer that has reasoning, and neither text nor a call.
        reasoning_only: ReasoningOnly = ReasoningOnly::Keep;
        /// Model name in the answer for the client.
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
            let added = UnreadMembers::read(&mut Reader::of(object))
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
    pub(crate) fn added_to(&self, name: &str) -> Option<UnreadMembers> {
        UnreadMembers::read(&mut Reader::of(self.extra_body.get(name)?)).ok()
    }
}
