//! The table of `docs/clients.md`, and `docs/dev/client-runs.md`: what was run, from the results that each run leaves
//! in `.creole/clients/results`.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{Client, Outcome};
use crate::catalog;
use crate::hosts::Host;
use crate::workspace;

const HOSTS: [Host; 4] = [Host::Envoy, Host::Gateway, Host::Worker, Host::Component];

/// Keeps the outcome of one client on one host.
pub(super) fn keep(client: &Client, host: Host, outcome: &Outcome) -> Result<()> {
    let folder = workspace::own().join("clients/results");
    fs::create_dir_all(&folder)?;
    let kept = json!({"version": outcome.version, "checks": outcome.checks,
        "passed": outcome.passed, "failed": outcome.failed});
    let file = folder.join(format!("{}.{}.json", client.folder, host.name()));
    fs::write(&file, format!("{kept:#}\n")).with_context(|| file.display().to_string())
}

fn kept(client: &Client, host: Host) -> Option<Value> {
    let file = format!("clients/results/{}.{}.json", client.folder, host.name());
    serde_json::from_str(&fs::read_to_string(workspace::own().join(file)).ok()?).ok()
}

/// Writes both pages.
pub(super) fn write() -> Result<()> {
    let mut clients = catalog::all::<Client>()?;
    clients.sort_by_key(|client| client.tier);
    let mut rows = String::new();
    let mut lists = String::new();
    for client in &clients {
        let results: Vec<(Host, Value)> =
            HOSTS.iter().filter_map(|host| Some((*host, kept(client, *host)?))).collect();
        let Some((_, first)) = results.first() else { continue };
        let text = |key: &str| first.get(key).and_then(Value::as_str).unwrap_or_default();
        let on = results.iter().map(|(host, result)| {
            let count = |key: &str| result.get(key).and_then(Value::as_u64).unwrap_or_default();
            let (passed, failed) = (count("passed"), count("failed"));
            match failed {
                0 => format!("{} {passed}", host.name()),
                _ => format!("{} {passed}, **{failed} failed**", host.name()),
            }
        });
        let on = on.collect::<Vec<_>>().join("<br>");
        writeln!(
            rows,
            "| {} | {} | `{}` | {on} | {} |",
            client.name,
            text("version"),
            client.folder,
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
```

Lock files install the programs into `.creole/clients`. The folder of a client in `harness/clients` has its checks.
";

const HEAD: &str = "| client | version | `cargo xtask clients …` | checks passed | what it needs |
|---|---|---|---|---|
";
