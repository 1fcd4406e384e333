//! Configuration of this run: the core's JSON document, changed by the flags, which describe one
//! upstream.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use creole::Config;
use creole::config::{Key, Upstream};
use creole::profile::presets::{KnownServer, PRESETS};

use crate::CommandFailed;
use crate::probe::guess::{self, Guess};
use crate::probe::owner::{self, ServerOwner, owner_of};

/// What all commands that translate take.
#[derive(Clone, Debug, Args)]
pub(crate) struct Chosen {
    // The help lists the profile names that the configuration accepts.
    #[arg(long, value_name = "NAME", help = ["What kind of server the upstream is: ", &PRESETS.join(", ")].concat())]
    pub(crate) profile: Option<String>,
    /// Configuration, one JSON document
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl Chosen {
    /// Returns true if neither a profile nor a configuration names the upstream's kind of server,
    /// so that it may be guessed.
    pub(crate) fn is_open(&self) -> bool {
        self.profile.is_none() && self.config.is_none()
    }
}

/// Services of the server tools that Creole runs for models, as flags name them.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct NamedServices {
    /// Address of a SearXNG that runs web searches for models: http://localhost:8888. Other search
    /// services are in the configuration
    #[arg(long, value_name = "URL")]
    pub(crate) search: Option<String>,
    /// MCP server whose tools every model gets and may call, without asking a person:
    /// notes=http://localhost:3000/mcp; may be repeated
    #[arg(long, value_name = "NAME=URL")]
    pub(crate) mcp: Vec<String>,
}

impl NamedServices {
    /// Returns true if a flag names a service.
    pub(crate) fn is_any(&self) -> bool {
        self.search.is_some() || !self.mcp.is_empty()
    }

    /// Writes the services into the configuration.
    ///
    /// # Errors
    /// An address or a name cannot be used, or the configuration already has such a service.
    pub(crate) fn set(&self, config: &mut Config) -> Result<(), CommandFailed> {
        if let Some(url) = &self.search {
            config.set_search(url, "--search").map_err(CommandFailed::Usage)?;
        }
        let mut servers = self.mcp.iter();
        let added = servers.try_for_each(|given| config.offer_mcp_server(given, "--mcp"));
        added.map_err(CommandFailed::Usage)
    }
}

/// Configuration that was made from the document and the flags.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) config: Config,
    pub(crate) guess: Option<Guess>,
    /// Lines for the user about usual addresses where the owner of the server is unknown.
    pub(crate) notes: Vec<String>,
}

/// Returns the configuration from the document, with the profile and the URL of its one upstream.
/// If no profile is named, the address of a known vendor decides.
pub(crate) fn of(chosen: &Chosen, upstream: Option<&str>) -> Result<Described, CommandFailed> {
    let mut config = document(chosen.config.as_deref(), |name| std::env::var(name).ok())?;
    if let Some(name) = &chosen.profile {
        config.set_profile(name, "--profile").map_err(CommandFailed::Usage)?;
    }
    if let Some(url) = upstream {
        config.set_url(url, "--upstream").map_err(CommandFailed::Usage)?;
    }
    let first = config.first_upstream().filter(|_| chosen.is_open());
    let guess = first.and_then(|upstream| guess::by_address(&upstream.url));
    if let Some(guess) = guess {
        take(&mut config, guess, upstream)?;
    }
    let notes = fill_urls(&mut config)?;
    Ok(Described { config, guess, notes })
}

/// Sets the usual URLs of upstreams that have none. Returns a line for each server whose owner is
/// unknown. On Linux a server that has not started yet gets no line.
///
/// # Errors
/// Another user of this machine listens at a usual address.
fn fill_urls(config: &mut Config) -> Result<Vec<String>, CommandFailed> {
    let is_open = |upstream: &&Upstream| upstream.url.is_empty();
    let open: Vec<String> =
        config.upstreams.values().filter(is_open).map(|upstream| upstream.name.clone()).collect();
    config.fill_urls();
    let mut notes = Vec::new();
    for upstream in open.iter().filter_map(|name| config.upstreams.get(name)) {
        let (preset, url) = (upstream.preset, &upstream.url);
        match owner_of(url) {
            ServerOwner::AnotherPersons => {
                let reason = owner::ANOTHER_PERSONS;
                return Err(CommandFailed::Usage(format!("{preset} at {url}: {reason}")));
            }
            ServerOwner::Unknown if !cfg!(target_os = "linux") => notes.push(owner::unknown(url)),
            ServerOwner::Unknown | ServerOwner::Usable => {}
        }
    }
    Ok(notes)
}

/// Sets the guessed profile of the upstream. If the upstream's URL has a path, the path is kept.
pub(crate) fn take(
    config: &mut Config,
    guess: Guess,
    url: Option<&str>,
) -> Result<(), CommandFailed> {
    config.set_profile(guess.preset, "--upstream").map_err(CommandFailed::Usage)?;
    match url {
        Some(url) => config.set_url(url, "--upstream").map_err(CommandFailed::Usage),
        None => Ok(()),
    }
}

/// Sets the key of the only configured upstream. Returns the name of the vendor's environment
/// variable, if the key in that variable is used.
pub(crate) fn set_key(
    config: &mut Config,
    profile: Option<&str>,
    key_env: Option<&str>,
) -> Result<Option<&'static str>, CommandFailed> {
    let usual = if key_env.is_some() { None } else { usual_key(config, profile) };
    if let Some(name) = key_env.or(usual) {
        let key = config.set_key_from(name, "--key-env", |name| std::env::var(name).ok());
        key.map_err(CommandFailed::Usage)?;
    }
    Ok(usual)
}

pub(crate) fn check_addresses(config: &Config) -> Result<(), CommandFailed> {
    let upstreams = &config.upstreams;
    if upstreams.len() == 1 && upstreams.values().all(|upstream| upstream.url.is_empty()) {
        let reason = "no upstream: give --upstream URL, a --profile that knows its URL, or a url in the configuration";
        return Err(CommandFailed::Usage(reason.to_owned()));
    }
    config.check_urls().map_err(CommandFailed::Usage)
}

/// Returns the environment variable with the key of the vendor whose profile was named or guessed.
/// The key is used only for the vendor's own address, and only if no other key is configured.
fn usual_key(config: &Config, profile: Option<&str>) -> Option<&'static str> {
    let server = KnownServer::of_preset(profile?)?;
    let upstream = config.first_upstream().filter(|upstream| upstream.key == Key::Client)?;
    let is_set = || std::env::var(server.key).is_ok_and(|key| !key.is_empty());
    (server.owns(&upstream.url) && is_set()).then_some(server.key)
}

/// Returns the configuration for commands without a network, which need no addresses and keys.
pub(crate) fn for_translating(chosen: &Chosen) -> Result<Config, CommandFailed> {
    let mut config = document(chosen.config.as_deref(), |_| Some("unused".to_owned()))?;
    if let Some(name) = &chosen.profile {
        config.set_profile(name, "--profile").map_err(CommandFailed::Usage)?;
    }
    Ok(config)
}

/// Reason for which the configuration cannot be used.
pub(crate) enum Wrong {
    Unreadable(CommandFailed),
    Document(String),
}

impl From<Wrong> for CommandFailed {
    fn from(wrong: Wrong) -> Self {
        match wrong {
            Wrong::Unreadable(failed) => failed,
            Wrong::Document(reason) => Self::Usage(reason),
        }
    }
}

pub(crate) fn document(
    file: Option<&Path>,
    secret: impl Fn(&str) -> Option<String>,
) -> Result<Config, Wrong> {
    let Some(file) = file else { return Ok(Config::default()) };
    let text = fs::read_to_string(file).map_err(|error| {
        Wrong::Unreadable(CommandFailed::Usage(format!("{}: {error}", file.display())))
    })?;
    Config::from_json(&text, secret).map_err(|error| Wrong::Document(error.to_string()))
}
