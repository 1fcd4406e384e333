//! Short configuration of one upstream by flags and environment variables of a host, in addition to
//! the document or instead of it.
//!
//! Flags and variables complete a document that has at most one upstream. With several upstreams
//! they would be ambiguous, which is an error.

use super::address::{Address, split};
use super::credentials::secret_of;
use super::document::Preset;
use super::{Config, Key, Target, Upstream};
use crate::profile::presets::KnownServer;
use crate::setting::Named;

const CONFIG: &str = "CREOLE_CONFIG";
const URL: &str = "UPSTREAM_URL";
const KEY: &str = "UPSTREAM_KEY";
const CLIENT_KEY: &str = "CLIENT_KEY";
const PROFILE: &str = "CREOLE_PROFILE";

/// Names of small models, which Claude Code and other clients use for titles and summaries.
const SMALL: [&str; 3] = ["claude-haiku-*", "claude-3-haiku-*", "claude-3-5-haiku-*"];

impl Config {
    /// Reads the configuration of a host that has variables and secrets. `CREOLE_CONFIG` is the
    /// document, and `CLIENT_KEY` is a key for clients. `UPSTREAM_URL`, `UPSTREAM_KEY` and
    /// `CREOLE_PROFILE` describe the only upstream. An empty variable counts as absent, but an
    /// empty key is an error, because the host would admit everybody.
    ///
    /// # Errors
    /// The name of the variable and the reason, for the operator.
    ///
    /// ```
    /// use creole::Config;
    ///
    /// let config = Config::from_variables(|name| match name {
    ///     "UPSTREAM_URL" => Some("http://localhost:11434/v1".to_owned()),
    ///     _ => None,
    /// })?;
    /// assert_eq!(config.upstreams.get("default").unwrap().base_path, "/v1");
    /// # Ok::<(), String>(())
    /// ```
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let given = |name: &str| variable(name).filter(|text| !text.is_empty());
        let (text, url) = (given(CONFIG), given(URL));
        if text.is_none() && url.is_none() {
            return Err(format!(
                "configuration: expected the variable {CONFIG} or {URL}, but found neither"
            ));
        }
        let mut config = match text {
            Some(text) => Self::from_json(&text, &variable).map_err(|error| error.to_string())?,
            None => Self::default(),
        };
        if let Some(name) = given(PROFILE) {
            config.set_profile(&name, PROFILE)?;
        }
        // The URL is set after the profile, because it may replace the profile's base path.
        if let Some(url) = url {
            config.set_url(&url, URL)?;
        }
        if let Some(key) = variable(KEY) {
            config.only_upstream(KEY)?.key = Key::own(key).map_err(|reason| at(KEY, &reason))?;
        }
        if let Some(key) = variable(CLIENT_KEY) {
            config.client_keys.add(CLIENT_KEY, &key).map_err(|reason| at(CLIENT_KEY, &reason))?;
        }
        config.check_urls()?;
        config.check_client_keys()?;
        Ok(config)
    }

    /// Returns the only upstream, which `source` (the name of a flag or variable) describes.
    fn only_upstream(&mut self, source: &str) -> Result<&mut Upstream, String> {
        let several = self.upstreams.len() > 1;
        match self.upstreams.values_mut().next() {
            Some(upstream) if !several => Ok(upstream),
            _ => Err(format!("{source}: the configuration has several upstreams; set it there")),
        }
    }

    /// Sets the address and the base path of the only upstream from a base URL such as
    /// `http://localhost:11434/v1`. Clients of Chat Completions use the same form.
    ///
    /// # Errors
    /// The configuration has several upstreams, or the URL has another form.
    pub fn set_url(&mut self, url: &str, source: &str) -> Result<(), String> {
        let (address, path) = split(url).map_err(|reason| at(source, reason))?;
        let upstream = self.only_upstream(source)?;
        address.clone_into(&mut upstream.url);
        if let Some(path) = path {
            path.clone_into(&mut upstream.base_path);
        }
        Ok(())
    }

    /// Sets the profile of the only upstream to that of a preset. Sets the protocol too, if the
    /// configuration names none.
    ///
    /// # Errors
    /// The configuration has several upstreams, or no preset has this name.
    pub fn set_profile(&mut self, name: &str, source: &str) -> Result<(), String> {
        let preset = Preset::named(name).map_err(|error| at(source, &error.reason()))?;
        let upstream = self.only_upstream(source)?;
        if upstream.base_path == Preset(upstream.preset).base_path() {
            preset.base_path().clone_into(&mut upstream.base_path);
        }
        if !upstream.names_protocol {
            upstream.protocol = preset.protocol();
        }
        upstream.preset = preset.0;
        upstream.profile = preset.profile(upstream.protocol);
        Ok(())
    }

    /// Gives each upstream without an address the usual address of its preset, for hosts that
    /// connect to upstreams themselves.
    pub fn fill_urls(&mut self) {
        for upstream in self.upstreams.values_mut().filter(|upstream| upstream.url.is_empty()) {
            if let Some(server) = KnownServer::of_preset(upstream.preset) {
                server.url.clone_into(&mut upstream.url);
            }
        }
    }

    /// Routes every requested model name to one model of the only upstream, and the names of small
    /// models (`claude-haiku-…`) to another. `others` are names with models of their own. Without
    /// `model`, all other names are passed on unchanged. The document's model map is replaced.
    ///
    /// # Errors
    /// The configuration has several upstreams.
    pub fn serve_models(
        &mut self,
        model: Option<&str>,
        small: Option<&str>,
        others: &[(String, String)],
        source: &str,
    ) -> Result<(), String> {
        self.only_upstream(source)?;
        let to = |name: &str, model: &str| {
            (name.to_owned(), Target { model: model.to_owned(), ..Target::default() })
        };
        let mut models = vec![to("*", model.unwrap_or_default())];
        if let Some(small) = small {
            models.extend(SMALL.map(|name| to(name, small)));
        }
        models.extend(others.iter().map(|(name, model)| to(name, model)));
        // Clients list only complete names, so the models' own names are added, too.
        models.extend(model.into_iter().chain(small).map(|name| to(name, name)));
        self.set_models(Some(Named(models))).map_err(|error| at(source, &error.to_string()))
    }

    /// Notes the sizes of models in the model map. `of` returns the tokens of a model's context
    /// window and of an answer; 0 if unknown. Sizes that are already known are kept.
    pub fn note_sizes(&mut self, of: impl Fn(&str) -> (u64, u64)) {
        for target in self.models.targets_mut().filter(|target| !target.model.is_empty()) {
            let (window, output) = of(&target.model);
            for (known, told) in
                [(&mut target.max_input_tokens, window), (&mut target.max_tokens, output)]
            {
                if *known == 0 {
                    *known = told;
                }
            }
        }
    }

    /// Sets the key of the only upstream to the value of a secret. `source` is the flag's name in
    /// errors.
    ///
    /// # Errors
    /// The configuration has several upstreams, the secret does not exist, or its value does not
    /// fit in a header.
    pub fn set_key_from(
        &mut self,
        name: &str,
        source: &str,
        secret: impl Fn(&str) -> Option<String>,
    ) -> Result<(), String> {
        let key =
            secret_of(name, &secret).and_then(Key::own).map_err(|reason| at(source, &reason))?;
        self.only_upstream(source)?.key = key;
        Ok(())
    }

    /// Adds the value of a secret as a client key, with the secret's name. `source` is the flag's
    /// name in errors.
    ///
    /// # Errors
    /// The secret does not exist, its value does not fit in a header, or the key was added before.
    pub fn add_client_key_from(
        &mut self,
        name: &str,
        source: &str,
        secret: impl Fn(&str) -> Option<String>,
    ) -> Result<(), String> {
        let key = secret_of(name, &secret).map_err(|reason| at(source, &reason))?;
        self.client_keys.add(name, &key).map_err(|reason| at(source, &reason))
    }

    /// Checks that no upstream would get Creole's own client keys, which happens if it gets the
    /// client's credential.
    ///
    /// # Errors
    /// The name of the upstream that would get a client key.
    pub fn check_client_keys(&self) -> Result<(), String> {
        let gets = |upstream: &&Upstream| upstream.key == Key::Client;
        match self.upstreams.values().find(gets) {
            Some(upstream) if !self.client_keys.is_empty() => Err(format!(
                "configuration: upstreams.{}.key: expected {{\"env\": NAME}}, {{\"file\": PATH}} or \"none\", because \
                 there are client_keys, which no upstream gets",
                upstream.name
            )),
            _ => Ok(()),
        }
    }

    /// Checks that every upstream has an address, for hosts that connect to upstreams themselves.
    ///
    /// # Errors
    /// The name of the upstream without an address.
    pub fn check_urls(&self) -> Result<(), String> {
        for upstream in self.upstreams.values() {
            if let Err(reason) = Address::parse(&upstream.url) {
                return Err(format!("configuration: upstreams.{}.url: {reason}", upstream.name));
            }
        }
        Ok(())
    }
}

fn at(source: &str, reason: &str) -> String {
    [source, ": ", reason].concat()
}

#[cfg(test)]
mod tests;
