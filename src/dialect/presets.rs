//! The profiles of known kinds of servers, a row for each; and what wins where several say something of a flag.
//!
//! For an upstream, from the weakest to the strongest:
//!
//! | what says it | where that is read |
//! |---|---|
//! | the default of the flag | `keys!` in [`profile`](super::profile) |
//! | the preset that `profile` names | the rows here |
//! | `profile_overrides` | [`Profile::effective`] |
//! | what the upstream refused of late | `exchange/memory.rs` keeps it; `Refused::narrow` changes the profile |
//!
//! A variable or an option of the host that names a preset stands in place of the preset and of the overrides
//! (`src/config/variables.rs`).

use super::profile::{
    Effort, IdStyle, ImageParts, MaxTokensField, MidSystem, Prefill, Profile, ReasoningField,
    ReasoningHistory, ResponseFormat, StrictSchemas, TextAfterToolResults, ThinkingSwitch,
    Tokenizer, ToolChoiceAny, ToolChoiceNamed, ToolChoiceNone, ToolContentParts, ToolSchema,
    UserId,
};
use crate::json::Error;
use crate::setting::Overrides;

/// Defines the presets, each with its name in the configuration.
macro_rules! presets {
    ($($name:literal => $profile:expr,)+) => {
        /// The names that `profile` takes in the configuration.
        pub const PRESETS: &[&str] = &[$($name),+];

        impl Profile {
            /// The profile of a known kind of server, by its name in [`PRESETS`].
            #[must_use]
            pub fn preset(name: &str) -> Option<Self> {
                match name {
                    $($name => Some($profile),)+
                    _ => None,
                }
            }
        }
    };
}

presets! {
    "default" => Profile::default(),
    "openai" => Profile {
        max_tokens_field: MaxTokensField::MaxCompletionTokens,
        reasoning_effort_values: vec![
            Effort::None,
            Effort::Minimal,
            Effort::Low,
            Effort::Medium,
            Effort::High,
            Effort::Xhigh,
            Effort::Max,
        ],
        thinking_switch: ThinkingSwitch::EffortNone,
        reasoning_history: ReasoningHistory::Never,
        max_id_length: 40,
        max_stop: 4,
        max_tools: 128,
        tool_content_parts: ToolContentParts::Text,
        file_parts: true,
        mid_system: MidSystem::InPlace,
        prompt_cache_key: true,
        service_tier: true,
        strict_tools: true,
        user_id: UserId::SafetyIdentifier,
        ..Profile::default()
    },
    "deepseek" => Profile {
        reasoning_effort_values: vec![Effort::Low, Effort::High, Effort::Max],
        thinking_switch: ThinkingSwitch::ThinkingType,
        reasoning_history: ReasoningHistory::RequiredOnToolCalls,
        max_stop: 16,
        max_tools: 128,
        image_parts: ImageParts::None,
        mid_system: MidSystem::InPlace,
        parallel_tool_calls: false,
        response_format: ResponseFormat::JsonObject,
        ..Profile::default()
    },
    "mistral" => Profile {
        stream_usage: false,
        reasoning_history: ReasoningHistory::Never,
        id_style: IdStyle::Mistral9,
        prefill: Prefill::Prefix,
        strip_prefill_echo: true,
        text_after_tool_results: TextAfterToolResults::MergeIntoLastTool,
        tool_choice_any: ToolChoiceAny::Any,
        tool_choice_none: ToolChoiceNone::OmitTools,
        tool_schema: ToolSchema::Mistral,
        user_id: UserId::Drop,
        ..Profile::default()
    },
    "vllm" => Profile {
        tokenizer: Tokenizer::Messages,
        max_stop: 4,
        reasoning_field: ReasoningField::Reasoning,
        ..python_server()
    },
    "sglang" => Profile { tokenizer: Tokenizer::Chat, ..python_server() },
    "llama.cpp" => Profile {
        tokenizer: Tokenizer::InputTokens,
        top_k: true,
        reasoning_effort_values: vec![Effort::Low, Effort::Medium, Effort::High],
        joined_texts: true,
        thinking_switch: ThinkingSwitch::ChatTemplateKwargs,
        thinking_budget: true,
        max_tool_name: 0,
        tool_content_parts: ToolContentParts::Images,
        tool_choice_named: ToolChoiceNamed::OnlyTool,
        tool_schema: ToolSchema::LlamaCpp,
        strip_prefill_echo: true,
        stream_prefill_echo: false,
        ..Profile::default()
    },
    "ollama" => Profile {
        top_k: true,
        thinking_switch: ThinkingSwitch::EffortNone,
        max_tool_name: 0,
        image_parts: ImageParts::Data,
        mid_system: MidSystem::InPlace,
        parallel_tool_calls: false,
        tool_choice_named: ToolChoiceNamed::OnlyTool,
        tool_choice_none: ToolChoiceNone::OmitTools,
        tool_schema: ToolSchema::Ollama,
        ..Profile::default()
    },
}

/// What vLLM and SGLang have in common.
fn python_server() -> Profile {
    Profile {
        top_k: true,
        reasoning_effort_values: vec![Effort::Low, Effort::Medium, Effort::High],
        thinking_switch: ThinkingSwitch::ChatTemplateKwargs,
        max_tool_name: 0,
        joined_texts: true,
        empty_description: true,
        prefill: Prefill::Continue,
        strict_tools: true,
        strict_schemas: StrictSchemas::Any,
        ..Profile::default()
    }
}

impl Profile {
    /// The flags of an upstream: those of its preset, but for what the configuration says otherwise.
    pub(crate) fn effective(
        preset: Self,
        overrides: Option<Overrides<Self>>,
    ) -> Result<Self, Error> {
        let mut profile = preset;
        if let Some(overrides) = overrides {
            overrides.apply(&mut profile)?;
            profile.check()?;
        }
        Ok(profile)
    }
}
