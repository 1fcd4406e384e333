//! What could be changed in a request that an upstream refuses: one row a change.
//!
//! A row knows where its subject stands in a request and by which words people name it, not how a server refuses it.

use super::refused::Refused;
use crate::dialect::profile::EmptyAssistantContent;
use crate::error::Parameter;

/// Loss of a client by a change, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Loss {
    /// No loss: the form of texts and ids, or what only the upstream's operator sees.
    Nothing,
    /// Loss of words: reasoning, or a schema that the model reads in place of the server.
    Words,
    /// Loss of an ability: an image, a document, a call that was to be forced.
    Ability,
}

/// Change of a request, and the evidence that asks for it.
pub(super) struct Row {
    pub(super) change: Refused,
    pub(super) loss: Loss,
    /// Paths of its subject in requests of any protocol; `*` is any position.
    pub(super) places: &'static [&'static str],
    /// Words of which one, or all that `&` joins, name the subject: in lower case, with spaces for signs but `_`.
    pub(super) names: &'static [&'static str],
    /// Words for what is wrong with the subject, one of which a name needs beside it; none where the name is enough.
    pub(super) lacks: &'static [&'static str],
    /// Whether the change makes a text of a list, for servers that want one.
    pub(super) makes_text: bool,
    /// Whether only a request without tools can be changed so.
    pub(super) is_without_tools: bool,
}

const ROW: Row = Row {
    change: Refused::JoinedTexts,
    loss: Loss::Nothing,
    places: &[],
    names: &[],
    lacks: &[],
    makes_text: false,
    is_without_tools: false,
};

/// A parameter that only a path can name: its name may be a word.
const fn parameter(parameter: Parameter, loss: Loss, places: &'static [&'static str]) -> Row {
    Row { change: Refused::Parameter(parameter), loss, places, ..ROW }
}

/// Changes of requests, the likelier first where two lose as much.
pub(super) static ROWS: [Row; 24] = [
    Row {
        change: Refused::Streaming,
        places: &["stream"],
        names: &["stream", "streaming", "non streaming", "流式"],
        lacks: &[
            "not support",
            "nt support",
            "unsupported",
            "not allowed",
            "not enabled",
            "cannot",
            "can not",
            "only",
            "must",
            "require",
            "needs",
            "expected true",
            "without",
            "不支持",
            "仅支持",
        ],
        ..ROW
    },
    Row { change: Refused::JoinedTexts, places: &["messages.*.content"], makes_text: true, ..ROW },
    Row {
        change: Refused::ResultsAsText,
        places: &["input.*.output", "messages.*.content"],
        names: &["tool & output", "function_call_output", "tool result", "tool message"],
        makes_text: true,
        ..ROW
    },
    Row {
        change: Refused::EmptyContent(EmptyAssistantContent::Empty),
        places: &["messages.*.content"],
        names: &["content & null", "content & none", "text is not present", "content & missing"],
        makes_text: true,
        ..ROW
    },
    Row {
        change: Refused::EmptyContent(EmptyAssistantContent::Null),
        places: &["messages.*.content"],
        names: &["content & empty", "content text & missing", "text & blank"],
        ..ROW
    },
    Row {
        change: Refused::Ids,
        places: &[
            "messages.*.tool_calls.*.id",
            "messages.*.tool_call_id",
            "input.*.call_id",
            "messages.*.content.*.tool_use_id",
        ],
        names: &["tool call id", "tool_call_id", "tool_calls id", "call_id", "tool_use_id"],
        lacks: &["too long", "length", "pattern", "a-z", "characters", "alphanumeric"],
        ..ROW
    },
    Row {
        change: Refused::ReasoningInEachTurn,
        names: &[
            "reasoning_content & passed back",
            "reasoning_content & missing",
            "reasoning_content & required",
            "reasoning content & passed back",
            "reasoning & must be passed",
        ],
        ..ROW
    },
    Row { change: Refused::StreamOptions, places: &["stream_options"], ..ROW },
    parameter(Parameter::PromptCacheKey, Loss::Nothing, &["prompt_cache_key"]),
    parameter(Parameter::User, Loss::Nothing, &["user", "metadata"]),
    parameter(Parameter::ServiceTier, Loss::Nothing, &["service_tier"]),
    parameter(Parameter::Phase, Loss::Nothing, &["input.*.phase"]),
    Row {
        change: Refused::StrictTools,
        loss: Loss::Words,
        places: &["tools.*.function.strict", "tools.*.strict"],
        names: &["strict"],
        lacks: LACKS,
        ..ROW
    },
    Row {
        change: Refused::Reasoning,
        loss: Loss::Words,
        places: &[
            "messages.*.reasoning_content",
            "messages.*.reasoning",
            "messages.*.reasoning_details",
            "messages.*.thinking",
            "messages.*.tool_calls.*.extra_content",
            "input.*.encrypted_content",
            "input.*.summary",
        ],
        names: &["thought signature", "thought_signature", "signature", "encrypted_content"],
        lacks: &[
            "corrupt",
            "invalid",
            "not valid",
            "missing",
            "mismatch",
            "verif",
            "decrypt",
            "not support",
        ],
        ..ROW
    },
    Row {
        change: Refused::Parameter(Parameter::Thinking),
        loss: Loss::Words,
        places: &["thinking", "reasoning", "reasoning_effort", "enable_thinking"],
        names: &["thinking", "思考"],
        lacks: LACKS,
        ..ROW
    },
    parameter(Parameter::Sampling, Loss::Words, &["temperature", "top_p"]),
    parameter(Parameter::TopK, Loss::Words, &["top_k"]),
    parameter(Parameter::Stop, Loss::Words, &["stop"]),
    parameter(Parameter::ParallelToolCalls, Loss::Words, &["parallel_tool_calls"]),
    Row {
        change: Refused::ResponseFormat,
        loss: Loss::Words,
        places: &["response_format", "text.format"],
        names: &["json schema", "grammar", "structured output"],
        ..ROW
    },
    Row {
        change: Refused::Calls(String::new()),
        loss: Loss::Words,
        names: &[
            "without & tools",
            "toolconfig",
            "tools & must be defined",
            "tools & must be specified",
            "tools & required",
        ],
        is_without_tools: true,
        ..ROW
    },
    Row {
        change: Refused::ForcedTool,
        loss: Loss::Ability,
        places: &["tool_choice"],
        names: &[
            "tool_choice",
            "tool choice",
            "toolchoice",
            "forces tool",
            "force tool",
            "forced tool",
        ],
        lacks: LACKS,
        ..ROW
    },
    Row {
        change: Refused::Images,
        loss: Loss::Ability,
        places: &[
            "messages.*.content.*.image_url",
            "input.*.content.*.image_url",
            "input.*.output.*.image_url",
        ],
        names: &["image", "vision", "multimodal", "multi modal", "图片", "图像", "视觉", "多模态"],
        lacks: LACKS,
        makes_text: true,
        ..ROW
    },
    Row {
        change: Refused::Documents,
        loss: Loss::Ability,
        places: &[
            "messages.*.content.*.file",
            "input.*.content.*.file_data",
            "input.*.output.*.file_data",
        ],
        names: &["pdf", "file part", "input_file"],
        lacks: LACKS,
        makes_text: true,
        ..ROW
    },
];

/// Words for what a model or a server cannot do, or may not.
const LACKS: &[&str] = &[
    "not support",
    // Without its quote.
    "nt support",
    "unsupported",
    "not enabled",
    "not be enabled",
    "not available",
    "not allowed",
    "not accept",
    "incompatible",
    "missing",
    "cannot",
    "only",
    "不支持",
    "未启用",
    "不能",
];

/// Words for a server that wants a text where it got a list, or another form.
pub(super) const WANTS_TEXT: &[&str] = &[
    "valid string",
    "array not in string",
    "be a string",
    "be of type string",
    "expected string",
    "expected a string",
    "expected str",
    "not a string",
    "of type string",
    "string_type",
    "invalid_union",
    "invalid type for",
    "type mismatch",
    "input text",
    "unmarshal array",
    "array into",
    "array instead",
    "list instead",
    "got array",
    "got list",
];

/// Words for a text that is too long.
pub(super) const TOO_LONG: &[&str] =
    &["too long", "maximum length", "max_length", "above_max_length", "过长"];

/// Words, also of codes, for what no change of a request mends: money, keys, rates, policy, regions, models, lengths.
pub(super) const VETOES: &[&str] = &[
    "quota",
    "overdue",
    "purchase",
    "arrear",
    "key is",
    "signaturedoesnotmatch",
    "pull image",
    "container",
    "forbidden",
    "balance",
    "billing",
    "credit",
    "budget",
    "spending",
    "subscription",
    "upgrade",
    "payment",
    "recharge",
    "usage limit",
    "rate limit",
    "ratelimit",
    "rate_limit",
    "too many requests",
    "per minute",
    "allowance",
    "premium",
    "api key",
    "api-key",
    "apikey",
    "api_key",
    "access token",
    "oauth",
    "authenticat",
    "authoriz",
    "permission",
    "have access",
    "denied",
    "credentials",
    "account",
    "policy",
    "policies",
    "safety",
    "flagged",
    "inappropriate",
    "moderation",
    "inspection",
    "filtered",
    "violat",
    "guardrail",
    "country",
    "region",
    "territory",
    "location",
    "data center",
    "overloaded",
    "high demand",
    "try again",
    "temporarily",
    "unavailable",
    "timed out",
    "timeout",
    "context length",
    "context window",
    "context limit",
    "maximum context",
    "token count",
    "length of the messages",
    "too large",
    "input length",
    "does not exist",
    "model identifier",
    "no endpoints",
    "degraded",
    "余额",
    "额度",
    "欠费",
    "限流",
    "频率",
    "速率",
    "上限",
    "敏感",
    "违规",
    "渠道",
    "稍后",
    "地区",
    "访问量",
];
