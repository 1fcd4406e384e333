//! The profiles of known kinds of servers.

use super::{
    Effort, IdStyle, ImageParts, MaxTokensField, MidSystem, Prefill, Profile, ReasoningField,
    ReasoningHistory, ResponseFormat, StrictSchemas, TextAfterToolResults, ThinkingSwitch,
    Tokenizer, ToolChoiceAny, ToolChoiceNamed, ToolChoiceNone, ToolContentParts, ToolSchema,
    UserId,
};

/// The names that `profile` takes in the configuration.
pub const PRESETS: [&str; 8] =
    ["default", "openai", "deepseek", "mistral", "vllm", "sglang", "llama.cpp", "ollama"];

impl Profile {
    /// The profile of a known kind of server, by its name in [`PRESETS`].
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        let mut profile = Self::default();
        match name {
            "default" => {}
            "openai" => {
                profile.max_tokens_field = MaxTokensField::MaxCompletionTokens;
                profile.reasoning_effort_values = vec![
                    Effort::None,
                    Effort::Minimal,
                    Effort::Low,
                    Effort::Medium,
                    Effort::High,
                    Effort::Xhigh,
                    Effort::Max,
                ];
                profile.thinking_switch = ThinkingSwitch::EffortNone;
                profile.reasoning_history = ReasoningHistory::Never;
                profile.max_id_length = 40;
                profile.max_stop = 4;
                profile.max_tools = 128;
                profile.tool_content_parts = ToolContentParts::Text;
                profile.file_parts = true;
                profile.mid_system = MidSystem::InPlace;
                profile.prompt_cache_key = true;
                profile.service_tier = true;
                profile.strict_tools = true;
                profile.user_id = UserId::SafetyIdentifier;
            }
            "deepseek" => {
                profile.reasoning_effort_values = vec![Effort::Low, Effort::High, Effort::Max];
                profile.thinking_switch = ThinkingSwitch::ThinkingType;
                profile.reasoning_history = ReasoningHistory::RequiredOnToolCalls;
                profile.max_stop = 16;
                profile.max_tools = 128;
                profile.image_parts = ImageParts::None;
                profile.mid_system = MidSystem::InPlace;
                profile.parallel_tool_calls = false;
                profile.response_format = ResponseFormat::JsonObject;
            }
            "mistral" => {
                profile.stream_usage = false;
                profile.reasoning_history = ReasoningHistory::Never;
                profile.id_style = IdStyle::Mistral9;
                profile.prefill = Prefill::Prefix;
                profile.strip_prefill_echo = true;
                profile.text_after_tool_results = TextAfterToolResults::MergeIntoLastTool;
                profile.tool_choice_any = ToolChoiceAny::Any;
                profile.tool_choice_none = ToolChoiceNone::OmitTools;
                profile.tool_schema = ToolSchema::Mistral;
                profile.user_id = UserId::Drop;
            }
            "vllm" | "sglang" => {
                profile.tokenizer =
                    if name == "vllm" { Tokenizer::Messages } else { Tokenizer::Chat };
                profile.top_k = true;
                profile.reasoning_effort_values = vec![Effort::Low, Effort::Medium, Effort::High];
                profile.thinking_switch = ThinkingSwitch::ChatTemplateKwargs;
                profile.max_tool_name = 0;
                profile.joined_texts = true;
                profile.empty_description = true;
                profile.prefill = Prefill::Continue;
                profile.strict_tools = true;
                profile.strict_schemas = StrictSchemas::Any;
                if name == "vllm" {
                    profile.max_stop = 4;
                    profile.reasoning_field = ReasoningField::Reasoning;
                }
            }
            "llama.cpp" => {
                profile.tokenizer = Tokenizer::InputTokens;
                profile.top_k = true;
                profile.reasoning_effort_values = vec![Effort::Low, Effort::Medium, Effort::High];
                profile.joined_texts = true;
                profile.thinking_switch = ThinkingSwitch::ChatTemplateKwargs;
                profile.thinking_budget = true;
                profile.max_tool_name = 0;
                profile.tool_content_parts = ToolContentParts::Images;
                profile.tool_choice_named = ToolChoiceNamed::OnlyTool;
                profile.tool_schema = ToolSchema::LlamaCpp;
                profile.strip_prefill_echo = true;
                profile.stream_prefill_echo = false;
            }
            "ollama" => {
                profile.top_k = true;
                profile.thinking_switch = ThinkingSwitch::EffortNone;
                profile.max_tool_name = 0;
                profile.image_parts = ImageParts::Data;
                profile.mid_system = MidSystem::InPlace;
                profile.parallel_tool_calls = false;
                profile.tool_choice_named = ToolChoiceNamed::OnlyTool;
                profile.tool_choice_none = ToolChoiceNone::OmitTools;
                profile.tool_schema = ToolSchema::Ollama;
            }
            _ => return None,
        }
        Some(profile)
    }
}
