//! The table of `docs/clients.md`, and `docs/dev/client-runs.md`: what was run, from the results that each run leaves
//! in `.creole/clients/results`.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{Client, Outcome, Protocol};
use crate::catalog;
use crate::hosts::Host;
use crate::workspace;

const HOSTS: [Host; 4] = [Host::Envoy, Host::Gateway, Host::Worker, Host::Component];

/// Keeps the outcome of one client on one host, with a demo model that speaks this.
pub(super) fn keep(
    client: &Client,
    host: Host,
    protocol: Protocol,
    outcome: &Outcome,
) -> Result<()> {
    let kept = json!({"version": outcome.version, "checks": outcome.checks,
        "passed": outcome.passed, "failed": outcome.failed});
    let file = file(client, host, protocol);
    fs::create_dir_all(file.parent().unwrap_or(&file))?;
    fs::write(&file, format!("{kept:#}\n")).with_context(|| file.display().to_string())
}

fn file(client: &Client, host: Host, protocol: Protocol) -> PathBuf {
    let over = match protocol {
        Protocol::Openai => "",
        Protocol::Responses => ".responses",
    };
    let name = format!("{}.{}{over}.json", client.folder, host.name());
    workspace::own().join("clients/results").join(name)
}

/// What was kept of a client, by host.
fn kept(client: &Client, protocol: Protocol) -> Vec<(Host, Value)> {
    let read = |host| fs::read_to_string(file(client, host, protocol)).ok();
    let on = |host| Some((host, serde_json::from_str(&read(host)?).ok()?));
    HOSTS.into_iter().filter_map(on).collect()
}

/// The counts of checks, a line for each host.
fn counts(results: &[(Host, Value)]) -> String {
    let on = results.iter().map(|(host, result)| {
        let count = |key: &str| result.get(key).and_then(Value::as_u64).unwrap_or_default();
        let (passed, failed) = (count("passed"), count("failed"));
        match failed {
            0 => format!("{} {passed}", host.name()),
            _ => format!("{} {passed}, **{failed} failed**", host.name()),
        }
    });
    let lines = on.collect::<Vec<_>>();
    if lines.is_empty() { "not run".to_owned() } else { lines.join("<br>") }
}

/// Writes both pages.
pub(super) fn write() -> Result<()> {
    let mut clients = catalog::all::<Client>()?;
    clients.sort_by_key(|client| client.tier);
    let mut rows = String::new();
    let mut lists = String::new();
    for client in &clients {
        let results = kept(client, Protocol::Openai);
        let Some((_, first)) = results.first() else { continue };
        let text = |key: &str| first.get(key).and_then(Value::as_str).unwrap_or_default();
        writeln!(
            rows,
            "| {} | {} | `{}` | {} | {} | {} |",
            client.name,
            text("version"),
            client.folder,
            counts(&results),
            counts(&kept(client, Protocol::Responses)),
            client.needs
        )?;
        writeln!(lists, "\n### {}\n", client.name)?;
        let checks = first.get("checks").and_then(Value::as_array).into_iter().flatten();
        for check in checks.filter_map(Value::as_str) {
            writeln!(lists, "- {check}")?;
        }
    }
    let path = workspace::root().join("docs/clients.md");
    let page = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let (own, _) = page.split_once(MARK).context("docs/clients.md has no mark")?;
    let runs = workspace::root().join("docs/dev/client-runs.md");
    for (path, text) in
        [(path, format!("{own}{MARK}\n{HEAD}{rows}")), (runs, format!("{INTRODUCTION}{lists}"))]
    {
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        eprintln!("written: {}", path.display());
    }
    Ok(())
}

/// The part of `docs/clients.md` before it is written by hand.
const MARK: &str = "<!-- From here on, made by `cargo xtask clients --table`: see xtask/src/clients/table.rs -->\n";

const INTRODUCTION: &str = "# Runs of clients

Real programs that speak the Messages API, run headless in front of Creole, with the [demo model](demo-model.md) as the
model. `cargo xtask clients --table` makes this page, and [the table](../clients.md#what-was-run), from the results of the
runs before it. Do not edit it.

```sh
cargo xtask clients                                  # the default tier, in Envoy
cargo xtask clients claude-code --on gateway         # one client, another host
cargo xtask clients all --on envoy --on worker       # everything, in two hosts
cargo xtask clients second --protocol responses      # in front of a demo model that speaks Responses
```

Lock files install the programs into `.creole/clients`. The folder of a client in `harness/clients` has its checks.
";

const HEAD: &str = "| client | version | `cargo xtask clients …` | over Chat Completions | over Responses | what it needs |
|---|---|---|---|---|---|
";
