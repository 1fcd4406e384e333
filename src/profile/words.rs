//! Values of the flags of a profile, as the configuration writes them.

use crate::setting::word_enum;

word_enum! {
    /// See [`super::Profile::max_tokens_field`].
    MaxTokensField {
        /// `max_tokens`
        MaxTokens = "max_tokens",
        /// `max_completion_tokens`
        MaxCompletionTokens = "max_completion_tokens",
    }
    /// See [`super::Profile::thinking_budget`].
    ThinkingBudget {
        /// Never sent.
        None = "none",
        /// llama.cpp's
        ThinkingBudgetTokens = "thinking_budget_tokens",
        /// vLLM's, which refuses it unless it was started with `--reasoning-config`, or with a
        /// parser of reasoning that knows where thinking ends
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
    /// See [`super::Profile::thinking_switch`].
    ThinkingSwitch {
        /// There is none.
        None = "none",
        /// `reasoning_effort: "none"` switches it off.
        EffortNone = "effort_none",
        /// `thinking: {"type": "enabled" | "disabled"}` (DeepSeek, Zhipu, Moonshot)
        ThinkingType = "thinking_type",
        /// `chat_template_kwargs: {"enable_thinking": bool}` (vLLM, SGLang, llama.cpp)
        ChatTemplateKwargs = "chat_template_kwargs",
        /// `chat_template_kwargs: {"thinking": bool}`, the word of the templates of DeepSeek, Kimi
        /// and Granite
        ChatTemplateThinking = "chat_template_thinking",
        /// `enable_thinking: bool` (Qwen's own service). Off too where it refuses to think: with a
        /// forced tool or a schema for the answer, and without a stream unless the client asks for
        /// it.
        EnableThinking = "enable_thinking",
    }
    /// See [`super::Profile::reasoning_history`].
    ReasoningHistory {
        /// Sent back in the field in which it came.
        Auto = "auto",
        /// Never sent back.
        Never = "never",
        /// As `auto`, and every assistant message with tool calls has the field, if need be empty;
        /// once the request has tools, every assistant message.
        RequiredOnToolCalls = "required_on_tool_calls",
        /// On every assistant message, with a space where there is no reasoning: Kimi and DeepSeek
        /// V4 Pro refuse an empty text.
        Required = "required",
    }
    /// See [`super::Profile::foreign_thinking`].
    ForeignThinking {
        /// It is not this model's reasoning: left out.
        Drop = "drop",
        /// Its text is sent as reasoning.
        Forward = "forward",
    }
    /// See [`super::Profile::reasoning_field`].
    ReasoningField {
        /// `reasoning_content`
        ReasoningContent = "reasoning_content",
        /// `reasoning`
        Reasoning = "reasoning",
    }
    /// See [`super::Profile::id_style`].
    IdStyle {
        /// Any text.
        Any = "any",
        /// Exactly nine letters and digits.
        Mistral9 = "mistral9",
        /// `functions.NAME:N`
        Kimi = "kimi",
    }
    /// See [`super::Profile::tool_content_parts`].
    ToolContentParts {
        /// Only strings.
        No = "no",
        /// Arrays of text parts.
        Text = "text",
        /// Arrays of text and image parts.
        Images = "images",
    }
    /// See [`super::Profile::image_parts`].
    ImageParts {
        /// Data URIs and URLs.
        All = "all",
        /// Data URIs only. A URL is rejected, unless `fetch_images` fetches it.
        Data = "data",
        /// None: an image becomes a text that says so, or with `vision` a description.
        None = "none",
    }
    /// See [`super::Profile::cache_breakpoints`].
    CacheBreakpoints {
        /// Nothing.
        None = "none",
        /// `prompt_cache_breakpoint` (newer OpenAI models)
        PromptCacheBreakpoint = "prompt_cache_breakpoint",
        /// `cache_control` itself, on texts and on the last tool that has one, in Chat Completions
        /// (OpenRouter, LiteLLM, and gateways for Claude and Gemini)
        CacheControl = "cache_control",
    }
    /// See [`super::Profile::mid_system`].
    MidSystem {
        /// At the end of the last tool result before it where nobody else speaks in that turn,
        /// since many templates forget what the model thought before a `user` message; else a text
        /// part of the user turn before it.
        AsUser = "as_user",
        /// A `system` message where it stands.
        InPlace = "in_place",
        /// A part of the system prompt.
        MergeToTop = "merge_to_top",
    }
    /// See [`super::Profile::system_role`].
    SystemRole {
        /// `system`
        System = "system",
        /// `developer`
        Developer = "developer",
        /// No such role: before the text of the first user message.
        User = "user",
    }
    /// See [`super::Profile::text_after_tool_results`].
    TextAfterToolResults {
        /// A `user` message after the `tool` messages.
        UserMessage = "user_message",
        /// At the end of the last `tool` message.
        MergeIntoLastTool = "merge_into_last_tool",
    }
    /// See [`super::Profile::user_id`].
    UserId {
        /// SHA-256 in `user`.
        User = "user",
        /// SHA-256 in `safety_identifier` (OpenAI).
        SafetyIdentifier = "safety_identifier",
        /// Left out.
        Drop = "drop",
    }
    /// See [`super::Profile::empty_assistant_content`].
    EmptyAssistantContent {
        /// `null`
        Null = "null",
        /// `""`
        Empty = "empty",
        /// No field.
        Absent = "absent",
    }
    /// See [`super::Profile::prefill`].
    Prefill {
        /// Sent as the last message.
        Send = "send",
        /// Sent as the last message with `prefix: true` (Mistral, DeepSeek's beta).
        Prefix = "prefix",
        /// Sent as the last message with `continue_final_message: true` and
        /// `add_generation_prompt: false`, without which vLLM ends that message and SGLang gives it
        /// to the user.
        Continue = "continue",
        /// Refused with the real API's message.
        Reject = "reject",
    }
    /// See [`super::Profile::server_history`].
    ServerHistory {
        /// As text of the assistant.
        Text = "text",
        /// Left out.
        Drop = "drop",
    }
    /// See [`super::Profile::tool_choice_any`].
    ToolChoiceAny {
        /// `"required"`
        Required = "required",
        /// `"any"`
        Any = "any",
        /// `"auto"`, with a warning.
        Auto = "auto",
    }
    /// See [`super::Profile::tool_choice_named`].
    ToolChoiceNamed {
        /// `{"type": "function", …}`
        Function = "function",
        /// Only that tool is sent, and the word for `any`.
        OnlyTool = "only_tool",
    }
    /// See [`super::Profile::tool_choice_none`].
    ToolChoiceNone {
        /// `"none"`
        None = "none",
        /// The tools are left out, unless the history has tool calls.
        OmitTools = "omit_tools",
    }
    /// See [`super::Profile::tool_schema`].
    ToolSchema {
        /// Copied byte for byte, unless an array has no `items`, a schema is `true` or `false`
        /// (sent as `{}`: Ollama and Fireworks refuse those), a pattern has what some engines
        /// refuse (`\p{…}`, `\0`, `(?=…)`, `(?!…)`, `(?<…)`, or a `[` inside of brackets), or it is
        /// of an old draft (`items` that is a list, a `required` or `exclusiveMinimum` that is a
        /// boolean). OpenAI or DeepSeek refuse each of them. Nor does OpenAI take `anyOf`, `oneOf`,
        /// `allOf` or `not` in the root: the properties of all branches are offered. In all
        /// dialects a `$ref` that leads nowhere is left out, and one to a definition further down
        /// leads to the root, where that is put. In all dialects, what no draft allows is mended at
        /// any depth: PHP's `"properties": []`, a property that is a word or a number (`{}`), types
        /// such as `STRING` (`string`) and `any` (left out), a `description` that is no text. A
        /// branch or a property that allows nothing (`{"not": {}}`) is left out.
        Full = "full",
        /// Without `$id`, `$schema`, `strict` and `additionalProperties: false`.
        Mistral = "mistral",
        /// The subset of Gemini's endpoint. Calls in the history that it did not sign say so
        /// (`skip_thought_signature_validator`). A tool's name that begins with a digit or `-` is
        /// prefixed.
        Gemini = "gemini",
        /// The flavour that Kimi insists on ("moonshot flavored json schema"). A tool's name that
        /// does not begin with a letter is prefixed. The schema of an output
        /// (`output_config.format`) is written in this flavour, too. A property that is called
        /// `required`, `anyOf`, `$ref`, `$defs` or `additionalProperties` is told in the
        /// description, under its own name. Several types beside other keywords become `anyOf`;
        /// values that are not of the type, and more than 1,000 values, are left out. Properties
        /// are at most 30 deep, 3,000 in all, and have 120,000 bytes: a schema with more is cut at
        /// 10 levels or less, and its definitions refer to none but themselves. What requires
        /// itself without end requires less.
        Kimi = "kimi",
        /// Without `pattern`, lengths and counts of 2000 and more, and references that are no path,
        /// for which it builds no grammar; with the properties of all branches where a choice
        /// stands beside `properties`, of which it would see the choice alone. What may be any
        /// value names all types, because `{}` is any object to it. The schema of an output
        /// (`output_config.format`) is written in the same way.
        LlamaCpp = "llama.cpp",
        /// As `full`, with definitions in place of `$ref`, `anyOf` in place of `oneOf` and `enum`
        /// in place of `const`, which it leaves out of what the model sees. Definitions take four
        /// times the bytes of a schema or 16 KiB, and are followed six deep.
        Ollama = "ollama",
    }
    /// See [`super::Profile::strict_schemas`].
    StrictSchemas {
        /// Those that OpenAI's strict mode takes. With any other, OpenAI refuses the request.
        Openai = "openai",
        /// All. vLLM and SGLang make a grammar of whatever a schema says.
        Any = "any",
    }
    /// See [`super::Profile::tokenizer`].
    Tokenizer {
        /// Not at all: counts are estimates.
        None = "none",
        /// `POST /tokenize` with the messages and tools (vLLM). Exact, images too.
        Messages = "messages",
        /// `POST /tokenize` with all that a chat's prompt is made of: messages, tools,
        /// `tool_choice` and effort (SGLang). Exact, as far as the text goes.
        Chat = "chat",
        /// `POST /tokenize` with all text as `prompt` (an SGLang that takes no messages there). The
        /// chat template is estimated.
        Prompt = "prompt",
        /// `POST /tokenize` with all text as `content` (llama.cpp before its `input_tokens`). The
        /// chat template is estimated.
        Content = "content",
        /// `POST BASE_PATH/chat/completions/input_tokens` with the messages and tools (llama.cpp).
        /// Exact, as far as the text goes. Where the upstream speaks Responses,
        /// `POST BASE_PATH/responses/input_tokens` (OpenAI, llama.cpp).
        InputTokens = "input_tokens",
    }
    /// See [`super::Profile::web_search`].
    WebSearch {
        /// Left out with a warning, where there are other tools; else the request is rejected.
        Drop = "drop",
        /// Sent as `web_search_options`.
        WebSearchOptions = "web_search_options",
        /// The upstream's own search, where it speaks Responses.
        Responses = "responses",
    }
    /// See [`super::Profile::mcp`].
    Mcp {
        /// The request is rejected.
        Reject = "reject",
        /// The upstream calls them without asking, where it speaks Responses.
        Mcp = "mcp",
    }
    /// See [`super::Profile::reasoning_summary`].
    ReasoningSummary {
        /// The most detailed that the model has.
        Auto = "auto",
        /// A short one.
        Concise = "concise",
        /// A long one.
        Detailed = "detailed",
        /// Never asked for.
        None = "none",
    }
    /// See [`super::Profile::store_field`].
    StoreField {
        /// `store: false`
        False = "false",
        /// Not at all.
        Omit = "omit",
    }
    /// See [`super::Profile::tool_output_parts`].
    ToolOutputParts {
        /// Images and files.
        All = "all",
        /// Images.
        Images = "images",
        /// Nothing: results are strings.
        Text = "text",
    }
    /// See [`super::Profile::system_field`].
    SystemField {
        /// `instructions`
        Instructions = "instructions",
        /// The first item of `input`, a message of the role `developer`, which can carry cache
        /// breakpoints.
        Developer = "developer",
    }
    /// See [`super::Profile::length_status`].
    LengthStatus {
        /// By the status `incomplete`.
        Reported = "reported",
        /// By nothing: an answer that has as many tokens as were allowed reached the limit.
        Inferred = "inferred",
    }
    /// See [`super::Profile::response_format`].
    ResponseFormat {
        /// `json_schema`
        JsonSchema = "json_schema",
        /// `json_object`, with the schema in the system prompt.
        JsonObject = "json_object",
        /// Neither: rejected.
        None = "none",
    }
    /// See [`super::Profile::inference_geo`].
    InferenceGeo {
        /// The request is rejected.
        Reject = "reject",
        /// Left out with a warning.
        Ignore = "ignore",
    }
    /// See [`super::Profile::text_tool_calls`].
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
        /// `<minimax:tool_call><invoke name="NAME"><parameter name="KEY">…`, or in Claude's
        /// `<function_calls>`; since M3 `]<]minimax[>[<tool_call>…`
        Minimax = "minimax",
        /// `<|channel|>commentary to=functions.NAME …<|message|>…<|call|>`, and what other channels
        /// say
        Harmony = "harmony",
        /// `<｜DSML｜tool_calls><｜DSML｜invoke name="NAME">…`, `<｜tool▁calls▁begin｜>…`
        Deepseek = "deepseek",
        /// `<|tool_call>call:NAME{KEY:<|"|>…<|"|>}<tool_call|>`
        Gemma = "gemma",
        /// `[NAME(KEY="…", KEY=5)]`, or in LFM2's `<|tool_call_start|>`, Llama's
        /// `<|python_start|>`, OLMo's `<function_calls>`
        Pythonic = "pythonic",
    }
    /// See [`super::Profile::reasoning_only`].
    ReasoningOnly {
        /// It stays as it is.
        Keep = "keep",
        /// The reasoning is said once more, as text. For servers whose parser takes the answer for
        /// reasoning.
        Text = "text",
    }
    /// See [`super::Profile::response_model`].
    ResponseModel {
        /// The name that the client asked for.
        Request = "request",
        /// The name that the upstream reports.
        Upstream = "upstream",
    }
}

impl ThinkingSwitch {
    /// Returns the object in which the switch is written, and the name of the switch's member.
    pub(crate) fn member(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::None | Self::EffortNone | Self::EnableThinking => None,
            Self::ThinkingType => Some(("thinking", "type")),
            Self::ChatTemplateKwargs => Some(("chat_template_kwargs", "enable_thinking")),
            Self::ChatTemplateThinking => Some(("chat_template_kwargs", "thinking")),
        }
    }
}
