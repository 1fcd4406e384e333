//! Tests of `parameter.rs`.

use super::*;
use crate::model::request_context::RequestContext;
use crate::profile::Effort;
use crate::upstream_error::refused::Refused;

fn refused_parameter(message: &str, parameter: Option<&str>) -> Option<Refused> {
    let reason = super::refused_parameter(message, parameter)?;
    Refused::of(&reason, message, &RequestContext::default())
}

#[test]
fn the_wordings_of_servers_that_refuse_a_parameter_are_known() {
    for (message, refused) in [
        // Errors of OpenAI.
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            Refused::Parameter(Parameter::MaxTokensField),
        ),
        (
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
            Refused::Parameter(Parameter::Sampling),
        ),
        (
            "Unsupported parameter: 'top_p' is not supported with this model.",
            Refused::Parameter(Parameter::Sampling),
        ),
        (
            "Unsupported parameter: 'stop' is not supported with this model.",
            Refused::Parameter(Parameter::Stop),
        ),
        (
            "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
            Refused::Parameter(Parameter::ParallelToolCalls),
        ),
        ("Unrecognized request argument supplied: reasoning_effort", Refused::Effort(Vec::new())),
        ("Unknown parameter: 'top_k'.", Refused::Parameter(Parameter::TopK)),
        (
            "Unrecognized request argument supplied: prompt_cache_key",
            Refused::Parameter(Parameter::PromptCacheKey),
        ),
        // Errors of Kimi, xAI, Mistral, Gemini, Qwen and Ollama.
        (
            "invalid temperature: only 1 is allowed for this model",
            Refused::Parameter(Parameter::Sampling),
        ),
        ("Model grok-4 does not support parameter reasoningEffort.", Refused::Effort(Vec::new())),
        ("Argument not supported on this model: stop", Refused::Parameter(Parameter::Stop)),
        (
            "body.parallel_tool_calls: Extra inputs are not permitted",
            Refused::Parameter(Parameter::ParallelToolCalls),
        ),
        (
            "Invalid JSON payload received. Unknown name \"service_tier\": Cannot find field.",
            Refused::Parameter(Parameter::ServiceTier),
        ),
        (
            "The value of the enable_thinking parameter is restricted to True.",
            Refused::Parameter(Parameter::ThinkingSwitch),
        ),
        ("\"llama3.2\" does not support thinking", Refused::Parameter(Parameter::Thinking)),
        // Errors of Claude behind a router, Fireworks, LiteLLM, and servers in Rust.
        (
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
            Refused::Parameter(Parameter::Sampling),
        ),
        ("temperature: deprecated for this model", Refused::Parameter(Parameter::Sampling)),
        (
            "`temperature` may only be set to 1 when thinking is enabled",
            Refused::Parameter(Parameter::Sampling),
        ),
        (
            "Extra inputs are not permitted, field: 'chat_template_kwargs', value: {}",
            Refused::Parameter(Parameter::ThinkingSwitch),
        ),
        (
            "litellm.UnsupportedParamsError: bedrock does not support parameters: ['parallel_tool_calls'], for model=m",
            Refused::Parameter(Parameter::ParallelToolCalls),
        ),
        (
            "unknown field `top_k`, expected one of `stop`, `temperature`",
            Refused::Parameter(Parameter::TopK),
        ),
        ("unknown field `user`, expected one of `stop`", Refused::Parameter(Parameter::User)),
        ("body.user: Extra inputs are not permitted", Refused::Parameter(Parameter::User)),
        ("Unsupported parameter: user", Refused::Parameter(Parameter::User)),
        ("Unrecognized request argument supplied: user", Refused::Parameter(Parameter::User)),
        ("user: Extra inputs are not permitted", Refused::Parameter(Parameter::User)),
        (
            "Unrecognized field \"user\" (class com.x.Request), not marked as ignorable (12 known properties: \"stop\", \"temperature\")",
            Refused::Parameter(Parameter::User),
        ),
        ("metadata: Extra inputs are not permitted", Refused::Parameter(Parameter::User)),
        // Errors of Bedrock, vLLM, OpenRouter and Minimax.
        (
            "This model doesn't support the temperature field. Remove temperature and try again.",
            Refused::Parameter(Parameter::Sampling),
        ),
        (
            "This model doesn't support the stopSequences field.",
            Refused::Parameter(Parameter::Stop),
        ),
        (
            "thinking_token_budget is not yet supported by the V2 model runner.",
            Refused::Parameter(Parameter::ThinkingBudget),
        ),
        (
            "This model does not support thinking_token_budget",
            Refused::Parameter(Parameter::ThinkingBudget),
        ),
        (
            "Unsupported parameter: 'top_k'. See the schema at x",
            Refused::Parameter(Parameter::TopK),
        ),
        (
            "chat_template is not supported for Mistral tokenizers.",
            Refused::Parameter(Parameter::ThinkingSwitch),
        ),
        (
            "Unrecognized request argument supplied: thinking",
            Refused::Parameter(Parameter::ThinkingSwitch),
        ),
        (
            "Reasoning is mandatory for this endpoint and cannot be disabled.",
            Refused::Parameter(Parameter::ThinkingSwitch),
        ),
        (
            "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled",
            Refused::Parameter(Parameter::Sampling),
        ),
        (
            "[{'type': 'extra_forbidden', 'loc': ('body', 'stop'), 'msg': 'Extra inputs are not permitted', 'input': ['user']}]",
            Refused::Parameter(Parameter::Stop),
        ),
        ("reasoning_effort is not supported with tools.", Refused::Effort(Vec::new())),
        ("think value \"high\" is not supported for this model", Refused::Effort(Vec::new())),
        (
            "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
            Refused::Effort(Vec::new()),
        ),
        (
            "Invalid JSON payload received. Unknown name \"user\": Cannot find field.",
            Refused::Parameter(Parameter::User),
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
        ("`reasoning_effort` must be one of `low`, `medium`, or `high`", vec![Low, Medium, High]),
        // Errors of vLLM with gpt-oss.
        (
            "reasoning_effort='none' is not supported by Harmony. Supported values are: high, medium, low.",
            vec![Low, Medium, High],
        ),
        ("`reasoning_effort` must be one of `none` or `default`", vec![]),
        (
            "reasoning_effort: unknown variant `minimal`, expected one of `low`, `high`",
            vec![Low, High],
        ),
        ("reasoning_effort: Input should be 'low', 'medium' or 'high'", vec![Low, Medium, High]),
        ("reasoning_effort error : medium, should be no_think/low/high", vec![Low, High]),
        // The error quotes the value that was sent.
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
        assert_eq!(refused_parameter(message, None), Some(Refused::Effort(values)), "{message}");
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
    assert_eq!(refused_parameter(message, Some("stop")), Some(Refused::Parameter(Parameter::TopK)));
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
        // Errors about schemas and inputs of tools, and about the conversation.
        "Invalid schema for function 'set_thermostat': In context=('properties', 'temperature'), 'minimum' is not permitted.",
        "tool call validation failed: parameters for tool x did not match: errors: [additionalProperties 'user' not allowed]",
        "[{'type': 'extra_forbidden', 'loc': ('body', 'messages', 1, 'refusal'), 'msg': 'Extra inputs are not permitted', 'input': 'I must stop here'}]",
        "[{'type': 'extra_forbidden', 'loc': ('body', 'min_p'), 'msg': 'Extra inputs are not permitted', 'input': {'role': 'user'}}]",
        "1 validation error for ChatCompletionRequest\nmax_tokens\n  Value error, max_tokens exceeds what is left",
        "body.refusal\n  Extra inputs are not permitted [type=extra_forbidden, input_value='lower the temperature']",
        // Ordinary English words that are also names of parameters.
        "Unknown error, please stop the stream and retry",
        "Model claude-3.7-sonnet:thinking is not supported",
        "This model does not support tool use in thinking mode",
        "Access denied: user is not allowed here",
        // Claude Code switches to the other kind of thinking by itself.
        "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\"",
        "adaptive thinking is not supported on this model",
        "thinking.type: unknown variant `adaptive`, expected `enabled` or `disabled`",
        "Internal error while reading temperature. Please contact support.",
        // An error about the value of a limit, and not about the parameter's name.
        "max_tokens 64000 is not supported by this model, the limit is 32768",
    ] {
        assert_eq!(refused_parameter(message, None), None, "{message}");
    }
}
