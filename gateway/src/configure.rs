//! The configuration of this run: the core's document, then the flags, which describe one upstream.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use creole::Config;
use creole::config::{Key, is_variable};
use creole::dialect::presets::Server;

use crate::Failed;
use crate::cli::Chosen;
use crate::cli::check::Check;
use crate::cli::serve::Serve;

/// For `serve`: every upstream has an address and its key. The variable is the one whose key is used though nobody
/// named it.
pub(crate) fn for_serving(options: &Serve) -> Result<(Config, Option<&'static str>), Failed> {
    let mut config = of(&options.chosen, options.upstream.as_deref())?;
    let (model, small) = (options.model.as_deref(), options.small_model.as_deref());
    if model.or(small).is_some() {
        let source = if model.is_some() { "--model" } else { "--small-model" };
        config.serve_models(model, small, &[], source).map_err(Failed::Usage)?;
    }
    let profile = options.chosen.profile.as_deref();
    let taken = set_key(&mut config, profile, options.key_env.as_deref())?;
    for name in &options.client_key_env {
        let added =
            config.add_client_key_from(name, "--client-key-env", |name| std::env::var(name).ok());
        added.map_err(Failed::Usage)?;
    }
    if let Some(seconds) = options.first_byte_timeout {
        config.settings.first_byte_timeout_ms = seconds.saturating_mul(1000);
    }
    check_addresses(&config)?;
    config.check_client_keys().map_err(Failed::Usage)?;
    Ok((config, taken))
}

/// For `check`: every upstream has an address and its key. Clients do not matter. Where nothing says what kind of
/// server it is, the address of a vendor does: then its preset is given, too.
pub(crate) fn for_checking(options: &Check) -> Result<(Config, Option<&'static str>), Failed> {
    let chosen = &options.chosen;
    let mut config = of(chosen, options.upstream.as_deref())?;
    let vendor = config.first_upstream().and_then(|upstream| Server::of_vendor(&upstream.url));
    let is_open = chosen.profile.is_none() && chosen.config.is_none();
    let guess = vendor.filter(|_| is_open).map(|server| server.preset);
    if let Some(preset) = guess {
        config.set_profile(preset, "--upstream").map_err(Failed::Usage)?;
    }
    let profile = chosen.profile.as_deref().or(guess);
    set_key(&mut config, profile, options.key_env.as_deref())?;
    check_addresses(&config)?;
    Ok((config, guess))
}

/// The document, with the profile and the address of its one upstream.
fn of(chosen: &Chosen, upstream: Option<&str>) -> Result<Config, Failed> {
    let mut config = document(chosen.config.as_deref(), |name| std::env::var(name).ok())?;
    if let Some(name) = &chosen.profile {
        config.set_profile(name, "--profile").map_err(Failed::Usage)?;
    }
    if let Some(url) = upstream {
        config.set_url(url, "--upstream").map_err(Failed::Usage)?;
    }
    config.fill_urls();
    Ok(config)
}

/// The key of the one upstream. Gives the vendor's variable, if that was taken.
fn set_key(
    config: &mut Config,
    profile: Option<&str>,
    key_env: Option<&str>,
) -> Result<Option<&'static str>, Failed> {
    let usual = if key_env.is_some() { None } else { usual_key(config, profile) };
    if let Some(name) = key_env.or(usual) {
        let key = config.set_key_from(name, "--key-env", |name| std::env::var(name).ok());
        key.map_err(Failed::Usage)?;
    }
    Ok(usual)
}

fn check_addresses(config: &Config) -> Result<(), Failed> {
    let upstreams = &config.upstreams;
    if upstreams.len() == 1 && upstreams.values().all(|upstream| upstream.url.is_empty()) {
        let reason = "no upstream: give --upstream URL, a --profile that knows its URL, or a url in the configuration";
        return Err(Failed::Usage(reason.to_owned()));
    }
    config.check_urls().map_err(Failed::Usage)
}

/// The variable with the key of the vendor that `--profile` names. Only the vendor's own address gets it, and only
/// where nothing else says which key goes there.
fn usual_key(config: &Config, profile: Option<&str>) -> Option<&'static str> {
    let server = Server::of_preset(profile?)?;
    let upstream = config.first_upstream().filter(|upstream| upstream.key == Key::Client)?;
    let is_set = || std::env::var(server.key).is_ok_and(|key| !key.is_empty());
    (server.owns(&upstream.url) && is_set()).then_some(server.key)
}

/// For the commands without a network: addresses and keys do not matter.
pub(crate) fn for_translating(chosen: &Chosen) -> Result<Config, Failed> {
    let mut config = document(chosen.config.as_deref(), |_| Some("unused".to_owned()))?;
    if let Some(name) = &chosen.profile {
        config.set_profile(name, "--profile").map_err(Failed::Usage)?;
    }
    Ok(config)
}

/// `creole check-config`. The document may be for another host: what only `serve` needs is a note.
pub(crate) fn check(file: &Path) -> Result<bool, Failed> {
    let notes = std::cell::RefCell::new(Vec::new());
    let checked = document(Some(file), |name| {
        let value = std::env::var(name).unwrap_or_default();
        if value.is_empty() && is_variable(name) {
            notes.borrow_mut().push(format!("the environment variable {name} is not set"));
            return Some("unused".to_owned());
        }
        // Nothing where the name may be the key itself: the document's error does not repeat it.
        Some(value).filter(|value| !value.is_empty())
    });
    match checked {
        Ok(config) => {
            let mut notes = notes.into_inner();
            for upstream in config.upstreams.values().filter(|upstream| upstream.url.is_empty()) {
                notes.push(format!("upstreams.{}.url is not set", upstream.name));
            }
            // `--key-env` may still give the upstream a key.
            if let Err(reason) = config.check_client_keys() {
                notes.push(reason.trim_start_matches("configuration: ").to_owned());
            }
            for note in notes {
                say(io::stderr(), &format!("note: {note}; `creole serve` needs it"))?;
            }
            for note in config.notes() {
                say(io::stderr(), &format!("note: {note}"))?;
            }
            say(io::stdout(), "ok")?;
            Ok(true)
        }
        Err(Wrong::Unreadable(failed)) => Err(failed),
        Err(Wrong::Document(reason)) => {
            say(io::stderr(), &format!("{}: {reason}", file.display()))?;
            Ok(false)
        }
    }
}

/// `creole check-config --schema`
pub(crate) fn print_schema() -> Result<bool, Failed> {
    say(io::stdout(), &creole::config::schema::schema())?;
    Ok(true)
}

/// Writes a line. The macros of the standard library would panic where it cannot be written.
fn say(mut out: impl Write, line: &str) -> Result<(), Failed> {
    let written = writeln!(out, "{line}");
    written.map_err(|error| Failed::Run(format!("cannot write: {error}")))
}

/// Why there is no configuration.
enum Wrong {
    Unreadable(Failed),
    Document(String),
}

impl From<Wrong> for Failed {
    fn from(wrong: Wrong) -> Self {
        match wrong {
            Wrong::Unreadable(failed) => failed,
            Wrong::Document(reason) => Self::Usage(reason),
        }
    }
}

fn document(file: Option<&Path>, secret: impl Fn(&str) -> Option<String>) -> Result<Config, Wrong> {
    let Some(file) = file else { return Ok(Config::default()) };
    let text = fs::read_to_string(file).map_err(|error| {
        Wrong::Unreadable(Failed::Usage(format!("{}: {error}", file.display())))
    })?;
    Config::from_json(&text, secret).map_err(|error| Wrong::Document(error.to_string()))
}
