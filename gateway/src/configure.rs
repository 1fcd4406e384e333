//! Configuration of this run: the core's JSON document, changed by flags and variables, which
//! describe one upstream.

use std::cell::RefCell;
use std::env;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use creole::Config;
use creole::config::{Key, Secrets, Upstream};
use creole::profile::presets::{KnownServer, PRESETS};
use etcetera::BaseStrategy as _;
use hyper::Uri;

use crate::CommandFailed;
use crate::file_state::FileState;
use crate::probe::guess::{self, Guess};
use crate::probe::owner::{self, ServerOwner, owner_of};

/// Variables that describe an upstream, as on every host that has variables.
const UPSTREAM_URL: &str = "UPSTREAM_URL";
const UPSTREAM_KEY: &str = "UPSTREAM_KEY";
const PROFILE: &str = "CREOLE_PROFILE";
const CONFIG: &str = "CREOLE_CONFIG";

/// Variable with a key for clients.
const CLIENT_KEY: &str = "CLIENT_KEY";

/// Maximum size, in bytes, of a file with the configuration or with a key.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// What all commands that translate take.
#[derive(Clone, Debug, Args)]
pub(crate) struct Chosen {
    // The help lists the profile names that the configuration accepts.
    #[arg(long, value_name = "NAME", help = ["What kind of server the upstream is [variable: CREOLE_PROFILE]: ", &PRESETS.join(", ")].concat())]
    pub(crate) profile: Option<String>,
    /// Configuration, one JSON document [variable: CREOLE_CONFIG, a file or the document]; without
    /// it and an upstream, creole/config.json in the user's folder of configurations
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl Chosen {
    /// Returns what flags, variables and the usual file name together. `upstream` is the URL of the
    /// flag `--upstream`.
    pub(crate) fn named(&self, upstream: Option<&str>) -> NamedUpstream {
        let by = |flag: Option<&str>, source, name| match flag {
            Some(given) => Some((given.to_owned(), source)),
            None => variable(name).map(|given| (given, name)),
        };
        let url = by(upstream, "--upstream", UPSTREAM_URL);
        let profile = by(self.profile.as_deref(), "--profile", PROFILE);
        let mut document = self.config.clone().map(Document::File);
        let by_variable = document.is_none().then(|| variable(CONFIG)).flatten();
        let is_document_of_variable = by_variable.is_some();
        document = document.or_else(|| by_variable.map(Document::of_variable));
        if document.is_none() && url.is_none() && profile.is_none() {
            document = usual_file().filter(|file| file.exists()).map(Document::File);
        }
        NamedUpstream { url, profile, document, is_document_of_variable }
    }
}

/// Upstream that flags, variables and the usual file name: a URL and a profile, each with the name
/// of its flag or variable, and a document.
#[derive(Clone, Debug)]
pub(crate) struct NamedUpstream {
    pub(crate) url: Option<(String, &'static str)>,
    profile: Option<(String, &'static str)>,
    pub(crate) document: Option<Document>,
    is_document_of_variable: bool,
}

impl NamedUpstream {
    /// Returns true if neither a profile nor a configuration names the upstream's kind of server,
    /// so that it may be guessed.
    pub(crate) fn is_open(&self) -> bool {
        self.profile.is_none() && self.document.is_none()
    }

    /// Returns true if flags name the upstream. The key in the variable is for the upstream that
    /// variables name.
    fn is_by_flags(&self) -> bool {
        let is_flag = |given: &Option<(String, &str)>| {
            given.as_ref().is_some_and(|(_, source)| source.starts_with("--"))
        };
        is_flag(&self.url) || is_flag(&self.profile)
    }

    /// Returns the variable with the upstream's key, if variables describe the upstream.
    pub(crate) fn key_variable(&self) -> Option<&'static str> {
        let is_set = || env::var_os(UPSTREAM_KEY).is_some();
        (!self.is_by_flags() && is_set()).then_some(UPSTREAM_KEY)
    }

    /// Checks that a key in a document that a variable names goes to no server that a flag names.
    fn check_secrets(&self, config: &Config) -> Result<(), CommandFailed> {
        let Some((url, source)) = &self.url else { return Ok(()) };
        let first = config.first_upstream().filter(|upstream| upstream.has_secrets());
        let server = |url: &str| {
            let uri = url.parse::<Uri>().ok()?;
            Some((uri.scheme()?.clone(), uri.authority()?.clone()))
        };
        let is_other =
            first.is_some_and(|it| server(&it.url).is_none_or(|own| server(url) != Some(own)));
        if self.is_by_flags() && self.is_document_of_variable && is_other {
            return Err(CommandFailed::Usage(format!(
                "{source}: the configuration in {CONFIG} has a key for another server; unset {CONFIG}, or name the \
                 server there"
            )));
        }
        Ok(())
    }

    /// Returns the name of the profile, if one is given or was guessed.
    pub(crate) fn profile(&self, guess: Option<Guess>) -> Option<&str> {
        let given = self.profile.as_ref().map(|(name, _)| name.as_str());
        given.or_else(|| guess.map(|guess| guess.preset))
    }
}

/// Place of the configuration document.
#[derive(Clone, Debug)]
pub(crate) enum Document {
    File(PathBuf),
    /// Text of the document itself, from a variable.
    Text(String),
}

impl Document {
    /// Returns the document that a variable has, or whose file it names.
    fn of_variable(value: String) -> Self {
        // A document begins with an object, or with a comment.
        let is_document =
            ["{", "//", "/*", "#"].iter().any(|it| value.trim_start().starts_with(it));
        if is_document { Self::Text(value) } else { Self::File(PathBuf::from(value)) }
    }
}

/// Returns the value of an environment variable. An empty variable counts as absent.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the path of the configuration in the user's folder of configurations.
fn usual_file() -> Option<PathBuf> {
    let folders = etcetera::choose_base_strategy().ok()?;
    Some(folders.config_dir().join("creole/config.json"))
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
pub(crate) fn of(named: &NamedUpstream, files: &FilesRead) -> Result<Described, CommandFailed> {
    let mut config = files.document(named.document.as_ref())?;
    named.check_secrets(&config)?;
    if let Some((name, source)) = &named.profile {
        config.set_profile(name, source).map_err(CommandFailed::Usage)?;
    }
    if let Some((url, source)) = &named.url {
        config.set_url(url, source).map_err(CommandFailed::Usage)?;
    }
    let first = config.first_upstream().filter(|_| named.is_open());
    let guess = first.and_then(|upstream| guess::by_address(&upstream.url));
    if let Some(guess) = guess {
        take(&mut config, guess, named)?;
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
    named: &NamedUpstream,
) -> Result<(), CommandFailed> {
    config.set_profile(guess.preset, "--upstream").map_err(CommandFailed::Usage)?;
    match &named.url {
        Some((url, source)) => config.set_url(url, source).map_err(CommandFailed::Usage),
        None => Ok(()),
    }
}

/// Sets the key of the only configured upstream. Returns the name of the vendor's environment
/// variable, if the key in that variable is used.
pub(crate) fn set_key(
    config: &mut Config,
    named: &NamedUpstream,
    guess: Option<Guess>,
    key_env: Option<&str>,
) -> Result<Option<&'static str>, CommandFailed> {
    let given = key_env.or_else(|| named.key_variable());
    let usual = if given.is_some() { None } else { usual_key(config, named.profile(guess)) };
    if let Some(name) = given.or(usual) {
        let source = if key_env.is_some() { "--key-env" } else { name };
        let key = config.set_key_from(name, source, |name| env::var(name).ok());
        key.map_err(CommandFailed::Usage)?;
    }
    Ok(usual)
}

/// Adds the keys for clients that flags and the variable name.
pub(crate) fn add_client_keys(config: &mut Config, flags: &[String]) -> Result<(), CommandFailed> {
    let by_flag = flags.iter().map(|name| (name.as_str(), "--client-key-env"));
    let by_variable = env::var_os(CLIENT_KEY).map(|_| (CLIENT_KEY, CLIENT_KEY));
    for (name, source) in by_flag.chain(by_variable) {
        let added = config.add_client_key_from(name, source, |name| env::var(name).ok());
        added.map_err(CommandFailed::Usage)?;
    }
    Ok(())
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
    let is_set = || variable(server.key).is_some();
    (server.owns(&upstream.url) && is_set()).then_some(server.key)
}

/// Returns the configuration for commands without a network, which need no addresses and keys.
pub(crate) fn for_translating(chosen: &Chosen) -> Result<Config, CommandFailed> {
    let named = chosen.named(None);
    // Client keys must differ from one another.
    let unused = |name: &str| format!("unused-{name}");
    let secrets = Secrets { variable: &|name| Some(unused(name)), file: &|path| Ok(unused(path)) };
    let mut config = read(named.document.as_ref(), &secrets)?;
    if let Some((name, source)) = &named.profile {
        config.set_profile(name, source).map_err(CommandFailed::Usage)?;
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

/// Returns the configuration of a document, with credentials from these places.
pub(crate) fn read(document: Option<&Document>, secrets: &Secrets<'_>) -> Result<Config, Wrong> {
    let read;
    let text = match document {
        None => return Ok(Config::default()),
        Some(Document::Text(text)) => text,
        Some(Document::File(file)) => {
            let failed = |reason| CommandFailed::Usage(format!("{}: {reason}", file.display()));
            read = text_of(file).map_err(|reason| Wrong::Unreadable(failed(reason)))?;
            &read
        }
    };
    Config::from_document(text, secrets).map_err(|error| Wrong::Document(error.to_string()))
}

/// Returns the text of a file with the configuration or with a key.
///
/// # Errors
/// The reason for which the file cannot be read.
pub(crate) fn text_of(file: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = File::open(file).and_then(|file| {
        let read = file.take(FILE_BYTES_MAX.saturating_add(1)).read_to_string(&mut text)?;
        match read as u64 > FILE_BYTES_MAX {
            true => Err(io::Error::from(io::ErrorKind::FileTooLarge)),
            false => Ok(()),
        }
    });
    read.map(|()| text).map_err(|error| error.to_string())
}

/// Files that were read for a configuration: the document, and files with keys.
#[derive(Debug, Default)]
pub(crate) struct FilesRead(RefCell<Vec<FileState>>);

impl FilesRead {
    /// Returns the configuration of a document, with credentials from the environment and from
    /// files.
    fn document(&self, document: Option<&Document>) -> Result<Config, Wrong> {
        // A pipe can be read only once.
        if let Some(Document::File(file)) = document
            && (file.is_file() || !file.exists())
        {
            self.0.borrow_mut().push(FileState::of(file.clone()));
        }
        let variable = |name: &str| env::var(name).ok();
        let file = |path: &str| {
            self.0.borrow_mut().push(FileState::of(PathBuf::from(path)));
            text_of(Path::new(path)).map_err(|error| format!("cannot read {path}: {error}"))
        };
        read(document, &Secrets { variable: &variable, file: &file })
    }

    /// Returns the files that were read, and those that cannot be read.
    pub(crate) fn all(self) -> Vec<FileState> {
        self.0.into_inner()
    }
}
