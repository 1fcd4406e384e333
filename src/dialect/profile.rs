//! What differs between upstreams: one documented flag for each difference, and the presets.
//!
//! A flag exists only where two upstreams need opposite behaviour. Everything that can be read
//! tolerantly has no flag (see `stream`).

mod presets;

use crate::json::{Error, Reader};
use crate::setting::{Bounds, Members, Setting, keys, word_enum};
use crate::text::words::is_among;
pub use presets::PRESETS;

/// The members of a request that Creole writes, for one upstream or another.
const OWN_MEMBERS: &str = "\
    add_generation_prompt continue_final_message enable_thinking max_completion_tokens max_tokens \
    messages model parallel_tool_calls prompt_cache_key reasoning_effort response_format \
    safety_identifier service_tier stop stream stream_options temperature thinking_budget_tokens \
    thinking_token_budget tool_choice tools top_k top_p user web_search_options";

/// The objects in which Creole writes no more than the switch of thinking: `extra_body` may add to them.
pub(crate) const SHARED_MEMBERS: [&str; 2] = ["chat_template_kwargs", "thinking"];

/// Hashes cannot tell shorter ids apart.
const ID_LENGTH: Bounds = Bounds::ZeroOrAtLeast(9);

/// Shorter names have no place for a hash.
const NAME_LENGTH: Bounds = Bounds::ZeroOrAtLeast(16);

keys! {
    /// How one upstream wants its requests, and what its answers need. The defaults are for an
    /// unknown server: what most of them accept.
    pub Profile {
        /// Which field carries the output limit. OpenAI's reasoning models refuse `max_tokens`; many
        /// other servers know no other name.
        max_tokens_field: MaxTokensField = MaxTokensField::MaxTokens;
        /// Larger values of the client are lowered to this; 0 sends what the client asked for. Claude
        /// Code asks for up to 128,000 tokens, which some servers refuse.
        max_tokens_max: u64 = 0;
        /// Send `stream_options.include_usage`. Mistral always sends usage and refuses the option.
        stream_usage: bool = true;
        /// Send `top_k`. Not part of Chat Completions; vLLM, SGLang, llama.cpp and Ollama take it.
        top_k: bool = false;
        /// Send `temperature` and `top_p`. OpenAI's reasoning models refuse them. Beside a temperature of 0, `top_p`
        /// says nothing and is never sent: Mistral refuses it there.
        sampling: bool = true;
        /// The values of `reasoning_effort` that the upstream takes, lowest first; empty: never sent.
        reasoning_effort_values: Vec<Effort> = Vec::new();
        /// How thinking is switched off and on, beside the effort.
        thinking_switch: ThinkingSwitch = ThinkingSwitch::None;
        /// Send the client's `budget_tokens`. Where `max_tokens_max` lowers the limit of the answer, at most half of
        /// that limit is sent, so that the rest is left for words.
        thinking_budget: bool = false;
        /// Which field carries it.
        thinking_budget_field: ThinkingBudgetField = ThinkingBudgetField::ThinkingBudgetTokens;
        /// Whether reasoning in the history goes back to the upstream. DeepSeek and Kimi refuse a history that
        /// lacks it; OpenAI has no field for it.
        reasoning_history: ReasoningHistory = ReasoningHistory::Auto;
        /// What happens to thinking blocks of another endpoint, or of an upstream with another `url` or `base_path`.
        foreign_thinking: ForeignThinking = ForeignThinking::Drop;
        /// The field for reasoning that did not come from this upstream. Its own goes back in the field in which it
        /// came. vLLM reads `reasoning`; most other servers read `reasoning_content`.
        reasoning_field: ReasoningField = ReasoningField::ReasoningContent;
        /// The form of tool call ids. Mistral takes exactly nine letters and digits; Kimi's template
        /// reads the function's name out of `functions.NAME:N`.
        id_style: IdStyle = IdStyle::Any;
        /// Longest tool call id, at least 9; 0 is no limit. OpenAI: 40.
        max_id_length: usize = 0, ID_LENGTH;
        /// Send `stop`. OpenAI's reasoning models refuse it; Creole cuts the text at these sequences all the
        /// same.
        stop: bool = true;
        /// Most `stop` sequences; the rest is cut by Creole. 0 is no limit. OpenAI and vLLM: 4.
        max_stop: usize = 0;
        /// Most tools in a request; more are refused here with a clear text. 0 is no limit. OpenAI: 128.
        max_tools: usize = 0;
        /// Longest tool name, at least 16; longer ones are shortened with a hash. 0 is no limit. OpenAI: 64.
        max_tool_name: usize = 64, NAME_LENGTH;
        /// Whether `tool` messages take arrays of parts, and of which kinds.
        tool_content_parts: ToolContentParts = ToolContentParts::No;
        /// Whether `file` parts (PDF) are understood.
        file_parts: bool = false;
        /// Which images are understood. Ollama takes no URLs; a text model takes none at all.
        image_parts: ImageParts = ImageParts::All;
        /// What becomes of a `system` message in the middle. Most chat templates refuse one.
        mid_system: MidSystem = MidSystem::AsUser;
        /// The role of the system prompt. `user`: some templates (Gemma, old Mistral) have no system
        /// role, so its text goes before that of the first user message.
        system_role: SystemRole = SystemRole::System;
        /// Where the user's own text goes when it came with tool results. Mistral refuses a `user`
        /// message directly after `tool` messages.
        text_after_tool_results: TextAfterToolResults = TextAfterToolResults::UserMessage;
        /// Merge neighbouring messages of one role, and let the user begin (templates that insist on alternation).
        alternating_roles: bool = false;
        /// Split a turn with several calls into one assistant message for each call, followed by its
        /// result (Databricks; the Llama 3.3 template).
        single_tool_call: bool = false;
        /// Send `parallel_tool_calls` when the client disables them.
        parallel_tool_calls: bool = true;
        /// Send `prompt_cache_breakpoint` for `cache_control` (newer OpenAI models).
        cache_breakpoints: bool = false;
        /// Send `prompt_cache_key` made from the client's session id (OpenAI).
        prompt_cache_key: bool = false;
        /// Whether `service_tier` is understood (OpenAI).
        service_tier: bool = false;
        /// What becomes of `metadata.user_id`; it can hold account ids, so it is never sent as it is.
        user_id: UserId = UserId::User;
        /// Join neighbouring texts of a user message into one, with an empty line between them. Many chat templates
        /// write parts without a gap.
        joined_texts: bool = false;
        /// The content of an assistant message that has only tool calls.
        empty_assistant_content: EmptyAssistantContent = EmptyAssistantContent::Null;
        /// The content of a tool result that is empty.
        empty_tool_content: String = String::new();
        /// Send the tool's `name` with each result. Gemini and the templates of some small models refuse a
        /// result without it.
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
        /// Write an empty `description` for a tool that has none: the templates of gpt-oss and others raise an error
        /// where vLLM and SGLang give them a null.
        empty_description: bool = false;
        /// Whether `function.strict` and `json_schema.strict` are understood.
        strict_tools: bool = false;
        /// Which schemas are sent with `strict: true`, where `strict_tools` is on.
        strict_schemas: StrictSchemas = StrictSchemas::Openai;
        /// How the upstream is asked for a token count, where `count_tokens` is `upstream`.
        tokenizer: Tokenizer = Tokenizer::None;
        /// What becomes of Anthropic's web search tool.
        web_search: WebSearch = WebSearch::Drop;
        /// Which structured outputs are understood.
        response_format: ResponseFormat = ResponseFormat::JsonSchema;
        /// What becomes of `inference_geo`, a promise that cannot be kept.
        inference_geo: InferenceGeo = InferenceGeo::Reject;
        /// Members that are added to each request, none that Creole writes itself: `{"min_p": 0.05}`, or
        /// vLLM's `repetition_detection`. What is in `chat_template_kwargs` and `thinking` is added to the switch of
        /// thinking there: `{"chat_template_kwargs": {"preserve_thinking": true}}`.
        extra_body: Members = Members::default();
        /// Leave out Claude Code's first system block, which changes with each request and would defeat
        /// prefix caches.
        strip_billing_header: bool = true;
        /// Turn `<think>…</think>` (or `[THINK]`, `<reasoning>`, …) at the very start of the text into a
        /// thinking block. What stood in `<think>` goes back there.
        inline_think: bool = false;
        /// Turn tool calls that the model wrote as text into calls, in this one syntax. Those at the end of the
        /// reasoning too, if the answer has nothing else.
        text_tool_calls: TextToolCalls = TextToolCalls::Off;
        /// Each chunk of a stream has all of the text and of the reasoning so far, and not what is new in them
        /// (MiniMax, some plans of DashScope). Calls may have either.
        cumulative_text: bool = false;
        /// Drop a reasoning delta equal to the one before it (some xAI models).
        dedupe_reasoning: bool = false;
        /// Remove the final assistant text of the request when the answer starts with it.
        strip_prefill_echo: bool = false;
        /// Whether streams begin with that text, too. llama.cpp repeats it in whole answers only; a stream that happens
        /// to begin with the same words keeps them.
        stream_prefill_echo: bool = true;
        /// What an answer without content becomes.
        empty_content: EmptyContent = EmptyContent::None;
        /// Which model name the client is told.
        response_model: ResponseModel = ResponseModel::Request;
        /// What an upstream 400 of a content filter becomes. Anthropic reports refusals as answers.
        content_filter: ContentFilter = ContentFilter::Refusal;
    }
}

word_enum! {
    /// See [`Profile::max_tokens_field`].
    MaxTokensField {
        /// `max_tokens`
        MaxTokens = "max_tokens",
        /// `max_completion_tokens`
        MaxCompletionTokens = "max_completion_tokens",
    }
    /// See [`Profile::thinking_budget_field`].
    ThinkingBudgetField {
        /// llama.cpp's
        ThinkingBudgetTokens = "thinking_budget_tokens",
        /// vLLM's, which refuses it unless it was started with `--reasoning-config`, or with a parser of reasoning
        /// that knows where thinking ends
        ThinkingTokenBudget = "thinking_token_budget",
    }
    /// Effort of reasoning, lowest first.
    Effort {
        /// `none`: no reasoning at all
        None = "none",
        /// `minimal`
        Minimal = "minimal",
        /// `low`
        Low = "low",
        /// `medium`
        Medium = "medium",
        /// `high`
        High = "high",
        /// `xhigh`
        Xhigh = "xhigh",
        /// `max`
        Max = "max",
    }
    /// See [`Profile::thinking_switch`].
    ThinkingSwitch {
        /// There is none.
        None = "none",
        /// `reasoning_effort: "none"` switches it off.
        EffortNone = "effort_none",
        /// `thinking: {"type": "enabled" | "disabled"}` (DeepSeek, Zhipu, Moonshot)
        ThinkingType = "thinking_type",
        /// `chat_template_kwargs: {"enable_thinking": bool}` (vLLM, SGLang, llama.cpp)
        ChatTemplateKwargs = "chat_template_kwargs",
        /// `chat_template_kwargs: {"thinking": bool}`, the word of the templates of DeepSeek, Kimi and Granite
        ChatTemplateThinking = "chat_template_thinking",
        /// `enable_thinking: bool` (Qwen's own service). Off too where it refuses to think: with a forced tool or
        /// a schema for the answer, and without a stream unless the client asks for it.
        EnableThinking = "enable_thinking",
    }
    /// See [`Profile::reasoning_history`].
    ReasoningHistory {
        /// Sent back in the field in which it came.
        Auto = "auto",
        /// Never sent back.
        Never = "never",
        /// As `auto`, and every assistant message with tool calls has the field, if need be empty; once the
        /// request has tools, every assistant message.
        RequiredOnToolCalls = "required_on_tool_calls",
        /// On every assistant message, with a space where there is no reasoning: Kimi and DeepSeek V4 Pro refuse an
        /// empty text.
        Required = "required",
    }
    /// See [`Profile::foreign_thinking`].
    ForeignThinking {
        /// It is not this model's reasoning: left out.
        Drop = "drop",
        /// Its text is sent as reasoning.
        Forward = "forward",
    }
    /// See [`Profile::reasoning_field`].
    ReasoningField {
        /// `reasoning_content`
        ReasoningContent = "reasoning_content",
        /// `reasoning`
        Reasoning = "reasoning",
    }
    /// See [`Profile::id_style`].
    IdStyle {
        /// Any text.
        Any = "any",
        /// Exactly nine letters and digits.
        Mistral9 = "mistral9",
        /// `functions.NAME:N`
        Kimi = "kimi",
    }
    /// See [`Profile::tool_content_parts`].
    ToolContentParts {
        /// Only strings.
        No = "no",
        /// Arrays of text parts.
        Text = "text",
        /// Arrays of text and image parts.
        Images = "images",
    }
    /// See [`Profile::image_parts`].
    ImageParts {
        /// Data URIs and URLs.
        All = "all",
        /// Data URIs only; a URL is rejected.
        Data = "data",
        /// None: an image becomes a text that says so.
        None = "none",
    }
    /// See [`Profile::mid_system`].
    MidSystem {
        /// At the end of the last tool result before it where nobody else speaks in that turn, since many templates
        /// forget what the model thought before a `user` message; else a text part of the user turn before it.
        AsUser = "as_user",
        /// A `system` message where it stands.
        InPlace = "in_place",
        /// A part of the system prompt.
        MergeToTop = "merge_to_top",
    }
    /// See [`Profile::system_role`].
    SystemRole {
        /// `system`
        System = "system",
        /// `developer`
        Developer = "developer",
        /// No such role: before the text of the first user message.
        User = "user",
    }
    /// See [`Profile::text_after_tool_results`].
    TextAfterToolResults {
        /// A `user` message after the `tool` messages.
        UserMessage = "user_message",
        /// At the end of the last `tool` message.
        MergeIntoLastTool = "merge_into_last_tool",
    }
    /// See [`Profile::user_id`].
    UserId {
        /// SHA-256 in `user`.
        User = "user",
        /// SHA-256 in `safety_identifier` (OpenAI).
        SafetyIdentifier = "safety_identifier",
        /// Left out.
        Drop = "drop",
    }
    /// See [`Profile::empty_assistant_content`].
    EmptyAssistantContent {
        /// `null`
        Null = "null",
        /// `""`
        Empty = "empty",
        /// No field.
        Absent = "absent",
    }
    /// See [`Profile::prefill`].
    Prefill {
        /// Sent as the last message.
        Send = "send",
        /// Sent as the last message with `prefix: true` (Mistral, DeepSeek's beta).
        Prefix = "prefix",
        /// Sent as the last message with `continue_final_message: true` and `add_generation_prompt: false`, without
        /// which vLLM ends that message and SGLang gives it to the user.
        Continue = "continue",
        /// Refused with the real API's message.
        Reject = "reject",
    }
    /// See [`Profile::server_history`].
    ServerHistory {
        /// As text of the assistant.
        Text = "text",
        /// Left out.
        Drop = "drop",
    }
    /// See [`Profile::tool_choice_any`].
    ToolChoiceAny {
        /// `"required"`
        Required = "required",
        /// `"any"`
        Any = "any",
        /// `"auto"`, with a warning.
        Auto = "auto",
    }
    /// See [`Profile::tool_choice_named`].
    ToolChoiceNamed {
        /// `{"type": "function", …}`
        Function = "function",
        /// Only that tool is sent, and the word for `any`.
        OnlyTool = "only_tool",
    }
    /// See [`Profile::tool_choice_none`].
    ToolChoiceNone {
        /// `"none"`
        None = "none",
        /// The tools are left out, unless the history has tool calls.
        OmitTools = "omit_tools",
    }
    /// See [`Profile::tool_schema`].
    ToolSchema {
        /// Copied byte for byte, unless an array has no `items`, a schema is `true` or `false` (sent as `{}`: Ollama
        /// and Fireworks refuse those), a pattern has what some engines refuse (`\p{…}`, `\0`, `(?=…)`, `(?!…)`,
        /// `(?<…)`, or a `[` inside of brackets), or it is of an old draft (`items` that is a list, a `required` or
        /// `exclusiveMinimum` that is a boolean). OpenAI or DeepSeek refuse each of them. Nor does OpenAI take `anyOf`,
        /// `oneOf`, `allOf` or `not` in the root: the properties of all branches are offered. In all dialects a `$ref`
        /// that leads nowhere is left out, and one to a definition further down leads to the root, where that is put.
        /// In all dialects, what no draft allows is mended at any depth: PHP's `"properties": []`, a property that is a
        /// word or a number (`{}`), types such as `STRING` (`string`) and `any` (left out), a `description` that is no
        /// text. A branch or a property that allows nothing (`{"not": {}}`) is left out.
        Full = "full",
        /// Without `$id`, `$schema`, `strict` and `additionalProperties: false`.
        Mistral = "mistral",
        /// The subset of Gemini's endpoint. Calls in the history that it did not sign say so
        /// (`skip_thought_signature_validator`). A tool's name that begins with a digit or `-` is prefixed.
        Gemini = "gemini",
        /// The flavour that Kimi insists on ("moonshot flavored json schema"). A tool's name that does not begin with
        /// a letter is prefixed. The schema of an output (`output_config.format`) is written in this flavour, too. A
        /// property that is called `required`, `anyOf`, `$ref`, `$defs` or `additionalProperties` is told in the
        /// description, under its own name. Several types beside other keywords become `anyOf`; values that are not of
        /// the type, and more than 1,000 values, are left out. Properties are at most 30 deep, 3,000 in all, and have
        /// 120,000 bytes: a schema with more is cut at 10 levels or less, and its definitions refer to none but
        /// themselves. What requires itself without end requires less.
        Kimi = "kimi",
        /// Without `pattern`, lengths and counts of 2000 and more, and references that are no path, for which it builds
        /// no grammar; with the properties of all branches where a choice stands beside `properties`, of which it
        /// would see the choice alone. What may be any value names all types, because `{}` is any object to it. The
        /// schema of an output (`output_config.format`) is written in the same way.
        LlamaCpp = "llama.cpp",
        /// As `full`, with definitions in place of `$ref`, `anyOf` in place of `oneOf` and `enum` in place of `const`,
        /// which it leaves out of what the model sees. Definitions take four times the bytes of a schema or 16 KiB, and
        /// are followed six deep.
        Ollama = "ollama",
    }
    /// See [`Profile::strict_schemas`].
    StrictSchemas {
        /// Those that OpenAI's strict mode takes. With any other, OpenAI refuses the request.
        Openai = "openai",
        /// All. vLLM and SGLang make a grammar of whatever a schema says.
        Any = "any",
    }
    /// See [`Profile::tokenizer`].
    Tokenizer {
        /// Not at all: counts are estimates.
        None = "none",
        /// `POST /tokenize` with the messages and tools (vLLM). Exact, images too.
        Messages = "messages",
        /// `POST /tokenize` with all that a chat's prompt is made of: messages, tools, `tool_choice` and effort
        /// (SGLang). Exact, as far as the text goes.
        Chat = "chat",
        /// `POST /tokenize` with all text as `prompt` (an SGLang that takes no messages there). The chat template is
        /// estimated.
        Prompt = "prompt",
        /// `POST /tokenize` with all text as `content` (llama.cpp before its `input_tokens`). The
        /// chat template is estimated.
        Content = "content",
        /// `POST BASE_PATH/chat/completions/input_tokens` with the messages and tools (llama.cpp).
        /// Exact, as far as the text goes.
        InputTokens = "input_tokens",
    }
    /// See [`Profile::web_search`].
    WebSearch {
        /// Left out with a warning, where there are other tools; else the request is rejected.
        Drop = "drop",
        /// Sent as `web_search_options`.
        WebSearchOptions = "web_search_options",
    }
    /// See [`Profile::response_format`].
    ResponseFormat {
        /// `json_schema`
        JsonSchema = "json_schema",
        /// `json_object`, with the schema in the system prompt.
        JsonObject = "json_object",
        /// Neither: rejected.
        None = "none",
    }
    /// See [`Profile::inference_geo`].
    InferenceGeo {
        /// The request is rejected.
        Reject = "reject",
        /// Left out with a warning.
        Ignore = "ignore",
    }
    /// See [`Profile::text_tool_calls`].
    TextToolCalls {
        /// Text stays text.
        Off = "off",
        /// `<tool_call>{"name": …, "arguments": …}</tool_call>`
        Hermes = "hermes",
        /// `<tool_call><function=NAME><parameter=KEY>…`, or in Seed's `<seed:tool_call>`
        QwenXml = "qwen_xml",
        /// `[TOOL_CALLS] [{"name": …, "arguments": …}]`
        Mistral = "mistral",
        /// `<|tool_calls_section_begin|>…`, since K3 `<|open|>tools<|sep|>…`
        Kimi = "kimi",
        /// `<tool_call>NAME<arg_key>KEY</arg_key><arg_value>…`
        Glm = "glm",
        /// `{"type": "function", "name": …, "parameters": …}`, or a list of such objects
        Llama = "llama",
        /// `<minimax:tool_call><invoke name="NAME"><parameter name="KEY">…`, or in Claude's `<function_calls>`; since
        /// M3 `]<]minimax[>[<tool_call>…`
        Minimax = "minimax",
        /// `<|channel|>commentary to=functions.NAME …<|message|>…<|call|>`, and what other channels say
        Harmony = "harmony",
        /// `<｜DSML｜tool_calls><｜DSML｜invoke name="NAME">…`, `<｜tool▁calls▁begin｜>…`
        Deepseek = "deepseek",
        /// `<|tool_call>call:NAME{KEY:<|"|>…<|"|>}<tool_call|>`
        Gemma = "gemma",
        /// `[NAME(KEY="…", KEY=5)]`, or in LFM2's `<|tool_call_start|>`, Llama's `<|python_start|>`, OLMo's
        /// `<function_calls>`
        Pythonic = "pythonic",
    }
    /// See [`Profile::empty_content`].
    EmptyContent {
        /// `content: []`
        None = "none",
        /// One empty text block.
        TextBlock = "text_block",
    }
    /// See [`Profile::response_model`].
    ResponseModel {
        /// The name that the client asked for.
        Request = "request",
        /// The name that the upstream reports.
        Upstream = "upstream",
    }
    /// See [`Profile::content_filter`].
    ContentFilter {
        /// An answer with `stop_reason: "refusal"`.
        Refusal = "refusal",
        /// An error 400.
        Error = "error",
    }
}

impl ThinkingSwitch {
    /// The object in which it is written, and as what.
    pub(crate) fn member(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::None | Self::EffortNone | Self::EnableThinking => None,
            Self::ThinkingType => Some(("thinking", "type")),
            Self::ChatTemplateKwargs => Some(("chat_template_kwargs", "enable_thinking")),
            Self::ChatTemplateThinking => Some(("chat_template_kwargs", "thinking")),
        }
    }
}

impl Profile {
    /// Checks what no single flag can tell.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let own = || Error::value("expected no member that Creole writes itself");
        if let Some(name) = self.extra_body.names().find(|name| is_among(OWN_MEMBERS, name)) {
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

    /// What `extra_body` adds to one of [`SHARED_MEMBERS`].
    pub(crate) fn added_to(&self, name: &str) -> Option<Members> {
        Members::read(&mut Reader::of(self.extra_body.get(name)?)).ok()
    }
}
