//! `creole check`: reports what works with an upstream, what Creole does about the missing
//! features, and the command to start with.
//!
//! The check sends requests as an agent does, through the gateway's own service in this process
//! ([`inside`]). The first two steps, [`look`], need no model; `creole serve` also runs them at its
//! start.

mod ask;
mod flags;
mod inside;
mod output;
mod row;
mod services;
mod steps;

use std::io;
use std::time::{Duration, Instant};

use creole::Config;
use creole::config::{CountTokens, Upstream};

use crate::CommandFailed;
use crate::configure::{self, Described, FilesRead};
use crate::probe::guess::{self, Guess};
use crate::probe::look::{self, Looked};
use crate::probe::model_names::{closest, is_same};
use crate::probe::models::{self, List};
use crate::probe::problem::Problem;
use crate::probe::this_machine;
use crate::probe::window::{self, Fit};
use crate::terminal::say;
use crate::upstream::client::UpstreamClient;
pub(crate) use flags::Check;
use inside::{Inside, KeptLines};
use row::{CheckRow, Level};

/// Words in the names of models that cannot answer messages, such as embedding models.
const OTHER_MODELS: [&str; 12] = [
    "embed",
    "rerank",
    "whisper",
    "tts",
    "dall-e",
    "moderation",
    "image",
    "audio",
    "realtime",
    "transcribe",
    "bge-",
    "sora",
];

/// Code of a problem: the tested model is not in the server's list.
const NOT_LISTED: &str = "not_listed";

/// Result of checking one upstream.
#[derive(Debug)]
struct Checked {
    name: String,
    /// URL and base path of the upstream.
    url: String,
    /// Name of the profile's preset, or words for a profile with individual flags.
    profile: &'static str,
    /// Clue that led to the profile, if the user did not name the profile.
    told_by: Option<&'static str>,
    /// Name of the model that was tested; empty if no model was tested.
    model: String,
    /// Number of other models that the upstream lists.
    others: usize,
    rows: Vec<CheckRow>,
    commands: Vec<String>,
}

impl Checked {
    /// Returns the results for an upstream that no step has checked yet.
    fn new(upstream: &Upstream, guess: Option<Guess>) -> Self {
        Self {
            name: upstream.name.clone(),
            url: [&*upstream.url, &upstream.base_path].concat(),
            profile: profile_name(upstream),
            told_by: guess.map(|guess| guess.by),
            model: String::new(),
            others: 0,
            rows: Vec::new(),
            commands: Vec::new(),
        }
    }

    /// Returns true if an agent can work with this upstream.
    fn is_good(&self) -> bool {
        let fails = self.rows.iter().any(|row| row.level == Level::Fails);
        !fails && self.rows.iter().any(|row| row.step == "tools")
    }
}

/// Results of checking all upstreams of a configuration, and the services of its server tools.
#[derive(Debug)]
struct CheckResults {
    upstreams: Vec<Checked>,
    services: Vec<CheckRow>,
}

impl CheckResults {
    /// Returns true if an agent can work with each upstream, and each service answers.
    fn is_good(&self) -> bool {
        let fails = self.services.iter().any(|row| row.level == Level::Fails);
        !fails && self.upstreams.iter().all(Checked::is_good)
    }
}

/// Runs `creole check`. Returns true if an agent can work with the upstreams.
///
/// # Errors
/// Flags or the configuration cannot be used, or this process cannot send requests.
pub(crate) fn run(options: &Check) -> Result<bool, CommandFailed> {
    let runtime = crate::runtime()?;
    let mut options = options.clone();
    if options.names_no_upstream() {
        let model = options.model.as_deref();
        options.upstream = Some(runtime.block_on(server_of_this_machine(model))?);
    }
    let (config, guess) = configured(&options)?;
    let checked = runtime.block_on(check(&options, config, guess));
    // DNS look-ups that still run end with the process.
    runtime.shutdown_background();
    let checked = checked?;
    output::print(&checked, options.json)?;
    Ok(checked.is_good())
}

/// Returns the configuration of `check`, in which every upstream has a URL and a key. Client keys
/// are not checked.
fn configured(options: &Check) -> Result<(Config, Option<Guess>), CommandFailed> {
    let named = options.named();
    let Described { mut config, guess, notes } = configure::of(&named, &FilesRead::default())?;
    notes.iter().try_for_each(|note| say(io::stderr(), note))?;
    configure::set_key(&mut config, &named, guess, options.key_env.as_deref())?;
    options.services.set(&mut config)?;
    configure::check_addresses(&config)?;
    Ok((config, guess))
}

/// Returns the base URL of a server on this machine, and tells the user which one was chosen.
///
/// # Errors
/// No server on this machine lists models, or the model that the user named.
async fn server_of_this_machine(model: Option<&str>) -> Result<String, CommandFailed> {
    let client = UpstreamClient::connect().map_err(CommandFailed::Run)?;
    let (base, said) = this_machine::find(&client, model).await?;
    for line in said {
        // An error is ignored, because standard error may be closed.
        let _ = say(io::stderr(), &format!("creole: {line}"));
    }
    Ok(base)
}

/// Checks the services and the upstreams of a configuration. `guess` is the guessed profile, if the
/// upstream's address shows the kind of server.
async fn check(
    options: &Check,
    config: Config,
    guess: Option<Guess>,
) -> Result<CheckResults, CommandFailed> {
    let lines = KeptLines::listen();
    let names: Vec<String> = match &options.model {
        Some(model) => match config.route(model) {
            Some((upstream, _)) => vec![upstream.name.clone()],
            None => {
                let reason = format!("--model {model}: no entry of \"models\" takes this name");
                return Err(CommandFailed::Usage(reason));
            }
        },
        None => config.upstreams.keys().map(str::to_owned).collect(),
    };
    let patience = Duration::from_secs(options.timeout);
    let services = services::rows(&config, &lines, patience).await.map_err(CommandFailed::Run)?;
    let mut upstreams = Vec::new();
    for name in names {
        upstreams.push(check_one(options, (&config, guess), &name, &lines).await?);
    }
    Ok(CheckResults { upstreams, services })
}

async fn check_one(
    options: &Check,
    (config, guess): (&Config, Option<Guess>),
    name: &str,
    lines: &KeptLines,
) -> Result<Checked, CommandFailed> {
    let mut config = config.clone();
    let sets_counts = config.settings.count_tokens == CountTokens::Estimate;
    if sets_counts {
        // `CountTokens::Upstream` makes the check test if the upstream can count tokens.
        config.settings.count_tokens = CountTokens::Upstream;
    }
    let patience = Duration::from_secs(options.timeout);
    let start = |config| Inside::start(config, lines.clone(), patience).map_err(CommandFailed::Run);
    let mut inside = start(config.clone())?;
    let Some(upstream) = config.upstreams.get(name).cloned() else {
        return Err(CommandFailed::Run(format!("no upstream is called {name}")));
    };
    let began = Instant::now();
    let looked = look::look(&inside.client, &upstream, look::LOOK_TIME.min(patience)).await;
    let took = began.elapsed().as_millis();
    let mut checked = Checked::new(&upstream, guess);
    let mut listed = match looked {
        Looked::Wrong(problem) => {
            checked.rows.push(failing(problem));
            return Ok(checked);
        }
        Looked::NoList => List::default(),
        Looked::Models(listed) => listed,
    };
    let is_open = guess.is_none() && options.named().is_open();
    let guess = guess::by_list_or_port(&upstream.url, listed.preset).filter(|_| is_open);
    if let Some(guess) = guess {
        configure::take(&mut config, guess, &options.named())?;
        checked.profile = guess.preset;
        checked.told_by = Some(guess.by);
        inside = start(config.clone())?;
    }
    checked.rows.push(connected(took));
    let known = names_for(&inside, name, &listed).await;
    checked.model = match &options.model {
        Some(model) => model.clone(),
        None => known.iter().find(|name| answers(name)).cloned().unwrap_or_default(),
    };
    checked.others = if options.model.is_some() { 0 } else { known.len().saturating_sub(1) };
    if checked.model.is_empty() {
        checked.rows.extend([models_row(&listed, None), no_model()]);
        return Ok(checked);
    }
    let steps = steps::run(&inside, &checked.model, &known, sets_counts).await;
    // The first step reports a wrong model name that gets no answer.
    let answers = steps.first().is_some_and(|answer| answer.level != Level::Fails);
    let own = config.route(&checked.model).map_or(&*checked.model, |(_, own)| own);
    let models = models_row(&listed, Some(own).filter(|_| answers));
    let is_listed = models.code != NOT_LISTED;
    let preset = config.upstreams.get(name).map_or(upstream.preset, |upstream| upstream.preset);
    // The steps before made the server load the model: Ollama states only then the window.
    models::complete(&inside.client, preset, &upstream.url, &mut listed.models).await;
    let stated = models::named(&listed.models, own).and_then(|model| model.window);
    let window = config.window(&checked.model).or(stated);
    checked.rows.push(models);
    checked.rows.extend(answers.then(|| window_row(window, preset)));
    checked.rows.extend(steps);
    let preset = checked.told_by.map(|_| checked.profile);
    checked.commands = output::commands(options, preset, &checked.model, is_listed, window);
    Ok(checked)
}

fn failing(problem: Problem) -> CheckRow {
    let Problem { code, text, .. } = problem;
    CheckRow { code, ..CheckRow::new("connect", Level::Fails, text) }
}

fn connected(milliseconds: u128) -> CheckRow {
    let row = CheckRow::new("connect", Level::Works, format!("in {milliseconds} ms"));
    CheckRow { duration_ms: u64::try_from(milliseconds).ok(), ..row }
}

fn no_model() -> CheckRow {
    let text = "no model is known to ask: name one with --model";
    CheckRow { code: "no_model", ..CheckRow::new("answer", Level::Fails, text) }
}

/// Returns the table row about the server's list of models. `answering` is a model that answers, by
/// the server's own name for it. If the list lacks the model, the user most likely meant another
/// one.
fn models_row(listed: &List, answering: Option<&str>) -> CheckRow {
    const STEP: &str = "models";
    /// Maximum number of model names in a row of the check's table: more would fill the line.
    const SHOWN: usize = 4;
    let names = listed.names();
    let count = names.len();
    if count == 0 {
        return CheckRow::new(
            STEP,
            Level::Limited,
            "the server lists none: clients must know the name",
        );
    }
    let is_listed = |model: &str| names.iter().any(|name| is_same(name, model));
    if let Some(model) = answering.filter(|model| !is_listed(model)) {
        let near = closest(model, &names).first().copied().unwrap_or_default();
        let text =
            format!("{model} is not in the list (nearest: {near}); the server answers anyway");
        return CheckRow { code: NOT_LISTED, ..CheckRow::new(STEP, Level::Limited, text) };
    }
    let shown: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    let more = if count > SHOWN { ", …" } else { "" };
    CheckRow::new(STEP, Level::Works, format!("{count}: {}{more}", shown.join(", ")))
}

/// Returns the table row about the model's context window, in tokens.
fn window_row(window: Option<u64>, preset: &str) -> CheckRow {
    let level = match window.map(window::verdict) {
        Some(Fit::Works) => Level::Works,
        Some(Fit::Limited) | None => Level::Limited,
        Some(Fit::Fails) => Level::Fails,
    };
    let text = match window {
        Some(tokens) => window::advice(tokens, Some(preset))
            .unwrap_or_else(|| format!("{tokens} tokens, enough for Claude Code")),
        None => "the server does not state it, and Claude Code takes it for 1,000,000 tokens: set \
                 CLAUDE_CODE_MAX_CONTEXT_TOKENS"
            .to_owned(),
    };
    CheckRow::new("window", level, text)
}

/// Returns the model names that clients can use for this upstream: names in the gateway's list, and
/// listed names of the upstream that are routed to it.
async fn names_for(inside: &Inside, upstream: &str, listed: &List) -> Vec<String> {
    let leads_there = |name: &String| {
        let route = inside.config().route(name);
        route.is_some_and(|(found, _)| found.name == upstream)
    };
    let mut names: Vec<String> = inside.models().await.into_iter().filter(leads_there).collect();
    for name in listed.names().into_iter().filter(leads_there) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns true if a model with this name can probably answer messages.
fn answers(name: &str) -> bool {
    let name = name.to_lowercase();
    !OTHER_MODELS.iter().any(|word| name.contains(word))
}

fn profile_name(upstream: &Upstream) -> &'static str {
    if upstream.has_flags_of_preset() { upstream.preset } else { "with flags of its own" }
}
