//! Every change of a request that an upstream refuses, in each protocol, for a whole answer and for
//! a stream.
//!
//! The table has a row for each change in `src/upstream_error/changes/rows`, as a test there holds.

mod run;

use super::host::request;
use super::*;
use run::Got;

/// Protocols of upstreams, in the order of the table's cells.
const PROTOCOLS: [&str; 3] = ["openai", "responses", "anthropic"];

/// A change, and a refusal that asks for it.
pub(super) struct Change {
    /// Variant of the change.
    pub(super) name: &'static str,
    /// Additions to the conversation in a request: members, or values at a pointer into it.
    pub(super) has: &'static str,
    /// Keys of the upstream's profile.
    pub(super) profile: &'static str,
    /// Body of the refusal, or its words. `{at}` is the path of the subject in the protocol.
    pub(super) refusal: &'static str,
    /// Status of the refusal.
    pub(super) status: u16,
    /// Returns true if the value at the subject's pointer is what the upstream refuses. The last
    /// argument says whether the client wants a stream.
    pub(super) is: fn(&Value, bool) -> bool,
    /// Whether only the request of a stream has the subject.
    pub(super) only_streams: bool,
    /// Outcomes on Chat Completions, Responses and Messages.
    pub(super) on: [Cell; 3],
}

/// Outcome of a change in one protocol.
pub(super) enum Cell {
    /// The subject stands at this pointer of the request, and the client gets these warnings.
    Made { at: &'static str, warnings: &'static str },
    /// Requests have no such subject, or cannot be changed so: the error passes after one request.
    NotInThisProtocol,
}
use Cell::NotInThisProtocol;

const fn made(at: &'static str, warnings: &'static str) -> Cell {
    Cell::Made { at, warnings }
}

/// Words that only say where something is wrong.
const WRONG_AT: &str = r#"{"error": {"message": "Wrong.", "param": "{at}"}}"#;
const WANTS_TEXT_AT: &str =
    r#"{"error": {"message": "Input should be a valid string", "param": "{at}"}}"#;

const IS_THERE: fn(&Value, bool) -> bool = |value, _| !value.is_null();

pub(super) const CHANGE: Change = Change {
    name: "",
    has: "{}",
    profile: "{}",
    refusal: WRONG_AT,
    status: 400,
    is: IS_THERE,
    only_streams: false,
    on: [NotInThisProtocol, NotInThisProtocol, NotInThisProtocol],
};

pub(super) const IMAGE: &str = r#"{"/messages/2/content/0/content": [{"type": "text", "text": "A page."},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}],
    "/messages/2/content/1": {"type": "text", "text": "Go on."}}"#;
const DOCUMENT: &str = r#"{"/messages/0/content": [{"type": "text", "text": "Look"},
    {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQ="}}]}"#;
const NO_QUESTION: &str =
    r#"{"messages": [{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}]}"#;
pub(super) const TALK: &str = r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
    {"role": "user", "content": "c"}]}"#;
const SCHEMA: &str = r#"{"output_config": {"format": {"type": "json_schema", "schema":
    {"type": "object", "properties": {"title": {"type": "string"}}}}}}"#;
const THINKING: &str = r#"{"thinking": {"type": "enabled", "budget_tokens": 2000}}"#;
const ADAPTIVE: &str = r#"{"thinking": {"type": "adaptive"}}"#;
const EFFORT: &str = r#"{"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}"#;
const EFFORTS: &str = r#"{"reasoning_effort_values": ["low", "medium", "high", "max"]}"#;

pub(super) const LONG_NAME: &str = r#"{"/tools/1": {"input_schema": {"type": "object"},
    "name": "mcp__server_with_a_long_name__tool_with_a_name_that_is_as_long_as_that"}}"#;

/// More than 1,024 letters.
macro_rules! a_long_text {
    () => {
        a_long_text!("It looks at what is there, ")
    };
    ($text:expr) => {
        a_long_text!(twice concat!($text, $text, $text, $text))
    };
    (twice $text:expr) => {
        concat!($text, $text, $text, $text, $text, $text, $text, $text, $text, $text)
    };
}

/// The table.
const CHANGES: &[Change] = &[
    Change {
        name: "Streaming",
        refusal: "This kind of streaming is not supported",
        is: |value, stream| (value == true) == stream,
        on: [
            made("/stream", "stream_refused"),
            made("/stream", "stream_refused"),
            made("/stream", "stream_refused"),
        ],
        ..CHANGE
    },
    Change {
        name: "JoinedTexts",
        refusal: WANTS_TEXT_AT,
        // On Responses the one text stays in a list, as OpenAI's type of the user's messages wants
        // it.
        is: |value, _| value.as_array().is_some_and(|parts| parts.len() > 1),
        on: [
            made("/messages/0/content", "parameter_refused:joined_texts"),
            made("/input/0/content", "parameter_refused:joined_texts"),
            NotInThisProtocol,
        ],
        ..CHANGE
    },
    Change {
        name: "ResultsAsText",
        has: IMAGE,
        profile: r#"{"tool_content_parts": "images"}"#,
        refusal: "The output of a tool has parts",
        is: |value, _| value.is_array(),
        on: [
            made("/messages/2/content", "parameter_refused:tool_output_parts"),
            made("/input/3/output", "parameter_refused:tool_output_parts"),
            NotInThisProtocol,
        ],
        ..CHANGE
    },
    Change {
        name: "EmptyContent(Empty)",
        refusal: "text is not present in one of the turns",
        is: |value, _| value.is_null(),
        on: [
            made("/messages/1/content", "parameter_refused:empty_assistant_content"),
            NotInThisProtocol,
            NotInThisProtocol,
        ],
        ..CHANGE
    },
    Change {
        name: "EmptyContent(Null)",
        profile: r#"{"empty_assistant_content": "empty"}"#,
        refusal: "One turn has a blank text",
        is: |value, _| value == "",
        on: [
            made("/messages/1/content", "parameter_refused:empty_assistant_content"),
            NotInThisProtocol,
            NotInThisProtocol,
        ],
        ..CHANGE
    },
    Change {
        name: "Ids",
        is: |value, _| value.as_str().unwrap().len() > 9,
        on: [
            made("/messages/1/tool_calls/0/id", "parameter_refused:id_style"),
            made("/input/2/call_id", "parameter_refused:id_style"),
            made("/messages/1/content/1/id", "parameter_refused:id_style"),
        ],
        ..CHANGE
    },
    Change {
        name: "Names",
        has: LONG_NAME,
        profile: r#"{"max_tool_name": 0}"#,
        is: |value, _| value.as_str().unwrap().len() > 64,
        on: [
            made("/tools/1/function/name", "parameter_refused:max_tool_name"),
            made("/tools/1/name", "parameter_refused:max_tool_name"),
            made("/tools/1/name", "parameter_refused:max_tool_name"),
        ],
        ..CHANGE
    },
    Change {
        name: "ReasoningInEachTurn",
        has: TALK,
        refusal: "The reasoning_content of each turn must be passed back",
        is: |value, _| value.is_null(),
        on: [
            made("/messages/1/reasoning_content", "parameter_refused:reasoning_history"),
            NotInThisProtocol,
            made("/messages/1/content/0/thinking", "parameter_refused:reasoning_history"),
        ],
        ..CHANGE
    },
    Change {
        name: "StreamOptions",
        profile: r#"{"obfuscation": false}"#,
        only_streams: true,
        on: [
            made("/stream_options", "stream_options_refused"),
            made("/stream_options", "stream_options_refused"),
            NotInThisProtocol,
        ],
        ..CHANGE
    },
    Change {
        name: "Neighbours",
        has: NO_QUESTION,
        refusal: "Conversation roles must alternate user/assistant/user/assistant/...",
        is: |value, _| value == "assistant",
        on: [
            made("/messages/0/role", "beginning_missing,parameter_refused:alternating_roles"),
            made("/input/0/role", "beginning_missing,parameter_refused:alternating_roles"),
            NotInThisProtocol,
        ],
        ..CHANGE
    },
    Change {
        name: "PromptCacheKey",
        has: r#"{"metadata": {"user_id": "u_session_7"}}"#,
        profile: r#"{"prompt_cache_key": true}"#,
        on: [
            made("/prompt_cache_key", "parameter_refused:prompt_cache_key"),
            made("/prompt_cache_key", "parameter_refused:prompt_cache_key"),
            NotInThisProtocol,
        ],
        ..CHANGE
    },
    Change {
        name: "User",
        has: r#"{"metadata": {"user_id": "u"}}"#,
        profile: r#"{"user_id": "safety_identifier"}"#,
        on: [
            made("/safety_identifier", "parameter_refused:user_id"),
            made("/safety_identifier", "parameter_refused:user_id"),
            made("/metadata", "dropped:metadata,parameter_refused:user_id"),
        ],
        ..CHANGE
    },
    Change {
        name: "ServiceTier",
        has: r#"{"service_tier": "standard_only"}"#,
        profile: r#"{"service_tier": true}"#,
        on: [
            made("/service_tier", "parameter_refused:service_tier"),
            made("/service_tier", "parameter_refused:service_tier"),
            made("/service_tier", "dropped:service_tier,parameter_refused:service_tier"),
        ],
        ..CHANGE
    },
    Change {
        name: "Phase",
        has: TALK,
        profile: r#"{"message_phase": true}"#,
        on: [
            NotInThisProtocol,
            made("/input/1/phase", "parameter_refused:message_phase"),
            NotInThisProtocol,
        ],
        ..CHANGE
    },
    Change {
        name: "MaxTokensField",
        refusal: "Unsupported parameter: 'max_tokens' is not supported with this model.",
        on: [
            made("/max_tokens", "parameter_refused:max_tokens_field"),
            NotInThisProtocol,
            NotInThisProtocol,
        ],
        ..CHANGE
    },
    Change {
        name: "Include",
        refusal: "Encrypted content is not supported with this model.",
        on: [
            NotInThisProtocol,
            made("/include", "parameter_refused:include_encrypted"),
            NotInThisProtocol,
        ],
        ..CHANGE
    },
    Change {
        name: "Store",
        refusal: "Unsupported parameter: store",
        on: [NotInThisProtocol, made("/store", "parameter_refused:store_field"), NotInThisProtocol],
        ..CHANGE
    },
    Change {
        name: "StrictTools",
        has: r#"{"/tools/0/strict": true}"#,
        profile: r#"{"strict_tools": true}"#,
        is: |value, _| value == true,
        on: [
            made("/tools/0/function/strict", "dropped:strict,parameter_refused:strict_tools"),
            made("/tools/0/strict", "dropped:strict,parameter_refused:strict_tools"),
            NotInThisProtocol,
        ],
        ..CHANGE
    },
    Change {
        name: "Reasoning",
        on: [
            made("/messages/1/reasoning_content", "dropped:reasoning,reasoning_refused"),
            made("/input/1/encrypted_content", "dropped:reasoning,reasoning_refused"),
            made("/messages/1/content/0/thinking", "dropped:reasoning,reasoning_refused"),
        ],
        ..CHANGE
    },
    Change {
        name: "Thinking",
        has: THINKING,
        profile: EFFORTS,
        on: [
            made("/reasoning_effort", "dropped:thinking,parameter_refused:reasoning_effort_values"),
            made("/reasoning", "dropped:thinking,parameter_refused:reasoning_effort_values"),
            made("/thinking", "dropped:thinking,parameter_refused:reasoning_effort_values"),
        ],
        ..CHANGE
    },
    Change {
        name: "ThinkingSwitch",
        has: THINKING,
        profile: r#"{"thinking_switch": "thinking_type"}"#,
        refusal: "Unknown parameter: 'thinking'.",
        on: [
            made("/thinking", "dropped:thinking,parameter_refused:thinking_switch"),
            NotInThisProtocol,
            made("/thinking", "dropped:thinking,parameter_refused:thinking_switch"),
        ],
        ..CHANGE
    },
    Change {
        name: "ThinkingBudget",
        has: THINKING,
        profile: r#"{"thinking_budget": "thinking_budget_tokens"}"#,
        refusal: "Unknown parameter: 'thinking_budget_tokens'.",
        on: [
            made(
                "/thinking_budget_tokens",
                "dropped:thinking.budget_tokens,parameter_refused:thinking_budget",
            ),
            NotInThisProtocol,
            NotInThisProtocol,
        ],
        ..CHANGE
    },
    Change {
        name: "ReasoningSummary",
        has: ADAPTIVE,
        profile: EFFORTS,
        refusal: "Unsupported parameter: 'reasoning.summary' is not supported with this model.",
        on: [
            NotInThisProtocol,
            made("/reasoning/summary", "parameter_refused:reasoning_summary"),
            NotInThisProtocol,
        ],
        ..CHANGE
    },
    Change {
        name: "Effort",
        has: EFFORT,
        profile: EFFORTS,
        refusal: "Invalid 'reasoning_effort': must be one of 'low', 'medium', 'high'",
        is: |value, _| value == "max",
        on: [
            made("/reasoning_effort", "parameter_refused:reasoning_effort_values"),
            made("/reasoning/effort", "parameter_refused:reasoning_effort_values"),
            made("/output_config/effort", "parameter_refused:reasoning_effort_values"),
        ],
        ..CHANGE
    },
    Change {
        name: "Sampling",
        on: [
            made("/temperature", "dropped:temperature,parameter_refused:sampling"),
            made("/temperature", "dropped:temperature,parameter_refused:sampling"),
            made("/temperature", "dropped:temperature,parameter_refused:sampling"),
        ],
        ..CHANGE
    },
    Change {
        name: "TopK",
        has: r#"{"top_k": 5}"#,
        profile: r#"{"top_k": true}"#,
        on: [
            made("/top_k", "dropped:top_k,parameter_refused:top_k"),
            made("/top_k", "dropped:top_k,parameter_refused:top_k"),
            made("/top_k", "dropped:top_k,parameter_refused:top_k"),
        ],
        ..CHANGE
    },
    Change {
        name: "Stop",
        has: r#"{"stop_sequences": ["END"]}"#,
        on: [made("/stop", "parameter_refused:stop"), NotInThisProtocol, NotInThisProtocol],
        ..CHANGE
    },
    Change {
        name: "StopCount",
        has: r#"{"stop_sequences": ["END0", "END1", "END2"]}"#,
        refusal: "`stop` supports up to 2 stop sequences. Given: 3",
        is: |value, _| value.as_array().unwrap().len() > 2,
        on: [made("/stop", "parameter_refused:max_stop"), NotInThisProtocol, NotInThisProtocol],
        ..CHANGE
    },
    Change {
        name: "ParallelToolCalls",
        has: r#"{"tool_choice": {"type": "auto", "disable_parallel_tool_use": true}}"#,
        on: [
            made("/parallel_tool_calls", "parameter_refused:parallel_tool_calls"),
            made("/parallel_tool_calls", "parameter_refused:parallel_tool_calls"),
            NotInThisProtocol,
        ],
        ..CHANGE
    },
    Change {
        name: "ResponseFormat",
        has: SCHEMA,
        on: [
            made("/response_format", "dropped:output_config.format,response_format_refused"),
            made("/text/format", "dropped:output_config.format,response_format_refused"),
            NotInThisProtocol,
        ],
        ..CHANGE
    },
    Change {
        name: "Calls",
        has: r#"{"tools": []}"#,
        refusal: "Conversations with a history like this one are wrong without tools",
        // Messages gets the tools that the calls name, and the others the calls in words.
        is: |value, _| !value.is_null() && value.pointer("/0/input_schema").is_none(),
        on: [
            made("/messages/1/tool_calls", "pairing_refused"),
            made("/input/2/call_id", "pairing_refused"),
            made("/tools", "pairing_refused"),
        ],
        ..CHANGE
    },
    Change {
        name: "MaxTokens",
        refusal: "max_tokens is too large: 4000. This model supports at most 1000 completion tokens.",
        is: |value, _| value.as_u64().unwrap() > 1000,
        on: [
            made("/max_tokens", "max_tokens_refused"),
            made("/max_output_tokens", "max_tokens_refused"),
            made("/max_tokens", "max_tokens_refused"),
        ],
        ..CHANGE
    },
    Change {
        name: "Space",
        refusal: "'max_tokens' or 'max_completion_tokens' is too large: 4000. This model's maximum context length is \
            3000 tokens and your request has 100 input tokens (4000 > 3000 - 100)",
        is: |value, _| value.as_u64().unwrap() > 2900,
        on: [
            made("/max_tokens", "max_tokens_refused"),
            made("/max_output_tokens", "max_tokens_refused"),
            made("/max_tokens", "max_tokens_refused"),
        ],
        ..CHANGE
    },
    Change {
        name: "OutputLimit",
        refusal: "Unsupported parameter: max_output_tokens",
        on: [
            NotInThisProtocol,
            made("/max_output_tokens", "parameter_refused:output_limit"),
            NotInThisProtocol,
        ],
        ..CHANGE
    },
    Change {
        name: "Descriptions",
        has: concat!(r#"{"/tools/0/description": ""#, a_long_text!(), "\"}"),
        is: |value, _| value.as_str().unwrap().len() > 1024,
        on: [
            made("/tools/0/function/description", "parameter_refused:max_tool_description"),
            made("/tools/0/description", "parameter_refused:max_tool_description"),
            NotInThisProtocol,
        ],
        ..CHANGE
    },
    Change {
        name: "Extensions",
        has: r#"{"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}"#,
        refusal: "context_management: Extra inputs are not permitted",
        on: [
            NotInThisProtocol,
            NotInThisProtocol,
            made("/context_management", "dropped:context_management,extension_refused"),
        ],
        ..CHANGE
    },
    Change {
        name: "CacheMarks",
        has: r#"{"/tools/0/cache_control": {"type": "ephemeral"}}"#,
        refusal: "tools.0.custom.cache_control: Extra inputs are not permitted",
        on: [
            NotInThisProtocol,
            NotInThisProtocol,
            made("/tools/0/cache_control", "dropped:cache_control,extension_refused"),
        ],
        ..CHANGE
    },
    Change {
        name: "ForcedTool",
        has: r#"{"tool_choice": {"type": "any"}}"#,
        is: |value, _| value != "auto" && value["type"] != "auto",
        on: [
            made("/tool_choice", "dropped:tool_choice,parameter_refused:tool_choice_any"),
            made("/tool_choice", "dropped:tool_choice,parameter_refused:tool_choice_any"),
            made("/tool_choice", "dropped:tool_choice,parameter_refused:tool_choice_any"),
        ],
        ..CHANGE
    },
    Change {
        name: "Images",
        has: IMAGE,
        refusal: "There is no vision here: not available",
        on: [
            made("/messages/3/content/1/image_url", "dropped:image,images_refused"),
            made("/input/3/output/1/image_url", "dropped:image,images_refused"),
            made("/messages/2/content/0/content/1/source", "dropped:image,images_refused"),
        ],
        ..CHANGE
    },
    Change {
        name: "Documents",
        has: DOCUMENT,
        profile: r#"{"file_parts": true}"#,
        refusal: "A pdf is not available here",
        on: [
            made("/messages/0/content/1/file", "dropped:document,documents_refused"),
            made("/input/0/content/1/file_data", "dropped:document,documents_refused"),
            made("/messages/0/content/1/source", "dropped:document,documents_refused"),
        ],
        ..CHANGE
    },
];

impl Change {
    /// Checks a cell of the table.
    fn check(&self, at: usize, stream: bool) -> Result<(), String> {
        let protocol = PROTOCOLS[at];
        let (got, wanted) = match &self.on[at] {
            Cell::Made { at, warnings } => {
                let is_in = |sent: &Value| {
                    let subject = sent.pointer(at).unwrap_or(&Value::Null);
                    (self.is)(subject, stream)
                };
                let got = self.ask(protocol, stream, at, &is_in);
                let asked = if self.only_streams && !stream { 1 } else { 2 };
                let wanted = if asked == 1 { "" } else { warnings };
                (got, (200, asked, wanted))
            }
            NotInThisProtocol => {
                let at = self.on.iter().find_map(|cell| match cell {
                    Cell::Made { at, .. } => Some(*at),
                    NotInThisProtocol => None,
                });
                (self.ask(protocol, stream, at.unwrap(), &|_| true), (400, 1, ""))
            }
        };
        let Got { status, warnings, asked, body } = got;
        let is_right = (status, asked.len(), &*warnings) == wanted
            && (status != 200 || body["content"] == json!([{"type": "text", "text": "Hi"}]));
        let way = if stream { "stream" } else { "whole" };
        match is_right {
            true => Ok(()),
            false => Err(format!(
                "{} on {protocol}, {way}: {status}, {} requests, {warnings}\n{body}\n{}",
                self.name,
                asked.len(),
                asked[0]
            )),
        }
    }
}

#[test]
fn every_change_is_made_in_each_protocol_that_has_it_and_in_no_other() {
    let cells = (0..PROTOCOLS.len()).flat_map(|at| [(at, false), (at, true)]);
    let wrong: Vec<_> = CHANGES
        .iter()
        .flat_map(|change| cells.clone().filter_map(|(at, stream)| change.check(at, stream).err()))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
