//! Errors that say that a model or server does not take a parameter of the request, or this value of it. Clients
//! send their settings with each request, so it would refuse them all.

use super::{python, without_quotes};
use crate::profile::Effort;
use crate::translate::refused::Refused;
use crate::words::{self, phrases};

/// Parameters as servers name them, in lower case, and what is refused with each.
static NAMES: [(&str, Refused); 22] = [
    ("max_tokens", Refused::MaxTokensField),
    ("max_completion_tokens", Refused::MaxTokensField),
    ("reasoning_effort", EFFORT),
    // xAI's, and that of Responses
    ("reasoningeffort", EFFORT),
    ("reasoning.effort", EFFORT),
    ("output_config.effort", EFFORT),
    // Ollama's
    ("invalid reasoning value", EFFORT),
    ("think value", EFFORT),
    ("enable_thinking", Refused::ThinkingSwitch),
    ("chat_template_kwargs", Refused::ThinkingSwitch),
    ("chat_template", Refused::ThinkingSwitch),
    ("thinking_budget_tokens", Refused::ThinkingBudget),
    ("thinking_token_budget", Refused::ThinkingBudget),
    ("temperature", Refused::Sampling),
    ("top_p", Refused::Sampling),
    ("top_k", Refused::TopK),
    ("stopsequences", Refused::Stop),
    ("stop_sequences", Refused::Stop),
    ("parallel_tool_calls", Refused::ParallelToolCalls),
    ("prompt_cache_key", Refused::PromptCacheKey),
    ("service_tier", Refused::ServiceTier),
    ("safety_identifier", Refused::User),
];

const EFFORT: Refused = Refused::Effort(Vec::new());

/// Those that are words, too: they count only where they stand as parameters do.
static WORDS: [(&str, Refused); 4] = [
    ("stop", Refused::Stop),
    ("thinking", Refused::ThinkingSwitch),
    ("user", Refused::User),
    ("metadata", Refused::User),
];

/// What stands before those, in place of a quote.
const BEFORE_WORDS: &str = phrases!["body.", "parameter ", "parameters ", "argument ", "field "];

/// What is said of one.
const REFUSALS: &str = phrases![
    "not support",
    "doesnt support",
    "not yet support",
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
    "or unset when",
    // Qwen's models that always think
    "restricted to",
    "invalid reasoning value",
];

/// What is said of an effort beside these: it has a few values, so one that is not among them is refused.
const EFFORT_REFUSALS: &str = phrases!["must be one of", "should be ", "validation error for"];

/// What stands before the names, or values, that would be taken, and what ends these.
const TAKEN: &str = phrases![
    "supported parameters",
    "supported values",
    "known properties",
    "expected one of",
    "must be one of",
    // pydantic, and Hy3's template
    "should be ",
    "did you mean",
    "(must be",
    ". use ",
];
const TAKEN_UNTIL: &str = phrases!["'input'", "received", "got:", "got "];

/// What such an error does not speak of.
const OTHERS: &str =
    phrases!["tool_choice", "schema for", "tool call", "in context=", "messages[", "tools["];

/// Beginnings of paths that go on with a name.
const OTHER_PATHS: &str = phrases!["messages.", "tools."];

/// What an upstream's error message refuses of a request's parameters. `parameter`: what the error names beside it.
#[must_use]
pub(crate) fn refused_parameter(message: &str, parameter: Option<&str>) -> Option<Refused> {
    let complaint = python::complaint(message);
    let message = complaint.as_deref().unwrap_or(message).to_ascii_lowercase();
    let named = refused_by(&message);
    named.or_else(|| refused_by(&format!("{}: {message}", parameter?.to_ascii_lowercase())))
}

fn refused_by(message: &str) -> Option<Refused> {
    // What pydantic quotes of the request
    let message =
        words::split_once(message, "[type=").map_or(message, |(error_body, _)| error_body);
    let text = without_quotes(message);
    let has = |any: &str| words::has_one_of(&text, any);
    let is_path = |path: &str| {
        words::places(&text, path)
            .any(|at| text.as_bytes().get(at.saturating_add(path.len())).is_some_and(is_name_byte))
    };
    if has(OTHERS) || words::each(OTHER_PATHS).any(is_path) {
        return None;
    }
    if has("function tools with reasoning_effort") {
        // OpenAI's newer models take tools only so.
        return Some(Refused::Effort(vec![Effort::None]));
    }
    // The model thinks always, or never.
    if has(phrases!["thinking", "reasoning"]) && has("cannot be disabled") {
        return Some(Refused::ThinkingSwitch);
    }
    let taken = words::each(TAKEN).filter_map(|start| words::find(message, start)).min();
    let (error_body, taken) = message.split_at_checked(taken.unwrap_or(message.len()))?;
    let names =
        NAMES.iter().filter_map(|(name, refused)| Some((place(error_body, name)?, refused)));
    let as_words = WORDS
        .iter()
        .filter_map(|(name, refused)| Some((place_of_word(error_body, name)?, refused)))
        // `user` is a role, too.
        .filter(|_| !has("role"));
    let Some((at, refused)) = names.chain(as_words).min_by_key(|(at, _)| *at) else {
        let never = has(phrases!["not support thinking", "doesnt support thinking"]);
        return (never && !has("thinking budget")).then_some(Refused::Thinking);
    };
    match refused {
        Refused::Effort(_) if has(REFUSALS) || has(EFFORT_REFUSALS) => {
            Some(Refused::Effort(efforts(taken)))
        }
        // A limit that is too high has the same words.
        Refused::MaxTokensField
            if is_beside_number(error_body, at) || has(phrases!["limit", "at most"]) =>
        {
            None
        }
        // What else it may be is a matter of its value.
        _ if words::has_one_of(taken, EFFORT_REFUSALS) || !has(REFUSALS) => None,
        refused => Some(refused.clone()),
    }
}

fn is_name_byte(byte: &u8) -> bool {
    words::is_name_byte(*byte)
}

/// Where a parameter is named: alone or behind `body.`, and not within another name or path.
fn place(text: &str, name: &str) -> Option<usize> {
    places(text, name).next()
}

fn places(text: &str, name: &str) -> impl Iterator<Item = usize> {
    words::names(text, name).filter(|at| {
        let before = text.get(..*at).unwrap_or_default();
        let before = before.strip_suffix("body.").unwrap_or(before).as_bytes().last();
        !before.is_some_and(|byte| is_name_byte(byte) || *byte == b'.')
    })
}

/// Where `name`, a plain word, stands in quotes or in the place of a parameter.
fn place_of_word(text: &str, name: &str) -> Option<usize> {
    places(text, name).find(|at| {
        let (before, behind) = text.split_at_checked(*at).unwrap_or_default();
        let behind = behind.get(name.len()..).unwrap_or_default();
        let next = behind.bytes().next();
        let is_quoted =
            before.ends_with(['\'', '"', '`']) && matches!(next, Some(b'\'' | b'"' | b'`'));
        let begins = before.is_empty() && next == Some(b':');
        let stands = words::each(BEFORE_WORDS).any(|start| before.ends_with(start));
        let ends = before.ends_with(": ") && matches!(next, None | Some(b'.' | b',' | b':'));
        is_quoted || begins || stands || ends || behind.starts_with(" field")
    })
}

/// Whether a parameter is named with a value: `max_tokens (64000)`.
fn is_beside_number(text: &str, at: usize) -> bool {
    let behind = text.get(at..).unwrap_or_default();
    let rest =
        behind.trim_start_matches(|letter: char| letter.is_ascii_lowercase() || letter == '_');
    rest.trim_start_matches([' ', '=', ':', '(', '\'', '"', '`'])
        .starts_with(|letter: char| letter.is_ascii_digit())
}

/// The values at which a model thinks, among those that are listed.
fn efforts(taken: &str) -> Vec<Effort> {
    use Effort::{High, Low, Max, Medium, Minimal, Xhigh};
    let until = words::each(TAKEN_UNTIL).filter_map(|end| words::find(taken, end)).min();
    let listed = words::beginning(taken, until.unwrap_or(taken.len()));
    let is_listed = |effort: &Effort| place(listed, effort.word()).is_some();
    [Minimal, Low, Medium, High, Xhigh, Max].into_iter().filter(is_listed).collect()
}

/// Whether it is one effort, or a few, that a message speaks of.
#[must_use]
pub(crate) fn names_effort(message: &str) -> bool {
    !efforts(&message.to_ascii_lowercase()).is_empty()
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
                Refused::ThinkingSwitch,
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
                Refused::ThinkingSwitch,
            ),
            (
                "litellm.UnsupportedParamsError: bedrock does not support parameters: ['parallel_tool_calls'], for model=m",
                Refused::ParallelToolCalls,
            ),
            ("unknown field `top_k`, expected one of `stop`, `temperature`", Refused::TopK),
            ("unknown field `user`, expected one of `stop`", Refused::User),
            ("body.user: Extra inputs are not permitted", Refused::User),
            ("Unsupported parameter: user", Refused::User),
            ("Unrecognized request argument supplied: user", Refused::User),
            ("user: Extra inputs are not permitted", Refused::User),
            (
                "Unrecognized field \"user\" (class com.x.Request), not marked as ignorable (12 known properties: \"stop\", \"temperature\")",
                Refused::User,
            ),
            ("metadata: Extra inputs are not permitted", Refused::User),
            // Bedrock, vLLM, OpenRouter, Minimax
            (
                "This model doesn't support the temperature field. Remove temperature and try again.",
                Refused::Sampling,
            ),
            ("This model doesn't support the stopSequences field.", Refused::Stop),
            (
                "thinking_token_budget is not yet supported by the V2 model runner.",
                Refused::ThinkingBudget,
            ),
            ("This model does not support thinking_token_budget", Refused::ThinkingBudget),
            ("Unsupported parameter: 'top_k'. See the schema at x", Refused::TopK),
            ("chat_template is not supported for Mistral tokenizers.", Refused::ThinkingSwitch),
            ("Unrecognized request argument supplied: thinking", Refused::ThinkingSwitch),
            (
                "Reasoning is mandatory for this endpoint and cannot be disabled.",
                Refused::ThinkingSwitch,
            ),
            (
                "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled",
                Refused::Sampling,
            ),
            (
                "[{'type': 'extra_forbidden', 'loc': ('body', 'stop'), 'msg': 'Extra inputs are not permitted', 'input': ['user']}]",
                Refused::Stop,
            ),
            ("reasoning_effort is not supported with tools.", EFFORT),
            ("think value \"high\" is not supported for this model", EFFORT),
            ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", EFFORT),
            (
                "Invalid JSON payload received. Unknown name \"user\": Cannot find field.",
                Refused::User,
            ),
        ] {
            assert_eq!(refused_parameter(message, None), Some(refused), "{message}");
        }
    }

    #[test]
    fn the_efforts_that_are_taken_are_read() {
        use Effort::{High, Low, Max, Medium, Minimal};
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
            ("reasoning_effort error : medium, should be no_think/low/high", vec![Low, High]),
            // What was sent is quoted beside it.
            (
                "[{'type': 'literal_error', 'loc': ('body', 'reasoning_effort'), 'msg': \"Input should be 'low', 'medium' or 'high'\", 'input': 'xhigh', 'ctx': {'expected': \"'low', 'medium' or 'high'\"}}]",
                vec![Low, Medium, High],
            ),
            (
                "reasoning_effort\n  Input should be 'low' or 'high' [type=literal_error, input_value='max', input_type=str]",
                vec![Low, High],
            ),
            ("reasoning_effort must be one of: none, low, high. Got: max", vec![Low, High]),
            (
                "Validation error for `reasoning_effort`: expected one of `low`, `high`, received `'xhigh'`",
                vec![Low, High],
            ),
            (
                "invalid reasoning value: 'xhigh' (must be \"high\", \"medium\", \"low\", \"max\", or \"none\")",
                vec![Low, Medium, High, Max],
            ),
            (
                "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
                vec![Effort::None],
            ),
        ] {
            assert_eq!(
                refused_parameter(message, None),
                Some(Refused::Effort(values)),
                "{message}"
            );
        }
    }

    #[test]
    fn a_parameter_that_is_named_beside_the_message_counts_where_that_names_none() {
        let message = "Unsupported value: 'minimal' is not supported with the 'gpt-5.1' model. Supported values are: 'low' and 'high'.";
        let refused = |parameter| refused_parameter(message, parameter);
        assert_eq!(refused(None), None);
        let values = vec![Effort::Low, Effort::High];
        assert_eq!(refused(Some("reasoning.effort")), Some(Refused::Effort(values)));
        assert_eq!(refused(Some("messages")), None);
        let message = "Unsupported parameter: 'top_k' is not supported";
        assert_eq!(refused_parameter(message, Some("stop")), Some(Refused::TopK));
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
            // Schemas and inputs of tools, and the conversation
            "Invalid schema for function 'set_thermostat': In context=('properties', 'temperature'), 'minimum' is not permitted.",
            "tool call validation failed: parameters for tool x did not match: errors: [additionalProperties 'user' not allowed]",
            "[{'type': 'extra_forbidden', 'loc': ('body', 'messages', 1, 'refusal'), 'msg': 'Extra inputs are not permitted', 'input': 'I must stop here'}]",
            "[{'type': 'extra_forbidden', 'loc': ('body', 'min_p'), 'msg': 'Extra inputs are not permitted', 'input': {'role': 'user'}}]",
            "1 validation error for ChatCompletionRequest\nmax_tokens\n  Value error, max_tokens exceeds what is left",
            "body.refusal\n  Extra inputs are not permitted [type=extra_forbidden, input_value='lower the temperature']",
            // English
            "Unknown error, please stop the stream and retry",
            "Model claude-3.7-sonnet:thinking is not supported",
            "This model does not support tool use in thinking mode",
            "Access denied: user is not allowed here",
            // Claude Code asks the other way by itself.
            "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\"",
            "adaptive thinking is not supported on this model",
            "thinking.type: unknown variant `adaptive`, expected `enabled` or `disabled`",
            "Internal error while reading temperature. Please contact support.",
            // A limit, and not its name
            "max_tokens 64000 is not supported by this model, the limit is 32768",
        ] {
            assert_eq!(refused_parameter(message, None), None, "{message}");
        }
    }
}
