//! Error phrases about refused parameters.

use super::wordings;

wordings! {
    /// Phrases that, like a quotation mark, come before the name of a parameter.
    BEFORE_PARAMETER {
        Alone: "body." | "parameter " | "parameters " | "argument " | "field ";
    }

    /// Error phrases that refuse a parameter, or its value.
    PARAMETER {
        Refusal: "not support" | "doesnt support" | "not yet support" | "unsupported";
        Refusal: "unrecognized" | "unknown" | "not permitted" | "deprecated";
        Refusal: "allowed for this model" => "Kimi";
        Refusal: "cannot both" | "may only be set" | "or unset when" => "Claude";
        Refusal: "restricted to" => "Qwen's models that always think";
        Refusal: "invalid reasoning value" => "Ollama";
        Refusal: "must be verified to generate reasoning"
            => "OpenAI", "https://github.com/continuedev/continue/issues/9607";
        // Errors about another part of a request.
        Other: "tool_choice" | "schema for" | "tool call" | "in context=" | "messages[" | "tools[";
    }

    /// Error phrases that refuse an effort, in addition to those for all parameters: the value is
    /// not among the few allowed ones.
    EFFORT {
        Refusal: "must be one of" | "should be " | "validation error for";
    }

    /// Phrases before a list of the allowed names or values.
    TAKEN {
        Alone: "supported parameters" | "supported values" | "known properties" | "expected one of" | "must be one of";
        Alone: "should be " => "pydantic, and Hy3's template";
        Alone: "did you mean" | "(must be" | ". use ";
    }

    /// Phrases after a list of the allowed names or values.
    TAKEN_UNTIL {
        Alone: "'input'" | "received" | "got:" | "got ";
    }

    /// Error phrases of a server that does not encrypt reasoning.
    NO_ENCRYPTION {
        Alone: "encrypted content is not supported" => "OpenAI";
    }

    /// Error phrases of a model that always thinks.
    ALWAYS_THINKS {
        Alone: "thinking & cannot be disabled" | "reasoning & cannot be disabled";
    }

    /// Error phrases of a model that never thinks.
    NEVER_THINKS {
        Alone: "not support thinking" | "doesnt support thinking";
        Other: "thinking budget";
    }
}
