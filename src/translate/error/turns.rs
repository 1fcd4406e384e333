//! Errors that say whose turn it is: the user has to begin, and the roles have to alternate.

use super::without_quotes;
use crate::words::{self, phrases};

/// What must take turns, in lower case and without quotes.
const SPEAKERS: &str = phrases!["role", "message", "turn"];

/// How roles must stand to each other.
const ALTERNATION: &str = phrases![
    // Templates, and Anthropic behind routers
    "must alternate",
    "should alternate",
    "have to alternate",
    "roles in a row",
    // DeepSeek's first reasoner
    "does not support successive",
    "consecutive user",
    "consecutive assistant",
    "consecutive messages",
    // Gemini
    "alternate between user and model",
    // Perplexity
    "should be alternating",
    "must be alternating",
];

/// What templates say where nobody asks.
const NOBODY: &str = phrases![
    // Qwen3.5 and later
    "no user query found",
    "no user message",
    "without a user message",
    "without any user message",
    "missing user message",
    "lacks a user message",
];

/// What must be at the beginning.
const FIRST: &str = phrases![
    "start with",
    "starts with",
    "begin with",
    "begins with",
    "first message",
    "first non-system message",
    "first content",
    "first turn",
    "first role",
];

/// That there must be one at all.
const AT_ALL: &str = phrases![
    "at least one",
    "must contain",
    "must include",
    "must have",
    "should contain",
    "does not contain",
    "do not contain",
    "requires a",
    "expected a",
];

/// What such an error does not speak of: the end of a conversation, tools and the user's account.
const OTHERS: &str = phrases![
    "prefill",
    "last message",
    "last role",
    "end with",
    "ends with",
    "tool",
    "function",
    "user id",
    "user_id",
    "user_message",
];

/// Whether an upstream's error message says that messages of the user and of the assistant must take turns, or that
/// the user must begin.
#[must_use]
pub(crate) fn is_turns(message: &str) -> bool {
    let text = without_quotes(message);
    let has = |any: &str| words::has_one_of(&text, any);
    let alternates = has(SPEAKERS) && has(ALTERNATION);
    // A template tells its name before the word, a server quotes the role: `message with role user`.
    let of_user = words::places(&text, "user").any(|at| is_of_role(&text, at));
    alternates || has(NOBODY) || of_user && (has(FIRST) || has(AT_ALL)) && !has(OTHERS)
}

/// Whether `user` is a role here: beside the word for a message, a turn or a role.
fn is_of_role(text: &str, at: usize) -> bool {
    const BESIDE_BYTES: usize = 24;
    let (before, behind) = text.split_at_checked(at).unwrap_or_default();
    let start = before.len().saturating_sub(BESIDE_BYTES);
    let start = (start..=before.len()).find(|at| before.is_char_boundary(*at)).unwrap_or_default();
    let before = before.get(start..).unwrap_or_default();
    let behind = words::beginning(behind, BESIDE_BYTES);
    let beside = |text: &str| {
        words::has_one_of(text, phrases!["role", "message", "turn", "query", "content"])
    };
    beside(before) || beside(behind)
}

#[cfg(test)]
mod tests {
    use super::super::is_pairing;
    use super::*;

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
            (
                "as anybody would say it",
                "",
                "the first non-system message must be from the user role",
            ),
            (
                "as anybody would say it",
                "",
                "Conversation must begin with a message of role 'user'",
            ),
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
}
