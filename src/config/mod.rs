//! The configuration: one JSON document for every host, checked strictly.
//!
//! An unknown key or a bad value stops the start, with the path and with what was expected there: a
//! limit that is misspelt would otherwise be no limit. Every key is documented at its field.

mod document;

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::profile::Profile;
pub use document::ConfigError;

/// Everything that an operator decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where requests can go, by name.
    pub upstreams: BTreeMap<String, Upstream>,
    /// Which model of which upstream serves which model of the client.
    pub models: ModelMap,
    /// What every exchange obeys.
    pub settings: Settings,
}

/// The keys beside `upstreams` and `models`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Reject what would be dropped with a warning, and enforce the real API's conversation rules
    /// instead of repairing what breaks them.
    pub strict: bool,
    /// Largest request body, in bytes; 413 above it. The real API's limit is 32 MiB.
    pub request_bytes_max: usize,
    /// Largest buffered answer, in bytes; 502 above it.
    pub response_bytes_max: usize,
    /// Longest line of an event stream, in bytes.
    pub event_bytes_max: usize,
    /// Most bytes of content blocks that wait for an earlier block to end.
    pub waiting_bytes_max: usize,
    /// Most bytes that all exchanges of one VM or process hold together; 529 above it.
    pub buffered_bytes_max: usize,
    /// Deepest nesting of JSON, at most 128.
    pub depth_max: u32,
    /// When a tool call's input reaches the client.
    pub tool_stream: ToolStream,
    /// What happens to a call that is not valid.
    pub invalid_tool_call: InvalidToolCall,
    /// Whether reasoning becomes thinking blocks.
    pub reasoning: Reasoning,
    /// How `/v1/messages/count_tokens` is answered.
    pub count_tokens: CountTokens,
    /// Longest silence of the upstream, in milliseconds; 0: 240,000 where the host can send pings,
    /// 120,000 where it cannot.
    pub stall_timeout_ms: u64,
    /// Longest time without content, in milliseconds, while the upstream sends something.
    pub no_progress_timeout_ms: u64,
    /// Longest wait for the upstream's head, in milliseconds; 0: as `stall_timeout_ms`.
    pub first_byte_timeout_ms: u64,
    /// Silence towards the client after which a ping is sent, in milliseconds.
    pub ping_interval_ms: u64,
    /// What keeps agents out of loops.
    pub guards: Guards,
    /// Envoy: hold the head of a request until its body is translated. `false` where
    /// `allow_on_headers_stop_iteration` cannot be set.
    pub pause_headers: bool,
    /// How much is logged. Never prompts, tool inputs or credentials.
    pub log: Log,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            strict: false,
            request_bytes_max: 32 << 20,
            response_bytes_max: 64 << 20,
            event_bytes_max: 8 << 20,
            waiting_bytes_max: 16 << 20,
            buffered_bytes_max: 256 << 20,
            depth_max: 128,
            tool_stream: ToolStream::Live,
            invalid_tool_call: InvalidToolCall::Pass,
            reasoning: Reasoning::OnRequest,
            count_tokens: CountTokens::Estimate,
            stall_timeout_ms: 0,
            no_progress_timeout_ms: 280_000,
            first_byte_timeout_ms: 0,
            ping_interval_ms: 15_000,
            guards: Guards::default(),
            pause_headers: true,
            log: Log::Info,
        }
    }
}

impl Settings {
    /// The longest silence of an upstream on a host that can (or cannot) send pings.
    #[must_use]
    pub fn stall_timeout_ms(&self, pings: bool) -> u64 {
        match (self.stall_timeout_ms, pings) {
            (0, true) => 240_000,
            (0, false) => 120_000,
            (chosen, _) => chosen,
        }
    }

    /// The longest wait for an upstream's head.
    #[must_use]
    pub fn first_byte_timeout_ms(&self, pings: bool) -> u64 {
        match self.first_byte_timeout_ms {
            0 => self.stall_timeout_ms(pings),
            chosen => chosen,
        }
    }
}

/// When a tool call's input reaches the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStream {
    /// As it comes, so that clients show progress.
    Live,
    /// When it is complete, so that it can be checked first.
    Buffered,
}

/// What happens to a tool call with an unknown name or an input that is not one JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvalidToolCall {
    /// The client sees it and tells the model what is wrong.
    Pass,
    /// Lossless repairs first, then as `pass`.
    Repair,
    /// Not sent to the client; needs `tool_stream: "buffered"`.
    Hold,
}

/// Whether reasoning becomes thinking blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    /// When the request enables thinking.
    OnRequest,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How `/v1/messages/count_tokens` is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountTokens {
    /// From the number of bytes.
    Estimate,
    /// By the upstream's tokenizer.
    Upstream,
    /// 404.
    Off,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Log {
    /// Nothing.
    Off,
    /// What an operator must act on.
    Error,
    /// And what was not as it should be.
    Warn,
    /// And one line for each exchange.
    Info,
    /// And the shapes (never the contents) of what passed.
    Debug,
}

/// What keeps agents out of loops.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Guards {
    /// Tool calls without a result, and results without a call.
    pub pairing: Pairing,
    /// The same call failing, or succeeding, over and over.
    pub breaker: Breaker,
    /// Most assistant turns with tool calls since a person last wrote; 0 is no limit.
    pub tool_turns_max: u32,
    /// What happens at `tool_turns_max`.
    pub tool_turns_action: ToolTurnsAction,
}

impl Default for Guards {
    fn default() -> Self {
        Self {
            pairing: Pairing::Repair,
            breaker: Breaker::default(),
            tool_turns_max: 0,
            tool_turns_action: ToolTurnsAction::WindDown,
        }
    }
}

/// What happens to tool calls without a result, and results without a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairing {
    /// The history is repaired.
    Repair,
    /// The history is sent as it is.
    Off,
    /// The request is refused as the real API does.
    Reject,
}

/// The circuit breaker for one tool.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Breaker {
    /// Consecutive failures from which on the model is told to stop; 0 switches the breaker off.
    pub failures_max: u32,
    /// Consecutive failures from which on `action` is taken.
    pub withhold_after: u32,
    /// What is done then.
    pub action: BreakerAction,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { failures_max: 3, withhold_after: 6, action: BreakerAction::Withhold }
    }
}

/// What the breaker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerAction {
    /// The tool is left out of this request.
    Withhold,
    /// The model must answer without tools.
    Answer,
    /// The request is refused.
    Error,
}

/// What happens at the limit of tool turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolTurnsAction {
    /// Tools are withheld, and the model answers from what it has.
    WindDown,
    /// Answered at once with a text that names the limit.
    End,
    /// The request is refused.
    Error,
}

/// One place where requests can go.
#[derive(Clone, Debug, PartialEq)]
pub struct Upstream {
    /// Its name in the configuration.
    pub name: String,
    /// Where it is. Empty where the host knows by itself (an Envoy route).
    pub url: String,
    /// Envoy: the value of the routing header; empty: the upstream's name.
    pub cluster: String,
    /// What stands before `/chat/completions`: `/v1` for most.
    pub base_path: String,
    /// What it speaks.
    pub protocol: Protocol,
    /// How it wants its requests.
    pub profile: Profile,
    /// Which credential it gets.
    pub key: Key,
}

/// What an upstream speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Chat Completions.
    Openai,
    /// Messages: Creole repairs instead of translating.
    Anthropic,
}

/// Which credential an upstream gets.
#[derive(Clone, PartialEq, Eq)]
pub enum Key {
    /// The one that the client sent.
    Client,
    /// The gateway's own.
    Secret(String),
}

/// Never the secret itself: configurations are printed.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "Client",
            Self::Secret(_) => "Secret(…)",
        })
    }
}

/// Which model of which upstream serves which model of the client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelMap {
    exact: BTreeMap<String, Target>,
    /// Longest first.
    prefixes: Vec<(String, Target)>,
    any: Option<Target>,
}

/// The right side of the model map.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// A name in `upstreams`; absent where there is only one.
    #[serde(default)]
    pub upstream: String,
    /// The model's name there; absent: the name that the client sent.
    #[serde(default)]
    pub model: String,
}

impl Default for Config {
    /// One upstream called `default`, with the profile `default` and the client's key.
    fn default() -> Self {
        let upstream = Upstream::named("default");
        Self {
            upstreams: BTreeMap::from([(upstream.name.clone(), upstream)]),
            models: ModelMap::default(),
            settings: Settings::default(),
        }
    }
}

impl Upstream {
    /// An upstream with everything at its default.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            url: String::new(),
            cluster: String::new(),
            base_path: "/v1".to_owned(),
            protocol: Protocol::Openai,
            profile: Profile::default(),
            key: Key::Client,
        }
    }
}

impl Config {
    /// Where a request for `model` goes, and the model's name there.
    ///
    /// # Errors
    /// The name is not in the model map, or the map names no upstream and there are several.
    pub fn route<'a>(&'a self, model: &'a str) -> Option<(&'a Upstream, &'a str)> {
        let target = self.models.target(model);
        let upstream = match target.map(|target| target.upstream.as_str()) {
            None | Some("") => self.upstreams.values().next().filter(|_| {
                self.upstreams.len() == 1 || (target.is_none() && self.models.is_empty())
            })?,
            Some(name) => self.upstreams.get(name)?,
        };
        let model = match target.map(|target| target.model.as_str()) {
            None | Some("") => model,
            Some(model) => model,
        };
        if target.is_none() && !self.models.is_empty() {
            return None;
        }
        Some((upstream, model))
    }
}

impl ModelMap {
    /// Whether the configuration has no `models`: then every name passes through.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefixes.is_empty() && self.any.is_none()
    }

    /// The names that stand in the map in full, for `/v1/models`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.exact.keys().map(String::as_str)
    }

    fn target(&self, model: &str) -> Option<&Target> {
        self.exact
            .get(model)
            .or_else(|| {
                self.prefixes
                    .iter()
                    .find(|(prefix, _)| model.starts_with(prefix.as_str()))
                    .map(|(_, target)| target)
            })
            .or(self.any.as_ref())
    }
}
