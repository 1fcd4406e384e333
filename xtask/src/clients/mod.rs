//! `cargo xtask clients`: real programs that speak the Messages API, in front of a host, with the
//! demo model behind it.
//!
//! A client is a folder of `harness/clients` with a `client.json`; [`Client`] says what is in it.
//! Its script drives the program headless and prints a line for each check
//! (`harness/clients/harness.py`).

pub(crate) mod accumulators;
pub(crate) mod arguments;
pub(crate) mod guards;
pub(crate) mod install;
pub(crate) mod launch;
mod record;
pub(crate) mod searches;
pub(crate) mod server_tools;
pub(crate) mod servers;
mod table;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result};
use clap::Args;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::catalog::{self, Entry, Tier};
use crate::children::{Children, Stop};
use crate::hosts::Host;
use crate::http::Url;
use crate::run::{self, Serving};
use crate::workspace::{self, step};

/// Folders of the official SDKs: the newest and an older version for each language.
pub(crate) const SDKS: &[&str] =
    &["python-sdk-2", "python-sdk-1", "typescript-sdk-1", "typescript-sdk-0"];

/// Folders of the newest official SDK for each language, which suffice for an upstream that speaks
/// Responses.
pub(crate) const OVER_RESPONSES: &[&str] = &["python-sdk-2", "typescript-sdk-1"];

/// Options of `cargo xtask clients`.
#[derive(Args)]
pub(crate) struct ClientsOptions {
    /// Folders of `harness/clients` (with `--servers`, of `harness/real-servers`), or a tier:
    /// `default`, `second`, `third`, or `all`.
    #[arg(value_name = "NAME", default_value = "default")]
    names: Vec<String>,
    /// Where the translator runs; several times for several hosts. Without it, on Envoy; with
    /// `--servers`, on the hosts that `server.json` names.
    #[arg(long = "on", alias = "host", value_name = "HOST", value_enum)]
    host: Vec<Host>,
    /// What the demo model speaks, or the real server.
    #[arg(long, value_enum, default_value = "openai")]
    protocol: Protocol,
    /// Instead of clients, an official SDK in front of real model servers, with a tiny model whose
    /// answers are known.
    #[arg(long, conflicts_with_all = ["install", "table"])]
    servers: bool,
    /// Only install what they need.
    #[arg(long)]
    install: bool,
    /// Take over the results of all runs so far (harness/clients/runs.jsonl), and write the table
    /// of docs/clients.md from them.
    #[arg(long)]
    table: bool,
}

/// Protocol that the demo model speaks, by its name in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Protocol {
    /// Chat Completions.
    Openai,
    /// Responses, with the preset of OpenAI, whose checks the demo model has.
    Responses,
}

impl Protocol {
    /// Returns the protocol's name in the configuration.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Responses => "responses",
        }
    }
}

/// Client under test: its folder, and the contents of `client.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Client {
    /// Name of the client's folder.
    #[serde(skip)]
    folder: String,
    /// Name of the client as people write it.
    name: String,
    /// Tier that decides when the client runs.
    tier: Tier,
    /// Path of the client's script, relative to its folder.
    main: String,
    /// Settings that a user of the client needs, in Markdown.
    needs: String,
    /// Name of an npm package that must be compiled after the installation.
    rebuild: Option<String>,
    /// Settings of Creole's configuration for this client.
    #[serde(default)]
    config: Map<String, Value>,
    /// True if the client uses the real local model instead of the demo model.
    #[serde(default)]
    local: bool,
}

impl Entry for Client {
    const FOLDER: &'static str = "clients";
    const KIND: &'static str = "client";

    fn folder(&mut self) -> &mut String {
        &mut self.folder
    }

    fn tier(&self) -> Tier {
        self.tier
    }
}

/// Results that the script of one client printed.
#[derive(Default)]
struct ScriptOutcome {
    version: String,
    /// Names of the checks that passed.
    checks: Vec<String>,
    failures: Vec<String>,
    passed: u64,
    failed: u64,
}

/// Runs the chosen clients on the chosen hosts. Returns true if all checks passed.
pub(crate) fn clients(options: &ClientsOptions) -> Result<bool> {
    if options.table {
        return table::write().map(|()| true);
    }
    if options.servers {
        return servers::servers(options);
    }
    let mut good = true;
    if options.install {
        for client in catalog::chosen::<Client>(&options.names)? {
            install::install(&client)?;
            let folder = client.installed();
            let shown = folder.strip_prefix(workspace::root()).unwrap_or(&folder);
            println!("{}: {}", client.name, shown.display());
        }
        return Ok(true);
    }
    let hosts = if options.host.is_empty() { &[Host::Envoy][..] } else { &options.host };
    for &host in hosts {
        let (passed, failed) = run_on(host, options.protocol, &options.names)?;
        println!("{passed} passed, {failed} failed");
        good &= failed == 0;
    }
    Ok(good)
}

/// Runs clients on one host. Returns the numbers of passed and failed checks.
pub(crate) fn run_on(host: Host, protocol: Protocol, names: &[String]) -> Result<(u64, u64)> {
    let chosen = catalog::chosen::<Client>(names)?;
    for client in &chosen {
        install::install(client)?;
    }
    let (mut passed, mut failed) = (0_u64, 0_u64);
    let mut rows = Vec::new();
    let mut up: Option<Up> = None;
    for client in &chosen {
        if !up.as_ref().is_some_and(|up| up.serves(client)) {
            // The old host ends first, so that two hosts do not share the machine.
            drop(up.take());
            up = Some(Up::start(host, protocol, client)?);
        }
        let Some(Up { serving, .. }) = &up else { continue };
        println!("\n== {} on {}", client.name, host.name());
        let start = Instant::now();
        let outcome = client.run(serving)?;
        record::keep(client, host, protocol, &outcome)?;
        passed = passed.saturating_add(outcome.passed);
        failed = failed.saturating_add(outcome.failed);
        rows.push((client, outcome, start.elapsed().as_secs_f64()));
    }
    println!(
        "\n{:<44} {:>8} {:>8} {:>9}",
        format!("on {}", host.name()),
        "passed",
        "failed",
        "seconds"
    );
    for (client, outcome, seconds) in rows {
        let name = format!("{} {}", client.name, outcome.version);
        println!("{name:<44} {:>8} {:>8} {seconds:>9.1}", outcome.passed, outcome.failed);
    }
    Ok((passed, failed))
}

/// Running host, shared by all clients with the same configuration and model.
struct Up {
    config: Map<String, Value>,
    local: bool,
    serving: Serving,
    _children: Children,
}

impl Up {
    fn start(host: Host, protocol: Protocol, client: &Client) -> Result<Self> {
        let mut children = Children::new(Stop::shared()?);
        let given = if client.local { Some(local_model(&mut children)?) } else { None };
        let mut profile = client.local.then_some("llama.cpp");
        let mut document = client.config.clone();
        if protocol == Protocol::Responses {
            run::speak(&mut document, protocol.word())?;
            profile = profile.or(Some("openai"));
        }
        let document = Value::Object(document);
        let serving = run::start_anywhere(host, given, document, profile, &mut children)?;
        let (config, local) = (client.config.clone(), client.local);
        Ok(Self { config, local, serving, _children: children })
    }

    fn serves(&self, client: &Client) -> bool {
        self.config == client.config && self.local == client.local
    }
}

/// Installs and starts a real model on this machine. Returns the URL of its server.
pub(crate) fn local_model(children: &mut Children) -> Result<Url> {
    let client = catalog::read::<Client>("local-model")?;
    install::install(&client)?;
    let folder = client.installed();
    let mut command = Command::new(install::program(&client));
    command.arg(client.sources().join("server.py")).arg(&folder);
    // The first start assembles the model's file, which takes a while.
    let url = step("starting the local model", || {
        children.start_and_read_line("the local model", &mut command, &folder.join("server.log"))
    })?;
    Url::parse(&url)
}

/// Returns a Python interpreter with the newest official SDK.
pub(crate) fn python_with_sdk() -> Result<PathBuf> {
    let client = catalog::read::<Client>("python-sdk-2")?;
    install::install(&client)?;
    Ok(install::program(&client))
}

/// Returns the path of the native Claude Code program, which needs no Node.
pub(crate) fn claude_code() -> Result<PathBuf> {
    let client = catalog::read::<Client>("claude-code")?;
    install::install(&client)?;
    let packages = client.installed().join("node_modules/@anthropic-ai");
    let mut programs = fs::read_dir(&packages)?.flatten().map(|it| it.path().join("claude"));
    programs.find(|it| it.is_file()).context("Claude Code has no program for this machine")
}

impl Client {
    /// Returns the folder with the client's script and lock files.
    fn sources(&self) -> PathBuf {
        catalog::sources::<Self>().join(&self.folder)
    }

    /// Returns the folder with the client's installed packages.
    fn installed(&self) -> PathBuf {
        workspace::own().join("clients").join(&self.folder)
    }

    /// Runs the client's script, prints the script's output, and collects the results.
    fn run(&self, serving: &Serving) -> Result<ScriptOutcome> {
        let demo = &serving.upstream;
        let folder = self.installed();
        let mut command = Command::new(install::program(self));
        command.current_dir(&folder).arg(self.sources().join(&self.main));
        command.arg(format!("http://{}", serving.listen));
        command.arg(format!("http://{}:{}", demo.host, demo.port));
        command.arg(&folder).env("PATH", install::path(&folder)?);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut outcome = ScriptOutcome::default();
        let mut counted = false;
        for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
            let line = line?;
            println!("{line}");
            counted |= outcome.read(&line);
        }
        let status = child.wait()?;
        // A script that dies, or tests nothing, must not look like success.
        let has_shown = if status.success() { outcome.passed > 0 } else { outcome.failed > 0 };
        if !counted || !has_shown {
            outcome.failed = outcome.failed.saturating_add(1);
        }
        Ok(outcome)
    }
}

impl ScriptOutcome {
    /// Reads one line of the script's output. Returns true if it is the last line.
    fn read(&mut self, line: &str) -> bool {
        if let Some(version) = line.strip_prefix("version ") {
            // A client's name may have spaces and digits (n8n); a version begins with a digit.
            let begins = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
            let words: Vec<&str> = version.split(' ').skip_while(|word| !begins(word)).collect();
            self.version = words.join(" ");
        } else if let Some(check) = line.strip_prefix("ok ") {
            self.checks.push(claim(check));
        } else if let Some(check) = line.strip_prefix("FAIL ") {
            self.failures.push(claim(check));
        } else if let Some((passed, failed)) = line.split_once(" passed, ") {
            let failed = failed.strip_suffix(" failed").and_then(|count| count.parse().ok());
            if let (Ok(passed), Some(failed)) = (passed.parse(), failed) {
                (self.passed, self.failed) = (passed, failed);
                return true;
            }
        }
        false
    }
}

/// Returns the name of a check that a script printed, without the check's duration.
fn claim(check: &str) -> String {
    let claim = check.trim().split(" (").next().unwrap_or_default();
    claim.replace('_', " ")
}

#[cfg(test)]
mod tests;
