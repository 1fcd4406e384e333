//! How servers say that a request or an answer is too long: pieces of their messages, in lower case.

use crate::text::words::phrases;

/// Codes and types that mean it, whatever the text says.
pub(crate) const CODES: &str = phrases![
    "context_length_exceeded",
    "model_max_prompt_tokens_exceeded",
    "exceed_context_size_error",
    "model_context_window_exceeded",
    // GitHub Models
    "tokens_limit_reached",
    // Zhipu, Qianfan
    "1261",
    "tokens_too_long",
    // vMLX
    "prompt_too_long",
];

/// Words that mean it by themselves.
pub(super) const PHRASES: &str = phrases![
    // TensorRT-LLM
    "not exceed max_",
    "than max_seq_len",
    "greater than `max_seq_len`",
    // SiliconFlow
    "equal to max_seq_len",
    "splited_prompt_len",
    // LiteLLM
    "contextwindowexceedederror",
    // Google
    "input context is too long",
    "tokens, which exceeds the limit of",
    // Kimi
    "tokens in the request is too long",
    // Cohere
    "tokens exceeds the model's max of",
    "prompt token count",
    "`inputs` must have less than",
    "allowed token size",
    "maximum sequence length",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input too long",
    "too many tokens",
    "input token count",
    "input tokens exceed",
    "maximum number of tokens allowed",
    "maximum prompt length",
    "maximum model length",
    "maximum input length",
    "exceeds the max_model_len",
    "exceeded model token limit",
    "range of input length",
    "+ `max_new_tokens` must be",
    "reduce the length of the",
    "exceeds n_ctx",
    // Zhipu
    "more than max tokens allowed",
    "prompt exceeds the length limit",
    "请求的token数超过限制",
    "输入内容过长",
    "token数量超过限制",
    "请压缩上下文",
    "in the messages, ",
    // Ark
    "exceed max message tokens",
    // Cerebras
    "while limit is",
    "context_window_exceeded",
];

/// Words that mean it when something is too much of it.
pub(super) const WINDOWS: &str = phrases![
    "context length",
    "context window",
    "context size",
    "context limit",
    "上下文",
    // SambaNova, Tenstorrent. A stop sequence has a length, too.
    "supported sequence length",
    "input sequence length",
];
/// Phrases for a limit, if the error speaks of the conversation: names, ids and accounts have limits too.
pub(super) const LIMITS: &str = phrases![
    "token limit",
    "maximum allowed length",
    "max length",
    "input length",
    "input token",
    "tokens in the prompt",
    "超长",
    "长度超过限制",
];
pub(super) const CONVERSATIONS: &str = phrases!["prompt", "input", "context", "message", "输入"];
pub(super) const OTHERS: &str = phrases![
    "name",
    "_id",
    ".id",
    " id ",
    "description",
    "stop sequence",
    "schema",
    "budget",
    "名"
];
/// What is wrong where a window is named and the conversation is not too long for it.
pub(super) const OTHERS_OF_A_WINDOW: &str =
    phrases!["thinking budget exceeds", "length of the tool", "tool name"];
/// In front of what a model wrote, where a server could not parse it: llama.cpp, Ollama.
pub(super) const QUOTING: &str = phrases![" at pos ", "raw="];
/// Limits of time, which no shorter prompt mends.
pub(crate) const RATES: &str = phrases![
    "per minute",
    "rate limit",
    "daily",
    "monthly",
    "quota",
    "please wait",
    "每分钟",
    "每天",
    "限流",
    "频率",
];
pub(super) const TOO_MUCH: &str = phrases![
    "exceed",
    "too long",
    "too large",
    "too many",
    "longer than",
    "larger than",
    "greater than",
    "overflow",
    "maximum",
    // Not 超时, which is a timeout.
    "超过",
    "超出",
    "超长",
    "过长",
];
/// Phrases for too much, if the error names a window. Without one they may be about images.
pub(super) const TOO_MUCH_OF_A_WINDOW: &str = phrases![
    "of only",
    "length is only",
    "window is only",
    "size is only",
    "only supports",
    "but the configured",
    "tokens but the",
];

/// In front of the size of the window, with few words between; and behind it.
pub(super) const WINDOW_AFTER: &str = phrases![
    "not exceed max_",
    "max_seq_len",
    "context length",
    "context window",
    "available context size",
    "context size",
    "context limit",
    "maximum number of tokens allowed",
    "maximum model length",
    "maximum prompt length",
    "token limit",
    "configured limit",
    "must be <=",
    "cannot exceed",
    "maximum input length",
    "exceeds the limit of",
    "must have less than",
    "allowed token size",
    "maximum sequence length",
    "maximum allowed length",
    "max_model_len",
    "model's limit",
    "maximum allowed input length",
    "while limit is",
    "only supports up to",
    "最大上下文长度",
    "exceeds the maximum",
    "max_input_length",
    "total tokens limit",
    "n_ctx",
    "sequence length is just",
    "input sequence length",
];
pub(super) const WINDOW_BEFORE: &str =
    phrases!["maximum context length", "maximum", ". however, answering"];

pub(super) const PROMPT_BEFORE: &str = phrases![
    "in the messages",
    "in your prompt",
    "input tokens",
    "tokens from the input",
    "of text input",
    "`inputs` tokens",
    "tokens in the prompt",
];
pub(super) const PROMPT_AFTER: &str = phrases![
    "request (",
    "input token count",
    "prompt contains",
    "prompt has",
    "prompt (",
    "the input (",
    "prompt is",
    "prompt too long",
    "current length is",
    "input is too long",
    "request contains",
    "resulted in",
    "received",
    "first",
    "prompt token count of",
    "given",
    "input length",
    "prompt length",
    "prompt_tokens",
    "input tokens (",
    "number of input tokens",
    "total tokens",
];

pub(super) const ANSWER_BEFORE: &str = phrases![
    "in the completion",
    "for the completion",
    "in the output",
    "output tokens",
    "tokens for the completion",
    "completion tokens",
    "`max_new_tokens`",
];
pub(super) const ANSWER_AFTER: &str =
    phrases!["is too large", "max_tokens (", "max tokens (", "so generating"];

/// Both together.
pub(super) const TOTAL_AFTER: &str =
    phrases!["total of", "contains at least", "you requested", "requested"];

/// Phrases before a sum without its parts: the answer's part is `max_tokens`. Cloudflare, SambaNova, SiliconFlow
pub(super) const SUM_AFTER: &str = phrases![
    "input and maximum output tokens (",
    "answering your request will take",
    "max_total_tokens ("
];

/// What the limit of an answer is called.
pub(super) const ANSWER_LIMITS: &str = phrases![
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "maxoutputtokens",
    "maximum tokens you requested",
    "max tokens must be",
];
/// Snowflake's words. Others say it of the answer, behind other words.
pub(super) const SNOWFLAKE: &str = "max tokens of ";
/// Cohere's words, after "too many tokens", which it says of a prompt too.
pub(super) const COHERE: &str = "max tokens must be";

/// In front of the most tokens that an answer may have.
pub(super) const ANSWER_MOST_AFTER: &str = phrases![
    "`max_new_tokens` must be <=",
    "less than or equal to `",
    "less than or equal to",
    "max_model_len=",
    "a value <=",
    "model limit of",
];
/// Phrases before the most tokens of an answer, if the error names that limit: other numbers have bounds too.
pub(super) const ANSWER_MOST_BESIDE: &str = phrases!["at most", "[1,", "cannot exceed"];
/// What may stand behind the number then.
pub(super) const ANSWER_UNITS: &str =
    phrases!["completion tokens", "output tokens", "tokens in the completion"];
/// In how many bytes.
pub(super) const UNIT_BYTES: usize = 48;
/// In how many bytes before it that limit is named.
pub(super) const BESIDE_BYTES: usize = 96;
/// No model gives less. Images, tools and values of temperature have bounds below.
pub(super) const ANSWER_MOST_LEAST: u64 = 256;
/// Phrases before the most tokens of an answer, if the error speaks of nothing else.
pub(super) const ANSWER_MOST_ALONE: &str = phrases![
    "exceeds the maximum",
    "maximum is",
    "context window (",
    "context window of",
    "context length of",
    "context length (",
];
/// Google's mark of a bound that is itself too much.
pub(super) const ANSWER_BOUND_BEFORE: &str = "(exclusive)";

/// What an error speaks of beside the limit of an answer where it is not only about that.
pub(super) const PROMPTS: &str = phrases!["prompt", "input", "message"];
