//! `creole launch`: runs a client, together with a gateway that lives as long as the client does.
//!
//! ```text
//! find (upstream, model) ─▶ gateway on a free port ─▶ client with its variables ─▶ its exit code
//! ```

mod child;
mod choose;
mod clients;
mod find;
mod flags;
mod program;
mod settings;
mod web_search;

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use creole::Config;
use creole::config::{Key, Log};
use tokio::runtime;
use tokio::sync::Notify;
use which::sys::RealSys;

use crate::CommandFailed;
use crate::probe::models::Model;
use crate::probe::this_machine::Candidate;
use crate::server::door::Door;
use crate::server::listen;
use crate::server::ready::Ready;
use crate::server::signals::Stop;
use crate::terminal;
use crate::upstream::client::UpstreamClient as HttpClient;
use clients::{Client, Session, Variables};
use find::{Found, FoundPlace};
pub(crate) use flags::Launch;
use settings::Settings;

/// Maximum number of models that get additional names for the client's list; a longer list helps
/// nobody.
const ALIASED_MAX: usize = 50;

/// Runs a client, and returns its exit code.
pub(crate) fn run(flags: &Launch) -> Result<u8, CommandFailed> {
    let client = clients::named(&flags.client).map_err(CommandFailed::Usage)?;
    // A wrong address is reported before a model is searched for.
    flags.services.set(&mut Config::default())?;
    let program = program::find(client.program, RealSys).ok_or_else(|| {
        CommandFailed::Run(format!("{} is not installed: {}", client.program, client.install))
    })?;
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandFailed::Run(format!("cannot start: {error}")))?;
    let found = runtime.block_on(async {
        find::backend(&HttpClient::connect().map_err(CommandFailed::Run)?, flags).await
    })?;
    found.said.iter().for_each(|line| say(line));
    let (gateway, key, running) = match &found.place {
        FoundPlace::Gateway(address) => {
            say_of_search(client, None);
            (address.clone(), "local".to_owned(), None)
        }
        FoundPlace::Upstream(upstream) => {
            // The gateway needs a key, because other users of the machine can reach it.
            let key = random()?;
            let mut config = configure(upstream, &found, flags.context_window, &key)?;
            flags.services.set(&mut config)?;
            say_of_search(client, Some(&config));
            let running = LaunchedGateway::start(config)?;
            (format!("http://{}", running.address), key, Some(running))
        }
    };
    let said = found.model.as_ref().and_then(|model| model.window);
    let window = flags.context_window.or(said);
    let session = Session {
        gateway: &gateway,
        key: &key,
        model: found.model.as_ref(),
        small: found.small.as_ref(),
        window,
        preset: match &found.place {
            FoundPlace::Upstream(upstream) => Some(upstream.preset),
            FoundPlace::Gateway(_) => None,
        },
    };
    let variables = (client.variables)(&session);
    variables.notes.iter().for_each(|note| say(note));
    say(&format!("{} behind the gateway at {gateway}", program.display()));
    if running.is_some() {
        // The password of the gateway's page is valid for this run only, and is shown only on the
        // user's terminal.
        say(&format!("see what happens at {gateway}/ (any name, password {key})"));
    }
    let mut command = Command::new(&program);
    let settings = settings(client, &variables, &flags.arguments)?;
    if let (Some(flag), Some(settings)) = (client.settings, &settings) {
        command.arg(flag).arg(settings.path());
    }
    command.args(&flags.arguments);
    prepare(&mut command, client, variables);
    let ended = runtime.block_on(child::run(command));
    drop(settings);
    if let Some(running) = running {
        running.stop()?;
    }
    ended
}

/// Tells the user whether the client's web search works, if the client has one that needs the API.
fn say_of_search(client: &Client, config: Option<&Config>) {
    if client.searches_by_api {
        say(&web_search::note(config));
    }
}

/// Writes variables to a settings file for the client, if the user's own settings would win over
/// the environment.
fn settings(
    client: &Client,
    variables: &Variables,
    arguments: &[OsString],
) -> Result<Option<Settings>, CommandFailed> {
    let Some(flag) = client.settings else { return Ok(None) };
    if settings::is_given(flag, arguments) {
        say(&format!("{flag} is yours: variables in settings would win over those of creole"));
        return Ok(None);
    }
    let written = Settings::write(&variables.set, &random()?);
    let failed = |error| CommandFailed::Run(format!("cannot write the client's settings: {error}"));
    written.map(Some).map_err(failed)
}

/// Sets the environment variables of a client's command.
fn prepare(command: &mut Command, client: &Client, variables: Variables) {
    let Variables { set, usual, unset, .. } = variables;
    for name in unset {
        if std::env::var_os(name).is_some() {
            say(&format!("{name} is hidden from {}", client.name));
        }
        command.env_remove(name);
    }
    command.envs(set);
    command.envs(usual.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()));
}

/// Returns the gateway's configuration: one upstream, all names mapped to the model, one client
/// key. `window` is the main model's context window, if the user gave it.
fn configure(
    upstream: &Candidate,
    found: &Found,
    window: Option<u64>,
    key: &str,
) -> Result<Config, CommandFailed> {
    let mut config = upstream.config()?;
    for own in config.upstreams.values_mut().filter(|own| own.key == Key::Client) {
        // The client's key is the gateway's, and no upstream gets it.
        own.key = Key::None;
    }
    let added = config.add_client_key_from("launch", "the client's key", |_| Some(key.to_owned()));
    added.map_err(CommandFailed::Run)?;
    let name = |model: &Option<Model>| model.as_ref().map(|model| model.name.clone());
    let (model, small) = (name(&found.model), name(&found.small));
    let others = aliases(&found.models);
    let served = config.serve_models(model.as_deref(), small.as_deref(), &others, "--model");
    served.map_err(CommandFailed::Usage)?;
    config.note_sizes(|name| sizes(found, window, name));
    // The client uses the terminal, so the gateway does not log.
    config.settings.log = Log::Off;
    Ok(config)
}

/// Returns the sizes of a model's context window and of an answer, in tokens, as the server states
/// them; 0 if unknown.
fn sizes(found: &Found, window: Option<u64>, name: &str) -> (u64, u64) {
    // The used models come first, because more is known of them than the list says.
    let used = found.model.iter().chain(&found.small);
    let model = used.chain(&found.models).find(|model| model.name == name);
    let is_main = found.model.as_ref().is_some_and(|model| model.name == name);
    let window = window.filter(|_| is_main).or_else(|| model?.window);
    (window.unwrap_or_default(), model.and_then(|model| model.output).unwrap_or_default())
}

/// Returns the models that the server lists, by their own names and by names that contain `claude`.
/// Claude Code hides other names.
fn aliases(models: &[Model]) -> Vec<(String, String)> {
    let own = models.iter().map(|model| (model.name.clone(), model.name.clone()));
    let is_shown = |name: &str| name.contains("claude") || name.contains("anthropic");
    let hidden = models.iter().filter(|model| !is_shown(&model.name));
    let aliased = hidden.filter(|_| models.len() <= ALIASED_MAX);
    let aliased = aliased.map(|model| (format!("claude-{}", model.name), model.name.clone()));
    // A name in the server's list always means the listed model, so no alias may have such a name.
    let aliased = aliased.filter(|(alias, _)| models.iter().all(|model| model.name != *alias));
    own.chain(aliased).filter(|(name, _)| !name.contains('*')).collect()
}

/// Returns a random text that nobody can guess.
fn random() -> Result<String, CommandFailed> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| CommandFailed::Run(format!("cannot get random bytes: {error}")))?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

/// Gateway that runs on a separate thread of this process.
struct LaunchedGateway {
    address: SocketAddr,
    stop: Arc<Notify>,
    thread: JoinHandle<Result<(), CommandFailed>>,
}

impl LaunchedGateway {
    fn start(config: Config) -> Result<Self, CommandFailed> {
        let stop = Arc::new(Notify::new());
        let notify = Arc::clone(&stop);
        let (sender, ready) = channel();
        let thread = thread::Builder::new().name("gateway".to_owned());
        let thread = thread
            .spawn(move || serve_until(config, Stop::Notified(notify), sender))
            .map_err(|error| CommandFailed::Run(format!("cannot start a thread: {error}")))?;
        match ready.recv() {
            Ok(address) => Ok(Self { address, stop, thread }),
            Err(_) => Err(ended(thread).err().unwrap_or_else(|| {
                CommandFailed::Run("the gateway ended before it was ready".to_owned())
            })),
        }
    }

    fn stop(self) -> Result<(), CommandFailed> {
        self.stop.notify_one();
        ended(self.thread)
    }
}

fn serve_until(
    config: Config,
    stop: Stop,
    sender: Sender<SocketAddr>,
) -> Result<(), CommandFailed> {
    // The shutdown timeout is 0, because no client is left to read the rest of an answer.
    let door = Door::local("127.0.0.1:0".to_owned(), 0);
    let told = |ready: Ready| {
        // The thread that starts the gateway waits for the address.
        let _ = sender.send(ready.address);
    };
    listen::run_with(&door, config, None, || Ok(stop), told)
}

fn ended(thread: JoinHandle<Result<(), CommandFailed>>) -> Result<(), CommandFailed> {
    thread.join().unwrap_or_else(|_| Err(CommandFailed::Run("the gateway failed".to_owned())))
}

/// Prints a line for the user, before the client takes over the terminal.
fn say(line: &str) {
    // An error is ignored, because standard error may be closed.
    let _ = terminal::say(io::stderr(), &format!("creole: {line}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gateway_learns_the_sizes_that_the_server_tells() {
        let model = |name: &str, window, output| Model {
            name: name.to_owned(),
            window,
            output,
            ..Model::default()
        };
        let main = model("main", Some(40_960), None);
        let listed =
            vec![model("main", Some(131_072), Some(8192)), model("small", None, Some(4096))];
        let found = Found {
            place: FoundPlace::Gateway(String::new()),
            model: Some(main),
            small: None,
            models: listed,
            said: Vec::new(),
        };
        assert_eq!(sizes(&found, None, "main"), (40_960, 0), "what was learnt of it counts");
        assert_eq!(sizes(&found, Some(32_768), "main"), (32_768, 0));
        assert_eq!(sizes(&found, Some(32_768), "small"), (0, 4096));
        assert_eq!(sizes(&found, None, "other"), (0, 0));
    }

    #[test]
    fn no_alias_takes_a_name_that_the_server_lists() {
        let models = ["foo", "claude-foo", "bar"]
            .map(|name| Model { name: name.to_owned(), ..Model::default() });
        let aliases = aliases(&models);
        let of = |name: &str| {
            aliases
                .iter()
                .filter(|(alias, _)| alias == name)
                .map(|(_, model)| model.as_str())
                .collect::<Vec<_>>()
        };
        assert_eq!(of("claude-foo"), ["claude-foo"]);
        assert_eq!(of("claude-bar"), ["bar"]);
    }
}
