//! Wordings of servers that take no `response_format`.

use super::*;
use crate::upstream_error::wordings::RESPONSE_FORMAT;

fn is_response_format(message: &str) -> bool {
    RESPONSE_FORMAT.says(&without_quotes(message))
}

#[test]
fn the_wordings_of_servers_that_know_no_such_format_are_known() {
    for message in [
        // Errors of DeepSeek, alone and behind OpenCode Go.
        "This response_format type is unavailable now",
        // Errors of Groq.
        "This model does not support response format `json_schema`. See supported models at https://console.groq.com/docs/structured-outputs#supported-models",
        "response_format` does not support streaming",
        "json mode cannot be combined with tool/function calling",
        // Errors of OpenAI and Azure.
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model. Learn more about supported models at the Structured Outputs guide: https://platform.openai.com/docs/guides/structured-outputs",
        "Invalid parameter: 'response_format' of type 'json_object' is not supported with this model.",
        "response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later",
        "Invalid value: 'json_schema'. Supported values are: 'json_object' and 'text'.",
        "Unrecognized request argument supplied: response_format",
        // Errors of Ark, SiliconFlow, Gemini, LiteLLM and LM Studio.
        "The parameter `response_format.type` specified in the request are not valid: `json_schema` is not supported by this model",
        "Json mode is not supported for this model.",
        "Json mode is not enabled for models/gemini-pro",
        "Tool use with a response mime type: 'application/json' is unsupported",
        "litellm.UnsupportedParamsError: bedrock does not support parameters: ['response_format'], for model=m",
        "'response_format.type' must be 'json_schema' or 'text'",
        // Errors of servers in Python and in Rust.
        "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' or 'json_object'\"}]",
        "[{'type': 'extra_forbidden', 'loc': ('body', 'response_format'), 'msg': 'Extra inputs are not permitted'}]",
        "create() got an unexpected keyword argument 'response_format'",
        "Failed to deserialize the JSON body into the target type: response_format.type: unknown variant `json_schema`, expected `json_object`",
    ] {
        assert!(is_response_format(message), "{message}");
    }
}

#[test]
fn what_is_said_of_one_schema_is_not_said_of_all() {
    for message in [
        "Invalid schema for response_format 'output': In context=(), 'additionalProperties' is required to be supplied and to be false.",
        "Invalid schema for response_format 'output': In context=('properties', 'a'), 'oneOf' is not permitted.",
        "invalid JSON schema for response_format: 'output': /properties/a: unsupported type",
        "response_format.json_schema.schema: unsupported keyword patternProperties",
        "[{'loc': ('body', 'response_format', 'json_schema', 'schema'), 'msg': 'Extra inputs are not permitted'}]",
        "Invalid request: response_format.json_schema is not a valid moonshot flavored json schema, details: <At path 'properties.a': oneOf is not supported>",
        "The provided JSON schema contains features not supported by xgrammar.",
        "Missing required parameter: 'response_format.json_schema'.",
        // Errors about other parts of a request.
        "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
        "Unsupported parameter: 'temperature' is not supported with this model.",
        "This model does not support tools",
    ] {
        assert!(!is_response_format(message), "{message}");
    }
}
