//! `creole launch`: runs a client, together with a gateway that lives as long as the client does.
//!
//! ```text
//! find (upstream, model) ─▶ gateway on a free port ─▶ client with its variables ─▶ its exit code
//! ```

mod child;
mod choose;
mod claude_settings;
mod clients;
mod configure_client;
mod find;
mod flags;
mod gateway;
mod menu;
mod open_page;
mod program;
mod resume;
mod running;
mod session_log;
mod settings;
mod status_line;
mod web_search;

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use creole::Config;
use creole::config::{ClientKeys, Key, Log};
use tokio::sync::mpsc::{self, Receiver};

use crate::CommandFailed;
use crate::log::Format;
use crate::probe::models::Model;
use crate::probe::this_machine::Candidate;
use crate::probe::window::{Fit, advice, verdict};
use crate::server::door::View;
use crate::server::records::Failures;
use crate::terminal;
use crate::upstream::client::UpstreamClient as HttpClient;
use claude_settings::{UsersSettings, status_line as status_line_of};
use clients::{Client, FileName, Session, Variables};
pub(crate) use configure_client::{ConfigureClient, UnconfigureClient, configure, unconfigure};
use find::{Found, FoundPlace};
pub(crate) use flags::Launch;
use gateway::LaunchedGateway;
use menu::Menu;
pub(crate) use open_page::run as open_page;
use running::RunFile;
use settings::Settings;
pub(crate) use status_line::{StatusLine, run as status_line};

/// Maximum number of lines about failures that wait to be shown.
const LINES_MAX: usize = 16;

/// Runs a client, and returns its exit code.
pub(crate) fn run(flags: &Launch) -> Result<u8, CommandFailed> {
    let client = clients::named(&flags.client).map_err(CommandFailed::Usage)?;
    // A wrong address is reported before a model is searched for.
    flags.services.set(&mut Config::default())?;
    let menu = Menu::on_terminal(flags.yes, flags.ask);
    let program = program::find_or_install(client, menu.is_some())?;
    let runtime = crate::runtime()?;
    let found = runtime.block_on(async {
        let http = HttpClient::connect().map_err(CommandFailed::Run)?;
        find::backend(&http, flags, menu.as_ref()).await
    })?;
    found.said.iter().for_each(|line| say(line));
    let window = flags.context_window.or_else(|| found.model.as_ref()?.window);
    if client.is_claude_code {
        agree_to_window(flags, &found, window, menu.is_some())?;
    }
    let (failures, lines) = failures(client, &flags.arguments).unzip();
    let mut started = start(client, flags, &found, failures)?;
    let session = Session {
        gateway: &started.gateway,
        key: &started.key,
        model: found.model.as_ref(),
        small: found.small.as_ref(),
        window,
        judge: flags.judge.as_deref(),
    };
    let variables = (client.variables)(&session);
    variables.notes.iter().for_each(|note| say(note));
    let file = match client.is_claude_code {
        true => settings(client, &variables, flags, &started),
        false => variables.file.clone(),
    };
    let unique = random()?;
    let file = file.map(|(ending, text)| Settings::write(&text, ending, &unique)).transpose();
    let file = file.map_err(|error| {
        CommandFailed::Run(format!("cannot write the client's settings: {error}"))
    })?;
    say(&format!("{} behind the gateway at {}", program.display(), started.gateway));
    if started.running.is_some() {
        // The password of the gateway's page is valid for this run only, and is shown only on the
        // user's terminal.
        let Started { gateway, key, .. } = &started;
        say(&format!("see what happens at {gateway}/ (any name, password {key})"));
    }
    let command = command(&program, client, variables, file.as_ref(), flags);
    // From here on, Ctrl-C is the client's.
    drop(menu);
    let ended = runtime.block_on(child::run(command, lines));
    drop(file);
    started.end()?;
    if let (Ok(_), Some(again)) = (&ended, resume::command(client, env::args_os())) {
        say(&format!("to go on with this session: {again}"));
    }
    if let Some(log) = started.log {
        say(&format!("what happened is in {}", log.display()));
    }
    ended
}

/// Lets the user decide about a context window in which Claude Code gets no work done.
///
/// # Errors
/// The user wants no such start, or cannot be asked.
fn agree_to_window(
    flags: &Launch,
    found: &Found,
    window: Option<u64>,
    is_asked: bool,
) -> Result<(), CommandFailed> {
    let Some(why) = window.and_then(|window| advice(window, found.preset())) else { return Ok(()) };
    if window.map(verdict) != Some(Fit::Fails) {
        say(&why);
        return Ok(());
    }
    if !flags.yes && !is_asked {
        return Err(CommandFailed::Run(format!("{why}. --yes starts all the same")));
    }
    say(&why);
    if flags.yes || Menu::confirm("Start all the same?")? {
        return Ok(());
    }
    Err(CommandFailed::Run("not started".to_owned()))
}

/// Returns a queue of lines about failures, if the client prints one answer: it is silent while it
/// asks again. Otherwise the client has the screen, and shows failures itself.
fn failures(client: &Client, arguments: &[OsString]) -> Option<(Failures, Receiver<String>)> {
    let is_print = |argument: &OsString| client.print.iter().any(|known| argument == known);
    arguments.iter().any(is_print).then(|| mpsc::channel(LINES_MAX))
}

/// Gateway for the client.
struct Started {
    /// URL of the gateway.
    gateway: String,
    /// Key that the gateway accepts.
    key: String,
    /// Gateway of this process; `None` if another one was already running.
    running: Option<LaunchedGateway>,
    /// Log of the gateway of this process.
    log: Option<PathBuf>,
    /// File by which other commands find the gateway of this process.
    _file: Option<RunFile>,
    /// Words about how web searches work, or the reason why nothing searches.
    search: Result<String, &'static str>,
}

impl Started {
    /// Stops the gateway of this process.
    fn end(&mut self) -> Result<(), CommandFailed> {
        self.running.take().map_or(Ok(()), LaunchedGateway::stop)
    }
}

/// Starts a gateway in front of the upstream that was found, unless a gateway was found.
fn start(
    client: &Client,
    flags: &Launch,
    found: &Found,
    failures: Option<Failures>,
) -> Result<Started, CommandFailed> {
    let mut config = match &found.place {
        FoundPlace::Gateway(address) => {
            let (gateway, key) = (address.clone(), "local".to_owned());
            let search = web_search::judge(None);
            return Ok(Started { gateway, key, running: None, log: None, _file: None, search });
        }
        FoundPlace::Upstream(upstream) => own_config(upstream, found, flags.context_window)?,
        FoundPlace::Configured(config) => Config::clone(config),
    };
    // The gateway needs a key, because other users of the machine can reach it.
    let key = random()?;
    take_client_key(&mut config, &key)?;
    flags.services.set(&mut config)?;
    if let Some(judge) = &flags.judge {
        set_judge(&mut config, judge, matches!(found.place, FoundPlace::Configured(_)))?;
    }
    let search = web_search::judge(Some(&config));
    let log = session_log::file(flags.log.as_deref())?;
    if log.is_none() {
        // Standard error belongs to the client.
        config.settings.log = Log::Off;
    }
    let log_format = Some(Format::Text);
    let view = View { log: log.clone(), log_format, failures, ..View::default() };
    let name = client.name;
    let first_line = move |address| session_log::first_line(name, address);
    let running = LaunchedGateway::start(config, view, first_line)?;
    let gateway = format!("http://{}", running.address);
    // Without the file, `creole page` does not find the gateway; why there is no state folder was
    // said with the log.
    let _file = RunFile::write(running.address, &key, name).ok();
    Ok(Started { gateway, key, running: Some(running), log, _file, search })
}

/// Returns ending and contents of the settings file for Claude Code: variables, because those in
/// the user's own settings would win over the environment, and what follows from the gateway.
fn settings(
    client: &Client,
    variables: &Variables,
    flags: &Launch,
    started: &Started,
) -> Option<(&'static str, String)> {
    let Some(FileName::Flag(flag)) = client.file else { return None };
    let is_ours = !settings::is_given(flag, &flags.arguments);
    match (&started.search, is_ours) {
        (Ok(how), _) => say(&format!("WebSearch {how}")),
        (Err(why), true) => say(&format!("WebSearch is switched off, because {why}")),
        (Err(why), false) => say(&format!("WebSearch fails, because {why}")),
    }
    let own = UsersSettings::read();
    let starts_in_default_mode =
        is_ours && flags.judge.is_none() && !own.has("/permissions/defaultMode");
    say(&auto_mode(flags.judge.as_deref(), starts_in_default_mode));
    if !is_ours {
        say(&format!("{flag} is yours: variables in settings would win over those of creole"));
        return None;
    }
    let mode = starts_in_default_mode.then_some("default");
    let line = if own.have_status_line() { None } else { status_line_of(&started.gateway) };
    let denies = started.search.is_err();
    Some(("json", claude_settings::contents(&variables.set, denies, mode, line)))
}

/// Returns the line about Claude Code's auto mode: who judges tool calls, and what it costs.
fn auto_mode(judge: Option<&str>, is_off: bool) -> String {
    if let Some(judge) = judge {
        return format!(
            "auto mode: {judge} judges tool calls, with one request of 10 to 30 kB for each answer that has some"
        );
    }
    let cost = "the model itself judges commands, with up to two requests of 144 kB (36,000 tokens) each; \
                --judge MODEL takes one of 10 to 30 kB";
    match is_off {
        true => format!("auto mode is off until you choose it: in it {cost}"),
        false => format!("auto mode, which your settings decide about: in it {cost}"),
    }
}

/// Returns the command that runs a client, with its file, its arguments and its environment.
fn command(
    program: &Path,
    client: &Client,
    variables: Variables,
    file: Option<&Settings>,
    flags: &Launch,
) -> Command {
    let mut command = Command::new(program);
    match (client.file, file) {
        (Some(FileName::Flag(flag)), Some(file)) => {
            command.arg(flag).arg(file.path());
        }
        (Some(FileName::Variable(name)), Some(file)) => {
            command.env(name, file.path());
        }
        _ => {}
    }
    let Variables { set, usual, unset, arguments, .. } = variables;
    command.args(arguments).args(&flags.arguments);
    for name in unset {
        if env::var_os(name).is_some() {
            say(&format!("{name} is hidden from {}", client.name));
        }
        command.env_remove(name);
    }
    command.envs(set);
    command.envs(usual.into_iter().filter(|(name, _)| env::var_os(name).is_none()));
    // A company's proxy cannot reach a gateway on this machine.
    let names = ["NO_PROXY", "no_proxy"];
    let direct =
        names.iter().find_map(|name| env::var(name).ok().filter(|hosts| !hosts.is_empty()));
    let direct = direct.map_or_else(String::new, |hosts| format!("{hosts},")) + "127.0.0.1";
    command.envs(names.map(|name| (name, &direct)));
    command
}

/// Makes a model the judge of tool calls. In a configuration of the user, `judge` is a name that
/// clients use.
fn set_judge(config: &mut Config, judge: &str, is_users: bool) -> Result<(), CommandFailed> {
    let (upstream, model) = match config.route(judge) {
        Some((upstream, model)) if is_users => (upstream.name.clone(), model.to_owned()),
        None if is_users => {
            let reason = format!("--judge {judge}: no entry of \"models\" takes this name");
            return Err(CommandFailed::Usage(reason));
        }
        _ => (config.settings.safeguards.upstream.clone(), judge.to_owned()),
    };
    config.settings.safeguards.upstream = upstream;
    config.settings.safeguards.model = model;
    Ok(())
}

/// Makes a key the only one of clients, which no upstream gets.
fn take_client_key(config: &mut Config, key: &str) -> Result<(), CommandFailed> {
    for own in config.upstreams.values_mut().filter(|own| own.key == Key::Client) {
        own.key = Key::None;
    }
    config.client_keys = ClientKeys::default();
    let added = config.add_client_key_from("launch", "the client's key", |_| Some(key.to_owned()));
    added.map_err(CommandFailed::Run)
}

/// Returns the gateway's configuration: one upstream, and all names mapped to the model. `window`
/// is the main model's context window, if the user gave it.
fn own_config(
    upstream: &Candidate,
    found: &Found,
    window: Option<u64>,
) -> Result<Config, CommandFailed> {
    let mut config = upstream.config()?;
    let name = |model: &Option<Model>| model.as_ref().map(|model| model.name.clone());
    let (model, small) = (name(&found.model), name(&found.small));
    // Names that Claude Code would not show get the prefix `claude-creole/` in its list.
    let listed = found.models.iter().filter(|model| !model.name.contains('*'));
    let others: Vec<_> = listed.map(|model| (model.name.clone(), model.name.clone())).collect();
    let served = config.serve_models(model.as_deref(), small.as_deref(), &others, "--model");
    served.map_err(CommandFailed::Usage)?;
    config.note_sizes(|name| sizes(found, window, name));
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

/// Returns a random text that nobody can guess.
fn random() -> Result<String, CommandFailed> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| CommandFailed::Run(format!("cannot get random bytes: {error}")))?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
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
    fn the_judge_is_a_name_of_the_clients_in_a_configuration_of_the_users() {
        let text = r#"{"upstreams": {"a": {"url": "http://a/v1"}, "b": {"url": "http://b/v1"}},
            "models": {"guard": {"upstream": "b", "model": "real"}}}"#;
        let mut config = Config::from_json(text, |_| None).unwrap();
        set_judge(&mut config, "guard", true).unwrap();
        let judge = config.judge().map(|(upstream, model)| (upstream.name.as_str(), model));
        assert_eq!(judge, Some(("b", "real")));
        assert!(matches!(
            set_judge(&mut config, "nobody", true),
            Err(CommandFailed::Usage(reason)) if reason.starts_with("--judge nobody: ")
        ));
    }
}
