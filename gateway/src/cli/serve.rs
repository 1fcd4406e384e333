//! `creole serve`: runs the server, with a configuration made from a document and flags.

use std::io::{self, IsTerminal as _};

use clap::Args;
use creole::Config;
use creole::config::{Key, Upstream};
use creole::profile::presets::KnownServer;

use crate::CommandFailed;
use crate::configure::{self, Chosen, Described, Document, FilesRead, NamedServices};
use crate::hints::Hints;
use crate::probe::guess::{self, Guess};
use crate::probe::{look, window};
use crate::server::door::Door;
use crate::server::listen;
use crate::server::ready::Ready;
use crate::server::reload::{ConfigRead, ConfigSource};
use crate::server::signals::Stop;
use crate::terminal;
use crate::upstream::client::UpstreamClient;

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// URL of the model's server, http://localhost:11434/v1 [variable: UPSTREAM_URL]; without it,
    /// the usual address of --profile. Without --profile and --config, the address or the list of
    /// models there tells the profile
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// Environment variable with the upstream's key; without it, UPSTREAM_KEY or that of its
    /// profile (such as GROQ_API_KEY) where it is set, else the client's own key is sent on
    #[arg(long, value_name = "NAME")]
    pub(crate) key_env: Option<String>,
    #[command(flatten)]
    pub(crate) chosen: Chosen,
    /// The model that every name goes to, whatever clients ask for
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The model that names of small models go to (claude-haiku-…), which clients ask for titles
    /// and summaries
    #[arg(long, value_name = "NAME")]
    pub(crate) small_model: Option<String>,
    /// Environment variable with a key that clients may have, besides CLIENT_KEY; may be repeated.
    /// Other requests get 401
    #[arg(long, value_name = "NAME")]
    pub(crate) client_key_env: Vec<String>,
    #[command(flatten)]
    pub(crate) services: NamedServices,
    /// How long the upstream may take until its first word, in seconds; without it, 590 unless the
    /// configuration says otherwise
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) first_byte_timeout: Option<u64>,
    #[command(flatten)]
    pub(crate) door: Door,
}

pub(crate) fn run(options: &Serve) -> Result<(), CommandFailed> {
    let ask = |upstream: &_| if options.door.no_check { None } else { look_at(upstream) };
    let files = FilesRead::default();
    let Serving { config, taken } = for_serving(options, &files, ask)?;
    let files = files.all();
    let read = || {
        let files = FilesRead::default();
        let config = for_serving(options, &files, |_| None).map(|serving| serving.config);
        ConfigRead { config: config.map_err(CommandFailed::reason), files: files.all() }
    };
    let source = (!files.is_empty()).then(|| ConfigSource { files, read: Box::new(read) });
    let mut hints = hints(options, &config);
    if io::stdout().is_terminal() && !options.door.no_check {
        hints.window = window_of(&config, &hints.model);
    }
    let notes = config.notes();
    listen::run_with(&options.door, config, source, Stop::listen, |ready| {
        for note in notes {
            tracing::warn!("{note}");
        }
        for line in taken {
            tracing::info!("{line}");
        }
        announce(ready, &hints);
    })
}

/// Returns the preset that an upstream's list of models shows.
fn look_at(upstream: &Upstream) -> Option<&'static str> {
    let runtime = crate::runtime().ok()?;
    let client = UpstreamClient::connect().ok()?;
    let preset = runtime.block_on(look::preset_by_list(&client, upstream));
    // A DNS look-up may still run, and must not delay the start.
    runtime.shutdown_background();
    preset
}

/// Returns the context window of the model that clients get by a name, for the printed commands.
fn window_of(config: &Config, name: &str) -> Option<u64> {
    if let Some(window) = config.window(name) {
        return Some(window);
    }
    let runtime = crate::runtime().ok()?;
    let client = UpstreamClient::connect().ok()?;
    let (upstream, model) = config.route(name)?;
    let window = runtime.block_on(window::of_model(&client, upstream, model));
    // A DNS look-up may still run, and must not delay the start.
    runtime.shutdown_background();
    window
}

/// Configuration with which `serve` runs.
#[derive(Debug)]
struct Serving {
    config: Config,
    /// Lines for the user about choices that the gateway made itself.
    taken: Vec<String>,
}

/// Returns the configuration of `serve`, in which every upstream has a URL and a key. `list`
/// requests the models of an upstream of unknown kind, and returns the preset that the list shows.
fn for_serving(
    options: &Serve,
    files: &FilesRead,
    list: impl FnOnce(&Upstream) -> Option<&'static str>,
) -> Result<Serving, CommandFailed> {
    let named = options.chosen.named(options.upstream.as_deref());
    let Described { mut config, mut guess, notes } = configure::of(&named, files)?;
    let (model, small) = (options.model.as_deref(), options.small_model.as_deref());
    if model.or(small).is_some() {
        let source = if model.is_some() { "--model" } else { "--small-model" };
        config.serve_models(model, small, &[], source).map_err(CommandFailed::Usage)?;
    }
    let key = configure::set_key(&mut config, &named, guess, options.key_env.as_deref())?;
    configure::add_client_keys(&mut config, &options.client_key_env)?;
    options.services.set(&mut config)?;
    if let Some(seconds) = options.first_byte_timeout {
        config.settings.first_byte_timeout_ms = seconds.saturating_mul(1000);
    }
    configure::check_addresses(&config)?;
    config.check_client_keys().map_err(CommandFailed::Usage)?;
    let mut taken = notes;
    if let (None, Some(Document::File(file))) = (&options.chosen.config, &named.document) {
        taken.push(format!("the configuration is {}", file.display()));
    }
    if named.is_open() {
        if let (None, Some(first)) = (guess, config.first_upstream()) {
            guess = guess::by_list_or_port(&first.url, list(first));
            if let Some(guess) = guess {
                configure::take(&mut config, guess, &named)?;
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

/// Returns the key and models that clients of `creole serve` must send.
fn hints(options: &Serve, config: &Config) -> Hints {
    let client_key = match (options.client_key_env.first(), config.first_upstream()) {
        (Some(name), _) => format!("${name}"),
        _ if !config.client_keys.is_empty() => "KEY".to_owned(),
        // The client's key is sent to the upstream, which may require a key.
        (None, Some(upstream)) if upstream.key == Key::Client => {
            let vendor = KnownServer::of_vendor(&upstream.url);
            vendor.map_or_else(|| "local".to_owned(), |vendor| format!("${}", vendor.key))
        }
        _ => "local".to_owned(),
    };
    let model = options.model.clone().unwrap_or_else(|| "MODEL".to_owned());
    let small = options.small_model.clone().unwrap_or_else(|| model.clone());
    Hints { key: client_key, model, small, window: None, prompt: "Hi" }
}

/// Prints the server's address on standard output, in a form that scripts can wait for. On a
/// terminal, example commands follow.
fn announce(ready: Ready, hints: &Hints) {
    let mut text = ready.listening();
    if io::stdout().is_terminal() {
        let url = &ready.url();
        let replace = match hints.model.as_str() {
            "MODEL" => {
                ", in place of MODEL with a name that the server has (with --model NAME, every name goes to that model)"
            }
            _ => "",
        };
        text.push_str(&format!(
            "\nClaude Code{replace}:\n\n{}\n\nSDKs of Anthropic: base URL {url}, key {}\n\ncurl:\n\n{}\n\n{}",
            hints.claude_code(url),
            hints.key,
            hints.curl(url),
            ready.page(),
        ));
    }
    terminal::print(&text);
}
