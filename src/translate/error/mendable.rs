//! Errors of a request that Claude Code mends by itself and sends again, in the words by which it knows them. To all
//! clients they name what they have sent: the upstream names what Creole made of it.

use super::window::leading_number;
use super::{is_images, is_one_image, python, without_quotes};
use crate::request_context::RequestContext;
use crate::words::{self, phrases};

/// The words of the real API, in lower case: that of an upstream that speaks Messages may have them, and some are
/// Creole's by now.
const KNOWN: &str = phrases![
    "prompt is too long",
    "exceed context limit",
    "maximum allowed number of output tokens",
    "effort parameter",
    "could not process image",
    "does not support pdf input",
    ".custom.input_schema",
];

/// How the effort is called.
const EFFORTS: &str = phrases![
    "reasoning_effort",
    "reasoning.effort",
    "output_config.effort",
    "unknown field output_config"
];

/// What is said where `thinking` may not be of the type `adaptive`: by pydantic, and by servers of Rust.
const NOT_ADAPTIVE: &str =
    phrases!["enabled or disabled", "enabled | disabled", "unknown variant adaptive"];

/// A document that a server does not know as a block or as a part.
const NO_DOCUMENT: &str = phrases![
    "unknown variant document",
    "unknown variant file",
    "input: document",
    "input: file",
    "content type file",
    "part type: file",
    // DashScope. Tools have values like `file_search`.
    "value: file.",
];

/// How documents are called otherwise, and what is said of them.
const DOCUMENTS: &str = phrases!["pdf", "documents ", "document input"];
const REFUSALS: &str = phrases!["not support", "unsupported", "t support"];

/// Where servers number the tools that they got: Gemini, and the others.
const NUMBERED: &str = phrases!["function_declarations[", "tools[", "tools."];

/// What is said of a call or a message, and not of a tool.
const OF_CALLS: &str = phrases!["tool call", "tool_call", "tool_use_failed", "messages["];

/// The message for the client, if that of an error with status 400 is one of these.
pub(crate) fn in_clients_words(
    message: &str,
    parameter: Option<&str>,
    context: &RequestContext,
) -> Option<String> {
    let text = without_quotes(message);
    let has = |any: &str| words::has_one_of(&text, any);
    if has(KNOWN) {
        return None;
    }
    if has(EFFORTS) && !has("supported parameters") {
        return Some(format!("This model does not support the effort parameter. ({message})"));
    }
    if is_system(message) {
        return Some(format!("role 'system' is not supported here ({message})"));
    }
    if has("thinking") && has(NOT_ADAPTIVE) {
        return Some(format!("thinking.type: 'adaptive' is not supported ({message})"));
    }
    if let Some(place) = place_of_tool(message, &text, context) {
        return Some(format!("tools.{place}.custom.input_schema: {message}"));
    }
    // What is in the history comes again with each request, unless the client leaves it out.
    if context.has_documents && is_documents(message) {
        return Some(format!("This model does not support PDF input ({message})"));
    }
    if context.has_images && (is_images(message) || is_one_image(message, parameter, context)) {
        return Some(format!("Could not process image ({message})"));
    }
    python::complaint(message).map(|complaint| format!("{complaint} ({message})"))
}

/// Whether an error says that a model takes no PDFs.
#[must_use]
pub(crate) fn is_documents(message: &str) -> bool {
    let text = without_quotes(message);
    let has = |any: &str| words::has_one_of(&text, any);
    has(NO_DOCUMENT) || has(DOCUMENTS) && has(REFUSALS)
}

/// Whether an error says that a message of the system may not stand where one does, as templates and MiniMax do.
pub(super) fn is_system(message: &str) -> bool {
    let text = without_quotes(message);
    let has = |any: &str| words::has_one_of(&text, any);
    has(phrases!["system message must be at the beginning", "system message must be the first"])
        || has(phrases!["role: system", "role system", "role=system"])
            && has(phrases!["invalid", "unexpected", "not support", "不支持"])
}

/// The position, among the client's `tools`, of the one whose schema is refused.
fn place_of_tool(message: &str, text: &str, context: &RequestContext) -> Option<usize> {
    let is_of_schema =
        words::has_one_of(text, phrases!["schema", "function.parameters", "].parameters"]);
    if !is_of_schema || words::has_one_of(text, OF_CALLS) {
        return None;
    }
    let named = context.tools.iter().find(|tool| is_quoted(message, &tool.outgoing));
    let number = || words::each(NUMBERED).find_map(|word| position_behind(text, word));
    named.or_else(|| context.tools.iter().nth(number()?))?.place
}

fn is_quoted(message: &str, name: &str) -> bool {
    let is_quote = |byte: Option<&u8>| matches!(byte, Some(b'\'' | b'"' | b'`'));
    !name.is_empty()
        && words::places(message, name).any(|at| {
            let (before, behind) = message.split_at_checked(at).unwrap_or_default();
            is_quote(before.as_bytes().last()) && is_quote(behind.as_bytes().get(name.len()))
        })
}

fn position_behind(text: &str, word: &str) -> Option<usize> {
    let (_, rest) = words::split_once(text, word)?;
    usize::try_from(leading_number(rest)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_context::Tool;

    fn told_of(message: &str) -> Option<String> {
        let mut context =
            RequestContext { has_images: true, has_documents: true, ..RequestContext::default() };
        for (place, name) in [(Some(0), "Read"), (None, "member"), (Some(4), "mcp__t__bad")] {
            let outgoing = name.to_owned();
            context.tools.push(Tool { outgoing, place, ..Tool::default() });
        }
        in_clients_words(message, None, &context)
    }

    #[test]
    fn a_refused_schema_is_that_of_the_clients_tool() {
        for message in [
            "Invalid schema for function 'mcp__t__bad': In context=('properties', 'when'), 'weird-format' is not a valid 'format'.",
            "Tool \"mcp__t__bad\" has an invalid `parameters` schema",
            "Invalid 'tools[2].function.parameters': unknown keyword",
            "tools[2].input_schema: missing field `type`",
            "Invalid schema for function 'mcp__t__bad': In context=('properties', 'document'), 'image' is not supported",
            "invalid JSON schema for tool, tools.2.function.parameters: no",
            "* GenerateContentRequest.tools[0].function_declarations[2].parameters.properties[x].format: only 'enum' is supported",
        ] {
            let complaint = told_of(message);
            assert_eq!(complaint, Some(format!("tools.4.custom.input_schema: {message}")));
        }
        for message in [
            // Which tool it is, nobody knows; a member of a toolset has no schema of the client's.
            "tools.function.parameters is not a valid moonshot flavored json schema",
            "Invalid schema for function 'member': no",
            "Invalid 'tools[9].function.parameters': no",
            "Unknown parameter: 'mcp__t__bad'",
            "The schema is too deep, and mcp__t__bad is fine",
            "tools.0.custom.input_schema: JSON schema is invalid",
            "tool call validation failed: parameters for tool w did not match schema: errors: [missing properties: 'Read']",
            "messages[2].tool_calls[0].function.arguments do not fit the schema; tools[0] is fine",
            "Unknown parameter: 'Read'. Supported parameters: a, b",
        ] {
            assert_eq!(told_of(message), None, "{message}");
        }
    }

    #[test]
    fn what_is_refused_is_what_the_client_sent() {
        for (message, start) in [
            (
                "Unsupported value: 'reasoning_effort' does not support 'high' with this model.",
                "This model does not support the effort parameter.",
            ),
            (
                "output_config.effort: unknown variant `high`, expected one of `low`, `medium`",
                "This model does not support the effort parameter.",
            ),
            // MiniMax, llama.cpp, grok2api
            (
                "invalid params, chat content has invalid message role: system (2013)",
                "role 'system' is not supported here",
            ),
            (
                "Jinja Exception: System message must be at the beginning.",
                "role 'system' is not supported here",
            ),
            ("Messages API 不支持 role=\"system\"", "role 'system' is not supported here"),
            // SGLang
            (
                "thinking.type: Input should be 'enabled' or 'disabled'",
                "thinking.type: 'adaptive' is not supported",
            ),
            // DeepSeek, llama.cpp, Ollama
            (
                "messages[6].content: unknown variant `image`, expected one of `text`, `tool_use`",
                "Could not process image",
            ),
            ("Failed to load image or audio file", "Could not process image"),
            ("this model is missing data required for image input", "Could not process image"),
            // Servers of Rust and of Python
            (
                "messages[6].content: unknown variant `document`, expected one of `text`, `image`",
                "This model does not support PDF input",
            ),
            (
                "Input should be 'text', 'image' or 'tool_use', 'input': 'document'",
                "This model does not support PDF input",
            ),
            ("This model doesn't support PDFs.", "This model does not support PDF input"),
            (
                "Invalid content type: 'file'. Unsupported content type file",
                "This model does not support PDF input",
            ),
            (
                "Invalid value: file. Supported values are: 'text','image_url','video_url' and 'video'.",
                "This model does not support PDF input",
            ),
            ("[{'loc': ('body', 'x', 0), 'msg': 'no'}]", "x.0: no"),
        ] {
            assert_eq!(told_of(message), Some(format!("{start} ({message})")));
        }
        for message in [
            "[{'type': 'missing', 'loc': ('body',), 'msg': 'no', 'input': {'reasoning_effort': 'high'}}]",
            "Unknown parameter: 'reasoning'",
            "messages[1].role: unknown variant `system`, expected `user` or `assistant`",
            "Your system prompt must be shorter",
            "temperature: Input should be less than 2",
            "output_config.format: Extra inputs are not permitted",
            "Unsupported parameter: top_k. Supported parameters: seed, reasoning_effort",
            // What may be sent, and what is said of something else.
            "unknown variant `search_result`, expected one of `text`, `image`, `document`",
            "messages.0.content.1.document.source.base64.media_type: Input should be 'application/pdf'",
            "'top_p' is not supported with this model. See the documentation at x",
            "The tool 'generate_image' is not supported",
            "temperature is not supported for model gpt-image-1",
            "Invalid value: 'file_search'. Supported values are: 'function'.",
            "[{'loc': ('body',), 'input': {'messages': [{'role': 'system', 'content': 'unexpected image_url is not supported'}]}}]",
            "[{'loc': ('body',), 'input': [{'text': 'set reasoning_effort'}]}]",
        ] {
            assert_eq!(told_of(message), None, "{message}");
        }
        // The real API's.
        for message in [
            "This model does not support the effort parameter.",
            "messages.0.content.1.image.source.base64.data: Could not process image",
            "messages.0.content.0: this model does not support PDF input",
            "tools.0.custom.input_schema: JSON schema is invalid",
        ] {
            assert_eq!(told_of(message), None, "{message}");
        }
        let nothing = RequestContext::default();
        assert_eq!(in_clients_words("Failed to load image or audio file", None, &nothing), None);
        assert_eq!(in_clients_words("unknown variant `document`", None, &nothing), None);
    }
}
