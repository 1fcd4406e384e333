//! Wordings of refused parameters.

use super::wordings;

wordings! {
    /// Words before the name of a parameter, in place of a quote.
    BEFORE_PARAMETER {
        Alone: "body." | "parameter " | "parameters " | "argument " | "field ";
    }

    /// Refusals of a parameter, or of its value.
    PARAMETER {
        Refusal: "not support" | "doesnt support" | "not yet support" | "unsupported";
        Refusal: "unrecognized" | "unknown" | "not permitted" | "deprecated";
        Refusal: "allowed for this model" => "Kimi";
        Refusal: "cannot both" | "may only be set" | "or unset when" => "Claude";
        Refusal: "restricted to" => "Qwen's models that always think";
        Refusal: "invalid reasoning value" => "Ollama";
        Refusal: "must be verified to generate reasoning"
            => "OpenAI", "https://github.com/continuedev/continue/issues/9607";
        // Another part of a request.
        Other: "tool_choice" | "schema for" | "tool call" | "in context=" | "messages[" | "tools[";
    }

    /// Further refusals of an effort: it has a few values, so a value that is not among them is
    /// refused.
    EFFORT {
        Refusal: "must be one of" | "should be " | "validation error for";
    }

    /// Words before the names, or values, that would be taken.
    TAKEN {
        Alone: "supported parameters" | "supported values" | "known properties" | "expected one of" | "must be one of";
        Alone: "should be " => "pydantic, and Hy3's template";
        Alone: "did you mean" | "(must be" | ". use ";
    }

    /// Words behind the names, or values, that would be taken.
    TAKEN_UNTIL {
        Alone: "'input'" | "received" | "got:" | "got ";
    }

    /// Wordings of a server that does not encrypt reasoning.
    NO_ENCRYPTION {
        Alone: "encrypted content is not supported" => "OpenAI";
    }

    /// Wordings of a model that always thinks.
    ALWAYS_THINKS {
        Alone: "thinking & cannot be disabled" | "reasoning & cannot be disabled";
    }

    /// Wordings of a model that never thinks.
    NEVER_THINKS {
        Alone: "not support thinking" | "doesnt support thinking";
        Other: "thinking budget";
    }
}
