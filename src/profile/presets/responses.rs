//! Flags of the presets that differ if an upstream speaks Responses.

use crate::profile::{
    LengthStatus, MidSystem, Prefill, Profile, ReasoningHistory, ReasoningSummary, StoreField,
    SystemRole, ThinkingSwitch, Tokenizer, ToolContentParts, ToolOutputParts, WebSearch,
};

/// Returns true if upstreams with this preset speak Responses by default, when the configuration
/// names no protocol.
///
/// - `openai`, `azure`: from gpt-5.4 on, models take no tools beside reasoning in Chat Completions.
/// - `xai`: encrypted reasoning goes back in Responses alone.
///
/// All other presets speak Chat Completions. OpenRouter's Responses API is a beta. In vLLM, SGLang,
/// llama.cpp, Ollama and LM Studio, Responses is newer than Chat Completions: items lack ids or
/// ends, and some servers never report that the limit cut an answer.
pub(crate) fn speaks_responses(preset: &str) -> bool {
    matches!(preset, "openai" | "azure" | "xai")
}

/// Maximum length of a `call_id` at OpenAI.
const CALL_ID_BYTES_MAX: usize = 64;

impl Profile {
    /// Returns the flags of the preset `name` for an upstream that speaks Responses, made from the
    /// flags for Chat Completions.
    #[must_use]
    pub(crate) fn for_responses(self, name: &str) -> Self {
        let thinking_switch = match (self.thinking_switch, name) {
            // llama.cpp and vLLM pass the effort `none` on to the chat template.
            (ThinkingSwitch::EffortNone, _) | (_, "llama.cpp" | "vllm") => {
                ThinkingSwitch::EffortNone
            }
            // Every other switch is a member of Chat Completions requests.
            _ => ThinkingSwitch::None,
        };
        let common = Self {
            max_id_length: CALL_ID_BYTES_MAX,
            reasoning_history: ReasoningHistory::Auto,
            file_parts: true,
            mid_system: MidSystem::InPlace,
            prefill: Prefill::Send,
            strip_prefill_echo: false,
            strict_tools: false,
            system_role: SystemRole::Developer,
            thinking_switch,
            tokenizer: Tokenizer::None,
            tool_content_parts: ToolContentParts::No,
            ..self
        };
        match name {
            "openai" | "openai-chat" => Self {
                message_phase: true,
                obfuscation: false,
                strict_tools: true,
                tokenizer: Tokenizer::InputTokens,
                web_search: WebSearch::Responses,
                ..common
            },
            // Azure has no endpoint that counts tokens, and not everywhere a web search.
            "azure" => {
                Self { message_phase: true, obfuscation: false, strict_tools: true, ..common }
            }
            // LM Studio, vLLM and SGLang take the system prompt only at the beginning, results as
            // texts, and no bytes of documents. xAI's package for the Vercel AI SDK sends requests
            // of the same form.
            "lmstudio" | "vllm" | "sglang" | "xai" => Self {
                file_parts: false,
                mid_system: MidSystem::AsUser,
                tool_output_parts: ToolOutputParts::Text,
                ..common
            },
            // llama.cpp makes Chat Completions of a request, so it counts tokens and repeats a
            // prefill as it does in Chat Completions.
            "llama.cpp" => Self {
                file_parts: false,
                include_encrypted: false,
                length_status: LengthStatus::Inferred,
                mid_system: MidSystem::AsUser,
                reasoning_summary: ReasoningSummary::None,
                strip_prefill_echo: true,
                tokenizer: Tokenizer::InputTokens,
                tool_output_parts: ToolOutputParts::Text,
                ..common
            },
            "ollama" => Self {
                file_parts: false,
                include_encrypted: false,
                length_status: LengthStatus::Inferred,
                mid_system: MidSystem::AsUser,
                store_field: StoreField::Omit,
                tool_output_parts: ToolOutputParts::Images,
                ..common
            },
            _ => common,
        }
    }
}
