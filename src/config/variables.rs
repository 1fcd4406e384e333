//! One upstream in short: what flags and variables of a host say beside the document, or instead of
//! it.
//!
//! They complete a document that has one upstream or none. With several it would be anybody's guess
//! which one they mean, so that is an error.

use super::address::{Address, check_base_path};
use super::credentials::secret_of;
use super::document::Preset;
use super::{Config, Key, Upstream};

const CONFIG: &str = "CREOLE_CONFIG";
const URL: &str = "UPSTREAM_URL";
const KEY: &str = "UPSTREAM_KEY";
const CLIENT_KEY: &str = "CLIENT_KEY";
const PROFILE: &str = "CREOLE_PROFILE";

impl Config {
    /// The configuration of a host that has variables and secrets: `CREOLE_CONFIG` is the document,
    /// `UPSTREAM_URL`, `UPSTREAM_KEY` and `CREOLE_PROFILE` describe its one upstream, and `CLIENT_KEY` is a key
    /// that clients may have. An empty variable is none.
    ///
    /// # Errors
    /// What is wrong and where, for the operator.
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
            Some(text) => Self::from_json(&text, given).map_err(|error| error.to_string())?,
            None => Self::default(),
        };
        if let Some(url) = url {
            config.set_url(&url, URL)?;
        }
        if let Some(key) = given(KEY) {
            config.only_upstream(KEY)?.key = Key::own(key).map_err(|reason| at(KEY, &reason))?;
        }
        if let Some(name) = given(PROFILE) {
            config.set_profile(&name, PROFILE)?;
        }
        if let Some(key) = given(CLIENT_KEY) {
            config.client_keys.add(CLIENT_KEY, &key).map_err(|reason| at(CLIENT_KEY, &reason))?;
        }
        config.check_urls()?;
        config.check_client_keys()?;
        Ok(config)
    }

    /// The one upstream, which `told` (a flag or a variable) describes.
    fn only_upstream(&mut self, told: &str) -> Result<&mut Upstream, String> {
        let several = self.upstreams.len() > 1;
        match self.upstreams.values_mut().next() {
            Some(upstream) if !several => Ok(upstream),
            _ => Err(format!("{told}: the configuration has several upstreams; set it there")),
        }
    }

    /// Where the one upstream is. `http://localhost:11434/v1` is where clients of Chat Completions
    /// would be pointed: address and base path in one.
    ///
    /// # Errors
    /// There are several upstreams, or it is not such a URL.
    pub fn set_url(&mut self, url: &str, told: &str) -> Result<(), String> {
        let url = url.trim_end_matches('/');
        let host = url.find("://").map_or(0, |at| at.saturating_add(3));
        let slash = url.get(host..).and_then(|rest| rest.find('/'));
        let parts = slash.and_then(|at| url.split_at_checked(host.saturating_add(at)));
        let (address, path) = parts.unwrap_or((url, ""));
        Address::parse(address).map_err(|reason| at(told, reason))?;
        check_base_path(path).map_err(|reason| at(told, reason))?;
        let upstream = self.only_upstream(told)?;
        address.clone_into(&mut upstream.url);
        if !path.is_empty() {
            path.clone_into(&mut upstream.base_path);
        }
        Ok(())
    }

    /// What kind of server the one upstream is.
    ///
    /// # Errors
    /// There are several upstreams, or there is no such preset.
    pub fn set_profile(&mut self, name: &str, told: &str) -> Result<(), String> {
        let profile = Preset::named(name).map_err(|error| at(told, &error.reason()))?;
        self.only_upstream(told)?.profile = profile;
        Ok(())
    }

    /// The one upstream gets the key in a secret of this name, which `told` has named.
    ///
    /// # Errors
    /// There are several upstreams, or there is no such secret, or no header can hold it.
    pub fn set_key_from(
        &mut self,
        name: &str,
        told: &str,
        secret: impl Fn(&str) -> Option<String>,
    ) -> Result<(), String> {
        let key =
            secret_of(name, &secret).and_then(Key::own).map_err(|reason| at(told, &reason))?;
        self.only_upstream(told)?.key = key;
        Ok(())
    }

    /// Clients may have the key in a secret of this name, which `told` has named. The key is called by that name.
    ///
    /// # Errors
    /// There is no such secret, or no header can hold it, or it is known already.
    pub fn add_client_key_from(
        &mut self,
        name: &str,
        told: &str,
        secret: impl Fn(&str) -> Option<String>,
    ) -> Result<(), String> {
        let key = secret_of(name, &secret).map_err(|reason| at(told, &reason))?;
        self.client_keys.add(name, &key).map_err(|reason| at(told, &reason))
    }

    /// Where clients have keys of Creole's, no upstream gets them.
    ///
    /// # Errors
    /// Which upstream would.
    pub fn check_client_keys(&self) -> Result<(), String> {
        let gets = |upstream: &&Upstream| upstream.key == Key::Client;
        match self.upstreams.values().find(gets) {
            Some(upstream) if !self.client_keys.is_empty() => Err(format!(
                "configuration: upstreams.{}.key: expected {{\"secret\": NAME}} or \"none\", because there are \
                 client_keys, which no upstream gets",
                upstream.name
            )),
            _ => Ok(()),
        }
    }

    /// For hosts that connect by themselves: every upstream has an address.
    ///
    /// # Errors
    /// Which one has none.
    pub fn check_urls(&self) -> Result<(), String> {
        for upstream in self.upstreams.values() {
            if let Err(reason) = Address::parse(&upstream.url) {
                return Err(format!("configuration: upstreams.{}.url: {reason}", upstream.name));
            }
        }
        Ok(())
    }
}

fn at(told: &str, reason: &str) -> String {
    [told, ": ", reason].concat()
}

#[cfg(test)]
mod tests;
