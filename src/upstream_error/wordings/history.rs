//! Error phrases about the conversation's history: pairing of calls and results, order of roles,
//! empty contents, reasoning.

use super::wordings;

wordings! {
    /// Error phrases for calls and results that do not match. Vendors word this differently and
    /// change the words, so an error is recognized by a call or result together with a word for the
    /// required order of messages.
    PAIRING {
        Alone: "tool_call_id & not found" | "tool_use_id & not found" | "tool id & not found";
        Subject: "tool_call" | "tool call" | "tool_use" | "tool use" | "tooluse" | "tool_result" | "tool result";
        Subject: "toolresult" | "tool message" | "tool output" | "tool role" | "role tool" | "tool id";
        Subject: "function call" | "function response" | "function_call";
        Refusal: "ids were found without" | "unexpected tool_use_id found" => "Claude";
        Refusal: "must have a single result" | "ids must be unique" => "Claude";
        Refusal: "must be a response to a prece" | "must be followed by tool messages" => "OpenAI and its copies";
        Refusal: "no tool call found for" => "OpenAI and its copies";
        Refusal: "no tool output found for" | "duplicate value for" => "OpenAI and its copies";
        Refusal: "duplicate tool_call id" => "OpenAI and its copies";
        Refusal: "does not follow tool call" => "DeepSeek, Moonshot, MiniMax";
        Refusal: "call and result not match" => "DeepSeek, Moonshot, MiniMax";
        Refusal: "not the same number of function calls and responses" | "unexpected tool call id" => "Mistral";
        Refusal: "unexpected role user after role tool" | "unexpected role system after role tool" => "Mistral";
        Refusal: "unexpected role tool after role" => "Mistral";
        Refusal: "number of function response parts is equal to" | "missing a thought_signature" => "Gemini";
        Refusal: "call turn comes immediately after" | "response turn comes immediately after" => "Gemini";
        Refusal: "exceeds the number of tooluse blocks" | "expected toolresult blocks" => "Bedrock";
        Refusal: "no previous assistant message with a tool call" => "chat templates";
        Refusal: "no previous tool call" | "must follow an assistant message" | "must follow a tool call";
        Refusal: "must be preceded by" | "must come after" | "must immediately follow" | "without a matching";
        Refusal: "without a corresponding" | "no matching tool";
    }

    /// Error phrases that demand alternating roles, or a message of the user.
    TURNS {
        Alone: "no user query found" => "Qwen3.5", "https://github.com/vllm-project/vllm/issues/36432";
        Alone: "no user message" | "without a user message" | "without any user message" | "missing user message";
        Alone: "lacks a user message";
        Subject: "role" | "message" | "turn";
        Refusal: "must alternate"
            => "Claude, and templates", "https://github.com/modelcontextprotocol/quickstart-resources/issues/20";
        Refusal: "should alternate" | "have to alternate" | "roles in a row" => "templates";
        Refusal: "does not support successive" => "DeepSeek's first reasoner";
        Refusal: "consecutive user" | "consecutive assistant" | "consecutive messages";
        Refusal: "alternate between user and model" => "Gemini";
        Refusal: "should be alternating" | "must be alternating" => "Perplexity";
    }

    /// Error phrases that demand a first message of the user, or any message of the user, if the
    /// error mentions the role `user`.
    BEGINNINGS {
        Refusal: "start with" | "starts with" | "begin with" | "begins with" | "first message" | "first content";
        Refusal: "first non-system message" | "first turn" | "first role" | "at least one" | "must contain";
        Refusal: "must include" | "must have" | "should contain" | "does not contain" | "do not contain";
        Refusal: "requires a" | "expected a";
        // Errors about the end of a conversation, tools or the user's account.
        Other: "prefill" | "last message" | "last role" | "end with" | "ends with" | "tool" | "function" | "user id";
        Other: "user_id" | "user_message";
    }

    /// Error phrases that refuse `null` or missing content in an assistant message without text.
    NULL_CONTENT {
        Alone: "none is not an allowed value" => "older pydantic", "https://docs.pydantic.dev/1.10";
        Alone: "content: none is not" => "older pydantic", "https://docs.pydantic.dev/1.10";
        Alone: "content: input should be a valid string" => "FastAPI", "https://errors.pydantic.dev/2/v/string_type";
        Alone: ".str: input should be a valid string" => "FastAPI", "https://errors.pydantic.dev/2/v/string_type";
        Alone: "content: value must be a string" | "content : value must be a string"
            => "Groq", "https://console.groq.com/docs/api-reference";
        Alone: "invalid type: null, expected a string" | "invalid type: null, expected string"
            => "servers of Rust", "https://serde.rs";
        Alone: "content is a required property"
            => "older OpenAI", "https://github.com/OkGoDoIt/OpenAI-API-dotnet/issues/164";
        Alone: "value is not callable: null" => "templates", "https://github.com/janhq/jan/issues/6123";
        Alone: "(not nonetype)" | "concatenate nonetype" | "nonetype and str" | "str and nonetype" => "templates";
        Alone: "nonetype is not iterable" | "argument of type nonetype" => "templates";
        Alone: "content must be a string" | "content should be a string" | "content is null" | "content cannot be null";
        Alone: "content can not be null" | "content must not be null" | "content may not be null" | "content: null";
        Alone: "expected a string, got null" | "expected string, got null" | "got null instead" | "content is required";
        Alone: "content field is required" | "content: field required" | "missing field content";
    }

    /// Error phrases that refuse an empty text in an assistant message without text.
    EMPTY_CONTENT {
        Alone: "text content blocks must be non-empty" => "Claude", "https://docs.anthropic.com/en/api/messages";
        Alone: "role assistant must not be empty" => "Kimi", "https://platform.moonshot.ai/docs";
        Alone: "text field in the contentblock object" => "Bedrock";
        Alone: "content cannot be empty" => "DashScope";
        Alone: "content can not be empty" | "content must not be empty" | "content should not be empty";
        Alone: "content is empty" | "content must be non-empty" | "empty content";
        Alone: "content blocks must contain non-whitespace";
    }

    /// Error phrases which show that the error is not about the content of a message without text.
    NO_CONTENT_OF_CALLS {
        Alone: "tool_call_id" | "function.arguments" | "tools[" | "tools." | "image" | "role:user" | "reasoning_content";
    }

    /// Error phrases that refuse reasoning in the history. The server does not know the member, or
    /// Claude's thinking was changed or moved (by a gateway with several accounts, or because an
    /// earlier message changed).
    REASONING {
        // The word `reasoning` alone also names a parameter.
        Subject: "reasoning_content" | "reasoning_details" | "thinking_blocks" | "property reasoning " | "].reasoning";
        Subject: "assistant.reasoning";
        Subject: "signature in thinking block" | "redacted_thinking blocks in the latest" => "Claude";
        Refusal: "invalid signature" | "cannot be modified" => "Claude";
        Refusal: "not permitted" | "not allowed" | "not support" | "unsupported" | "unrecognized" | "unknown";
        // Phrases of servers that demand reasoning and did not get any.
        Other: "passed back" | "is missing" | "missing reasoning";
    }

    /// Error phrases that refuse the reasoning items of this conversation, which cannot be
    /// decrypted or are misplaced. Other conversations may have valid items.
    REASONING_UNREAD {
        Alone: "encrypted content & could not be verified" => "OpenAI", "https://github.com/openai/codex/issues/8119";
        Alone: "encrypted content could not be" | "encrypted_content & could not be" => "OpenAI";
        Alone: "without its required following item"
            => "OpenAI", "https://github.com/openai/openai-node/issues/1567";
        Alone: "without its required reasoning item" => "OpenAI", "https://github.com/openai/codex/issues/6375";
        Alone: "item with id rs_" | "item with id & not found"
            => "OpenAI", "https://github.com/vercel/ai/issues/7543";
    }
}
