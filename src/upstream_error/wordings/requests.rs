//! Wordings of refused members that clients mend, or that hold an answer to a schema.

use super::wordings;

wordings! {
    /// Refusals of `response_format`.
    RESPONSE_FORMAT {
        Subject: "response_format" | "response format" | "json_schema" | "json mode" | "structured output" | "json_object";
        Subject: "response mime type" => "Gemini";
        Refusal: "not support" | "unsupported" | "supported values are" | "unavailable" | "not enabled";
        Refusal: "enabled only" | "cannot be combined" | "input should be text" | "must be json_schema or text";
        Refusal: "not permitted" | "unrecognized" | "unknown" | "unexpected keyword argument";
        // The client's schema, another of which would be taken.
        Other: "invalid schema" | "invalid json schema" | "in context=" | "unsupported keyword" | "json_schema.schema";
        Other: "json_schema, schema" | "moonshot flavored";
    }

    /// Wordings of the real API: an upstream that speaks Messages may have them.
    CLIENTS_WORDS {
        Alone: "prompt is too long" | "exceed context limit" | "maximum allowed number of output tokens" => "Claude";
        Alone: "effort parameter" | "could not process image" | "does not support pdf input" => "Claude";
        Alone: ".custom.input_schema" => "Claude";
    }

    /// Names of the effort, whatever is wrong with it.
    EFFORT_NAMED {
        Alone: "reasoning_effort" | "reasoning.effort" | "output_config.effort" | "unknown field output_config";
        Other: "supported parameters";
    }

    /// Refusals of `thinking` of the type `adaptive`.
    ADAPTIVE_THINKING {
        Alone: "thinking & enabled or disabled" => "pydantic";
        Alone: "thinking & enabled | disabled" | "thinking & unknown variant adaptive" => "servers of Rust";
    }

    /// Refusals of a message of the system at its place.
    SYSTEM_ROLE {
        Alone: "system message must be at the beginning" | "system message must be the first" => "templates";
        Subject: "role: system" | "role system" | "role=system";
        Refusal: "invalid" | "不支持";
    }

    /// Refusals of a tool's schema.
    TOOL_SCHEMA {
        Alone: "schema" | "function.parameters" | "].parameters";
        // A call or a message, and not a tool.
        Other: "tool call" | "tool_call" | "tool_use_failed" | "messages[";
    }

    /// Words before the number of a tool, among those that the server got.
    NUMBERED_TOOLS {
        After: "function_declarations[" => "Gemini";
        After: "tools[" | "tools.";
    }

    /// Names of `stream_options`, which is not known, or not taken in a stream.
    STREAM_OPTIONS {
        Alone: "stream_options" | "include_usage";
    }

    /// Refusals of stop sequences that are too many, or too long. `stop` alone counts at the
    /// beginning only.
    STOP_SEQUENCES {
        Subject: "stop sequence" | "stop_sequence" | "stopsequence" | "stop string" | "stop word" | "stop token";
        Subject: "stop parameter" | "parameter stop" | "invalid stop" | "- stop" | "$.stop";
        Refusal: "too long";
    }

    /// Words on a page of a server, or of the proxy before it, that will answer later.
    DOWN {
        Alone: "bad gateway" | "service unavailable" | "gateway timeout" | "gateway time-out" => "nginx, Apache";
        Alone: "internal server error" | "temporarily unavailable" | "temporarily down" => "nginx, Apache";
        Alone: "web server is down" | "origin is unreachable" => "Cloudflare";
        Alone: "is starting" | "starting up" | "still starting" | "is loading" => "hosts that wake a server";
    }

    /// Words of refusals that depend on more than the model and the parameter: another parameter,
    /// credit, one block.
    PASSING {
        Alone: "both" | "when ";
        Alone: "afford" => "OpenRouter";
        Alone: "signature" | "modified" => "Claude";
    }
}
