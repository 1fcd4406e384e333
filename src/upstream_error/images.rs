//! Errors that say that a model has no eyes, or cannot see one image.

use super::quoted::own_words;
use super::without_quotes;
use crate::model::request_context::RequestContext;
use crate::text::words::{self, phrases};

/// What is sent, in lower case and without quotes.
const SUBJECTS: &str = phrases![
    "input_image",
    "multimodal",
    "multi-modal",
    "for vision",
    "support vision",
    "vision input",
    "content.type",
    "supports text input",
    // Where an image makes a list of the content.
    "content must be a string",
    "content : value must be a string",
    // mlx_lm, SiliconFlow, DashScope and Qwen's templates, which say no more: see below.
    "only text content type",
    "not a vlm",
    "unexpected item type in content",
];

/// What is said of it.
const REFUSALS: &str = phrases![
    "not support",
    // Not the end of "contact support".
    "doesnt support",
    "unsupported",
    "only supported by",
    "text-only",
    "expected text",
    // Zhipu names what it takes: `messages.content.type 参数非法，取值范围 ['text']`
    "[text]",
    "unknown variant image",
    "at most 0 image",
    "is not a multimodal",
    "is not a multi-modal",
    "is not multimodal",
    "only supports text",
    "text only",
    "no endpoints found that support",
    "mmproj",
    "must be a string",
    "unknown content part type",
    "unexpected message content type",
    // Ollama
    "missing data required",
    // Mistral
    "not enabled for this model",
    "only text content type",
    "not a vlm",
    "unexpected item type in content",
];

/// Words about one image, another of which would be taken.
const OF_ONE: &str = phrases![
    "format",
    "mime",
    "media type",
    "media_type",
    "image type",
    "image url",
    "base64",
    "detail",
    "too large",
    "too many",
    "resolution",
    "pixel",
    "unsupported image.",
    "try another",
    "valid image",
    "image is valid",
];

/// Whether an upstream's error message says that its model takes no images.
pub(super) fn is_images(message: &str) -> bool {
    let text = without_quotes(message);
    let has = |any: &str| words::has_one_of(&text, any);
    (speaks_of_image(&text) || has(SUBJECTS)) && has(REFUSALS) && !has(OF_ONE)
}

/// Whether it speaks of an image, and not of `generate_image` or `gpt-image-1`.
fn speaks_of_image(text: &str) -> bool {
    words::places(text, "image").any(|at| {
        let before = at.checked_sub(1).and_then(|at| text.as_bytes().get(at));
        !before.is_some_and(|byte| words::is_name_byte(*byte))
    })
}

/// What is said of one image, or of so many, that does not name it, in lower case and without quotes.
const SPOILT: &str = phrases![
    // Gemini, which says beside it that a retry may help
    "process input image",
    // Python's library
    "identify image file",
    // Qwen's models
    "larger than factor",
    "aspect ratio must be",
    // DashScope
    "data-uri item",
    "multimodal file size",
    // Python's base64
    "incorrect padding",
];

/// How an image is called beside its own name.
const NAMES: &str = phrases![
    "input_image",
    "inline_data",
    "inlinedata",
    "data url",
    "data uri",
    "base64",
    " picture ",
    "pixel",
    "multimodal data",
    "media from url",
    "media type",
    "图片",
    "图像",
];

/// What is wrong with it: its size, its type, its bytes, its address, or how many there are.
const FAULTS: &str = phrases![
    "exceed",
    "too large",
    "too big",
    "too small",
    "too many",
    "larger than",
    "smaller than",
    "greater than",
    "less than",
    "at least",
    "at most",
    "minimum",
    "maximum",
    "limit",
    "restriction",
    "dimension",
    "resolution",
    "provided in one prompt",
    "only one",
    "unsupported",
    "not support",
    "doesnt support",
    "must ",
    "should be",
    "expected",
    "does not match",
    "appears to be",
    "not allowed",
    "invalid",
    "not valid",
    "valid image",
    "illegal",
    "corrupt",
    "truncat",
    "malformed",
    "broken",
    "empty",
    "missing",
    "decod",
    "cannot",
    "could not",
    "couldnt",
    "unable",
    "failed",
    "failure",
    "error",
    "exception",
    "unreachable",
    "not found",
    "forbidden",
    "timed out",
    "timeout",
    "placeholder",
    "格式",
    "解析",
    "无法",
    "失败",
    "过大",
    "超过",
    "超出",
    "不支持",
    "错误",
    "尺寸",
];

/// What stands before the values that would be taken.
const TAKEN: &str = phrases![
    "expected one of",
    "must be one of",
    "supported values",
    "allowed values",
    "input should be",
];

/// What such an error does not speak of: what a model shall draw, a filter, a limit of time, a server without memory, a
/// conversation that is too long, tools, and a model's name.
const OTHERS: &str = phrases![
    "image generation",
    "image_generation",
    "generate image",
    "generate an image",
    "image output",
    "output image",
    "image editing",
    "image model",
    "modalities",
    "safety",
    "moderation",
    "policy",
    "policies",
    "flagged",
    "violat",
    "inappropriate",
    "sensitive",
    "违规",
    "敏感",
    "rate limit",
    "per minute",
    "quota",
    "too many requests",
    "out of memory",
    "cuda",
    "overload",
    "temporarily",
    "try again later",
    "prompt is too long",
    "context length",
    "context limit",
    "context window",
    "max_tokens",
    "tool call",
    "tool_call",
    "tool_use",
    "tool choice",
    "tool_choice",
    "tools[",
    "tools.",
    "function.",
    "schema",
    "response_format",
    "signature",
    "api key",
    "application/pdf",
    "audio input",
    "video",
];

/// Whether an upstream's error message says that it does not take one of the images, or so many, in whatever words.
/// `parameter`: what the error names beside it.
pub(super) fn is_one_image(
    message: &str,
    parameter: Option<&str>,
    context: &RequestContext,
) -> bool {
    let text = own_words(message);
    let has = |any: &str| words::has_one_of(&text, any);
    if has(SPOILT) {
        return true;
    }
    if has(OTHERS) {
        return false;
    }
    if context.image_hosts.iter().any(|host| fails_at(&text, host)) {
        return true;
    }
    // What it names behind these would be taken.
    let end = words::each(TAKEN).filter_map(|start| words::find(&text, start)).min();
    let subject = text.get(..end.unwrap_or(text.len())).unwrap_or(&text);
    let named = parameter.is_some_and(|name| names_image(&name.to_ascii_lowercase()));
    (named || names_image(subject) || words::has_one_of(subject, NAMES)) && has(FAULTS)
}

/// What is said beside the host of an image that could not be fetched.
const FETCHING: &str = phrases![
    "download",
    "fetch",
    "retriev",
    "resolve",
    "connect",
    "lookup",
    "dial tcp",
    "no such host",
    "unknown host",
    "name or service",
    "timed out",
    "timeout",
    "time out",
    "forbidden",
    "unauthorized",
    "not found",
    "unreachable",
    "certificate",
    "tls",
    "ssl",
    "status code",
    "http error",
    "client error",
    "server error",
    "sending request",
    "max retries",
    "robots.txt",
    "image",
    "url=",
    "下载",
    "获取",
    "访问",
    "超时",
];

/// What is said before an address where there is more to read.
const FOR_MORE: &str = phrases![
    "see ",
    "visit ",
    "refer to",
    "report",
    "please",
    "documentation",
    "docs at",
    "more information",
    "more info",
    "more details",
    "learn more",
    "read more",
    "issue at",
    "issues at",
];

/// Before an address, so many bytes are of its clause; and so many around it are about it.
const CLAUSE_BYTES: usize = 48;
const AROUND_BYTES: usize = 240;

/// Whether a message says that something could not be fetched from a host. A link to a server's own page is none.
fn fails_at(text: &str, host: &str) -> bool {
    words::names(text, host).any(|at| {
        let (before, behind) = text.split_at_checked(at).unwrap_or_default();
        let clause = ending(before, CLAUSE_BYTES);
        let says = |part: &str| words::has_one_of(part, FETCHING);
        !words::has_one_of(clause, FOR_MORE)
            && (says(ending(before, AROUND_BYTES)) || says(words::beginning(behind, AROUND_BYTES)))
    })
}

/// At most the last `bytes` of a text.
fn ending(text: &str, bytes: usize) -> &str {
    let start = text.len().saturating_sub(bytes);
    (start..=text.len()).find_map(|start| text.get(start..)).unwrap_or_default()
}

/// Whether it names an image, and not `generate_image`, `gpt-image-1`, `image_gen` or `Imagen`.
fn names_image(text: &str) -> bool {
    const BEHIND: &str =
        phrases!["url", "_url", "data", "_data", "size", "_size", "_file", "config"];
    words::places(text, "image").any(|at| {
        let (before, behind) = text.split_at_checked(at).unwrap_or_default();
        let behind = behind.get("image".len()..).unwrap_or_default();
        let behind = behind.strip_prefix('s').unwrap_or(behind);
        let is_word = behind.bytes().next().is_none_or(|byte| !words::is_name_byte(byte));
        !before.bytes().last().is_some_and(words::is_name_byte)
            && (is_word || words::each(BEHIND).any(|word| behind.starts_with(word)))
    })
}

#[cfg(test)]
mod tests;
