//! Reads and checks the document.

use std::fmt;

use super::address::check_base_path;
use super::clients::ClientKeyDocument;
use super::credentials::{HeaderDocument, KeyDocument, key_of, own_headers, read_key};
use super::{
    Address, Config, Guards, InvalidToolCall, ModelMap, Protocol, Settings, Target, ToolStream,
    Upstream,
};
use crate::json::{Error, Reader, quoted};
use crate::names::{NameSet, Names};
use crate::profile::{PRESETS, Profile};
use crate::setting::{self, Bounds, Setting};
use crate::words;

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

impl From<Error> for ConfigError {
    fn from(error: Error) -> Self {
        Self { path: error.path().to_owned(), reason: error.reason() }
    }
}

/// Deepest nesting of JSON in a configuration.
pub(super) const DEPTH_MAX: u32 = 64;

/// An upstream as it stands in the document.
#[derive(Default)]
struct UpstreamDocument<'a> {
    url: String,
    cluster: String,
    base_path: Option<String>,
    protocol: Option<Protocol>,
    profile: Option<String>,
    key: KeyDocument,
    headers: Vec<(String, HeaderDocument)>,
    /// As text: the profile, over which it is read, may stand behind it.
    profile_overrides: Option<&'a str>,
    /// As text: the guards of all, over which they are read, may stand behind them.
    guards: Option<&'a str>,
}

pub(super) const UPSTREAM_KEYS: &str =
    "url cluster base_path protocol profile key headers profile_overrides guards";

impl<'a> UpstreamDocument<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let mut document = Self::default();
        setting::object(reader, UPSTREAM_KEYS, &mut |key, reader| document.read_key(key, reader))?;
        Ok(document)
    }

    fn read_key(&mut self, key: &str, reader: &mut Reader<'a>) -> Result<bool, Error> {
        match key {
            "url" => self.url = Setting::read(reader)?,
            "cluster" => self.cluster = Setting::read(reader)?,
            "base_path" => self.base_path = Some(Setting::read(reader)?),
            "protocol" => self.protocol = Some(Setting::read(reader)?),
            "profile" => self.profile = Some(Setting::read(reader)?),
            "key" => self.key = read_key(reader)?,
            "headers" => self.headers = named(reader, HeaderDocument::read)?,
            "guards" => self.guards = Some(reader.skip()?),
            "profile_overrides" => self.profile_overrides = Some(reader.skip()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Reads an object whose keys are names that the operator chose.
pub(super) fn named<'a, T>(
    reader: &mut Reader<'a>,
    read: impl Fn(&mut Reader<'a>) -> Result<T, Error>,
) -> Result<Vec<(String, T)>, Error> {
    let mut all = Vec::new();
    let mut names = NameSet::default();
    reader.begin_object()?;
    while let Some(name) = reader.next_key()? {
        let name = name.decode().into_owned();
        let value = read(reader).map_err(|error| error.in_key(&name))?;
        if !names.add(name.clone()) {
            return Err(Error::value("expected each name once").in_key(&name));
        }
        all.push((name, value));
    }
    Ok(all)
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
    /// assert!(error.to_string().starts_with("configuration: guards.pairing: expected one of repair"));
    /// # Ok::<(), creole::config::ConfigError>(())
    /// ```
    pub fn from_json(
        text: &str,
        secret: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        // Editors on Windows write it.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = Reader::new(text, DEPTH_MAX);
        let read = read_document(&mut reader);
        let Document { upstreams, models, client_keys, settings } = read.map_err(|error| {
            let is_syntax = error.is_syntax();
            let mut error = ConfigError::from(error);
            if is_syntax {
                error.reason.push_str(&place(text, reader.offset()));
            }
            error
        })?;
        let mut config = Self { settings, ..Self::default() };
        if !upstreams.is_empty() {
            config.upstreams.clear();
        }
        for (name, upstream) in upstreams {
            let upstream = upstream.into_upstream(&name, &config.settings.guards, &secret)?;
            config.upstreams.insert(name, upstream);
        }
        for (at, document) in client_keys.into_iter().enumerate() {
            let added = config.client_keys.add_document(document, &secret);
            added.or_else(|(key, reason)| refuse(format!("client_keys[{at}].{key}"), reason))?;
        }
        config.models = ModelMap::of(models, &config.upstreams)?;
        config.settings.check()?;
        Ok(config)
    }
}

/// The document, before secrets and names are looked up.
#[derive(Default)]
struct Document<'a> {
    upstreams: Vec<(String, UpstreamDocument<'a>)>,
    models: Vec<(String, Target)>,
    client_keys: Vec<ClientKeyDocument>,
    settings: Settings,
}

fn read_document<'a>(reader: &mut Reader<'a>) -> Result<Document<'a>, Error> {
    let mut document = Document::default();
    let known = format!("upstreams models client_keys {}", Settings::KEYS);
    setting::object(reader, &known, &mut |key, reader| {
        match key {
            // Editors find the schema by it.
            "$schema" => {
                reader.skip()?;
            }
            "upstreams" => document.upstreams = named(reader, UpstreamDocument::read)?,
            "models" => document.models = named(reader, Target::read)?,
            "client_keys" => document.client_keys = ClientKeyDocument::read_all(reader)?,
            _ => return document.settings.read_key(key, reader),
        }
        Ok(true)
    })?;
    reader.end()?;
    Ok(document)
}

/// Where in the text a byte is, as editors count.
fn place(text: &str, offset: usize) -> String {
    let (mut line, mut column) = (1_usize, 1_usize);
    for byte in text.bytes().take(offset) {
        if byte == b'\n' {
            (line, column) = (line.saturating_add(1), 1);
        } else if byte & 0xc0 != 0x80 {
            column = column.saturating_add(1);
        }
    }
    format!(" (line {line}, column {column})")
}

impl UpstreamDocument<'_> {
    fn into_upstream(
        self,
        name: &str,
        guards_of_all: &Guards,
        secret: &impl Fn(&str) -> Option<String>,
    ) -> Result<Upstream, ConfigError> {
        let path = |key: &str| format!("upstreams.{name}.{key}");
        let preset = self.profile.as_deref().unwrap_or("default");
        let Some(mut profile) = Profile::preset(preset) else {
            return refuse(
                path("profile"),
                format!("expected one of {}, but found {}", PRESETS.join(", "), quoted(preset)),
            );
        };
        if let Some(overrides) = self.profile_overrides {
            let read = profile
                .read_over(&mut Reader::new(overrides, DEPTH_MAX))
                .and_then(|()| profile.check());
            read.map_err(|error| error.in_key(&path("profile_overrides")))?;
        }
        let mut guards = None;
        if let Some(own) = self.guards {
            let guards = guards.insert(guards_of_all.clone());
            let read = guards.read_over(&mut Reader::new(own, DEPTH_MAX));
            read.map_err(|error| error.in_key(&path("guards")))?;
            guards.check(&path("guards"))?;
        }
        let base_path = self.base_path.as_deref().unwrap_or("/v1");
        let key = match key_of(self.key, secret) {
            Ok(key) => key,
            Err(reason) => return refuse(path("key.secret"), reason),
        };
        let headers = match own_headers(self.headers, secret) {
            Ok(headers) => headers,
            Err((header, reason)) => return refuse(path(&["headers.", &header].concat()), reason),
        };
        let base_path = words::trim_end(base_path, b"/");
        if let Err(reason) = check_base_path(base_path) {
            return refuse(path("base_path"), reason);
        }
        if !self.cluster.bytes().all(|byte| byte.is_ascii_graphic()) {
            return refuse(path("cluster"), "expected visible ASCII characters");
        }
        let url = words::trim_end(&self.url, b"/");
        // Hosts that connect by themselves ask for one; in Envoy the route says where an upstream is.
        if !url.is_empty()
            && let Err(reason) = Address::parse(url)
        {
            return refuse(path("url"), reason);
        }
        Ok(Upstream {
            name: name.to_owned(),
            url: url.to_owned(),
            cluster: self.cluster,
            base_path: base_path.to_owned(),
            protocol: self.protocol.unwrap_or(Protocol::Openai),
            profile,
            key,
            headers,
            guards,
        })
    }
}

impl ModelMap {
    pub(super) fn of(
        document: Vec<(String, Target)>,
        upstreams: &Names<'static, Upstream>,
    ) -> Result<Self, ConfigError> {
        let mut map = Self::default();
        for (name, target) in document {
            let known = name.strip_suffix('*');
            if name.is_empty() || known.unwrap_or(&name).bytes().any(|byte| byte == b'*') {
                let expected = "expected a name, or one that ends with its only *";
                return refuse(["models.", &name].concat(), expected);
            }
            let path = format!("models.{name}.upstream");
            if target.upstream.is_empty() && upstreams.len() > 1 {
                return refuse(path, "expected the name of an upstream, because there are several");
            }
            if !target.upstream.is_empty() && !upstreams.contains(&target.upstream) {
                return refuse(
                    path,
                    format!("expected a name in upstreams, but found {}", quoted(&target.upstream)),
                );
            }
            match known {
                Some("") => map.any = Some(target),
                Some(prefix) => {
                    let longer = |(known, _): &(String, Target)| known.len() >= prefix.len();
                    let place = map.prefixes.partition_point(longer);
                    map.prefixes.insert(place, (prefix.to_owned(), target));
                }
                None => {
                    map.exact.insert(name, target);
                }
            }
        }
        Ok(map)
    }
}

impl Settings {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        for (key, value) in [
            ("depth_max", self.depth_max.into()),
            ("request_bytes_max", self.request_bytes_max as u64),
            ("response_bytes_max", self.response_bytes_max as u64),
            ("event_bytes_max", self.event_bytes_max as u64),
            ("waiting_bytes_max", self.waiting_bytes_max as u64),
            ("buffered_bytes_max", self.buffered_bytes_max as u64),
            ("no_progress_timeout_ms", self.no_progress_timeout_ms),
            ("ping_interval_ms", self.ping_interval_ms),
        ] {
            Bounds::check(key, value)?;
        }
        self.guards.check("guards")?;
        if self.invalid_tool_call == InvalidToolCall::Hold
            && self.tool_stream != ToolStream::Buffered
        {
            return refuse("invalid_tool_call", "\"hold\" needs tool_stream: \"buffered\"");
        }
        Ok(())
    }
}

impl Guards {
    pub(super) fn check(&self, path: &str) -> Result<(), ConfigError> {
        let breaker = &self.breaker;
        if breaker.failures_max > 0 && breaker.withhold_after < breaker.failures_max {
            return refuse(
                format!("{path}.breaker.withhold_after"),
                format!(
                    "expected at least failures_max ({}), but found {} (6 where nothing is given)",
                    breaker.failures_max, breaker.withhold_after
                ),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Pairing;

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
            ("", "configuration: expected a value at byte 0"),
            ("[]", "configuration: expected an object, but found an array"),
            (
                r#"{"strict":true,"str\u0069ct":false}"#,
                "configuration: strict: expected each name once",
            ),
            (
                r#"{"upstreams":{"a":{"url":"http://a","profile_overrides":{"max_id_length":8}}}}"#,
                "configuration: upstreams.a.profile_overrides.max_id_length: expected 0, or at least 9",
            ),
            (
                r#"{"upstreams":{"a":{"url":"http://a","profile_overrides":{"max_tool_name":1}}}}"#,
                "configuration: upstreams.a.profile_overrides.max_tool_name: expected 0, or at least 16",
            ),
            (r#"{"strikt":true}"#, "configuration: strikt: unknown key, expected one of upstreams"),
            (r#"{"strict":1}"#, "configuration: strict: expected a boolean, but found a number"),
            (
                r#"{"request_bytes_max":-1}"#,
                "configuration: request_bytes_max: expected a whole number",
            ),
            (r#"{"depth_max":1000}"#, "configuration: depth_max: expected a number from 8 to 128"),
            (
                r#"{"guards":{"breaker":{"action":"x"}}}"#,
                "configuration: guards.breaker.action: expected one of withhold, answer, error, but found",
            ),
            (
                r#"{"upstreams":{"a":{"profile":"x"}}}"#,
                "configuration: upstreams.a.profile: expected one of default, openai",
            ),
            (
                r#"{"upstreams":{"a":{"profile_overrides":{"top_q":true}}}}"#,
                "configuration: upstreams.a.profile_overrides.top_q: unknown key, expected one of max_tokens_field",
            ),
            (
                r#"{"upstreams":{"a":{"key":{"secret":"NO"}}}}"#,
                "configuration: upstreams.a.key.secret: expected a secret called \"NO\"",
            ),
            (
                r#"{"upstreams":{"a":{"url":"ftp://x"}}}"#,
                "configuration: upstreams.a.url: expected a URL such as",
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
            (
                r#"{"upstreams":{"a":{"guards":{"pairs":"off"}}}}"#,
                "configuration: upstreams.a.guards.pairs: unknown key, expected one of pairing",
            ),
            (
                r#"{"upstreams":{"a":{"guards":{"breaker":{"withhold_after":1}}}}}"#,
                "configuration: upstreams.a.guards.breaker.withhold_after: expected at least",
            ),
            (r#"{"invalid_tool_call":"hold"}"#, "configuration: invalid_tool_call: \"hold\" needs"),
        ] {
            let error = config(text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_no_json_is_named_by_line_and_column() {
        for (text, place) in [
            ("", "at byte 0 (line 1, column 1)"),
            ("{\n  \"strict\": true,\n}", "a key at byte 20 (line 3, column 1)"),
            ("{\"models\": {\"ä\": x}}", "at byte 18 (line 1, column 18)"),
            ("{\"upstreams\": {\"a\":\n {\"guards\": [}}}", "at byte 33 (line 2, column 14)"),
        ] {
            let error = config(text).unwrap_err();
            assert!(error.ends_with(place), "{text}: {error}");
        }
    }

    #[test]
    fn secrets_are_found_and_never_printed() {
        let config = config(r#"{"upstreams":{"a":{"key":{"secret":"KEY"}}}}"#).unwrap();
        assert_eq!(
            config.upstreams.get("a").unwrap().key,
            crate::config::Key::Secret("sk-canary".to_owned())
        );
        assert!(!format!("{config:?}").contains("canary"));
    }

    #[test]
    fn a_key_that_stands_in_the_document_is_never_quoted() {
        for key in [
            r#""sk-live-1""#,
            r#"["sk-live-1"]"#,
            r#"{"value":"sk-live-1"}"#,
            r#"{"sk-live-1":true}"#,
            r#"{"secret":"sk-live-1"}"#,
            r#"{"secret":{"sk-live-1":1}}"#,
            r#"{"secret":"KEY","sk-live-1":""}"#,
        ] {
            let error = config(&format!(r#"{{"upstreams":{{"a":{{"key":{key}}}}}}}"#)).unwrap_err();
            assert!(error.starts_with("configuration: upstreams.a.key"), "{error}");
            assert!(error.ends_with("a key itself is never written here"), "{error}");
            assert!(!error.contains("live"), "{error}");
        }
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
        // The mark of a longer context is the client's own.
        assert_eq!(route("claude-x[1m]"), ("a".into(), "m1".into()));
        assert_eq!(route("gpt[1M][1m]"), ("a".into(), "gpt".into()));
        assert_eq!(route("[1m]"), ("a".into(), "[1m]".into()));
        assert_eq!(route("claude-y"), ("b".into(), "m2".into()));
        assert_eq!(route("claude-haiku-9"), ("b".into(), "m3".into()));
        assert_eq!(route("qwen"), ("a".into(), "qwen".into()));
        assert_eq!(config.upstreams.get("b").unwrap().profile.max_stop, 2);
        assert_eq!(config.upstreams.get("b").unwrap().profile.max_tools, 128);
    }

    #[test]
    fn without_a_model_map_everything_goes_to_the_first_upstream_by_name() {
        let text = r#"{"upstreams":{"b":{"url":"http://b"},"a":{"url":"http://a"},"c":{"url":"http://c"}}}"#;
        let config = Config::from_json(text, |_| None).unwrap();
        assert_eq!(config.route("m").unwrap().0.name, "a");
        assert_eq!(config.first_upstream().unwrap().name, "a");
    }

    #[test]
    fn an_upstream_has_guards_of_its_own_over_those_of_all() {
        let config = config(
            r#"{"upstreams":{"n8n":{"guards":{"tool_turns_max":10}},"code":{}},
                "models":{"*":{"upstream":"code"}},"guards":{"pairing":"reject"}}"#,
        )
        .unwrap();
        let guards = |name| config.guards(config.upstreams.get(name).unwrap());
        let all = (Pairing::Reject, 0);
        assert_eq!((guards("code").pairing, guards("code").tool_turns_max), all);
        assert_eq!((guards("n8n").pairing, guards("n8n").tool_turns_max), (Pairing::Reject, 10));
    }

    #[test]
    fn a_model_outside_the_map_has_no_route() {
        let config = config(r#"{"models":{"claude-x":{"model":"m"}}}"#).unwrap();
        assert!(config.route("gpt").is_none());
        assert_eq!(config.route("claude-x").unwrap().1, "m");
    }
}
