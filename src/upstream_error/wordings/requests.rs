//! Error phrases about members of the request that clients repair themselves, or that force an
//! answer to fit a schema.

use super::wordings;

wordings! {
    /// Error phrases that refuse `response_format`.
    RESPONSE_FORMAT {
        Subject: "response_format" | "response format" | "json_schema" | "json mode" | "structured output" | "json_object";
        Subject: "response mime type" => "Gemini";
        Refusal: "not support" | "unsupported" | "supported values are" | "unavailable" | "not enabled";
        Refusal: "enabled only" | "cannot be combined" | "input should be text" | "must be json_schema or text";
        Refusal: "not permitted" | "unrecognized" | "unknown" | "unexpected keyword argument";
        // Errors about the client's schema: another schema would be accepted.
        Other: "invalid schema" | "invalid json schema" | "in context=" | "unsupported keyword" | "json_schema.schema";
        Other: "json_schema, schema" | "moonshot flavored";
    }

    /// Error phrases of Anthropic's API, which an upstream that speaks Messages may use.
    CLIENTS_WORDS {
        Alone: "prompt is too long" | "exceed context limit" | "maximum allowed number of output tokens" => "Claude";
        Alone: "effort parameter" | "could not process image" | "does not support pdf input" => "Claude";
        Alone: ".custom.input_schema" => "Claude";
    }

    /// Names of the effort in error messages, whatever the complaint.
    EFFORT_NAMED {
        Alone: "reasoning_effort" | "reasoning.effort" | "output_config.effort" | "unknown field output_config";
        Other: "supported parameters";
    }

    /// Error phrases that refuse the value `adaptive` of `thinking.type`.
    ADAPTIVE_THINKING {
        Alone: "thinking & enabled or disabled" => "pydantic";
        Alone: "thinking & enabled | disabled" | "thinking & unknown variant adaptive" => "servers of Rust";
    }

    /// Error phrases that refuse a system message at its position.
    SYSTEM_ROLE {
        Alone: "system message must be at the beginning" | "system message must be the first" => "templates";
        Subject: "role: system" | "role system" | "role=system";
        Refusal: "invalid" | "不支持";
    }

    /// Error phrases that refuse the schema of a tool.
    TOOL_SCHEMA {
        Alone: "schema" | "function.parameters" | "].parameters";
        // Errors about a call or a message, and not about a tool.
        Other: "tool call" | "tool_call" | "tool_use_failed" | "messages[";
    }

    /// Phrases before the index of a tool, among the tools of the upstream's request.
    NUMBERED_TOOLS {
        After: "function_declarations[" => "Gemini";
        After: "tools[" | "tools.";
    }

    /// Names of `stream_options` in errors that refuse it, always or in a stream.
    STREAM_OPTIONS {
        Alone: "stream_options" | "include_usage";
    }

    /// Error phrases that refuse stop sequences as too many or too long. The word `stop` counts
    /// only at the beginning.
    STOP_SEQUENCES {
        Subject: "stop sequence" | "stop_sequence" | "stopsequence" | "stop string" | "stop word" | "stop token";
        Subject: "stop parameter" | "parameter stop" | "invalid stop" | "- stop" | "$.stop";
        Refusal: "too long";
    }

    /// Phrases on a web page of a server or proxy that is down temporarily.
    DOWN {
        Alone: "bad gateway" | "service unavailable" | "gateway timeout" | "gateway time-out" => "nginx, Apache";
        Alone: "internal server error" | "temporarily unavailable" | "temporarily down" => "nginx, Apache";
        Alone: "web server is down" | "origin is unreachable" => "Cloudflare";
        Alone: "is starting" | "starting up" | "still starting" | "is loading" => "hosts that wake a server";
    }

    /// Error phrases of refusals that depend on more than model and parameter, such as another
    /// parameter, credit or a single block.
    PASSING {
        Alone: "both" | "when ";
        Alone: "afford" => "OpenRouter";
        Alone: "signature" | "modified" => "Claude";
    }
}
