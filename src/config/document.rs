//! Reads and checks the document.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use super::{
    Config, InvalidToolCall, Key, ModelMap, Protocol, Settings, Target, ToolStream, Upstream,
};
use crate::profile::{Overrides, PRESETS, Profile};

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
