//! One upstream in short: what flags and variables of a host say beside the document, or instead of
//! it.
//!
//! They complete a document that has one upstream or none. With several it would be anybody's guess
//! which one they mean, so that is an error.

use super::address::{Address, check_base_path};
use super::credentials::secret_of;
use super::{Config, Key, Upstream};
use crate::json::quoted;
use crate::profile::{PRESETS, Profile};
use crate::words;

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
        let url = words::trim_end(url, b"/");
        let host = words::find(url, "://").map_or(0, |at| at.saturating_add(3));
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
        let Some(profile) = Profile::preset(name) else {
            let known = PRESETS.join(", ");
            return Err(format!("{told}: expected one of {known}, but found {}", quoted(name)));
        };
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
mod tests {
    use super::*;

    fn config(variables: &[(&str, &str)]) -> Result<Config, String> {
        Config::from_variables(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_short_variables_describe_one_upstream() {
        let made = config(&[
            ("UPSTREAM_URL", "https://api.example.com/openai/v1/"),
            ("UPSTREAM_KEY", "sk-1"),
            ("CREOLE_PROFILE", "openai"),
            ("CREOLE_CONFIG", r#"{"strict": true}"#),
        ])
        .unwrap();
        let upstream = made.upstreams.get("default").unwrap();
        assert_eq!(upstream.url, "https://api.example.com");
        assert_eq!(upstream.base_path, "/openai/v1");
        assert_eq!(upstream.key, Key::Secret("sk-1".to_owned()));
        assert_eq!(upstream.profile, Profile::preset("openai").unwrap());
        assert!(made.settings.strict);

        let made = config(&[("UPSTREAM_URL", "http://[::1]:8080"), ("UPSTREAM_KEY", "")]).unwrap();
        let upstream = made.upstreams.get("default").unwrap();
        assert_eq!((upstream.url.as_str(), &*upstream.base_path), ("http://[::1]:8080", "/v1"));
        assert_eq!(upstream.key, Key::Client);
    }

    #[test]
    fn the_variables_complete_the_one_upstream_of_a_document() {
        let document = r#"{"upstreams": {"a": {"key": {"secret": "A_KEY"}, "base_path": "/x"}}}"#;
        let made = config(&[
            ("CREOLE_CONFIG", document),
            ("A_KEY", "sk-2"),
            ("UPSTREAM_URL", "http://a.example"),
        ])
        .unwrap();
        let upstream = made.upstreams.get("a").unwrap();
        assert_eq!(upstream.key, Key::Secret("sk-2".to_owned()));
        assert_eq!((&*upstream.url, &*upstream.base_path), ("http://a.example", "/x"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let url = ("UPSTREAM_URL", "https://a");
        let several = ("CREOLE_CONFIG", r#"{"upstreams":{"a":{},"b":{}}}"#);
        for (variables, expected) in [
            (&[][..], "configuration: expected the variable CREOLE_CONFIG or UPSTREAM_URL"),
            (&[("CREOLE_CONFIG", "{}")], "configuration: upstreams.default.url: expected a URL"),
            (&[("CREOLE_CONFIG", "{"), url], "configuration: "),
            (&[("CREOLE_CONFIG", r#"{"strikt":1}"#), url], "configuration: strikt: unknown key"),
            (&[several, url], "UPSTREAM_URL: the configuration has several upstreams"),
            (&[url, ("CREOLE_PROFILE", "no")], "CREOLE_PROFILE: expected one of default, "),
            (
                &[("CREOLE_CONFIG", r#"{"upstreams":{"a":{"url":"https://a/v1"}}}"#)],
                "configuration: upstreams.a.url: expected a URL without a path",
            ),
            (
                &[("CREOLE_CONFIG", r#"{"upstreams":{"a":{"key":{"secret":"NO"}}}}"#)],
                "configuration: upstreams.a.key.secret: expected a secret called \"NO\"",
            ),
        ] {
            let error = config(variables).unwrap_err();
            assert!(error.starts_with(expected), "{variables:?}: {error}");
        }
    }

    #[test]
    fn keys_in_a_url_are_not_told_to_clients() {
        for url in ["https://a/v1?key=sk-live-1", "https://a/v1/sk-live-1/chat/completions"] {
            let error = config(&[("UPSTREAM_URL", url)]).unwrap_err();
            assert!(error.starts_with("UPSTREAM_URL: expected a path such as"), "{error}");
            assert!(!error.contains("live"), "{error}");
        }
        let error = config(&[("UPSTREAM_URL", "https://a"), ("UPSTREAM_KEY", "sk-live\n-1")]);
        assert_eq!(
            error.unwrap_err(),
            "UPSTREAM_KEY: expected a key in one line of visible ASCII characters"
        );
    }

    #[test]
    fn only_an_address_is_taken_for_one() {
        let scheme = "a URL such as https://api.example.com";
        let credentials = "a URL without credentials (set a key instead)";
        let host = "a host in the URL";
        let port = "a port from 0 to 65535 in the URL";
        let path = "a path such as \"/v1\", without a query or /chat/completions";
        for (url, expected) in [
            ("a.example", scheme),
            ("ftp://a", scheme),
            ("http://", scheme),
            ("https://", scheme),
            ("http:///v1", host),
            ("http://u@a", credentials),
            ("http://u:p@host/v1", credentials),
            ("http://a/b?c", path),
            ("http://a:b", port),
            ("http://a:", port),
            ("http://a:70000", port),
            ("http://a:+80", port),
            ("http://a:-80", port),
            ("http://a b", host),
            ("http://[::1", host),
            ("http://[::1]x", port),
            ("http://[::1]:+80", port),
            ("http://a\r\nx", host),
            ("http://h%41", host),
            ("http://a/v1/<RESOURCE>", path),
        ] {
            let error = config(&[("UPSTREAM_URL", url), ("CREOLE_CONFIG", "{}")]).unwrap_err();
            assert_eq!(error, format!("UPSTREAM_URL: expected {expected}"), "{url:?}");
        }
        let path = "expected a URL without a path (set base_path instead)";
        for url in ["http://a/b", "http://a?b", "http://a#b"] {
            assert_eq!(Address::parse(url), Err(path), "{url}");
        }
        for url in ["http://a", "http://a/", "http://a:0", "https://a:65535", "http://[::1]:80"] {
            assert!(Address::parse(url).is_ok(), "{url}");
        }
    }
}
