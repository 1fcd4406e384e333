//! Reads and checks the document.

use std::fmt;

use super::address::check_base_path;
use super::clients::ClientKeyDocument;
use super::credentials::{HeaderDocument, KeyDocument, key_of, own_headers, read_key};
use super::{
    Address, Config, Guards, InvalidToolCall, ModelMap, Protocol, Settings, Target, ToolStream,
    Upstream,
};
use crate::dialect::profile::{PRESETS, Profile};
use crate::json::{Error, Reader, quoted};
use crate::setting::{self, Bounds, Setting};
use crate::text::names::{NameSet, Names};
use crate::text::words;

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
mod tests;
