//! Tests of `content.rs`.

use crate::model::request_context::RequestContext;
use crate::profile::EmptyAssistantContent;
use crate::upstream_error::refused::Refused;
use crate::upstream_error::without_quotes;

fn refused_content(message: &str) -> Option<Refused> {
    let reason = super::refused_content(message, &without_quotes(message))?;
    Refused::of(&reason, message, &RequestContext::default())
}

#[test]
fn the_wordings_of_servers_that_want_words_are_known() {
    use EmptyAssistantContent::{Empty, Null};
    for (who, link, message, wanted) in [
        (
            "llama-cpp-python",
            "https://github.com/abetlen/llama-cpp-python",
            "[{'type': 'string_type', 'loc': ('body', 'messages', 1, 'typed-dict', 'content'), 'msg': 'Input should be a valid string', 'input': None}]",
            Empty,
        ),
        (
            "FastAPI",
            "https://errors.pydantic.dev/2/v/string_type",
            "body.messages.1.assistant.content: Input should be a valid string",
            Empty,
        ),
        (
            "older pydantic",
            "https://docs.pydantic.dev/1.10",
            "body.messages.1.content: none is not an allowed value",
            Empty,
        ),
        (
            "servers of Rust",
            "https://serde.rs",
            "messages[1]: invalid type: null, expected a string at line 1 column 90",
            Empty,
        ),
        (
            "Groq",
            "https://console.groq.com/docs/api-reference",
            "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1.content' : value must be a string)]",
            Empty,
        ),
        (
            "older OpenAI",
            "https://github.com/OkGoDoIt/OpenAI-API-dotnet/issues/164",
            "'content' is a required property - 'messages.1'",
            Empty,
        ),
        (
            "a template",
            "https://github.com/janhq/jan/issues/6123",
            "Value is not callable: null at row 49, column 79",
            Empty,
        ),
        ("a template", "", "can only concatenate str (not \"NoneType\") to str", Empty),
        ("a template", "", "unsupported operand type(s) for +: 'NoneType' and 'str'", Empty),
        ("a template", "", "argument of type 'NoneType' is not iterable", Empty),
        ("OpenAI", "", "Missing required parameter: 'messages[1].content'.", Empty),
        (
            "Claude",
            "https://docs.anthropic.com/en/api/messages",
            "messages: text content blocks must be non-empty",
            Null,
        ),
        (
            "Kimi",
            "https://platform.moonshot.ai/docs",
            "Invalid request: message at position 2 with role 'assistant' must not be empty",
            Null,
        ),
        (
            "Bedrock",
            "",
            "The text field in the ContentBlock object at messages.1.content.0 is blank. Add text to the text field, and try again.",
            Null,
        ),
        ("DashScope", "", "messages[1].content cannot be empty", Null),
    ] {
        assert_eq!(
            refused_content(message),
            Some(Refused::EmptyContent(wanted)),
            "{who}: {message} {link}"
        );
    }
    for message in [
        "tools.0.function.name: none is not an id",
        "messages[1].tool_call_id: content is required beside tool_call_id",
        "messages[0].content[1].image_url: invalid type: null, expected a string",
        "temperature: Input should be a valid number",
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "[{'loc': ('body',), 'input': {'messages': 'content is null'}}]",
        "stop: Input should be a valid string",
        "'NoneType' object has no attribute 'generate'",
        "Missing required parameter: 'messages[1].role'.",
        "Missing required parameter: 'messages'.",
        "'messages.0' : for 'role:user' the following must be satisfied[('messages.0.content' : value must be a string)]",
        "",
    ] {
        assert_eq!(refused_content(message), None, "{message}");
    }
}
