//! Tests of `mendable.rs`.

use super::*;
use crate::error::Rejection;
use crate::model::request_context::{Refusable, Tool};
use crate::upstream_error::parts;

fn in_clients_words(message: &str, context: &RequestContext) -> Option<String> {
    let reasons = parts::reasons(400, message, None, context);
    let message = message.to_owned();
    Rejection { status: 400, message, reasons, ..Rejection::default() }.in_clients_words()
}

fn told_of(message: &str) -> Option<String> {
    let mut context = RequestContext {
        refusable: Refusable { images: true, documents: true, ..Refusable::default() },
        ..RequestContext::default()
    };
    for (place, name) in [(Some(0), "Read"), (None, "member"), (Some(4), "mcp__t__bad")] {
        let outgoing = name.to_owned();
        context.tools.push(Tool { outgoing, place, ..Tool::default() });
    }
    in_clients_words(message, &context)
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
        // Errors that do not show which tool is meant, or that are about a member of a toolset,
        // whose schema is not the client's.
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
        // Errors of MiniMax, llama.cpp and grok2api.
        (
            "invalid params, chat content has invalid message role: system (2013)",
            "role 'system' is not supported here",
        ),
        (
            "Jinja Exception: System message must be at the beginning.",
            "role 'system' is not supported here",
        ),
        ("Messages API 不支持 role=\"system\"", "role 'system' is not supported here"),
        // Errors of SGLang.
        (
            "thinking.type: Input should be 'enabled' or 'disabled'",
            "thinking.type: 'adaptive' is not supported",
        ),
        // Errors of DeepSeek, llama.cpp and Ollama.
        (
            "messages[6].content: unknown variant `image`, expected one of `text`, `tool_use`",
            "Could not process image",
        ),
        ("Failed to load image or audio file", "Could not process image"),
        ("this model is missing data required for image input", "Could not process image"),
        // Errors of servers in Rust and in Python.
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
        // Errors that list allowed values, or that are about another part of the request.
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
    // Messages of Anthropic's real API.
    for message in [
        "This model does not support the effort parameter.",
        "messages.0.content.1.image.source.base64.data: Could not process image",
        "messages.0.content.0: this model does not support PDF input",
        "tools.0.custom.input_schema: JSON schema is invalid",
    ] {
        assert_eq!(told_of(message), None, "{message}");
    }
    let nothing = RequestContext::default();
    assert_eq!(in_clients_words("Failed to load image or audio file", &nothing), None);
    assert_eq!(in_clients_words("unknown variant `document`", &nothing), None);
}
