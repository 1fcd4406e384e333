//! The configuration, from the Worker's variables and secrets.
//!
//! `CREOLE_CONFIG` is the document that every host reads. Three short variables complete or replace it
//! where there is one upstream: `UPSTREAM_URL`, `UPSTREAM_KEY` (a secret) and `CREOLE_PROFILE`.
//!
//! An isolate has 128 MB for everything. Limits that would be too large for it are lowered here, not
//! refused: the same document serves on all hosts.

use creole::Config;
use creole::config::{Key, Settings, Upstream};
use creole::profile::{PRESETS, Profile};

const CONFIG: &str = "CREOLE_CONFIG";
const URL: &str = "UPSTREAM_URL";
const KEY: &str = "UPSTREAM_KEY";
const PROFILE: &str = "CREOLE_PROFILE";

/// A body is in the isolate up to five times for a moment: as JavaScript's, as ours, as text with its
/// parts, translated, and as JavaScript's again.
const REQUEST_BYTES_MAX: usize = 8 << 20;
const RESPONSE_BYTES_MAX: usize = 8 << 20;
const WAITING_BYTES_MAX: usize = 8 << 20;
const EVENT_BYTES_MAX: usize = 4 << 20;
/// All requests of the isolate together.
const BUFFERED_BYTES_MAX: usize = 16 << 20;

/// Reads the configuration. `variable` gives the text of a variable or secret; a variable that is a
/// JSON object is given as its text.
///
/// # Errors
/// The text says what is wrong, and where.
pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Config, String> {
    let given = |name| variable(name).filter(|text| !text.is_empty());
    let (text, url) = (given(CONFIG), given(URL));
    if text.is_none() && url.is_none() {
        return Err(format!(
            "configuration: expected the variable {CONFIG} or {URL}, but found neither"
        ));
    }
    let mut config = match text {
        Some(text) => Config::from_json(&text, &variable).map_err(|error| error.to_string())?,
        None => Config::default(),
    };
    if let Some(url) = url {
        let (origin, path) = split(&url);
        let upstream = only_upstream(&mut config, URL)?;
        upstream.url = origin.to_owned();
        if !path.is_empty() {
            upstream.base_path = path.to_owned();
        }
    }
    if let Some(key) = given(KEY) {
        only_upstream(&mut config, KEY)?.key = Key::Secret(key);
    }
    if let Some(name) = given(PROFILE) {
        let Some(profile) = Profile::preset(&name) else {
            let known = PRESETS.join(", ");
            return Err(format!("{PROFILE}: expected one of {known}, but found {name:?}"));
        };
        only_upstream(&mut config, PROFILE)?.profile = profile;
    }
    for upstream in config.upstreams.values() {
        if let Err(reason) = check_url(&upstream.url) {
            return Err(format!("configuration: upstreams.{}.url: {reason}", upstream.name));
        }
    }
    lower(&mut config.settings);
    Ok(config)
}

/// The short variables describe one upstream. With several it would be anybody's guess which one.
fn only_upstream<'a>(config: &'a mut Config, name: &str) -> Result<&'a mut Upstream, String> {
    let several = config.upstreams.len() > 1;
    match config.upstreams.values_mut().next() {
        Some(upstream) if !several => Ok(upstream),
        _ => Err(format!("{name}: {CONFIG} has several upstreams; set it there")),
    }
}

fn lower(settings: &mut Settings) {
    for (setting, max) in [
        (&mut settings.request_bytes_max, REQUEST_BYTES_MAX),
        (&mut settings.response_bytes_max, RESPONSE_BYTES_MAX),
        (&mut settings.waiting_bytes_max, WAITING_BYTES_MAX),
        (&mut settings.event_bytes_max, EVENT_BYTES_MAX),
        (&mut settings.buffered_bytes_max, BUFFERED_BYTES_MAX),
    ] {
        *setting = (*setting).min(max);
    }
}

/// `https://api.example.com/v1` is where clients of Chat Completions would be pointed: origin and
/// base path in one.
fn split(url: &str) -> (&str, &str) {
    let url = url.trim_end_matches('/');
    let host = url.find("://").map_or(0, |at| at.saturating_add(3));
    let path = url.get(host..).and_then(|rest| rest.find('/'));
    let path = path.and_then(|at| url.split_at_checked(host.saturating_add(at)));
    path.unwrap_or((url, ""))
}

/// Checks that there is a scheme, a host and perhaps a port.
fn check_url(url: &str) -> Result<(), &'static str> {
    let authority = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let Some(authority) = authority.filter(|it| it.bytes().all(|byte| byte.is_ascii_graphic()))
    else {
        return Err("expected a URL such as https://api.example.com");
    };
    if authority.is_empty() {
        return Err("expected a host after ://, but found none");
    }
    if authority.contains('@') {
        return Err("expected a URL without credentials (set a key instead)");
    }
    if authority.contains(['/', '?', '#']) {
        return Err("expected a URL without a path (set base_path instead)");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use creole::config::Key;

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
        assert_eq!(upstream.profile.max_tools, 128);
        assert!(made.settings.strict);

        let made = config(&[("UPSTREAM_URL", "http://localhost:11434")]).unwrap();
        let upstream = made.upstreams.get("default").unwrap();
        assert_eq!((upstream.base_path.as_str(), &upstream.key), ("/v1", &Key::Client));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let url = ("UPSTREAM_URL", "https://a");
        for (variables, expected) in [
            (&[][..], "configuration: expected the variable CREOLE_CONFIG or UPSTREAM_URL"),
            (&[("CREOLE_CONFIG", "{}")], "configuration: upstreams.default.url: expected a URL"),
            (&[("CREOLE_CONFIG", "{"), url], "configuration: "),
            (&[("CREOLE_CONFIG", r#"{"strikt":1}"#), url], "configuration: strikt: unknown key"),
            (
                &[("CREOLE_CONFIG", r#"{"upstreams":{"a":{},"b":{}}}"#), url],
                "UPSTREAM_URL: CREOLE_CONFIG has several upstreams",
            ),
            (&[url, ("CREOLE_PROFILE", "no")], "CREOLE_PROFILE: expected one of default, "),
            (&[("UPSTREAM_URL", "a.example")], "configuration: upstreams.default.url: expected"),
            (&[("UPSTREAM_URL", "https://")], "configuration: upstreams.default.url: expected"),
            (&[("UPSTREAM_URL", "https://u@a")], "configuration: upstreams.default.url: expected"),
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
    fn limits_are_lowered_to_what_an_isolate_bears() {
        let document = r#"{"request_bytes_max": 1000000, "response_bytes_max": 100000000}"#;
        let made = config(&[("CREOLE_CONFIG", document), ("UPSTREAM_URL", "https://a")]).unwrap();
        assert_eq!(made.settings.request_bytes_max, 1_000_000);
        assert_eq!(made.settings.response_bytes_max, RESPONSE_BYTES_MAX);
        assert_eq!(made.settings.buffered_bytes_max, BUFFERED_BYTES_MAX);
    }
}
