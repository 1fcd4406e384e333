//! Changes to a request by which a client loses words: reasoning, a setting, or a part of the
//! answer.

use super::{ChangeRow, LACKS, Loss, NEVER, WITH_THINKING, WITH_TOOLS, WarningName};
use crate::error::Parameter;
use crate::model::request_context::Display;
use crate::profile::{self, Effort, Profile, ReasoningHistory, ReasoningSummary, ResponseFormat};
use crate::upstream_error::refused::{ANSWER_MOST_LEAST, Refused, WindowSpace};

/// Base row for changes that lose words.
const ROW: ChangeRow = ChangeRow { loss: Loss::Words, ..super::ROW };

/// Base row for changes that lose words and apply only to Chat Completions requests.
const OF_CHAT: ChangeRow = ChangeRow { responses: NEVER, ..ROW };

/// Base row for changes that lose words and apply only to Responses requests.
const OF_RESPONSES: ChangeRow = ChangeRow { chat: NEVER, ..ROW };

/// Changes by which a client loses words, with the most likely cause of the refusal first.
pub(super) static ROWS: &[ChangeRow] = &[
    ChangeRow {
        change: Refused::StrictTools,
        warning: WarningName::Key("strict_tools"),
        narrow: |_, profile, _| profile.strict_tools = false,
        places: "tools.*.function.strict | tools.*.strict",
        names: "strict",
        lacks: LACKS,
        ..ROW
    },
    ChangeRow {
        change: Refused::Reasoning,
        warning: WarningName::Code("reasoning_refused"),
        messages: true,
        drops: "reasoning",
        narrow: |_, profile, _| profile.reasoning_history = ReasoningHistory::Never,
        places: "input.*.id | messages.*.reasoning_content | messages.*.reasoning | messages.*.reasoning_details | \
            messages.*.thinking | messages.*.tool_calls.*.extra_content | messages.*.content.*.thinking | \
            messages.*.content.*.signature | input.*.encrypted_content | input.*.summary",
        names: "thinking 块 | thought signature | thought_signature | signature | encrypted_content | redacted_thinking | \
            thinking block | thinking & assistant message | reasoning item | reasoning & assistant message",
        lacks: "无效 | 格式 | corrupt | invalid | not valid | missing | mismatch | verif | decrypt | not support | cannot | \
            must be | must start | modified | not found | expected",
        ..ROW
    },
    ChangeRow {
        change: Refused::Parameter(Parameter::Thinking),
        warning: WarningName::Key("reasoning_effort_values"),
        chat: WITH_THINKING,
        responses: WITH_THINKING,
        messages: true,
        drops: "thinking",
        narrow: |_, profile, _| {
            profile.thinking_switch = profile::ThinkingSwitch::None;
            profile.thinking_budget = profile::ThinkingBudget::None;
            profile.reasoning_summary = ReasoningSummary::None;
            profile.reasoning_effort_values.clear();
        },
        places: "thinking | reasoning | reasoning_effort | enable_thinking",
        names: "thinking | 思考",
        lacks: LACKS,
        ..ROW
    },
    ChangeRow {
        change: Refused::Parameter(Parameter::ThinkingSwitch),
        warning: WarningName::Key("thinking_switch"),
        chat: WITH_THINKING,
        messages: true,
        drops: "thinking",
        narrow: |_, profile, _| {
            profile.thinking_switch = profile::ThinkingSwitch::None;
            profile.reasoning_effort_values.retain(|effort| *effort != Effort::None);
        },
        places: "chat_template_kwargs",
        ..OF_CHAT
    },
    ChangeRow {
        change: Refused::Parameter(Parameter::ThinkingBudget),
        warning: WarningName::Key("thinking_budget"),
        chat: WITH_THINKING,
        drops: "thinking.budget_tokens",
        narrow: |_, profile, _| profile.thinking_budget = profile::ThinkingBudget::None,
        places: "thinking_budget_tokens | thinking_token_budget",
        names: "thinking budget | budget_tokens | thinking_budget",
        lacks: LACKS,
        ..OF_CHAT
    },
    ChangeRow {
        change: Refused::Parameter(Parameter::ReasoningSummary),
        warning: WarningName::Key("reasoning_summary"),
        responses: |_, context| context.thinking.display == Display::Shown,
        narrow: |_, profile, _| profile.reasoning_summary = ReasoningSummary::None,
        places: "reasoning.summary",
        names: "reasoning summary | reasoning summaries",
        lacks: LACKS,
        ..OF_RESPONSES
    },
    ChangeRow {
        change: Refused::Effort(Vec::new()),
        warning: WarningName::Key("reasoning_effort_values"),
        chat: WITH_THINKING,
        responses: WITH_THINKING,
        messages: true,
        drops: "output_config.effort",
        narrow: |refused, profile, _| {
            if profile.thinking_switch == profile::ThinkingSwitch::EffortNone {
                // The effort `none` is sent only if the upstream lists it as a value.
                profile.thinking_switch = profile::ThinkingSwitch::None;
            }
            if let Refused::Effort(values) = refused {
                profile.reasoning_effort_values.clone_from(values);
            }
        },
        places: "output_config.effort | reasoning.effort",
        ..ROW
    },
    ChangeRow {
        change: Refused::Parameter(Parameter::Sampling),
        warning: WarningName::Key("sampling"),
        chat: |_, context| context.refusable.sampling,
        responses: |_, context| context.refusable.sampling,
        messages: true,
        narrow: |_, profile, _| profile.sampling = false,
        places: "temperature | top_p",
        names: "temperature | top_p | sampling parameter",
        lacks: LACKS,
        ..ROW
    },
    ChangeRow {
        change: Refused::Parameter(Parameter::TopK),
        warning: WarningName::Key("top_k"),
        chat: |_, context| context.refusable.top_k,
        responses: |_, context| context.refusable.top_k,
        messages: true,
        narrow: |_, profile, _| profile.top_k = false,
        places: "top_k",
        names: "top_k",
        lacks: LACKS,
        ..ROW
    },
    ChangeRow {
        change: Refused::Parameter(Parameter::Stop),
        warning: WarningName::Key("stop"),
        chat: |_, context| !context.limits.stop_sequences.is_empty(),
        narrow: |_, profile, _| profile.stop = false,
        places: "stop",
        names: "stop sequence | stop_sequences | stop word",
        lacks: LACKS,
        ..OF_CHAT
    },
    ChangeRow {
        change: Refused::StopCount(0),
        warning: WarningName::Key("max_stop"),
        chat: |refused, context| matches!(refused, Refused::StopCount(most) if context.limits.stop_sequences.len() > *most),
        narrow: |refused, profile, _| {
            if let Refused::StopCount(most) = refused {
                profile.max_stop = *most;
            }
        },
        ..OF_CHAT
    },
    ChangeRow {
        change: Refused::Parameter(Parameter::ParallelToolCalls),
        warning: WarningName::Key("parallel_tool_calls"),
        chat: WITH_TOOLS,
        responses: WITH_TOOLS,
        narrow: |_, profile, _| profile.parallel_tool_calls = false,
        places: "parallel_tool_calls",
        names: "parallel_tool_calls | parallel tool call | parallel tool calling | parallel function calling",
        lacks: LACKS,
        ..ROW
    },
    ChangeRow {
        change: Refused::ResponseFormat,
        warning: WarningName::Code("response_format_refused"),
        // A schema that is sent as text does not force the answer to fit the schema.
        drops: "output_config.format",
        narrow: |_, profile, _| profile.response_format = ResponseFormat::None,
        places: "response_format | text.format",
        names: "json schema | grammar | structured output",
        ..ROW
    },
    ChangeRow {
        change: Refused::Calls(String::new()),
        warning: WarningName::Code("pairing_refused"),
        messages: true,
        names: "without & tools | toolconfig | tools & must be defined | tools & must be specified | tools & required | \
            tools & must define | tools & must be provided | tools & must be set | tools & missing",
        is_without_tools: true,
        ..ROW
    },
    ChangeRow {
        change: Refused::MaxTokens(ANSWER_MOST_LEAST),
        narrow: |refused, profile, _| {
            if let Refused::MaxTokens(most) = refused {
                limit(profile, *most);
            }
        },
        ..LESS_ANSWER
    },
    ChangeRow {
        change: Refused::Space(WindowSpace { answer: 0, prompt: 0, estimate: 0 }),
        narrow: |refused, profile, estimate| {
            if let Refused::Space(space) = refused
                && let Some(most) = space.beside(estimate())
            {
                limit(profile, most);
            }
        },
        ..LESS_ANSWER
    },
    ChangeRow {
        change: Refused::Parameter(Parameter::OutputLimit),
        warning: WarningName::Key("output_limit"),
        narrow: |_, profile, _| profile.output_limit = false,
        places: "max_output_tokens",
        names: "max_output_tokens",
        lacks: LACKS,
        ..OF_RESPONSES
    },
    ChangeRow {
        change: Refused::Descriptions,
        warning: WarningName::Key("max_tool_description"),
        chat: WITH_TOOLS,
        responses: WITH_TOOLS,
        narrow: |_, profile, _| {
            let known = Some(profile.max_tool_description).filter(|most| *most > 0);
            profile.max_tool_description = known.unwrap_or(DESCRIPTION_MOST).min(DESCRIPTION_MOST);
        },
        places: "tools.*.function.description | tools.*.description",
        names: "tool description | tools description | tool & description",
        lacks: "exceed | too long | length | characters | 过长",
        ..ROW
    },
    ChangeRow {
        change: Refused::Extensions,
        places: "context_management | tools.*.defer_loading | tools.*.eager_input_streaming | tools.*.input_examples | \
            system.*.cache_control.scope | system.*.cache_control.ttl | tools.*.cache_control.scope | \
            tools.*.cache_control.ttl | messages.*.content.*.cache_control.scope | \
            messages.*.content.*.cache_control.ttl | messages.*.content.*.caller",
        names: "context_management | defer_loading | eager_input_streaming | input_examples | cache_control & scope | \
            cache_control & ttl | ephemeral & scope | ephemeral & ttl | field scope | field ttl",
        ..OF_MESSAGES
    },
    ChangeRow {
        change: Refused::CacheMarks,
        places: "cache_control | system.*.cache_control | tools.*.cache_control | messages.*.content.*.cache_control",
        names: "cache_control",
        ..OF_MESSAGES
    },
];

/// Base row for members of the Messages API that other servers do not know.
const OF_MESSAGES: ChangeRow = ChangeRow {
    warning: WarningName::Code("extension_refused"),
    chat: NEVER,
    responses: NEVER,
    messages: true,
    lacks: "extra inputs | extra field | extra_forbidden | not permitted | not support | unsupported | unknown | \
        unrecogni | not recogni | unexpected | not allowed | 未知 | 不支持",
    ..ROW
};

/// Maximum length of a tool's description, in characters: an older limit of OpenAI's that other
/// servers kept.
const DESCRIPTION_MOST: usize = 1024;

/// Base row for changes that shorten the answer.
const LESS_ANSWER: ChangeRow =
    ChangeRow { warning: WarningName::Code("max_tokens_refused"), messages: true, ..ROW };

/// Lowers the maximum number of output tokens in the profile to `most`.
fn limit(profile: &mut Profile, most: u64) {
    let known = profile.max_tokens_max;
    profile.max_tokens_max = if known == 0 { most } else { known.min(most) };
}
