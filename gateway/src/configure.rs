//! The configuration of this run: the core's document, then the flags.
//!
//! Flags describe one upstream. They complete a document that has none or one; with several it would
//! be anybody's guess which one they mean, so that is an error.

use std::fs;
use std::path::Path;

use creole::Config;
use creole::config::{Key, Upstream};
use creole::profile::{PRESETS, Profile};
use hyper::Uri;

use crate::Failed;
use crate::cli::{Chosen, Serve};

fn usage<T>(reason: impl Into<String>) -> Result<T, Failed> {
    Err(Failed::Usage(reason.into()))
}

/// For `serve`: every upstream has an address and its key.
pub(crate) fn for_serving(options: &Serve) -> Result<Config, Failed> {
    let mut config = document(options.chosen.config.as_deref(), |name| std::env::var(name).ok())?;
    choose_profile(&mut config, options.chosen.profile.as_deref())?;
    if let Some(url) = &options.upstream {
        let (url, base_path) = split_url(url)?;
        let upstream = only_upstream(&mut config, "--upstream")?;
        upstream.url = url;
        upstream.base_path = base_path;
    }
    if let Some(name) = &options.key_env {
        let key = std::env::var(name).unwrap_or_default();
        if key.is_empty() {
            return usage(format!("--key-env: the environment variable {name} is not set"));
        }
        only_upstream(&mut config, "--key-env")?.key = Key::Secret(key);
    }
    for upstream in config.upstreams.values() {
        if upstream.url.is_empty() {
            return usage(if config.upstreams.len() == 1 {
                "no upstream: give --upstream URL, or a url in the configuration".to_owned()
            } else {
                format!("configuration: upstreams.{}.url: expected a URL", upstream.name)
            });
        }
    }
    check_urls(&config)?;
    Ok(config)
}

/// For the commands without a network: addresses and keys do not matter.
pub(crate) fn for_translating(chosen: &Chosen) -> Result<Config, Failed> {
    let mut config = document(chosen.config.as_deref(), |_| Some("unused".to_owned()))?;
    choose_profile(&mut config, chosen.profile.as_deref())?;
    Ok(config)
}

/// `creole check-config`. The document may be for another host: what only `serve` needs is a note.
pub(crate) fn check(file: &Path) -> Result<bool, Failed> {
    let notes = std::cell::RefCell::new(Vec::new());
    let checked = document(Some(file), |name| {
        let value = std::env::var(name).unwrap_or_default();
        if value.is_empty() {
            notes.borrow_mut().push(format!("the environment variable {name} is not set"));
        }
        Some("unused".to_owned())
    });
    match checked.and_then(|config| check_urls(&config).map(|()| config)) {
        Ok(config) => {
            let mut notes = notes.into_inner();
            for upstream in config.upstreams.values().filter(|upstream| upstream.url.is_empty()) {
                notes.push(format!("upstreams.{}.url is not set", upstream.name));
            }
            for note in notes {
                eprintln!("note: {note}; `creole serve` needs it");
            }
            println!("ok");
            Ok(true)
        }
        Err(Failed::Usage(reason)) if !reason.starts_with("configuration") => {
            Err(Failed::Usage(reason))
        }
        Err(Failed::Usage(reason) | Failed::Run(reason)) => {
            eprintln!("{}: {reason}", file.display());
            Ok(false)
        }
    }
}

fn document(
    file: Option<&Path>,
    secret: impl Fn(&str) -> Option<String>,
) -> Result<Config, Failed> {
    let Some(file) = file else { return Ok(Config::default()) };
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return usage(format!("{}: {error}", file.display())),
    };
    Config::from_json(&text, secret).map_err(|error| Failed::Usage(error.to_string()))
}

fn choose_profile(config: &mut Config, name: Option<&str>) -> Result<(), Failed> {
    let Some(name) = name else { return Ok(()) };
    let Some(profile) = Profile::preset(name) else {
        return usage(format!(
            "--profile: expected one of {}, but found {name:?}",
            PRESETS.join(", ")
        ));
    };
    only_upstream(config, "--profile")?.profile = profile;
    Ok(())
}

fn only_upstream<'a>(config: &'a mut Config, flag: &str) -> Result<&'a mut Upstream, Failed> {
    let several = config.upstreams.len() > 1;
    match config.upstreams.values_mut().next() {
        Some(upstream) if !several => Ok(upstream),
        _ => usage(format!("{flag}: the configuration has several upstreams; set it there")),
    }
}

/// `http://localhost:11434/v1` is where clients of Chat Completions would be pointed: address and
/// base path in one.
fn split_url(text: &str) -> Result<(String, String), Failed> {
    let text = text.trim_end_matches('/');
    let after = text.find("://").map_or(0, |at| at.saturating_add(3));
    let (address, path) = match text.get(after..).and_then(|rest| rest.find('/')) {
        Some(slash) => text.split_at_checked(after.saturating_add(slash)).unwrap_or((text, "")),
        None => (text, ""),
    };
    if let Err(reason) = address_of(address) {
        return usage(format!("--upstream: {reason}"));
    }
    if path.contains(['?', '#']) || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return usage(format!("--upstream: expected a plain path in {text:?}"));
    }
    let base_path = if path.is_empty() { "/v1" } else { path };
    Ok((address.to_owned(), base_path.to_owned()))
}

fn check_urls(config: &Config) -> Result<(), Failed> {
    for upstream in config.upstreams.values().filter(|upstream| !upstream.url.is_empty()) {
        if let Err(reason) = address_of(&upstream.url) {
            let name = &upstream.name;
            return usage(format!("configuration: upstreams.{name}.url: {reason}"));
        }
    }
    Ok(())
}

/// Checks that `url` is a scheme, a host and perhaps a port.
fn address_of(url: &str) -> Result<(), &'static str> {
    const EXPECTED: &str = "expected a URL such as http://localhost:11434";
    let Ok(uri) = url.parse::<Uri>() else { return Err(EXPECTED) };
    let (Some("http" | "https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(EXPECTED);
    };
    if authority.host().is_empty() {
        return Err(EXPECTED);
    }
    if authority.as_str().contains('@') {
        return Err("expected a URL without credentials (set a key instead)");
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err("expected a URL without a path (set base_path instead)");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Result<(String, String), String> {
        split_url(text).map_err(|failed| match failed {
            Failed::Usage(reason) | Failed::Run(reason) => reason,
        })
    }

    #[test]
    fn the_path_of_an_upstream_is_its_base_path() {
        for (text, url, base_path) in [
            ("http://localhost:11434/v1", "http://localhost:11434", "/v1"),
            ("http://localhost:11434/v1/", "http://localhost:11434", "/v1"),
            ("http://localhost:11434", "http://localhost:11434", "/v1"),
            ("https://example.com/api/openai/v1", "https://example.com", "/api/openai/v1"),
            ("http://[::1]:8080/v1", "http://[::1]:8080", "/v1"),
        ] {
            assert_eq!(split(text), Ok((url.to_owned(), base_path.to_owned())), "{text}");
        }
    }

    #[test]
    fn what_is_not_an_address_is_refused_in_one_line() {
        for text in
            ["localhost:11434", "ftp://a", "", "http://", "http://u:p@host/v1", "http://a/b?c"]
        {
            let reason = split(text).unwrap_err();
            assert!(
                reason.starts_with("--upstream: expected") && !reason.contains('\n'),
                "{reason}"
            );
        }
    }

    #[test]
    fn a_path_in_a_configured_url_would_double_the_base_path() {
        let mut config = Config::default();
        config.upstreams.get_mut("default").unwrap().url = "http://localhost:11434/v1".to_owned();
        let Err(Failed::Usage(reason)) = check_urls(&config) else { panic!("accepted") };
        assert!(
            reason.contains("upstreams.default.url") && reason.contains("base_path"),
            "{reason}"
        );
    }
}
