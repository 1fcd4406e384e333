//! Changes to a request by which a client loses nothing: other forms of texts and ids, and data
//! that only the operator sees.

use super::{ChangeRow, LACKS, OF_CHAT, OF_RESPONSES, ROW, WITH_CALLS, WITH_TOOLS, WarningName};
use crate::error::Parameter;
use crate::profile::{
    self, EmptyAssistantContent, IdStyle, ReasoningHistory, StoreField, ToolContentParts,
    ToolOutputParts, UserId,
};
use crate::upstream_error::refused::Refused;

/// Changes without any loss for the client, likeliest first.
pub(super) static ROWS: &[ChangeRow] = &[
    ChangeRow {
        change: Refused::Streaming(true),
        warning: WarningName::Code("stream_refused"),
        messages: true,
        places: "stream",
        names: "sse | stream | streaming | non streaming | 流式",
        lacks: "not support | nt support | unsupported | not allowed | not enabled | disabled | unavailable | cannot | \
            can not | only | must | require | needs | use stream | expected true | without | 不支持 | 仅支持",
        ..ROW
    },
    ChangeRow {
        change: Refused::JoinedTexts,
        warning: WarningName::Key("joined_texts"),
        narrow: |_, profile, _| profile.joined_texts = true,
        places: "messages.*.content | input.*.content",
        makes_text: true,
        names: "content & array | content & list | content & parts",
        lacks: LACKS,
        ..ROW
    },
    ChangeRow {
        change: Refused::ResultsAsText,
        warning: WarningName::Key("tool_output_parts"),
        chat: WITH_CALLS,
        responses: WITH_CALLS,
        narrow: |_, profile, _| {
            profile.tool_content_parts = ToolContentParts::No;
            profile.tool_output_parts = ToolOutputParts::Text;
        },
        places: "input.*.output | messages.*.content",
        names: "tool & output | function_call_output | tool result | tool message",
        makes_text: true,
        ..ROW
    },
    ChangeRow {
        change: Refused::EmptyContent(EmptyAssistantContent::Empty),
        places: "messages.*.content",
        names: "content & null | content & none | text is not present | content & missing",
        makes_text: true,
        ..EMPTY_CONTENT
    },
    ChangeRow {
        change: Refused::EmptyContent(EmptyAssistantContent::Null),
        places: "messages.*.content",
        names: "content & empty | content text & missing | text & blank",
        ..EMPTY_CONTENT
    },
    ChangeRow {
        change: Refused::Ids,
        warning: WarningName::Key("id_style"),
        chat: WITH_CALLS,
        responses: WITH_CALLS,
        messages: true,
        narrow: |_, profile, _| profile.id_style = IdStyle::Mistral9,
        places: "messages.*.tool_calls.*.id | messages.*.tool_call_id | input.*.call_id | \
            messages.*.content.*.id | messages.*.content.*.tool_use_id",
        names: "call id | tool call id | tool_call_id | tool_calls id | call_id | tool_use_id | tool_use id",
        lacks: "exceed | must match | too long | length | pattern | a-z | characters | alphanumeric",
        ..ROW
    },
    ChangeRow {
        change: Refused::Names,
        warning: WarningName::Key("max_tool_name"),
        chat: WITH_TOOLS,
        responses: WITH_TOOLS,
        messages: true,
        narrow: |_, profile, _| {
            let known = Some(profile.max_tool_name).filter(|most| *most > 0);
            profile.max_tool_name = known.unwrap_or(NAME_MOST).min(NAME_MOST);
        },
        places: "tools.*.function.name | tools.*.name | messages.*.tool_calls.*.function.name | input.*.name | \
            messages.*.content.*.name",
        names: "tool name | tool names | function name | 工具名称 | 函数名",
        lacks: "exceed | must match | too long | length | pattern | a-z | characters | 过长",
        ..ROW
    },
    ChangeRow {
        change: Refused::ReasoningInEachTurn,
        warning: WarningName::Key("reasoning_history"),
        messages: true,
        chat: |_, context| context.counts.messages > 1,
        narrow: |_, profile, _| profile.reasoning_history = ReasoningHistory::Required,
        names: "thinking & passed back | reasoning_content & passed back | reasoning_content & missing | reasoning_content & required | \
            reasoning content & passed back | reasoning & must be passed",
        ..OF_CHAT
    },
    ChangeRow {
        change: Refused::StreamOptions,
        warning: WarningName::Code("stream_options_refused"),
        narrow: |_, profile, _| {
            profile.stream_usage = false;
            profile.obfuscation = true;
        },
        places: "stream_options",
        names: "stream_options | include_usage",
        lacks: LACKS,
        ..ROW
    },
    ChangeRow {
        change: Refused::Neighbours,
        warning: WarningName::Key("alternating_roles"),
        chat: |_, context| context.refusable.neighbours,
        responses: |_, context| context.refusable.neighbours,
        narrow: |_, profile, _| profile.alternating_roles = true,
        places: "messages.*.role | input.*.role",
        ..ROW
    },
    ChangeRow {
        change: Refused::Parameter(Parameter::PromptCacheKey),
        warning: WarningName::Key("prompt_cache_key"),
        narrow: |_, profile, _| profile.prompt_cache_key = false,
        places: "prompt_cache_key",
        names: "prompt_cache_key",
        lacks: LACKS,
        ..ROW
    },
    ChangeRow {
        change: Refused::Parameter(Parameter::User),
        warning: WarningName::Key("user_id"),
        chat: |_, context| context.refusable.user,
        responses: |_, context| context.refusable.user,
        messages: true,
        narrow: |_, profile, _| profile.user_id = UserId::Drop,
        places: "user | safety_identifier | metadata",
        names: "safety_identifier",
        lacks: LACKS,
        ..ROW
    },
    ChangeRow {
        change: Refused::Parameter(Parameter::ServiceTier),
        warning: WarningName::Key("service_tier"),
        chat: |_, context| context.refusable.service_tier,
        responses: |_, context| context.refusable.service_tier,
        messages: true,
        narrow: |_, profile, _| profile.service_tier = false,
        places: "service_tier",
        names: "service_tier | service tier",
        lacks: LACKS,
        ..ROW
    },
    ChangeRow {
        change: Refused::Parameter(Parameter::Phase),
        warning: WarningName::Key("message_phase"),
        narrow: |_, profile, _| profile.message_phase = false,
        places: "input.*.phase",
        ..OF_RESPONSES
    },
    ChangeRow {
        change: Refused::Parameter(Parameter::MaxTokensField),
        warning: WarningName::Key("max_tokens_field"),
        narrow: |_, profile, _| {
            use profile::MaxTokensField::{MaxCompletionTokens, MaxTokens};
            profile.max_tokens_field = match profile.max_tokens_field {
                MaxTokens => MaxCompletionTokens,
                MaxCompletionTokens => MaxTokens,
            };
        },
        ..OF_CHAT
    },
    ChangeRow {
        change: Refused::Parameter(Parameter::Include),
        warning: WarningName::Key("include_encrypted"),
        narrow: |_, profile, _| profile.include_encrypted = false,
        places: "include",
        ..OF_RESPONSES
    },
    ChangeRow {
        change: Refused::Parameter(Parameter::Store),
        warning: WarningName::Key("store_field"),
        narrow: |_, profile, _| profile.store_field = StoreField::Omit,
        places: "store",
        ..OF_RESPONSES
    },
];

/// Maximum length of a tool's name in OpenAI's API, in characters.
const NAME_MOST: usize = 64;

/// Base row for changes to assistant messages without text.
const EMPTY_CONTENT: ChangeRow = ChangeRow {
    warning: WarningName::Key("empty_assistant_content"),
    chat: WITH_CALLS,
    narrow: |refused, profile, _| {
        if let Refused::EmptyContent(content) = refused {
            profile.empty_assistant_content = *content;
        }
    },
    ..OF_CHAT
};
