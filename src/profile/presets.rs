//! Profiles of known kinds of servers, one for each preset, and the usual addresses of these
//! servers. This text also says which source of a flag's value wins.
//!
//! Sources of a flag's value for an upstream, from the weakest to the strongest:
//!
//! | source of the value | code that reads the source |
//! |---|---|
//! | the default of the flag | `keys!` in [`profile`](super) |
//! | the preset that `profile` names | the rows here |
//! | `profile_overrides` | [`Profile::effective`] |
//! | recent refusals by the upstream | kept by `exchange/memory.rs`, applied by `Refused::narrow` |
//!
//! In `strict` mode nothing is remembered, and no request is sent again with a part of the client's
//! request left out. The profiles here are for Chat Completions; `responses` has the differences
//! for upstreams that speak Responses.
//!
//! A variable or a flag of the host that names a preset replaces both the preset and the overrides
//! (`src/config/variables.rs`).

mod responses;

pub(crate) use responses::speaks_responses;

use super::{
    CacheBreakpoints, Effort, IdStyle, ImageParts, MaxTokensField, MidSystem, Prefill, Profile,
    ReasoningField, ReasoningHistory, ResponseFormat, StrictSchemas, TextAfterToolResults,
    ThinkingBudget, ThinkingSwitch, Tokenizer, ToolChoiceAny, ToolChoiceNamed, ToolChoiceNone,
    ToolContentParts, ToolSchema, UserId,
};
use crate::json::Error;
use crate::setting::Overrides;

/// Defines the presets, each with its name in the configuration.
macro_rules! presets {
    ($($name:literal => $profile:expr,)+) => {
        /// Names of the presets, which are the values of `profile` in the configuration.
        pub const PRESETS: &[&str] = &[$($name),+];

        impl Profile {
            /// Returns the profile of a known kind of server, by its name in [`PRESETS`].
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
    "openai" => openai(),
    // OpenAI's older API, Chat Completions.
    "openai-chat" => openai(),
    "azure" => Profile {
        prompt_cache_key: false,
        service_tier: false,
        user_id: UserId::User,
        ..openai()
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
        thinking_budget: ThinkingBudget::ThinkingBudgetTokens,
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
    "lmstudio" => Profile {
        max_tool_name: 0,
        image_parts: ImageParts::Data,
        tool_choice_named: ToolChoiceNamed::OnlyTool,
        tool_schema: ToolSchema::LlamaCpp,
        ..Profile::default()
    },
    // OpenRouter gives each provider the cache mark in the provider's own form, or no mark.
    "openrouter" => Profile {
        cache_breakpoints: CacheBreakpoints::CacheControl,
        tool_content_parts: ToolContentParts::Text,
        reasoning_effort_values: vec![Effort::Low, Effort::Medium, Effort::High],
        ..Profile::default()
    },
    "groq" => Profile {
        max_tokens_field: MaxTokensField::MaxCompletionTokens,
        max_tokens_max: 65_536,
        max_stop: 4,
        ..Profile::default()
    },
    // xAI's models refuse `stop`. The efforts that they take differ from model to model, so no
    // effort is sent.
    "xai" => Profile { stop: false, ..Profile::default() },
    "kimi" => Profile {
        id_style: IdStyle::Kimi,
        max_stop: 5,
        max_tools: 128,
        prompt_cache_key: true,
        reasoning_history: ReasoningHistory::Required,
        sampling: false,
        thinking_switch: ThinkingSwitch::ThinkingType,
        tool_schema: ToolSchema::Kimi,
        user_id: UserId::SafetyIdentifier,
        ..Profile::default()
    },
}

/// Usual address of a known server, and the environment variable that usually holds its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownServer {
    /// Name of the server's preset in [`PRESETS`].
    pub preset: &'static str,
    /// Scheme, host and port of the server. Empty if every user has a different address. For a
    /// server on this machine it is an IP address, because `localhost` may mean `::1`, where
    /// another user may listen.
    pub url: &'static str,
    /// Base path of the server before `/chat/completions` or `/responses`.
    pub base_path: &'static str,
    /// Name of the environment variable that usually holds the server's key; empty if the server
    /// requires none.
    pub key: &'static str,
    /// Setting of the server that raises the context window, before its number of tokens; empty if
    /// users cannot set the window.
    pub window_setting: &'static str,
}

/// Known servers: first those of this machine, then vendors. `creole launch` searches each group in
/// this order.
pub const SERVERS: &[KnownServer] = &[
    local("ollama", "http://127.0.0.1:11434", "OLLAMA_CONTEXT_LENGTH="),
    local("llama.cpp", "http://127.0.0.1:8080", "--ctx-size "),
    local("lmstudio", "http://127.0.0.1:1234", "lms load MODEL --context-length "),
    local("vllm", "http://127.0.0.1:8000", "--max-model-len "),
    local("sglang", "http://127.0.0.1:30000", "--context-length "),
    hosted("openai", "https://api.openai.com", "/v1", "OPENAI_API_KEY"),
    hosted("openrouter", "https://openrouter.ai", "/api/v1", "OPENROUTER_API_KEY"),
    hosted("groq", "https://api.groq.com", "/openai/v1", "GROQ_API_KEY"),
    hosted("deepseek", "https://api.deepseek.com", "/v1", "DEEPSEEK_API_KEY"),
    hosted("mistral", "https://api.mistral.ai", "/v1", "MISTRAL_API_KEY"),
    hosted("kimi", "https://api.moonshot.ai", "/v1", "MOONSHOT_API_KEY"),
    hosted("xai", "https://api.x.ai", "/v1", "XAI_API_KEY"),
    hosted("azure", "", "/openai/v1", "AZURE_OPENAI_API_KEY"),
];

const fn local(
    preset: &'static str,
    url: &'static str,
    window_setting: &'static str,
) -> KnownServer {
    KnownServer { preset, url, base_path: "/v1", key: "", window_setting }
}

const fn hosted(
    preset: &'static str,
    url: &'static str,
    base_path: &'static str,
    key: &'static str,
) -> KnownServer {
    KnownServer { preset, url, base_path, key, window_setting: "" }
}

impl KnownServer {
    /// Returns the server that belongs to a preset.
    #[must_use]
    pub fn of_preset(preset: &str) -> Option<&'static Self> {
        // The presets `openai` and `openai-chat` are two APIs of one server.
        let preset = if preset == "openai-chat" { "openai" } else { preset };
        SERVERS.iter().find(|server| server.preset == preset)
    }

    /// Returns the vendor whose own address the URL has. The vendor's key may be sent only there.
    #[must_use]
    pub fn of_vendor(url: &str) -> Option<&'static Self> {
        SERVERS.iter().find(|server| server.owns(url))
    }

    /// Returns true if this server's usual key may be sent to a URL.
    #[must_use]
    pub fn owns(&self, url: &str) -> bool {
        let Some(host) = url.strip_prefix("https://") else { return false };
        let host = host.strip_suffix(":443").unwrap_or(host);
        match (self.key, self.url.strip_prefix("https://")) {
            ("", _) => false,
            (_, Some(own)) => host.eq_ignore_ascii_case(own),
            (_, None) => host.to_ascii_lowercase().ends_with(".openai.azure.com"),
        }
    }
}

/// Returns the profile of OpenAI, and of its models at Azure, for Chat Completions.
fn openai() -> Profile {
    Profile {
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
    }
}

/// Returns the flags that vLLM and SGLang have in common.
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
    /// Returns the profile of an upstream: the flags of its preset, with the overrides of the
    /// configuration.
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

#[cfg(test)]
mod tests;
