//! What differs between upstreams: one documented flag for each difference, and the presets.
//!
//! A flag exists only where two upstreams need opposite behaviour. Everything that can be read
//! tolerantly has no flag (see `stream`).

use serde::Deserialize;

/// Defines [`Profile`] and the type of `profile_overrides`, which has the same keys, each optional.
macro_rules! profile {
    ($($(#[doc = $doc:literal])+ $key:ident: $type:ty = $default:expr;)+) => {
        /// How one upstream wants its requests, and what its answers need.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Profile {
            $($(#[doc = $doc])+ pub $key: $type,)+
        }

        impl Default for Profile {
            /// For an unknown server: what most of them accept.
            fn default() -> Self {
                Self { $($key: $default,)+ }
            }
        }

        /// `profile_overrides` of an upstream: any keys of [`Profile`].
        #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Overrides {
            $($(#[doc = $doc])+ pub $key: Option<$type>,)+
        }

        impl Overrides {
            /// The profile with the keys that are set here replaced.
            #[must_use]
            pub fn apply(self, profile: Profile) -> Profile {
                Profile { $($key: self.$key.unwrap_or(profile.$key),)+ }
            }
        }
    };
}

profile! {
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
    /// Send `temperature` and `top_p`. OpenAI's reasoning models refuse them.
    sampling: bool = true;
    /// The values of `reasoning_effort` that the upstream takes, lowest first; empty: never sent.
    reasoning_effort_values: Vec<Effort> = Vec::new();
    /// How thinking is switched off and on, beside the effort.
    thinking_switch: ThinkingSwitch = ThinkingSwitch::None;
    /// Send `thinking_budget_tokens` for `budget_tokens` (llama.cpp).
    thinking_budget: bool = false;
    /// Whether reasoning in the history goes back to the upstream. DeepSeek refuses a history whose
    /// tool calls lack it; OpenAI has no field for it.
    reasoning_history: ReasoningHistory = ReasoningHistory::Auto;
    /// What happens to thinking blocks that another endpoint signed.
    foreign_thinking: ForeignThinking = ForeignThinking::Drop;
    /// The form of tool call ids. Mistral takes exactly nine letters and digits; Kimi's template
    /// reads the function's name out of `functions.NAME:N`.
    id_style: IdStyle = IdStyle::Any;
    /// Longest tool call id; 0 is no limit. OpenAI: 40.
    max_id_length: usize = 0;
    /// Most `stop` sequences; the rest is cut by Creole. 0 is no limit. OpenAI: 4.
    max_stop: usize = 0;
    /// Most tools in a request; more are refused here with a clear text. 0 is no limit. OpenAI: 128.
    max_tools: usize = 0;
    /// Longest tool name; longer ones are shortened with a hash. 0 is no limit. OpenAI: 64.
    max_tool_name: usize = 64;
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
    /// Merge neighbouring messages of one role (templates that insist on alternation).
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
    /// The content of an assistant message that has only tool calls.
    empty_assistant_content: EmptyAssistantContent = EmptyAssistantContent::Null;
    /// The content of a tool result that is empty.
    empty_tool_content: String = String::new();
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
    /// Whether `function.strict` and `json_schema.strict` are understood.
    strict_tools: bool = false;
    /// What becomes of Anthropic's web search tool.
    web_search: WebSearch = WebSearch::Drop;
    /// Which structured outputs are understood.
    response_format: ResponseFormat = ResponseFormat::JsonSchema;
    /// What becomes of `inference_geo`, a promise that cannot be kept.
    inference_geo: InferenceGeo = InferenceGeo::Reject;
    /// Leave out Claude Code's first system block, which changes with each request and would defeat
    /// prefix caches.
    strip_billing_header: bool = true;
    /// Turn `<think>…</think>` at the very start of the text into a thinking block.
    inline_think: bool = false;
    /// Turn tool calls that the model wrote as text into calls, in this one syntax.
    text_tool_calls: TextToolCalls = TextToolCalls::Off;
    /// Drop a reasoning delta equal to the one before it (some xAI models).
    dedupe_reasoning: bool = false;
    /// Remove the final assistant text of the request when the answer starts with it.
    strip_prefill_echo: bool = false;
    /// What an answer without content becomes.
    empty_content: EmptyContent = EmptyContent::None;
    /// Which model name the client is told.
    response_model: ResponseModel = ResponseModel::Request;
    /// What an upstream 400 of a content filter becomes. Anthropic reports refusals as answers.
    content_filter: ContentFilter = ContentFilter::Refusal;
}

/// Defines an enum of words as they stand in the configuration.
macro_rules! words {
    ($($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $word_doc:literal])+ $word:ident $(= $text:literal)?,)+ })+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
            #[serde(rename_all = "snake_case")]
            pub enum $name {
                $($(#[doc = $word_doc])+ $(#[serde(rename = $text)])? $word,)+
            }
        )+
    };
}

words! {
    /// See [`Profile::max_tokens_field`].
    MaxTokensField {
        /// `max_tokens`
        MaxTokens,
        /// `max_completion_tokens`
        MaxCompletionTokens,
    }
    /// Effort of reasoning, lowest first.
    Effort {
        /// `none`: no reasoning at all
        None,
        /// `minimal`
        Minimal,
        /// `low`
        Low,
        /// `medium`
        Medium,
        /// `high`
        High,
        /// `xhigh`
        Xhigh,
        /// `max`
        Max,
    }
    /// See [`Profile::thinking_switch`].
    ThinkingSwitch {
        /// There is none.
        None,
        /// `reasoning_effort: "none"` switches it off.
        EffortNone,
        /// `thinking: {"type": "enabled" | "disabled"}` (DeepSeek, Zhipu, Moonshot)
        ThinkingType,
        /// `chat_template_kwargs: {"enable_thinking": bool}` (vLLM, SGLang, llama.cpp)
        ChatTemplateKwargs,
        /// `enable_thinking: bool` (Qwen's own service)
        EnableThinking,
    }
    /// See [`Profile::reasoning_history`].
    ReasoningHistory {
        /// Sent back in the field in which it came.
        Auto,
        /// Never sent back.
        Never,
        /// As `auto`, and every assistant message with tool calls has the field, if need be empty.
        RequiredOnToolCalls,
    }
    /// See [`Profile::foreign_thinking`].
    ForeignThinking {
        /// It is not this model's reasoning: left out.
        Drop,
        /// Its text is sent as reasoning.
        Forward,
    }
    /// See [`Profile::id_style`].
    IdStyle {
        /// Any text.
        Any,
        /// Exactly nine letters and digits.
        Mistral9,
        /// `functions.NAME:N`
        Kimi,
    }
    /// See [`Profile::tool_content_parts`].
    ToolContentParts {
        /// Only strings.
        No,
        /// Arrays of text parts.
        Text,
        /// Arrays of text and image parts.
        Images,
    }
    /// See [`Profile::image_parts`].
    ImageParts {
        /// Data URIs and URLs.
        All,
        /// Data URIs only; a URL is rejected.
        Data,
        /// None: an image becomes a text that says so.
        None,
    }
    /// See [`Profile::mid_system`].
    MidSystem {
        /// A text part of the user turn before it.
        AsUser,
        /// A `system` message where it stands.
        InPlace,
        /// A part of the system prompt.
        MergeToTop,
    }
    /// See [`Profile::system_role`].
    SystemRole {
        /// `system`
        System,
        /// `developer`
        Developer,
        /// No such role: before the text of the first user message.
        User,
    }
    /// See [`Profile::text_after_tool_results`].
    TextAfterToolResults {
        /// A `user` message after the `tool` messages.
        UserMessage,
        /// At the end of the last `tool` message.
        MergeIntoLastTool,
    }
    /// See [`Profile::user_id`].
    UserId {
        /// SHA-256 in `user`.
        User,
        /// SHA-256 in `safety_identifier` (OpenAI).
        SafetyIdentifier,
        /// Left out.
        Drop,
    }
    /// See [`Profile::empty_assistant_content`].
    EmptyAssistantContent {
        /// `null`
        Null,
        /// `""`
        Empty,
        /// No field.
        Absent,
    }
    /// See [`Profile::prefill`].
    Prefill {
        /// Sent as the last message.
        Send,
        /// Refused with the real API's message.
        Reject,
    }
    /// See [`Profile::server_history`].
    ServerHistory {
        /// As text of the assistant.
        Text,
        /// Left out.
        Drop,
    }
    /// See [`Profile::tool_choice_any`].
    ToolChoiceAny {
        /// `"required"`
        Required,
        /// `"any"`
        Any,
        /// `"auto"`, with a warning.
        Auto,
    }
    /// See [`Profile::tool_choice_named`].
    ToolChoiceNamed {
        /// `{"type": "function", …}`
        Function,
        /// Only that tool is sent, and the word for `any`.
        OnlyTool,
    }
    /// See [`Profile::tool_choice_none`].
    ToolChoiceNone {
        /// `"none"`
        None,
        /// The tools are left out, unless the history has tool calls.
        OmitTools,
    }
    /// See [`Profile::tool_schema`].
    ToolSchema {
        /// Copied byte for byte.
        Full,
        /// Without `$id`, `$schema`, `strict` and `additionalProperties: false`.
        Mistral,
        /// The subset of Gemini's endpoint.
        Gemini,
    }
    /// See [`Profile::web_search`].
    WebSearch {
        /// Left out with a warning.
        Drop,
        /// Sent as `web_search_options`.
        WebSearchOptions,
    }
    /// See [`Profile::response_format`].
    ResponseFormat {
        /// `json_schema`
        JsonSchema,
        /// `json_object`, with the schema in the system prompt.
        JsonObject,
        /// Neither: rejected.
        None,
    }
    /// See [`Profile::inference_geo`].
    InferenceGeo {
        /// The request is rejected.
        Reject,
        /// Left out with a warning.
        Ignore,
    }
    /// See [`Profile::text_tool_calls`].
    TextToolCalls {
        /// Text stays text.
        Off,
        /// `<tool_call>{"name": …, "arguments": …}</tool_call>`
        Hermes,
        /// `<tool_call><function=NAME><parameter=KEY>…`
        QwenXml,
        /// `[TOOL_CALLS] [{"name": …, "arguments": …}]`
        Mistral,
        /// `<|tool_calls_section_begin|>…`
        Kimi,
        /// `<tool_call>NAME<arg_key>KEY</arg_key><arg_value>…`
        Glm,
        /// `{"type": "function", "name": …, "parameters": …}`
        Llama,
        /// `<minimax:tool_call><invoke name="NAME"><parameter name="KEY">…`
        Minimax,
        /// `<|channel|>commentary to=functions.NAME …<|message|>…<|call|>`
        Harmony,
    }
    /// See [`Profile::empty_content`].
    EmptyContent {
        /// `content: []`
        None,
        /// One empty text block.
        TextBlock,
    }
    /// See [`Profile::response_model`].
    ResponseModel {
        /// The name that the client asked for.
        Request,
        /// The name that the upstream reports.
        Upstream,
    }
    /// See [`Profile::content_filter`].
    ContentFilter {
        /// An answer with `stop_reason: "refusal"`.
        Refusal,
        /// An error 400.
        Error,
    }
}

impl Effort {
    /// The word on the wire, the same in both protocols.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// The names that `profile` takes in the configuration.
pub const PRESETS: [&str; 8] =
    ["default", "openai", "deepseek", "mistral", "vllm", "sglang", "llama.cpp", "ollama"];

impl Profile {
    /// The profile of a known kind of server, by its name in [`PRESETS`].
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        let default = Self::default();
        Some(match name {
            "default" => default,
            "openai" => Self {
                max_tokens_field: MaxTokensField::MaxCompletionTokens,
                reasoning_effort_values: vec![
                    Effort::None,
                    Effort::Minimal,
                    Effort::Low,
                    Effort::Medium,
                    Effort::High,
                    Effort::Xhigh,
                    Effort::Max,
                ],
                thinking_switch: ThinkingSwitch::EffortNone,
                reasoning_history: ReasoningHistory::Never,
                max_id_length: 40,
                max_stop: 4,
                max_tools: 128,
                tool_content_parts: ToolContentParts::Text,
                file_parts: true,
                mid_system: MidSystem::InPlace,
                prompt_cache_key: true,
                service_tier: true,
                strict_tools: true,
                user_id: UserId::SafetyIdentifier,
                ..default
            },
            "deepseek" => Self {
                reasoning_effort_values: vec![Effort::Low, Effort::High, Effort::Max],
                thinking_switch: ThinkingSwitch::ThinkingType,
                reasoning_history: ReasoningHistory::RequiredOnToolCalls,
                max_stop: 16,
                max_tools: 128,
                mid_system: MidSystem::InPlace,
                parallel_tool_calls: false,
                ..default
            },
            "mistral" => Self {
                stream_usage: false,
                reasoning_history: ReasoningHistory::Never,
                id_style: IdStyle::Mistral9,
                text_after_tool_results: TextAfterToolResults::MergeIntoLastTool,
                tool_choice_any: ToolChoiceAny::Any,
                tool_choice_none: ToolChoiceNone::OmitTools,
                tool_schema: ToolSchema::Mistral,
                ..default
            },
            "vllm" | "sglang" => Self {
                top_k: true,
                reasoning_effort_values: vec![Effort::Low, Effort::Medium, Effort::High],
                thinking_switch: ThinkingSwitch::ChatTemplateKwargs,
                max_tool_name: 0,
                ..default
            },
            "llama.cpp" => Self {
                top_k: true,
                thinking_switch: ThinkingSwitch::ChatTemplateKwargs,
                thinking_budget: true,
                max_tool_name: 0,
                tool_content_parts: ToolContentParts::Images,
                ..default
            },
            "ollama" => Self {
                top_k: true,
                reasoning_effort_values: vec![
                    Effort::None,
                    Effort::Low,
                    Effort::Medium,
                    Effort::High,
                ],
                thinking_switch: ThinkingSwitch::EffortNone,
                max_tool_name: 0,
                image_parts: ImageParts::Data,
                mid_system: MidSystem::InPlace,
                parallel_tool_calls: false,
                ..default
            },
            _ => return None,
        })
    }
}
