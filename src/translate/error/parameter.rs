//! Errors that say that a model or server does not take a parameter of the request, or this value of it. Clients
//! send their settings with each request, so it would refuse them all.

use super::mendable::is_quoted;
use super::without_quotes;
use crate::profile::Effort;
use crate::translate::refused::Refused;
use crate::words;

/// Parameters as servers name them, in lower case and without quotes, and what is refused with each.
static NAMES: [(&str, Refused); 18] = [
    ("max_tokens", Refused::MaxTokensField),
    ("max_completion_tokens", Refused::MaxTokensField),
    ("reasoning_effort", Refused::Effort(Vec::new())),
    // xAI's
    ("reasoningeffort", Refused::Effort(Vec::new())),
    ("output_config.effort", Refused::Effort(Vec::new())),
    ("thinking", Refused::Thinking),
    ("enable_thinking", Refused::Thinking),
    ("chat_template_kwargs", Refused::Thinking),
    ("thinking_budget_tokens", Refused::Thinking),
    ("thinking_token_budget", Refused::Thinking),
    ("temperature", Refused::Sampling),
    ("top_p", Refused::Sampling),
    ("top_k", Refused::TopK),
    ("stop", Refused::Stop),
    ("parallel_tool_calls", Refused::ParallelToolCalls),
    ("prompt_cache_key", Refused::PromptCacheKey),
    ("service_tier", Refused::ServiceTier),
    ("safety_identifier", Refused::User),
];

/// What is said of one.
const REFUSALS: [&str; 18] = [
    "not support",
    "no longer support",
    "unsupported",
    "unrecognized",
    "unknown",
    "not permitted",
    "not allowed",
    "extraneous",
    "unexpected keyword argument",
    "additional propert",
    "deprecated",
    // Kimi: `invalid temperature: only 1 is allowed for this model`
    "allowed for this model",
    // Claude's
    "cannot both",
    "may only be set",
    "must be unset",
    // Qwen's models that always think
    "restricted to",
    // Groq, and pydantic: only the effort has a few values.
    "must be one of",
    "input should be",
];

/// What stands before the names, or values, that would be taken.
const TAKEN: [&str; 7] = [
    "supported parameters",
    "supported values",
    "expected one of",
    "must be one of",
    "input should be",
    "did you mean",
    ". use ",
];

/// What such an error does not speak of: calls, messages, schemas.
const OTHERS: [&str; 5] = ["tool_choice", "messages[", "messages.", "tools[", "tools."];

/// What an upstream's error message refuses of a request's parameters.
#[must_use]
pub(crate) fn refused_parameter(message: &str) -> Option<Refused> {
    let text = without_quotes(message);
    if !words::has_any(&text, &REFUSALS) || words::has_any(&text, &OTHERS) {
        return None;
    }
    let message = message.to_ascii_lowercase();
    let taken = TAKEN.iter().filter_map(|start| words::find(&message, start)).min();
    let (message, taken) = message.split_at_checked(taken.unwrap_or(message.len()))?;
    let said = without_quotes(message);
    let named = NAMES.iter().filter_map(|(name, refused)| Some((place(&said, name)?, refused)));
    // `user` is a role and a person, too.
    let user =
        || (is_quoted(message, "user") && !words::has(&text, "role")).then_some(Refused::User);
    let refused = match named.min_by_key(|(at, _)| *at) {
        Some((_, refused)) => refused.clone(),
        None => user()?,
    };
    match refused {
        Refused::Effort(_) => Some(Refused::Effort(efforts(taken))),
        // What it may be is a matter of its value.
        refused => {
            (!words::has_any(taken, &["must be one of", "input should be"])).then_some(refused)
        }
    }
}

/// Where a parameter is named: alone or behind `body.`, and not within another name or path.
fn place(text: &str, name: &str) -> Option<usize> {
    words::places(text, name).find(|at| {
        let (before, behind) = text.split_at_checked(*at).unwrap_or_default();
        let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| words::is_name_byte(*byte));
        let before = before.strip_suffix("body.").unwrap_or(before).as_bytes().last();
        !is_part(before) && before != Some(&b'.') && !is_part(behind.as_bytes().get(name.len()))
    })
}

/// The values at which a model thinks, among those that are listed.
fn efforts(taken: &str) -> Vec<Effort> {
    use Effort::{High, Low, Max, Medium, Minimal, Xhigh};
    let listed = |effort: &Effort| place(taken, effort.word()).is_some();
    [Minimal, Low, Medium, High, Xhigh, Max].into_iter().filter(listed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wordings_of_servers_that_refuse_a_parameter_are_known() {
        for (message, refused) in [
            // OpenAI
            (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                Refused::MaxTokensField,
            ),
            (
                "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
                Refused::Sampling,
            ),
            ("Unsupported parameter: 'top_p' is not supported with this model.", Refused::Sampling),
            ("Unsupported parameter: 'stop' is not supported with this model.", Refused::Stop),
            (
                "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
                Refused::ParallelToolCalls,
            ),
            (
                "Unrecognized request argument supplied: reasoning_effort",
                Refused::Effort(Vec::new()),
            ),
            ("Unknown parameter: 'top_k'.", Refused::TopK),
            ("Unrecognized request argument supplied: prompt_cache_key", Refused::PromptCacheKey),
            // Kimi, xAI, Mistral, Gemini, Qwen, Ollama
            ("invalid temperature: only 1 is allowed for this model", Refused::Sampling),
            (
                "Model grok-4 does not support parameter reasoningEffort.",
                Refused::Effort(Vec::new()),
            ),
            ("Argument not supported on this model: stop", Refused::Stop),
            (
                "body.parallel_tool_calls: Extra inputs are not permitted",
                Refused::ParallelToolCalls,
            ),
            (
                "Invalid JSON payload received. Unknown name \"service_tier\": Cannot find field.",
                Refused::ServiceTier,
            ),
            (
                "The value of the enable_thinking parameter is restricted to True.",
                Refused::Thinking,
            ),
            ("\"llama3.2\" does not support thinking", Refused::Thinking),
            // Claude behind a router, Fireworks, LiteLLM, servers of Rust
            (
                "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
                Refused::Sampling,
            ),
            ("temperature: deprecated for this model", Refused::Sampling),
            ("`temperature` may only be set to 1 when thinking is enabled", Refused::Sampling),
            (
                "Extra inputs are not permitted, field: 'chat_template_kwargs', value: {}",
                Refused::Thinking,
            ),
            (
                "litellm.UnsupportedParamsError: bedrock does not support parameters: ['parallel_tool_calls'], for model=m",
                Refused::ParallelToolCalls,
            ),
            ("unknown field `top_k`, expected one of `stop`, `temperature`", Refused::TopK),
            ("unknown field `user`, expected one of `stop`", Refused::User),
            (
                "Invalid JSON payload received. Unknown name \"user\": Cannot find field.",
                Refused::User,
            ),
        ] {
            assert_eq!(refused_parameter(message), Some(refused), "{message}");
        }
    }

    #[test]
    fn the_efforts_that_are_taken_are_read() {
        use Effort::{High, Low, Medium, Minimal};
        for (message, values) in [
            (
                "Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: 'minimal', 'low', 'medium', and 'high'.",
                vec![Minimal, Low, Medium, High],
            ),
            (
                "`reasoning_effort` must be one of `low`, `medium`, or `high`",
                vec![Low, Medium, High],
            ),
            ("`reasoning_effort` must be one of `none` or `default`", vec![]),
            (
                "reasoning_effort: unknown variant `minimal`, expected one of `low`, `high`",
                vec![Low, High],
            ),
            (
                "reasoning_effort: Input should be 'low', 'medium' or 'high'",
                vec![Low, Medium, High],
            ),
        ] {
            assert_eq!(refused_parameter(message), Some(Refused::Effort(values)), "{message}");
        }
    }

    #[test]
    fn what_is_said_of_something_else_refuses_no_parameter() {
        for message in [
            "temperature: must be at most 2",
            "max_tokens must be less than or equal to 8192",
            "`max_tokens` must be greater than `thinking.budget_tokens`",
            "This model does not support tools",
            "tool_choice 'required' is not supported with thinking",
            "messages[2].thinking: unknown field",
            "tools.0.function.strict: Extra inputs are not permitted",
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
            "Conversation roles must alternate 'user' and 'assistant': unsupported role",
            "stop: Input should be a valid string",
            "temperature: Input should be less than or equal to 2",
            "Unknown parameter: 'min_p'. Supported parameters: temperature, stop",
            "unknown field `extra`, expected one of `user`, `stop`, `temperature`",
            "This user is not allowed to use this model",
            "response_format.thinking_budget_tokens_max is not supported",
            "input.temperature: Extra inputs are not permitted",
        ] {
            assert_eq!(refused_parameter(message), None, "{message}");
        }
    }
}
