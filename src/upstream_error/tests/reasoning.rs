//! Wordings of servers that take no reasoning.

use super::*;
use crate::upstream_error::wordings::REASONING;

fn is_reasoning(message: &str) -> bool {
    REASONING.says(&without_quotes(message))
}

#[test]
fn the_wordings_of_servers_that_refuse_reasoning_are_known() {
    for message in [
        // Errors of TensorRT-LLM, Databricks, and Mistral behind LiteLLM.
        "[{'type': 'extra_forbidden', 'loc': ('body', 'messages', 2, 'ChatCompletionAssistantMessageParam', 'reasoning_content'), 'msg': 'Extra inputs are not permitted', 'input': 'hm'}]",
        "body.messages.2.assistant.reasoning_content: Extra inputs are not permitted",
        "messages.1.reasoning_content: Extra inputs are not permitted",
        "messages.98.thinking_blocks: Extra inputs are not permitted",
        // Errors of Groq and Cerebras.
        "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning_content' is unsupported)]",
        "property 'reasoning' is unsupported, did you mean 'role'?",
        "messages[3].reasoning: reasoning is not supported with this model",
        "messages.2.assistant.reasoning_content: property 'messages.2.assistant.reasoning_content' is unsupported",
        // Errors of Kimi behind a router.
        "Error from provider: Extra inputs are not permitted, field: 'messages[8].reasoning', value: 'Now I need to read'",
        "unsafeParams: {unrecognizedProperty=reasoning_details} Request contained an unrecognized field",
        "Unrecognized request argument supplied: messages[1].reasoning_content",
        "Invalid JSON payload received. Unknown name \"reasoning_content\" at 'messages[1]': Cannot find field.",
        "Additional properties are not allowed ('reasoning_details' was unexpected)",
        // Errors of Claude behind LiteLLM or OpenRouter.
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.5.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.",
        "messages.3.content.40: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.",
    ] {
        assert!(is_reasoning(message), "{message}");
    }
}

#[test]
fn a_parameter_and_reasoning_that_is_missed_are_something_else() {
    for message in [
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "Missing `reasoning_content` field in the assistant message at message index 132.",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
        "Provider returned error: unknown error: The reasoning_content in the thinking mode must be passed back to the API.",
        "Unsupported value: 'reasoning_effort' does not support 'none' with this model.",
        "Unrecognized request argument supplied: reasoning_effort",
        "property 'reasoning_effort' is unsupported",
        "body.thinking: Extra inputs are not permitted",
        "\"qwen\" does not support thinking",
        "messages.2.content: Extra inputs are not permitted",
    ] {
        assert!(!is_reasoning(message), "{message}");
    }
}
