//! Tests of `turns.rs`.

use crate::upstream_error::without_quotes;
use crate::upstream_error::wordings::PAIRING;

fn is_turns(message: &str) -> bool {
    super::is_turns(&without_quotes(message))
}

fn is_pairing(message: &str) -> bool {
    PAIRING.says(&without_quotes(message))
}

#[test]
fn the_wordings_of_servers_that_want_the_roles_to_alternate_are_known() {
    for message in [
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "Error: Jinja Exception: After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results.",
        "After the (optional) system message(s), user or tool message(s) should alternate with assistant message(s).",
        "deepseek-reasoner does not support successive user or assistant messages (messages[1] and messages[2] in your input). You should interleave the user/assistant messages in the message sequence.",
        "messages: roles must alternate between \"user\" and \"assistant\", but found multiple \"user\" roles in a row",
        "Please ensure that multiturn requests alternate between user and model.",
        // https://github.com/aws-samples/bedrock-access-gateway/issues/25
        "An error occurred (ValidationException) when calling the Converse operation: A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.",
        // https://github.com/modelcontextprotocol/quickstart-resources/issues/20
        "messages: roles must alternate between \"user\" and \"assistant\", but found multiple \"user\" roles in a row",
    ] {
        assert!(is_turns(message) && !is_pairing(message), "{message}");
    }
    for message in ["Unexpected role 'user' after role 'tool'", "an alternate model", ""] {
        assert!(!is_turns(message), "{message}");
    }
}

#[test]
fn the_wordings_of_servers_that_want_the_user_to_begin_are_known() {
    for (who, link, message) in [
        (
            "Qwen3.5 on llama.cpp",
            "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1586",
            "Error: Jinja Exception: No user query found in messages.",
        ),
        (
            "Qwen3.5 on vLLM",
            "https://github.com/vllm-project/vllm/issues/36432",
            "No user query found in messages.",
        ),
        (
            "Qwen3.5 on oMLX",
            "https://github.com/stephenschoettler/hermes-lcm/issues/355",
            "Chat template error: No user query found in messages.",
        ),
        (
            "Qwen3.6 on LM Studio",
            "https://github.com/anomalyco/opencode/issues/25168",
            "Error rendering prompt with jinja template: \"No user query found in messages.\"",
        ),
        (
            "Claude behind New API",
            "https://github.com/langbot-app/LangBot/issues/867",
            "messages: first message must use the \"user\" role (request id: 20240812230606897709001qmTtjTcX)",
        ),
        (
            "Claude",
            "https://github.com/tonyljx/TextWordExplain/issues/2",
            "messages: first message must use the \"user\" role",
        ),
        (
            "Bedrock",
            "https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference.html",
            "A conversation must start with a user message. Try again with a conversation that starts with a user message.",
        ),
        (
            "Gemini",
            "https://ai.google.dev/gemini-api/docs/troubleshooting",
            "Please ensure that multiturn requests begin with a user turn",
        ),
        (
            "as anybody would say it",
            "",
            "invalid request: messages must contain at least one message with role 'user'",
        ),
        ("as anybody would say it", "", "the first non-system message must be from the user role"),
        ("as anybody would say it", "", "Conversation must begin with a message of role 'user'"),
    ] {
        assert!(is_turns(message), "{who}: {message} {link}");
    }
}

#[test]
fn what_is_said_of_something_else_is_no_matter_of_turns() {
    for message in [
        "This model does not support assistant message prefill. The conversation must end with a user message.",
        "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
        "messages: at least one message is required",
        "The user must have at least one payment method",
        "user_id must contain only letters",
        "This user is not allowed to use this model: the plan must include gpt-5",
        "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
        "System message must be at the beginning.",
        "tools: at least one tool must be given by the user message",
        "[{'loc': ('body',), 'input': {'messages': [{'role': 'user', 'content': 'the first message must be a user message'}]}}]",
        "messages.0.content: at least one content block is required",
    ] {
        assert!(!is_turns(message), "{message}");
    }
}
