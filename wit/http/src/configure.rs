//! The configuration, from the component's environment.
//!
//! `CREOLE_CONFIG` is the document that every host reads; the secrets that it names are variables too.
//! Where it has no `upstreams`, three short variables describe one: `UPSTREAM_URL`, `UPSTREAM_KEY` and
//! `CREOLE_PROFILE`.

use creole::Config;
use creole::config::{Key, Upstream};
use creole::profile::{PRESETS, Profile};

const CONFIG: &str = "CREOLE_CONFIG";
const URL: &str = "UPSTREAM_URL";
const KEY: &str = "UPSTREAM_KEY";
const PROFILE: &str = "CREOLE_PROFILE";

/// Reads the configuration; `variable` gives the value of an environment variable.
///
/// # Errors
/// What is wrong, and where.
pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Config, String> {
    let given = |name: &str| variable(name).filter(|text| !text.is_empty());
    let mut config = match given(CONFIG) {
        Some(text) => Config::from_json(&text, given).map_err(|error| error.to_string())?,
        None => Config::default(),
    };
    if let Some(url) = given(URL) {
        if config.upstreams != Config::default().upstreams {
            return Err(format!(
                "configuration: upstreams: expected none beside the variable {URL}; remove one of them"
            ));
        }
        if let Some(upstream) = config.upstreams.values_mut().next() {
            describe(upstream, &url, given(KEY), given(PROFILE))?;
        }
    }
    for upstream in config.upstreams.values() {
        if upstream.url.is_empty() && given(URL).is_none() && given(CONFIG).is_none() {
            return Err(format!("expected the variable {URL} or {CONFIG}, but found neither"));
        }
        if let Err(reason) = Address::parse(&upstream.url) {
            return Err(format!("configuration: upstreams.{}.url: {reason}", upstream.name));
        }
    }
    Ok(config)
}

/// `http://localhost:11434/v1` is where clients of Chat Completions would be pointed: address and
/// base path in one.
fn describe(
    upstream: &mut Upstream,
    url: &str,
    key: Option<String>,
    profile: Option<String>,
) -> Result<(), String> {
    let url = url.trim_end_matches('/');
    let host = url.find("://").map_or(0, |at| at.saturating_add(3));
    let slash = url.get(host..).and_then(|rest| rest.find('/'));
    let (address, path) =
        slash.and_then(|at| url.split_at_checked(host.saturating_add(at))).unwrap_or((url, "/v1"));
    if path.contains(['?', '#']) || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("{URL}: expected a plain path in it"));
    }
    address.clone_into(&mut upstream.url);
    path.clone_into(&mut upstream.base_path);
    if let Some(key) = key {
        upstream.key = Key::Secret(key);
    }
    if let Some(name) = profile {
        let Some(profile) = Profile::preset(&name) else {
            let presets = PRESETS.join(", ");
            return Err(format!("{PROFILE}: expected one of {presets}, but found {name:?}"));
        };
        upstream.profile = profile;
    }
    Ok(())
}

/// Where an upstream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address<'a> {
    pub(crate) tls: bool,
    pub(crate) authority: &'a str,
}

impl<'a> Address<'a> {
    /// # Errors
    /// What was expected.
    pub(crate) fn parse(url: &'a str) -> Result<Self, &'static str> {
        let (tls, authority) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(authority), _) => (true, authority),
            (None, Some(authority)) => (false, authority),
            (None, None) => return Err("expected a URL such as http://localhost:11434"),
        };
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        if authority.contains('@') {
            return Err("expected a URL without credentials (set a key instead)");
        }
        if authority.contains(['/', '?', '#']) {
            return Err("expected a URL without a path (set base_path instead)");
        }
        if authority.is_empty() || !authority.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("expected a host in the URL");
        }
        Ok(Self { tls, authority })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(variables: &[(&str, &str)]) -> Result<Config, String> {
        read(|name| {
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
    }

    #[test]
    fn an_address_without_a_path_serves_under_v1() {
        let made = config(&[("UPSTREAM_URL", "http://[::1]:8080")]).unwrap();
        let upstream = made.upstreams.get("default").unwrap();
        assert_eq!(
            (upstream.url.as_str(), upstream.base_path.as_str()),
            ("http://[::1]:8080", "/v1")
        );
        assert_eq!(upstream.key, Key::Client);
    }

    #[test]
    fn a_document_names_its_own_upstreams_and_secrets() {
        let document = r#"{"upstreams": {"a": {"url": "http://a", "key": {"secret": "A_KEY"}}}}"#;
        let made = config(&[("CREOLE_CONFIG", document), ("A_KEY", "sk-2")]).unwrap();
        assert_eq!(made.upstreams.get("a").unwrap().key, Key::Secret("sk-2".to_owned()));
        let missing = config(&[("CREOLE_CONFIG", document)]).unwrap_err();
        assert!(missing.contains("upstreams.a.key"), "{missing}");
    }

    #[test]
    fn what_cannot_be_served_is_refused_with_its_place() {
        let upstreams = ("CREOLE_CONFIG", r#"{"upstreams": {"a": {"url": "http://a"}}}"#);
        for (variables, reason) in [
            (&[][..], "expected the variable UPSTREAM_URL or CREOLE_CONFIG"),
            (
                &[("UPSTREAM_URL", "a.example")],
                "configuration: upstreams.default.url: expected a URL",
            ),
            (
                &[("UPSTREAM_URL", "http://u@a")],
                "configuration: upstreams.default.url: expected a URL",
            ),
            (
                &[("UPSTREAM_URL", "http:///v1")],
                "configuration: upstreams.default.url: expected a host",
            ),
            (&[("UPSTREAM_URL", "http://a/v1?x")], "UPSTREAM_URL: expected a plain path"),
            (
                &[("UPSTREAM_URL", "http://a"), ("CREOLE_PROFILE", "x")],
                "CREOLE_PROFILE: expected one",
            ),
            (&[("UPSTREAM_URL", "http://a"), upstreams], "configuration: upstreams: expected none"),
            (&[("CREOLE_CONFIG", "{\"strict\": 1}")], "configuration: strict: expected"),
            (&[("CREOLE_CONFIG", "{}")], "configuration: upstreams.default.url: expected a URL"),
        ] {
            let refused = config(variables).unwrap_err();
            assert!(refused.starts_with(reason), "{refused}");
        }
    }
}
