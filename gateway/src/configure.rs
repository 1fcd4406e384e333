//! The configuration of this run: the core's document, then the flags, which describe one upstream.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use creole::Config;
use creole::config::{Key, Upstream, is_variable};
use creole::profile::presets::Server;
use creole::text::harmless;

use crate::Failed;
use crate::cli::Chosen;
use crate::cli::check::Check;
use crate::cli::serve::Serve;
use crate::probe::guess::{self, Guess};
use crate::probe::owner::{self, Whose, whose};

/// Configuration that `serve` runs with.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) config: Config,
    /// Choices that were made though nobody named them, a line for each.
    pub(crate) taken: Vec<String>,
}

/// Makes the configuration of `serve`: every upstream has an address and its key. `list` asks an
/// upstream of which nothing tells the kind for its models, and gives the preset that they tell.
pub(crate) fn for_serving(
    options: &Serve,
    list: impl FnOnce(&Upstream) -> Option<&'static str>,
) -> Result<Serving, Failed> {
    let (upstream, chosen) = (options.upstream.as_deref(), &options.chosen);
    let Described { mut config, mut guess, notes } = of(chosen, upstream)?;
    let (model, small) = (options.model.as_deref(), options.small_model.as_deref());
    if model.or(small).is_some() {
        let source = if model.is_some() { "--model" } else { "--small-model" };
        config.serve_models(model, small, &[], source).map_err(Failed::Usage)?;
    }
    let profile = chosen.profile.as_deref().or_else(|| guess.map(|guess| guess.preset));
    let key = set_key(&mut config, profile, options.key_env.as_deref())?;
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
    let mut taken = notes;
    if chosen.is_open() {
        if let (None, Some(first)) = (guess, config.first_upstream()) {
            guess = guess::by_list_or_port(&first.url, list(first));
            if let Some(guess) = guess {
                take(&mut config, guess, upstream)?;
            }
        }
        taken.push(told(guess));
    }
    taken.extend(key.map(|name| {
        format!("the upstream gets the key in the environment variable {name}, and not the keys of clients")
    }));
    Ok(Serving { config, taken })
}

fn told(guess: Option<Guess>) -> String {
    match guess {
        Some(Guess { preset, by }) => {
            format!("the upstream's profile is {preset}, by {by}; --profile NAME takes another")
        }
        None => "the upstream's profile is default, because nothing tells what kind of server it is; --profile NAME \
                 takes another"
            .to_owned(),
    }
}

/// Makes the configuration of `check`: every upstream has an address and its key. Clients do not
/// matter.
pub(crate) fn for_checking(options: &Check) -> Result<(Config, Option<Guess>), Failed> {
    let chosen = &options.chosen;
    let Described { mut config, guess, notes } = of(chosen, options.upstream.as_deref())?;
    notes.iter().try_for_each(|note| say(io::stderr(), note))?;
    let profile = chosen.profile.as_deref().or_else(|| guess.map(|guess| guess.preset));
    set_key(&mut config, profile, options.key_env.as_deref())?;
    check_addresses(&config)?;
    Ok((config, guess))
}

/// The configuration of the document and the flags.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) config: Config,
    pub(crate) guess: Option<Guess>,
    /// Lines about usual addresses whose server's owner cannot be known.
    pub(crate) notes: Vec<String>,
}

/// The document, with the profile and the address of its one upstream. Where nothing says what kind of server it is,
/// the address of a vendor does.
pub(crate) fn of(chosen: &Chosen, upstream: Option<&str>) -> Result<Described, Failed> {
    let mut config = document(chosen.config.as_deref(), |name| std::env::var(name).ok())?;
    if let Some(name) = &chosen.profile {
        config.set_profile(name, "--profile").map_err(Failed::Usage)?;
    }
    if let Some(url) = upstream {
        config.set_url(url, "--upstream").map_err(Failed::Usage)?;
    }
    let first = config.first_upstream().filter(|_| chosen.is_open());
    let guess = first.and_then(|upstream| guess::by_address(&upstream.url));
    if let Some(guess) = guess {
        take(&mut config, guess, upstream)?;
    }
    let notes = fill_urls(&mut config)?;
    Ok(Described { config, guess, notes })
}

/// Sets the usual addresses of upstreams that have none. Returns a line for each whose server's owner this system does
/// not tell. On Linux the server may start later, and no line says that it is not there.
///
/// # Errors
/// Another user of this machine listens at one.
fn fill_urls(config: &mut Config) -> Result<Vec<String>, Failed> {
    let is_open = |upstream: &&Upstream| upstream.url.is_empty();
    let open: Vec<String> =
        config.upstreams.values().filter(is_open).map(|upstream| upstream.name.clone()).collect();
    config.fill_urls();
    let mut notes = Vec::new();
    for upstream in open.iter().filter_map(|name| config.upstreams.get(name)) {
        let (preset, url) = (upstream.preset, &upstream.url);
        match whose(url) {
            Whose::AnotherPersons => {
                let reason = owner::ANOTHER_PERSONS;
                return Err(Failed::Usage(format!("{preset} at {url}: {reason}")));
            }
            Whose::Unknown if !cfg!(target_os = "linux") => notes.push(owner::unknown(url)),
            Whose::Unknown | Whose::Usable => {}
        }
    }
    Ok(notes)
}

/// Sets a profile that was guessed. A path that stands in the address stays.
pub(crate) fn take(config: &mut Config, guess: Guess, url: Option<&str>) -> Result<(), Failed> {
    config.set_profile(guess.preset, "--upstream").map_err(Failed::Usage)?;
    match url {
        Some(url) => config.set_url(url, "--upstream").map_err(Failed::Usage),
        None => Ok(()),
    }
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

/// The variable with the key of the vendor whose profile was named or guessed. Only the vendor's own address gets it,
/// and only where nothing else says which key goes there.
fn usual_key(config: &Config, profile: Option<&str>) -> Option<&'static str> {
    let server = Server::of_preset(profile?)?;
    let upstream = config.first_upstream().filter(|upstream| upstream.key == Key::Client)?;
    let is_set = || std::env::var(server.key).is_ok_and(|key| !key.is_empty());
    (server.owns(&upstream.url) && is_set()).then_some(server.key)
}

/// Makes the configuration of the commands without a network: addresses and keys do not matter.
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

/// Writes the schema of the configuration, for `creole check-config --schema`.
pub(crate) fn print_schema() -> Result<bool, Failed> {
    say(io::stdout(), &creole::config::schema::schema())?;
    Ok(true)
}

/// Writes a [harmless] text and ends its line. The macros of the standard library would panic where nobody reads.
pub(crate) fn say(mut out: impl Write, line: &str) -> Result<(), Failed> {
    let written = writeln!(out, "{}", harmless::lines(line));
    written.map_err(|error| Failed::Run(format!("cannot write: {error}")))
}

/// Reason for which there is no configuration.
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
