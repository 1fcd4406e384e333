//! The rows of changes.

use super::{Has, Loss, Row, Warning};
use crate::dialect::profile::{
    self, Effort, EmptyAssistantContent, IdStyle, ImageParts, Profile, ReasoningHistory,
    ReasoningSummary, ResponseFormat, StoreField, ToolChoiceAny, ToolChoiceNamed, ToolContentParts,
    ToolOutputParts, UserId,
};
use crate::error::Parameter;
use crate::model::request_context::Display;
use crate::upstream_error::refused::{ANSWER_MOST_LEAST, Refused, Space};

/// Words for what a model or a server cannot do, or may not; `nt` is the end of `doesn't` without its quote.
const LACKS: &str = "not support | nt support | unsupported | not enabled | not be enabled | not available | \
    not allowed | not accept | incompatible | missing | cannot | must be auto | only | 不支持 | 未启用 | 不能";

const ALWAYS: Has = |_, _| true;
const NEVER: Has = |_, _| false;
const WITH_CALLS: Has = |_, context| context.counts.has_calls();
const WITH_TOOLS: Has = |_, context| !context.tools.is_empty();
const WITH_THINKING: Has = |_, context| context.refusable.thinking;

/// A change without evidence that any request may need, and that changes nothing.
pub(super) const ROW: Row = Row {
    change: Refused::JoinedTexts,
    loss: Loss::Nothing,
    warning: Warning::Key(""),
    chat: ALWAYS,
    responses: ALWAYS,
    messages: false,
    drops: "",
    narrow: |_, _, _| {},
    places: "",
    names: "",
    lacks: "",
    makes_text: false,
    is_without_tools: false,
};

/// Change of what Chat Completions alone have.
const OF_CHAT: Row = Row { responses: NEVER, ..ROW };

/// Change of what Responses alone have.
const OF_RESPONSES: Row = Row { chat: NEVER, ..ROW };

/// Changes of requests, the likelier first where two lose as much.
pub(in crate::upstream_error) static ROWS: [Row; 36] = [
    Row {
        change: Refused::Streaming(true),
        warning: Warning::Code("stream_refused"),
        messages: true,
        places: "stream",
        names: "stream | streaming | non streaming | 流式",
        lacks: "not support | nt support | unsupported | not allowed | not enabled | cannot | can not | only | must | \
            require | needs | expected true | without | 不支持 | 仅支持",
        ..ROW
    },
    Row {
        change: Refused::JoinedTexts,
        warning: Warning::Key("joined_texts"),
        narrow: |_, profile, _| profile.joined_texts = true,
        places: "messages.*.content | input.*.content",
        makes_text: true,
        ..ROW
    },
    Row {
        change: Refused::ResultsAsText,
        warning: Warning::Key("tool_output_parts"),
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
    Row {
        change: Refused::EmptyContent(EmptyAssistantContent::Empty),
        places: "messages.*.content",
        names: "content & null | content & none | text is not present | content & missing",
        makes_text: true,
        ..EMPTY_CONTENT
    },
    Row {
        change: Refused::EmptyContent(EmptyAssistantContent::Null),
        places: "messages.*.content",
        names: "content & empty | content text & missing | text & blank",
        ..EMPTY_CONTENT
    },
    Row {
        change: Refused::Ids,
        warning: Warning::Key("id_style"),
        chat: WITH_CALLS,
        responses: WITH_CALLS,
        messages: true,
        narrow: |_, profile, _| profile.id_style = IdStyle::Mistral9,
        places: "messages.*.tool_calls.*.id | messages.*.tool_call_id | input.*.call_id | \
            messages.*.content.*.id | messages.*.content.*.tool_use_id",
        names: "tool call id | tool_call_id | tool_calls id | call_id | tool_use_id | tool_use id",
        lacks: "too long | length | pattern | a-z | characters | alphanumeric",
        ..ROW
    },
    Row {
        change: Refused::ReasoningInEachTurn,
        warning: Warning::Key("reasoning_history"),
        chat: |_, context| context.counts.messages > 1,
        narrow: |_, profile, _| profile.reasoning_history = ReasoningHistory::Required,
        names: "reasoning_content & passed back | reasoning_content & missing | reasoning_content & required | \
            reasoning content & passed back | reasoning & must be passed",
        ..OF_CHAT
    },
    Row {
        change: Refused::StreamOptions,
        warning: Warning::Code("stream_options_refused"),
        narrow: |_, profile, _| {
            profile.stream_usage = false;
            profile.obfuscation = true;
        },
        places: "stream_options",
        ..ROW
    },
    Row {
        change: Refused::Neighbours,
        warning: Warning::Key("alternating_roles"),
        chat: |_, context| context.refusable.neighbours,
        responses: |_, context| context.refusable.neighbours,
        narrow: |_, profile, _| profile.alternating_roles = true,
        ..ROW
    },
    Row {
        change: Refused::Parameter(Parameter::PromptCacheKey),
        warning: Warning::Key("prompt_cache_key"),
        narrow: |_, profile, _| profile.prompt_cache_key = false,
        places: "prompt_cache_key",
        ..ROW
    },
    Row {
        change: Refused::Parameter(Parameter::User),
        warning: Warning::Key("user_id"),
        chat: |_, context| context.refusable.user,
        responses: |_, context| context.refusable.user,
        messages: true,
        narrow: |_, profile, _| profile.user_id = UserId::Drop,
        places: "user | safety_identifier | metadata",
        ..ROW
    },
    Row {
        change: Refused::Parameter(Parameter::ServiceTier),
        warning: Warning::Key("service_tier"),
        chat: |_, context| context.refusable.service_tier,
        responses: |_, context| context.refusable.service_tier,
        messages: true,
        narrow: |_, profile, _| profile.service_tier = false,
        places: "service_tier",
        ..ROW
    },
    Row {
        change: Refused::Parameter(Parameter::Phase),
        warning: Warning::Key("message_phase"),
        narrow: |_, profile, _| profile.message_phase = false,
        places: "input.*.phase",
        ..OF_RESPONSES
    },
    Row {
        change: Refused::Parameter(Parameter::MaxTokensField),
        warning: Warning::Key("max_tokens_field"),
        narrow: |_, profile, _| {
            use profile::MaxTokensField::{MaxCompletionTokens, MaxTokens};
            profile.max_tokens_field = match profile.max_tokens_field {
                MaxTokens => MaxCompletionTokens,
                MaxCompletionTokens => MaxTokens,
            };
        },
        ..OF_CHAT
    },
    Row {
        change: Refused::Parameter(Parameter::Include),
        warning: Warning::Key("include_encrypted"),
        narrow: |_, profile, _| profile.include_encrypted = false,
        ..OF_RESPONSES
    },
    Row {
        change: Refused::Parameter(Parameter::Store),
        warning: Warning::Key("store_field"),
        narrow: |_, profile, _| profile.store_field = StoreField::Omit,
        ..OF_RESPONSES
    },
    Row {
        change: Refused::StrictTools,
        loss: Loss::Words,
        warning: Warning::Key("strict_tools"),
        narrow: |_, profile, _| profile.strict_tools = false,
        places: "tools.*.function.strict | tools.*.strict",
        names: "strict",
        lacks: LACKS,
        ..ROW
    },
    Row {
        change: Refused::Reasoning,
        loss: Loss::Words,
        warning: Warning::Code("reasoning_refused"),
        messages: true,
        drops: "reasoning",
        narrow: |_, profile, _| profile.reasoning_history = ReasoningHistory::Never,
        places: "messages.*.reasoning_content | messages.*.reasoning | messages.*.reasoning_details | \
            messages.*.thinking | messages.*.tool_calls.*.extra_content | messages.*.content.*.thinking | \
            messages.*.content.*.signature | input.*.encrypted_content | input.*.summary",
        names: "thought signature | thought_signature | signature | encrypted_content",
        lacks: "corrupt | invalid | not valid | missing | mismatch | verif | decrypt | not support",
        ..ROW
    },
    Row {
        change: Refused::Parameter(Parameter::Thinking),
        loss: Loss::Words,
        warning: Warning::Key("reasoning_effort_values"),
        chat: WITH_THINKING,
        responses: WITH_THINKING,
        messages: true,
        drops: "thinking",
        narrow: |_, profile, _| {
            profile.thinking_switch = profile::ThinkingSwitch::None;
            profile.thinking_budget = false;
            profile.reasoning_summary = ReasoningSummary::None;
            profile.reasoning_effort_values.clear();
        },
        places: "thinking | reasoning | reasoning_effort | enable_thinking",
        names: "thinking | 思考",
        lacks: LACKS,
        ..ROW
    },
    Row {
        change: Refused::Parameter(Parameter::ThinkingSwitch),
        loss: Loss::Words,
        warning: Warning::Key("thinking_switch"),
        chat: WITH_THINKING,
        messages: true,
        drops: "thinking",
        narrow: |_, profile, _| {
            profile.thinking_switch = profile::ThinkingSwitch::None;
            profile.reasoning_effort_values.retain(|effort| *effort != Effort::None);
        },
        ..OF_CHAT
    },
    Row {
        change: Refused::Parameter(Parameter::ThinkingBudget),
        loss: Loss::Words,
        warning: Warning::Key("thinking_budget"),
        chat: WITH_THINKING,
        drops: "thinking.budget_tokens",
        narrow: |_, profile, _| profile.thinking_budget = false,
        ..OF_CHAT
    },
    Row {
        change: Refused::Parameter(Parameter::ReasoningSummary),
        loss: Loss::Words,
        warning: Warning::Key("reasoning_summary"),
        responses: |_, context| context.thinking.display == Display::Shown,
        narrow: |_, profile, _| profile.reasoning_summary = ReasoningSummary::None,
        ..OF_RESPONSES
    },
    Row {
        change: Refused::Effort(Vec::new()),
        loss: Loss::Words,
        warning: Warning::Key("reasoning_effort_values"),
        chat: WITH_THINKING,
        responses: WITH_THINKING,
        messages: true,
        drops: "output_config.effort",
        narrow: |refused, profile, _| {
            if profile.thinking_switch == profile::ThinkingSwitch::EffortNone {
                // Then it is one of the values, or nothing.
                profile.thinking_switch = profile::ThinkingSwitch::None;
            }
            if let Refused::Effort(values) = refused {
                profile.reasoning_effort_values.clone_from(values);
            }
        },
        ..ROW
    },
    Row {
        change: Refused::Parameter(Parameter::Sampling),
        loss: Loss::Words,
        warning: Warning::Key("sampling"),
        chat: |_, context| context.refusable.sampling,
        responses: |_, context| context.refusable.sampling,
        messages: true,
        narrow: |_, profile, _| profile.sampling = false,
        places: "temperature | top_p",
        ..ROW
    },
    Row {
        change: Refused::Parameter(Parameter::TopK),
        loss: Loss::Words,
        warning: Warning::Key("top_k"),
        chat: |_, context| context.refusable.top_k,
        responses: |_, context| context.refusable.top_k,
        messages: true,
        narrow: |_, profile, _| profile.top_k = false,
        places: "top_k",
        ..ROW
    },
    Row {
        change: Refused::Parameter(Parameter::Stop),
        loss: Loss::Words,
        warning: Warning::Key("stop"),
        chat: |_, context| !context.limits.stop_sequences.is_empty(),
        narrow: |_, profile, _| profile.stop = false,
        places: "stop",
        ..OF_CHAT
    },
    Row {
        change: Refused::StopCount(0),
        loss: Loss::Words,
        warning: Warning::Key("max_stop"),
        chat: |refused, context| matches!(refused, Refused::StopCount(most) if context.limits.stop_sequences.len() > *most),
        narrow: |refused, profile, _| {
            if let Refused::StopCount(most) = refused {
                profile.max_stop = *most;
            }
        },
        ..OF_CHAT
    },
    Row {
        change: Refused::Parameter(Parameter::ParallelToolCalls),
        loss: Loss::Words,
        warning: Warning::Key("parallel_tool_calls"),
        chat: WITH_TOOLS,
        responses: WITH_TOOLS,
        narrow: |_, profile, _| profile.parallel_tool_calls = false,
        places: "parallel_tool_calls",
        ..ROW
    },
    Row {
        change: Refused::ResponseFormat,
        loss: Loss::Words,
        warning: Warning::Code("response_format_refused"),
        // Words hold no model to a schema.
        drops: "output_config.format",
        narrow: |_, profile, _| profile.response_format = ResponseFormat::None,
        places: "response_format | text.format",
        names: "json schema | grammar | structured output",
        ..ROW
    },
    Row {
        change: Refused::Calls(String::new()),
        loss: Loss::Words,
        warning: Warning::Code("pairing_refused"),
        names: "without & tools | toolconfig | tools & must be defined | tools & must be specified | tools & required",
        is_without_tools: true,
        ..ROW
    },
    Row {
        change: Refused::MaxTokens(ANSWER_MOST_LEAST),
        narrow: |refused, profile, _| {
            if let Refused::MaxTokens(most) = refused {
                limit(profile, *most);
            }
        },
        ..LESS_ANSWER
    },
    Row {
        change: Refused::Space(Space { answer: 0, prompt: 0, estimate: 0 }),
        narrow: |refused, profile, estimate| {
            if let Refused::Space(space) = refused
                && let Some(most) = space.beside(estimate())
            {
                limit(profile, most);
            }
        },
        ..LESS_ANSWER
    },
    Row {
        change: Refused::Parameter(Parameter::OutputLimit),
        loss: Loss::Words,
        warning: Warning::Key("output_limit"),
        narrow: |_, profile, _| profile.output_limit = false,
        ..OF_RESPONSES
    },
    Row {
        change: Refused::ForcedTool,
        loss: Loss::Ability,
        warning: Warning::Key("tool_choice_any"),
        chat: WITH_TOOLS,
        responses: WITH_TOOLS,
        messages: true,
        narrow: |_, profile, _| {
            profile.tool_choice_any = ToolChoiceAny::Auto;
            profile.tool_choice_named = ToolChoiceNamed::OnlyTool;
        },
        places: "tool_choice",
        names: "tool_choice | tool choice | toolchoice | forces tool | force tool | forced tool",
        lacks: LACKS,
        ..ROW
    },
    Row {
        change: Refused::Images,
        loss: Loss::Ability,
        warning: Warning::Code("images_refused"),
        chat: |_, context| context.refusable.images,
        responses: |_, context| context.refusable.images,
        messages: true,
        // Each image is named where it is left out.
        narrow: |_, profile, _| profile.image_parts = ImageParts::None,
        places: "messages.*.content.*.image_url | input.*.content.*.image_url | input.*.output.*.image_url",
        names: "image | vision | multimodal | multi modal | 图片 | 图像 | 视觉 | 多模态",
        lacks: LACKS,
        makes_text: true,
        ..ROW
    },
    Row {
        change: Refused::Documents,
        loss: Loss::Ability,
        warning: Warning::Code("documents_refused"),
        chat: |_, context| context.refusable.documents,
        responses: |_, context| context.refusable.documents,
        messages: true,
        narrow: |_, profile, _| profile.file_parts = false,
        places: "messages.*.content.*.file | input.*.content.*.file_data | input.*.output.*.file_data",
        names: "pdf | file part | input_file",
        lacks: LACKS,
        makes_text: true,
        ..ROW
    },
];

/// Row of a message of the assistant without words.
const EMPTY_CONTENT: Row = Row {
    warning: Warning::Key("empty_assistant_content"),
    chat: WITH_CALLS,
    narrow: |refused, profile, _| {
        if let Refused::EmptyContent(content) = refused {
            profile.empty_assistant_content = *content;
        }
    },
    ..OF_CHAT
};

/// Row of a shorter answer.
const LESS_ANSWER: Row =
    Row { loss: Loss::Words, warning: Warning::Code("max_tokens_refused"), messages: true, ..ROW };

/// Lowers the limit of the answer.
fn limit(profile: &mut Profile, most: u64) {
    let known = profile.max_tokens_max;
    profile.max_tokens_max = if known == 0 { most } else { known.min(most) };
}
