//! The configuration: one JSON document for every host, checked strictly.
//!
//! An unknown key or a bad value stops the start, with the path and with what was expected there: a
//! limit that is misspelt would otherwise be no limit. Every key is documented at its field.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::profile::{Overrides, PRESETS, Profile};

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

/// Why a configuration was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    path: String,
    reason: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" | "." => write!(f, "configuration: {}", self.reason),
            path => write!(f, "configuration: {path}: {}", self.reason),
        }
    }
}

impl std::error::Error for ConfigError {}

fn refuse<T>(path: impl Into<String>, reason: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError { path: path.into(), reason: reason.into() })
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    upstreams: BTreeMap<String, UpstreamDocument>,
    #[serde(default)]
    models: BTreeMap<String, Target>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpstreamDocument {
    #[serde(default)]
    url: String,
    #[serde(default)]
    cluster: String,
    #[serde(default = "default_base_path")]
    base_path: String,
    #[serde(default = "default_protocol")]
    protocol: Protocol,
    #[serde(default = "default_profile")]
    profile: String,
    #[serde(default)]
    key: KeyDocument,
    #[serde(default)]
    profile_overrides: Overrides,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeyDocument {
    #[default]
    Client,
    Secret(String),
}

fn default_base_path() -> String {
    "/v1".to_owned()
}

fn default_protocol() -> Protocol {
    Protocol::Openai
}

fn default_profile() -> String {
    "default".to_owned()
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
            base_path: default_base_path(),
            protocol: default_protocol(),
            profile: Profile::default(),
            key: Key::Client,
        }
    }
}

impl Config {
    /// Reads a configuration. `secret` gives the value of a named secret of the host.
    ///
    /// # Errors
    /// The text is not JSON, has an unknown key or a bad value, or names a secret or an upstream
    /// that does not exist.
    ///
    /// ```
    /// use creole::Config;
    ///
    /// let config = Config::from_json(r#"{"strict": true}"#, |_| None)?;
    /// assert!(config.settings.strict);
    /// let error = Config::from_json(r#"{"guards": {"pairing": "mend"}}"#, |_| None).unwrap_err();
    /// assert!(error.to_string().starts_with("configuration: guards.pairing: unknown variant"));
    /// # Ok::<(), creole::config::ConfigError>(())
    /// ```
    pub fn from_json(
        text: &str,
        secret: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        // `upstreams` and `models` are taken out first: serde's flatten, which would do the same,
        // loses the path of an error.
        let mut rest: serde_json::Map<String, serde_json::Value> = read(text)?;
        let mut own = serde_json::Map::new();
        for key in ["upstreams", "models"] {
            if let Some(value) = rest.remove(key) {
                own.insert(key.to_owned(), value);
            }
        }
        let document: Document = read(&serde_json::Value::Object(own).to_string())?;
        let settings: Settings = read(&serde_json::Value::Object(rest).to_string())?;
        let mut config = Self { settings, ..Self::default() };
        if !document.upstreams.is_empty() {
            config.upstreams.clear();
        }
        for (name, upstream) in document.upstreams {
            let upstream = upstream.check(&name, &secret)?;
            config.upstreams.insert(name, upstream);
        }
        config.models = ModelMap::check(document.models, &config.upstreams)?;
        config.settings.check()?;
        Ok(config)
    }

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

fn read<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, ConfigError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| ConfigError {
        path: error.path().to_string(),
        reason: reason(&error.into_inner()),
    })?;
    match reader.end() {
        Ok(()) => Ok(value),
        Err(error) => refuse("", reason(&error)),
    }
}

/// The message without the position, which would point into a text that the operator never saw.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.split_once(" at line ") {
        Some((reason, _)) if error.is_data() => reason.to_owned(),
        _ => text,
    }
}

impl UpstreamDocument {
    fn check(
        self,
        name: &str,
        secret: &impl Fn(&str) -> Option<String>,
    ) -> Result<Upstream, ConfigError> {
        let path = |key: &str| format!("upstreams.{name}.{key}");
        let Some(profile) = Profile::preset(&self.profile) else {
            return refuse(
                path("profile"),
                format!("expected one of {}, but found {:?}", PRESETS.join(", "), self.profile),
            );
        };
        let key = match self.key {
            KeyDocument::Client => Key::Client,
            KeyDocument::Secret(secret_name) => match secret(&secret_name) {
                Some(value) if !value.is_empty() => Key::Secret(value),
                _ => {
                    return refuse(
                        path("key.secret"),
                        format!("expected a secret called {secret_name:?}, but found none"),
                    );
                }
            },
        };
        let is_path = |text: &str| {
            text.is_empty() || (text.starts_with('/') && text.bytes().all(is_visible_ascii))
        };
        if !is_path(&self.base_path) {
            return refuse(
                path("base_path"),
                format!("expected a path such as \"/v1\", but found {:?}", self.base_path),
            );
        }
        if !self.cluster.bytes().all(is_visible_ascii) {
            return refuse(path("cluster"), "expected visible ASCII characters");
        }
        let web = self.url.starts_with("http://") || self.url.starts_with("https://");
        let usable = web && self.url.bytes().all(is_visible_ascii);
        if !(usable || self.url.is_empty()) {
            return refuse(
                path("url"),
                format!("expected an http or https URL, but found {:?}", self.url),
            );
        }
        Ok(Upstream {
            name: name.to_owned(),
            url: self.url.trim_end_matches('/').to_owned(),
            cluster: self.cluster,
            base_path: self.base_path.trim_end_matches('/').to_owned(),
            protocol: self.protocol,
            profile: self.profile_overrides.apply(profile),
            key,
        })
    }
}

fn is_visible_ascii(byte: u8) -> bool {
    byte.is_ascii_graphic()
}

impl ModelMap {
    fn check(
        document: BTreeMap<String, Target>,
        upstreams: &BTreeMap<String, Upstream>,
    ) -> Result<Self, ConfigError> {
        let mut map = Self::default();
        for (name, target) in document {
            let path = format!("models.{name}.upstream");
            if target.upstream.is_empty() && upstreams.len() > 1 {
                return refuse(path, "expected the name of an upstream, because there are several");
            }
            if !target.upstream.is_empty() && !upstreams.contains_key(&target.upstream) {
                return refuse(
                    path,
                    format!("expected a name in upstreams, but found {:?}", target.upstream),
                );
            }
            match name.strip_suffix('*') {
                Some("") => map.any = Some(target),
                Some(prefix) => map.prefixes.push((prefix.to_owned(), target)),
                None => {
                    map.exact.insert(name, target);
                }
            }
        }
        map.prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        Ok(map)
    }

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

impl Settings {
    fn check(&self) -> Result<(), ConfigError> {
        if !(8..=128).contains(&self.depth_max) {
            return refuse(
                "depth_max",
                format!("expected a number from 8 to 128, but found {}", self.depth_max),
            );
        }
        for (key, value) in [
            ("request_bytes_max", self.request_bytes_max),
            ("response_bytes_max", self.response_bytes_max),
            ("event_bytes_max", self.event_bytes_max),
            ("waiting_bytes_max", self.waiting_bytes_max),
            ("buffered_bytes_max", self.buffered_bytes_max),
        ] {
            if value < 1024 {
                return refuse(key, format!("expected at least 1024 bytes, but found {value}"));
            }
        }
        for (key, value, least) in [
            ("no_progress_timeout_ms", self.no_progress_timeout_ms, 10),
            ("ping_interval_ms", self.ping_interval_ms, 10),
        ] {
            if value < least {
                return refuse(key, format!("expected at least {least} ms, but found {value}"));
            }
        }
        let breaker = &self.guards.breaker;
        if breaker.failures_max > 0 && breaker.withhold_after < breaker.failures_max {
            return refuse(
                "guards.breaker.withhold_after",
                format!("expected at least failures_max, but found {}", breaker.withhold_after),
            );
        }
        if self.invalid_tool_call == InvalidToolCall::Hold
            && self.tool_stream != ToolStream::Buffered
        {
            return refuse("invalid_tool_call", "\"hold\" needs tool_stream: \"buffered\"");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<Config, String> {
        Config::from_json(text, |name| (name == "KEY").then(|| "sk-canary".to_owned()))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn an_empty_document_is_the_default() {
        assert_eq!(config("{}").unwrap(), Config::default());
    }

    #[test]
    fn bad_documents_are_refused_with_path_and_expectation() {
        for (text, expected) in [
            ("", "configuration: EOF while parsing a value"),
            ("[]", "configuration: invalid type: sequence, expected a map"),
            (r#"{"strikt":true}"#, "configuration: strikt: unknown field `strikt`, expected"),
            (
                r#"{"strict":1}"#,
                "configuration: strict: invalid type: integer `1`, expected a boolean",
            ),
            (r#"{"request_bytes_max":-1}"#, "configuration: request_bytes_max: invalid value"),
            (r#"{"depth_max":1000}"#, "configuration: depth_max: expected a number from 8 to 128"),
            (
                r#"{"guards":{"breaker":{"action":"x"}}}"#,
                "configuration: guards.breaker.action: unknown variant `x`, expected one of `withhold`",
            ),
            (
                r#"{"upstreams":{"a":{"profile":"x"}}}"#,
                "configuration: upstreams.a.profile: expected one of default, openai",
            ),
            (
                r#"{"upstreams":{"a":{"profile_overrides":{"top_q":true}}}}"#,
                "configuration: upstreams.a.profile_overrides.top_q: unknown field",
            ),
            (
                r#"{"upstreams":{"a":{"key":{"secret":"NO"}}}}"#,
                "configuration: upstreams.a.key.secret: expected a secret called \"NO\"",
            ),
            (
                r#"{"upstreams":{"a":{"url":"ftp://x"}}}"#,
                "configuration: upstreams.a.url: expected an http or https URL",
            ),
            (
                r#"{"upstreams":{"a":{"base_path":"v1"}}}"#,
                "configuration: upstreams.a.base_path: expected a path",
            ),
            (
                r#"{"upstreams":{"a":{"base_path":"/v1\r\nx: y"}}}"#,
                "configuration: upstreams.a.base_path: expected a path",
            ),
            (
                r#"{"upstreams":{"a":{},"b":{}},"models":{"m":{}}}"#,
                "configuration: models.m.upstream: expected the name of an upstream",
            ),
            (
                r#"{"models":{"m":{"upstream":"x"}}}"#,
                "configuration: models.m.upstream: expected a name in upstreams",
            ),
            (r#"{"invalid_tool_call":"hold"}"#, "configuration: invalid_tool_call: \"hold\" needs"),
        ] {
            let error = config(text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    #[test]
    fn secrets_are_found_and_never_printed() {
        let config = config(r#"{"upstreams":{"a":{"key":{"secret":"KEY"}}}}"#).unwrap();
        assert_eq!(config.upstreams["a"].key, Key::Secret("sk-canary".to_owned()));
        assert!(!format!("{config:?}").contains("canary"));
    }

    #[test]
    fn models_are_looked_up_by_name_then_prefix_then_star() {
        let config = config(
            r#"{"upstreams":{"a":{},"b":{"profile":"openai","profile_overrides":{"max_stop":2}}},
                "models":{"claude-x":{"upstream":"a","model":"m1"},
                          "claude-*":{"upstream":"b","model":"m2"},
                          "claude-haiku*":{"upstream":"b","model":"m3"},
                          "*":{"upstream":"a"}}}"#,
        )
        .unwrap();
        let route = |model| {
            let (upstream, model) = config.route(model).unwrap();
            (upstream.name.clone(), model.to_owned())
        };
        assert_eq!(route("claude-x"), ("a".into(), "m1".into()));
        assert_eq!(route("claude-y"), ("b".into(), "m2".into()));
        assert_eq!(route("claude-haiku-9"), ("b".into(), "m3".into()));
        assert_eq!(route("qwen"), ("a".into(), "qwen".into()));
        assert_eq!(config.upstreams["b"].profile.max_stop, 2);
        assert_eq!(config.upstreams["b"].profile.max_tools, 128);
    }

    #[test]
    fn a_model_outside_the_map_has_no_route() {
        let config = config(r#"{"models":{"claude-x":{"model":"m"}}}"#).unwrap();
        assert!(config.route("gpt").is_none());
        assert_eq!(config.route("claude-x").unwrap().1, "m");
    }
}
