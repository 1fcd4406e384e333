//! Values of the flags of a profile, as the configuration writes them.

use crate::setting::word_enum;

word_enum! {
    /// Values of the flag [`super::Profile::max_tokens_field`].
    MaxTokensField {
        /// `max_tokens`
        MaxTokens = "max_tokens",
        /// `max_completion_tokens`
        MaxCompletionTokens = "max_completion_tokens",
    }
    /// Values of the flag [`super::Profile::thinking_budget`].
    ThinkingBudget {
        /// The thinking budget is never sent.
        None = "none",
        /// Request field of llama.cpp that limits the thinking.
        ThinkingBudgetTokens = "thinking_budget_tokens",
        /// Request field of vLLM, which refuses it unless vLLM was started with
        /// `--reasoning-config`, or with a parser of reasoning that knows where thinking ends.
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
    /// Values of the flag [`super::Profile::thinking_switch`].
    ThinkingSwitch {
        /// The upstream has no switch for thinking.
        None = "none",
        /// `reasoning_effort: "none"` switches thinking off.
        EffortNone = "effort_none",
        /// `thinking: {"type": "enabled" | "disabled"}` (DeepSeek, Zhipu, Moonshot)
        ThinkingType = "thinking_type",
        /// `chat_template_kwargs: {"enable_thinking": bool}` (vLLM, SGLang, llama.cpp)
        ChatTemplateKwargs = "chat_template_kwargs",
        /// `chat_template_kwargs: {"thinking": bool}`, the word of the templates of DeepSeek, Kimi
        /// and Granite
        ChatTemplateThinking = "chat_template_thinking",
        /// `enable_thinking: bool` (Qwen's own service). Thinking is off, too, where the service
        /// refuses to think: with a forced tool or a schema for the answer, and without a stream
        /// unless the client requests thinking.
        EnableThinking = "enable_thinking",
    }
    /// Values of the flag [`super::Profile::reasoning_history`].
    ReasoningHistory {
        /// Reasoning is sent back in the field in which it came.
        Auto = "auto",
        /// Reasoning is never sent back.
        Never = "never",
        /// Like `auto`, and every assistant message with tool calls has the field, if need be
        /// empty; once the request has tools, every assistant message has the field.
        RequiredOnToolCalls = "required_on_tool_calls",
        /// Every assistant message has the field, with a space where there is no reasoning: Kimi
        /// and DeepSeek V4 Pro refuse an empty text.
        Required = "required",
    }
    /// Values of the flag [`super::Profile::foreign_thinking`].
    ForeignThinking {
        /// Foreign thinking is left out, because it is not this model's reasoning.
        Drop = "drop",
        /// The text of foreign thinking is sent as reasoning.
        Forward = "forward",
    }
    /// Values of the flag [`super::Profile::reasoning_field`].
    ReasoningField {
        /// `reasoning_content`
        ReasoningContent = "reasoning_content",
        /// `reasoning`
        Reasoning = "reasoning",
    }
    /// Values of the flag [`super::Profile::id_style`].
    IdStyle {
        /// Call ids of any form.
        Any = "any",
        /// Call ids of exactly nine letters and digits.
        Mistral9 = "mistral9",
        /// `functions.NAME:N`
        Kimi = "kimi",
    }
    /// Values of the flag [`super::Profile::tool_content_parts`].
    ToolContentParts {
        /// Tool results are only strings.
        No = "no",
        /// Tool results may be arrays of text parts.
        Text = "text",
        /// Tool results may be arrays of text and image parts.
        Images = "images",
    }
    /// Values of the flag [`super::Profile::image_parts`].
    ImageParts {
        /// Images as data URIs and as URLs.
        All = "all",
        /// Images as data URIs only. A URL is rejected, unless `fetch_images` fetches it.
        Data = "data",
        /// No images: an image becomes a text that says that an image was left out, or with
        /// `vision` a description.
        None = "none",
    }
    /// Values of the flag [`super::Profile::cache_breakpoints`].
    CacheBreakpoints {
        /// Cache breakpoints are left out.
        None = "none",
        /// `prompt_cache_breakpoint` (newer OpenAI models)
        PromptCacheBreakpoint = "prompt_cache_breakpoint",
        /// `cache_control` itself, on texts and on the last tool that has one, in Chat Completions
        /// (OpenRouter, LiteLLM, and gateways for Claude and Gemini)
        CacheControl = "cache_control",
    }
    /// Values of the flag [`super::Profile::mid_system`].
    MidSystem {
        /// The system message goes to the end of the last tool result before it where nobody else
        /// speaks in that turn, since many templates forget what the model thought before a `user`
        /// message. Else it becomes a text part of the user turn before it.
        AsUser = "as_user",
        /// The system message stays at its place.
        InPlace = "in_place",
        /// The system message becomes a part of the system prompt.
        MergeToTop = "merge_to_top",
    }
    /// Values of the flag [`super::Profile::system_role`].
    SystemRole {
        /// `system`
        System = "system",
        /// `developer`
        Developer = "developer",
        /// The system prompt goes before the text of the first user message.
        User = "user",
    }
    /// Values of the flag [`super::Profile::text_after_tool_results`].
    TextAfterToolResults {
        /// The user's text becomes a `user` message after the `tool` messages.
        UserMessage = "user_message",
        /// The user's text goes to the end of the last `tool` message.
        MergeIntoLastTool = "merge_into_last_tool",
    }
    /// Values of the flag [`super::Profile::user_id`].
    UserId {
        /// SHA-256 of the user's id in `user`.
        User = "user",
        /// SHA-256 of the user's id in `safety_identifier` (OpenAI).
        SafetyIdentifier = "safety_identifier",
        /// The user's id is left out.
        Drop = "drop",
    }
    /// Values of the flag [`super::Profile::empty_assistant_content`].
    EmptyAssistantContent {
        /// `null`
        Null = "null",
        /// `""`
        Empty = "empty",
        /// The message has no field for content.
        Absent = "absent",
    }
    /// Values of the flag [`super::Profile::prefill`].
    Prefill {
        /// The prefill is sent as the last message.
        Send = "send",
        /// The prefill is sent as the last message with `prefix: true` (Mistral, DeepSeek's beta).
        Prefix = "prefix",
        /// The prefill is sent as the last message with `continue_final_message: true` and
        /// `add_generation_prompt: false`, without which vLLM ends that message and SGLang gives it
        /// to the user.
        Continue = "continue",
        /// The request is refused with the real API's message.
        Reject = "reject",
    }
    /// Values of the flag [`super::Profile::server_history`].
    ServerHistory {
        /// Server tool calls become text of the assistant.
        Text = "text",
        /// Server tool calls are left out.
        Drop = "drop",
    }
    /// Values of the flag [`super::Profile::tool_choice_any`].
    ToolChoiceAny {
        /// `"required"`
        Required = "required",
        /// `"any"`
        Any = "any",
        /// `"auto"`, with a warning.
        Auto = "auto",
    }
    /// Values of the flag [`super::Profile::tool_choice_named`].
    ToolChoiceNamed {
        /// `{"type": "function", …}`
        Function = "function",
        /// Only the forced tool is sent, with the value for `any`.
        OnlyTool = "only_tool",
    }
    /// Values of the flag [`super::Profile::tool_choice_none`].
    ToolChoiceNone {
        /// `"none"`
        None = "none",
        /// The tools are left out, unless the history has tool calls.
        OmitTools = "omit_tools",
    }
    /// Values of the flag [`super::Profile::tool_schema`].
    ToolSchema {
        /// The schema is copied byte for byte, unless an array has no `items`, a schema is `true`
        /// or `false` (sent as `{}`: Ollama and Fireworks refuse those), a pattern has what some
        /// engines refuse (`\p{…}`, `\0`, `(?=…)`, `(?!…)`, `(?<…)`, or a `[` inside of brackets),
        /// or the schema is of an old draft (`items` that is a list, a `required` or
        /// `exclusiveMinimum` that is a boolean). OpenAI or DeepSeek refuse each of them. Nor does
        /// OpenAI take `anyOf`, `oneOf`, `allOf` or `not` in the root: the properties of all
        /// branches are offered. In all dialects a `$ref` that leads nowhere is left out, and a
        /// `$ref` to a definition further down leads to the root, where that definition is put. In
        /// all dialects, what no draft allows is mended at any depth: PHP's `"properties": []`, a
        /// property that is a word or a number (`{}`), types such as `STRING` (`string`) and `any`
        /// (left out), a `description` that is no text. A branch or a property that allows nothing
        /// (`{"not": {}}`) is left out.
        Full = "full",
        /// The schema is sent without `$id`, `$schema`, `strict` and `additionalProperties: false`.
        Mistral = "mistral",
        /// The subset of JSON Schema that Gemini's endpoint takes. Calls in the history that Gemini
        /// did not sign are marked (`skip_thought_signature_validator`). A tool's name that begins
        /// with a digit or `-` is prefixed.
        Gemini = "gemini",
        /// The flavour that Kimi insists on ("moonshot flavored json schema"). A tool's name that
        /// does not begin with a letter is prefixed. The schema of an output
        /// (`output_config.format`) is written in this flavour, too. A property that is called
        /// `required`, `anyOf`, `$ref`, `$defs` or `additionalProperties` is described in the
        /// description, under its own name. Several types beside other keywords become `anyOf`;
        /// values that are not of the type, and more than 1,000 values, are left out. Properties
        /// are at most 30 deep, 3,000 in all, and have 120,000 bytes: a schema with more is cut at
        /// 10 levels or less, and its definitions refer to none but themselves. A schema that
        /// requires itself without end requires less.
        Kimi = "kimi",
        /// The schema is sent without `pattern`, lengths and counts of 2000 and more, and
        /// references that are no path, for which llama.cpp builds no grammar. Where a choice
        /// stands beside `properties`, the properties of all branches are sent, because llama.cpp
        /// would see the choice alone. A schema for any value names all types, because `{}` is any
        /// object to llama.cpp. The schema of an output (`output_config.format`) is written in the
        /// same way.
        LlamaCpp = "llama.cpp",
        /// Like `full`, with definitions in place of `$ref`, `anyOf` in place of `oneOf` and `enum`
        /// in place of `const`, because Ollama does not write `$ref`, `oneOf` and `const` for the
        /// model. Definitions take four times the bytes of a schema or 16 KiB, and are followed six
        /// deep.
        Ollama = "ollama",
    }
    /// Values of the flag [`super::Profile::strict_schemas`].
    StrictSchemas {
        /// Schemas that OpenAI's strict mode takes. With any other schema, OpenAI refuses the
        /// request.
        Openai = "openai",
        /// Schemas of any kind: vLLM and SGLang make a grammar of any schema.
        Any = "any",
    }
    /// Values of the flag [`super::Profile::tokenizer`].
    Tokenizer {
        /// No endpoint counts tokens: counts are estimates.
        None = "none",
        /// `POST /tokenize` with the messages and tools (vLLM). The count is exact, with images.
        Messages = "messages",
        /// `POST /tokenize` with all that a chat's prompt is made of: messages, tools,
        /// `tool_choice` and effort (SGLang). The count of texts is exact.
        Chat = "chat",
        /// `POST /tokenize` with all text as `prompt` (an SGLang whose `/tokenize` takes no
        /// messages). The chat template is estimated.
        Prompt = "prompt",
        /// `POST /tokenize` with all text as `content` (llama.cpp before it had `input_tokens`).
        /// The chat template is estimated.
        Content = "content",
        /// `POST BASE_PATH/chat/completions/input_tokens` with the messages and tools (llama.cpp).
        /// The count of texts is exact. Where the upstream speaks Responses, `POST
        /// BASE_PATH/responses/input_tokens` (OpenAI, llama.cpp).
        InputTokens = "input_tokens",
    }
    /// Values of the flag [`super::Profile::web_search`].
    WebSearch {
        /// The search tool is left out with a warning, where there are other tools; else the
        /// request is rejected.
        Drop = "drop",
        /// The search tool is sent as `web_search_options`.
        WebSearchOptions = "web_search_options",
        /// The search tool becomes the upstream's own search, where it speaks Responses.
        Responses = "responses",
    }
    /// Values of the flag [`super::Profile::mcp`].
    Mcp {
        /// The request is rejected.
        Reject = "reject",
        /// The upstream calls the MCP servers without approval, where it speaks Responses.
        Mcp = "mcp",
    }
    /// Values of the flag [`super::Profile::reasoning_summary`].
    ReasoningSummary {
        /// The most detailed summary that the model has.
        Auto = "auto",
        /// A short summary of the reasoning.
        Concise = "concise",
        /// A long summary of the reasoning.
        Detailed = "detailed",
        /// No summary is requested.
        None = "none",
    }
    /// Values of the flag [`super::Profile::store_field`].
    StoreField {
        /// `store: false`
        False = "false",
        /// The field `store` is left out.
        Omit = "omit",
    }
    /// Values of the flag [`super::Profile::tool_output_parts`].
    ToolOutputParts {
        /// Tool results can contain text, images and files.
        All = "all",
        /// Tool results can contain text and images.
        Images = "images",
        /// Tool results are strings.
        Text = "text",
    }
    /// Values of the flag [`super::Profile::system_field`].
    SystemField {
        /// `instructions`
        Instructions = "instructions",
        /// The first item of `input`, a message of the role `developer`, which can carry cache
        /// breakpoints.
        Developer = "developer",
    }
    /// Values of the flag [`super::Profile::length_status`].
    LengthStatus {
        /// The upstream reports the limit by the status `incomplete`.
        Reported = "reported",
        /// The upstream does not report the limit: an answer that has as many tokens as were
        /// allowed reached the limit.
        Inferred = "inferred",
    }
    /// Values of the flag [`super::Profile::response_format`].
    ResponseFormat {
        /// `json_schema`
        JsonSchema = "json_schema",
        /// `json_object`, with the schema in the system prompt.
        JsonObject = "json_object",
        /// The upstream understands no structured output: the request is rejected.
        None = "none",
    }
    /// Values of the flag [`super::Profile::inference_geo`].
    InferenceGeo {
        /// The request is rejected.
        Reject = "reject",
        /// The member `inference_geo` is left out with a warning.
        Ignore = "ignore",
    }
    /// Values of the flag [`super::Profile::text_tool_calls`].
    TextToolCalls {
        /// Calls in text stay text.
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
    /// Values of the flag [`super::Profile::reasoning_only`].
    ReasoningOnly {
        /// The answer stays as it is.
        Keep = "keep",
        /// The reasoning is repeated as text, for servers whose parser takes the answer for
        /// reasoning.
        Text = "text",
    }
    /// Values of the flag [`super::Profile::response_model`].
    ResponseModel {
        /// The answer has the model name of the client's request.
        Request = "request",
        /// The answer has the model name that the upstream reports.
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
