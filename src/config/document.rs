//! Reading and checking of the configuration document.

use std::fmt;

use super::address::{base_path_of, check_cluster, split};
use super::clients::ClientKeyDocument;
use super::credentials::{HeaderDocument, KeyDocument, Secrets, Unquoted, key_of, own_headers};
use super::misplaced;
use super::{
    ClientCertificate, Config, Guards, InvalidToolCall, ModelMap, Protocol, SessionHeaders,
    SessionId, Settings, Target, ToolStream, Upstream,
};
use crate::json::{Error, Reader, Writer, quoted};
use crate::profile::Profile;
use crate::profile::presets::{KnownServer, PRESETS, speaks_responses};
use crate::setting::{Keys, Named, Overrides, Setting, ValueType, keys, read_object, unknown_word};
use crate::text::names::Names;

/// Error in a configuration document: the path of the key, and the reason.
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

impl ConfigError {
    pub(super) fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { path: path.into(), reason: reason.into() }
    }
}

fn refuse<T>(path: impl Into<String>, reason: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::new(path, reason))
}

impl From<Error> for ConfigError {
    fn from(error: Error) -> Self {
        let known = [Document::FIELDS, Settings::FIELDS];
        let reason = misplaced::reason(error.path(), error.reason(), known);
        Self { path: error.path().to_owned(), reason }
    }
}

/// Maximum nesting depth of JSON in a configuration document.
pub(super) const DEPTH_MAX: u32 = 64;

keys! {
    /// Keys of the document in addition to those of [`Settings`].
    pub(super) Document {
        /// Upstreams to which requests can go, by name. Absent: one upstream called `default`.
        upstreams: Option<Named<UpstreamDocument>> = None;
        /// Model map: the upstream and model that serve each model name of clients. An exact name
        /// counts first, then the longest prefix such as `claude-*`, then `*`. Absent: every name
        /// goes as it is to the first upstream by name (alphabetically).
        models: Option<Named<Target>> = None;
        /// Keys that clients may have, each in an environment variable or a file. Absent: every
        /// client is admitted.
        client_keys: Option<Vec<Unquoted<ClientKeyDocument>>> = None;
    }

    /// Upstream, as written in the document.
    pub(super) UpstreamDocument {
        /// Base URL of the upstream, as clients of its API have it: `https://api.example.com/v1`.
        /// Every host except Envoy needs the URL. Envoy's route has the upstream's address, so
        /// Envoy takes only `:authority` and the path from the URL.
        url: Option<String> = None;
        /// Envoy: the value of the header `x-creole-upstream` by which a route is chosen, and the
        /// cluster in which models are asked that judge or describe. Absent: the upstream's name,
        /// and no such model is asked.
        cluster: Option<String> = None;
        /// Path before `/chat/completions` or `/responses`. Absent: the path of `url`, or else the
        /// path of the profile's vendor, which is `/v1` for most vendors.
        base_path: Option<String> = None;
        /// Protocol that the upstream speaks. Absent: Responses with the profiles `openai`, `azure`
        /// and `xai`, Chat Completions with all other profiles.
        protocol: Option<Protocol> = None;
        /// Profile for the upstream's kind of server.
        profile: Preset = Preset::default();
        /// Credential that the upstream gets: `"client"`, the credential that the client sent,
        /// `{"env": NAME}`, the environment variable of that name, `{"file": PATH}`, the text of
        /// that file, for the gateway alone, or `"none"`.
        key: KeyDocument = KeyDocument::Client;
        /// Gateway: certificate with which the gateway identifies itself to the upstream. Both
        /// files are read again when they change.
        client_certificate: ClientCertificate = ClientCertificate::default();
        /// Headers of every request to the upstream, by name. A value is a text, `{"env": NAME}`,
        /// the environment variable of that name, or `{"file": PATH}`.
        headers: Option<Named<HeaderDocument>> = None;
        /// Headers that carry the id of a request's conversation, such as `x-session-affinity`. A
        /// router in front of several replicas can then keep the turns of a conversation on one
        /// replica.
        session_headers: Vec<String> = Vec::new();
        /// Form of the conversation's id in `session_headers`.
        session_id: SessionId = SessionId::Plain;
        /// Flags of the profile that are different for this upstream.
        profile_overrides: Option<Overrides<Profile>> = None;
        /// Guards of requests to this upstream, where they differ from the guards of all requests.
        guards: Option<Overrides<Guards>> = None;
    }
}

/// Preset: a named set of profile flags for one kind of server, as the document names it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Preset(pub(super) &'static str);

impl Default for Preset {
    fn default() -> Self {
        Self("default")
    }
}

impl Preset {
    /// # Errors
    /// The name is not the name of a preset.
    pub(super) fn named(name: &str) -> Result<Self, Error> {
        let known = PRESETS.iter().find(|known| **known == name);
        known.map(|known| Self(known)).ok_or_else(|| unknown_word(PRESETS, name))
    }

    /// Returns the protocol for servers of the preset, if the configuration names no protocol.
    pub(super) fn protocol(self) -> Protocol {
        if speaks_responses(self.0) { Protocol::Responses } else { Protocol::Openai }
    }

    /// Returns the preset's profile flags for an upstream that speaks `protocol`.
    pub(super) fn profile(self, protocol: Protocol) -> Profile {
        let profile = Profile::preset(self.0).unwrap_or_default();
        match protocol {
            Protocol::Responses => profile.for_responses(self.0),
            _ => profile,
        }
    }

    /// Returns the base path of the preset's servers, which precedes the paths of endpoints.
    pub(super) fn base_path(self) -> &'static str {
        KnownServer::of_preset(self.0).map_or("/v1", |server| server.base_path)
    }
}

impl Setting for Preset {
    const TYPE: ValueType = ValueType::Names(PRESETS);

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Self::named(&reader.string()?.decode())
    }

    fn write(&self, json: &mut Writer<'_>) {
        json.text(self.0);
    }
}

impl Config {
    /// Reads a configuration document. `secret` returns the value of a variable or secret of the
    /// host, by name.
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
        Self::from_document(text, &Secrets::of_variables(&secret))
    }

    /// Reads a configuration document, with credentials from these places of the host. The text may
    /// have comments (`//`, `/* */`, `#`) and commas after the last value.
    ///
    /// # Errors
    /// The same errors as for [`Config::from_json`].
    pub fn from_document(text: &str, secrets: &Secrets<'_>) -> Result<Self, ConfigError> {
        let text = &*without_comments(text);
        let mut reader = Reader::new(text, DEPTH_MAX);
        let (document, settings) = read_document(&mut reader).map_err(|error| {
            let is_syntax = error.is_syntax();
            let mut error = ConfigError::from(error);
            if is_syntax {
                error.reason.push_str(&place(text, reader.offset()));
            }
            error
        })?;
        let mut config = Self { settings, ..Self::default() };
        if let Some(Named(upstreams)) = document.upstreams.filter(|named| !named.0.is_empty()) {
            config.upstreams.clear();
            for (name, upstream) in upstreams {
                let upstream = upstream.into_upstream(&name, &config.settings.guards, secrets)?;
                config.upstreams.insert(name, upstream);
            }
        }
        for (at, Unquoted(key)) in document.client_keys.iter().flatten().enumerate() {
            let added = config.client_keys.add_document(key, secrets);
            added.or_else(|(key, reason)| refuse(format!("client_keys[{at}].{key}"), reason))?;
        }
        config.set_models(document.models)?;
        config.settings.check()?;
        config.settings.server_tools.resolve(secrets)?;
        config.check_safeguards()?;
        config.check_vision()?;
        Ok(config)
    }

    pub(super) fn set_models(&mut self, models: Option<Named<Target>>) -> Result<(), ConfigError> {
        if let Some(models) = models {
            self.models = ModelMap::of(models, &self.upstreams)?;
        }
        Ok(())
    }
}

/// Returns a configuration document as JSON: without comments, commas after the last value, and the
/// byte order mark that editors on Windows write.
#[must_use]
pub fn without_comments(text: &str) -> String {
    let mut text = text.strip_prefix('\u{feff}').unwrap_or(text).to_owned();
    // Spaces take the place of comments, so places in errors stay right. The reader reports a
    // comment without an end.
    let _ = json_strip_comments::strip(&mut text);
    text
}

fn read_document(reader: &mut Reader<'_>) -> Result<(Document, Settings), Error> {
    let (mut document, mut settings) = (Document::default(), Settings::default());
    let known = [Document::FIELDS, Settings::FIELDS].concat();
    read_object(reader, &known, |key, reader| {
        // Editors find the schema by the key `$schema`.
        if key == "$schema" {
            return reader.skip().map(|_| true);
        }
        Ok(document.read_key(key, reader)? || settings.read_key(key, reader)?)
    })?;
    reader.end()?;
    Ok((document, settings))
}

/// Returns the line and column of a byte offset, counted as in editors, as words for an error
/// message.
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

impl UpstreamDocument {
    fn into_upstream(
        self,
        name: &str,
        guards_of_all: &Guards,
        secrets: &Secrets<'_>,
    ) -> Result<Upstream, ConfigError> {
        let path = |key: &str| format!("upstreams.{name}.{key}");
        let protocol = self.protocol.unwrap_or_else(|| self.profile.protocol());
        let preset = self.profile.profile(protocol);
        let profile = Profile::effective(preset, self.profile_overrides)
            .and_then(|profile| match protocol {
                Protocol::Responses => profile.check_responses().map(|()| profile),
                _ => profile.check_other_protocol().map(|()| profile),
            })
            .map_err(|error| error.in_key(&path("profile_overrides")))?;
        let mut guards = None;
        if let Some(own) = self.guards {
            let guards = guards.insert(guards_of_all.clone());
            own.apply(guards).map_err(|error| error.in_key(&path("guards")))?;
            guards.check(&path("guards"))?;
        }
        let key = key_of(self.key, secrets)
            .or_else(|(member, reason)| refuse(path(&format!("key.{member}")), reason))?;
        let headers = own_headers(self.headers, secrets)
            .or_else(|(header, reason)| refuse(path(&format!("headers.{header}")), reason))?;
        let ClientCertificate { certificate, key: private } = &self.client_certificate;
        if certificate.is_empty() != private.is_empty() {
            return refuse(path("client_certificate"), "expected both certificate and key");
        }
        let session = SessionHeaders::of(self.session_headers, self.session_id)
            .or_else(|(at, reason)| refuse(path(&format!("session_headers[{at}]")), reason))?;
        let cluster = self.cluster.unwrap_or_default();
        check_cluster(&cluster).or_else(|reason| refuse(path("cluster"), reason))?;
        // Hosts that connect to upstreams themselves check later that there is a URL. In Envoy the
        // route has the upstream's address.
        let (url, path_of_url) = match self.url.as_deref().unwrap_or_default() {
            "" => ("", None),
            url => split(url).or_else(|reason| refuse(path("url"), reason))?,
        };
        let base_path = self.base_path.as_deref().map(base_path_of).transpose();
        let base_path = base_path.or_else(|reason| refuse(path("base_path"), reason))?;
        if path_of_url.is_some() && base_path.is_some() && path_of_url != base_path {
            return refuse(path("base_path"), "expected none, because url has a path");
        }
        Ok(Upstream {
            name: name.to_owned(),
            url: url.to_owned(),
            cluster,
            base_path: base_path
                .or(path_of_url)
                .unwrap_or_else(|| self.profile.base_path())
                .to_owned(),
            protocol,
            names_protocol: self.protocol.is_some(),
            preset: self.profile.0,
            profile,
            key,
            headers,
            session,
            client_certificate: self.client_certificate,
            guards,
        })
    }
}

impl ModelMap {
    pub(super) fn of(
        Named(document): Named<Target>,
        upstreams: &Names<'static, Upstream>,
    ) -> Result<Self, ConfigError> {
        let (mut map, mut prefixes) = (Self::default(), Vec::new());
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
                Some(prefix) => prefixes.push((prefix.to_owned(), target)),
                None => {
                    map.exact.insert(name, target);
                }
            }
        }
        map.set_prefixes(prefixes);
        Ok(map)
    }
}

impl Settings {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
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
