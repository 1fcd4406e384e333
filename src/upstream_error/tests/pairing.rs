//! Wordings about calls and results that do not fit.

use super::*;
use crate::upstream_error::wordings::PAIRING;

fn is_pairing(message: &str) -> bool {
    PAIRING.says(&without_quotes(message))
}

#[test]
fn the_wordings_of_many_vendors_are_known() {
    for message in [
        "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
        "messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t",
        "messages.3.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: t",
        "messages.1.content.1: `tool_use` ids must be unique",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_1",
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        "Invalid parameter: 'tool_call_id' of 'call_1' not found in 'tool_calls' of previous message.",
        "An assistant message with \\\"tool_calls\\\" must be followed by tool messages responding to each \"tool_call_id\". (insufficient tool messages following tool_calls message)",
        "Invalid request: tool_call_id  is not found",
        "invalid params, tool call result does not follow tool call (2013)",
        "invalid params, tool result's tool id(call_1) not found (2013)",
        "Not the same number of function calls and responses",
        "Unexpected role 'user' after role 'tool'",
        "Unexpected role 'system' after role 'tool'",
        "Unexpected role 'tool' after role 'user'",
        "Unexpected tool call id call_1 in tool results",
        "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
        "Please ensure that function response turn comes immediately after a function call turn.",
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly.",
        "The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks of previous turn.",
        "Expected toolResult blocks at messages.4.content for the following Ids: tooluse_1",
        "No tool output found for function call call_1.",
        "No tool call found for function call output with call_id call_1.",
        "Message has tool role, but there was no previous assistant message with a tool call!",
        "Message has tool role, but there was no previous tool call",
        "tool messages must follow an assistant message with tool calls",
        "role tool must follow a tool call",
        "A tool_result block must be preceded by its tool_use",
        "tool results must come after the calls",
        "tool message must immediately follow the assistant message",
        "messages[3]: tool result without a matching call",
        "tool message without a corresponding call: call_1",
        "found no matching tool call for the result call_1",
        "Invalid parameter: Duplicate value for 'tool_call_id' of 'call_1', in messages[7] and messages[8]",
        "invalid params, duplicate tool_call id: call_1 (2013)",
        "invalid params, tool call and result not match (2013)",
    ] {
        assert!(is_pairing(message), "{message}");
    }
}

#[test]
fn other_errors_are_not_about_pairing() {
    for message in [
        "",
        "tools.0.function.name: string does not match pattern",
        "Invalid schema for function 'w': object schema missing properties",
        "tool_choice: Tool 'w' not found in provided tools",
        "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40",
        "The model m does not support tool calls",
        "auto tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
        "prompt is too long: 10 tokens > 5 maximum",
        "Failed to parse tool call arguments as JSON",
        "File tool_x not found",
    ] {
        assert!(!is_pairing(message), "{message}");
    }
}
