//! The table of `docs/clients.md`, and `docs/dev/client-runs.md`: what was run, from `record`.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::record::{self, Run};
use super::{Client, Protocol};
use crate::catalog;
use crate::hosts::Host;
use crate::workspace;

/// The hosts of the table. The component is in it where it was run: its clients are those of the gateway.
const HOSTS: [Host; 4] = [Host::Envoy, Host::Gateway, Host::Worker, Host::Component];
const PROTOCOLS: [Protocol; 2] = [Protocol::Openai, Protocol::Responses];

/// Takes over the results of the runs since, and writes both pages.
pub(super) fn write() -> Result<()> {
    for (path, text) in pages(&record::update()?)? {
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        eprintln!("written: {}", path.display());
    }
    Ok(())
}

/// Returns the text of both pages with their paths: the table, and the lists of checks.
pub(super) fn pages(runs: &[Run]) -> Result<[(PathBuf, String); 2]> {
    let mut clients = catalog::all::<Client>()?;
    clients.sort_by_key(|client| client.tier);
    let (mut rows, mut lists) = (String::new(), String::new());
    for client in &clients {
        let own: Vec<&Run> = runs.iter().filter(|run| run.client == client.folder).collect();
        write_row(&mut rows, client, &own)?;
        write_list(&mut lists, client, &own)?;
    }
    let table = workspace::root().join("docs/clients.md");
    let page = fs::read_to_string(&table).with_context(|| table.display().to_string())?;
    let (by_hand, _) = page.split_once(MARK).context("docs/clients.md has no mark")?;
    let lists_path = workspace::root().join("docs/dev/client-runs.md");
    Ok([
        (table, format!("{by_hand}{MARK}\n{HEAD}{rows}")),
        (lists_path, format!("{INTRODUCTION}{lists}")),
    ])
}

/// Writes the row of one client in the table.
fn write_row(rows: &mut String, client: &Client, runs: &[&Run]) -> Result<()> {
    let version = newest(runs).map_or("not run", |run| run.version.as_str());
    let cells = PROTOCOLS.map(|protocol| cell(runs, protocol, version));
    let Client { name, folder, needs, .. } = client;
    writeln!(rows, "| {name} | {version} | `{folder}` | {} | {needs} |", cells.join(" | "))?;
    Ok(())
}

/// The last run, whose version is the client's.
fn newest<'r>(runs: &[&'r Run]) -> Option<&'r Run> {
    runs.iter().copied().max_by(|one, other| one.date.cmp(&other.date))
}

/// Returns a table cell with the numbers of checks that passed and failed on each host, and the
/// dates.
pub(super) fn cell(runs: &[&Run], protocol: Protocol, version: &str) -> String {
    let mut lines = Vec::new();
    if !runs.iter().any(|run| run.protocol == protocol.word()) {
        return "not run".to_owned();
    }
    for host in HOSTS {
        let Some(run) = run_on(runs, host, protocol) else {
            if !matches!(host, Host::Component) {
                lines.push(format!("{}: not run", host.name()));
            }
            continue;
        };
        let mut line = format!("{}: {} passed", host.name(), run.passed.len());
        if !run.failed.is_empty() {
            let _ = write!(line, ", **{} failed**", run.failed.len());
        }
        if run.version != version {
            let _ = write!(line, ", {}", run.version);
        }
        lines.push(format!("{line}, {}", run.date));
    }
    lines.join("<br>")
}

fn run_on<'r>(runs: &[&'r Run], host: Host, protocol: Protocol) -> Option<&'r Run> {
    let is_it = |run: &&&Run| run.host == host.name() && run.protocol == protocol.word();
    runs.iter().find(is_it).copied()
}

/// Writes the result of each check of a client, in each of its runs.
fn write_list(lists: &mut String, client: &Client, runs: &[&Run]) -> Result<()> {
    writeln!(lists, "\n### {}\n", client.name)?;
    if runs.is_empty() {
        writeln!(lists, "Not run.")?;
        return Ok(());
    }
    let mut columns = Vec::new();
    for protocol in PROTOCOLS {
        columns.extend(HOSTS.into_iter().filter_map(|host| run_on(runs, host, protocol)));
    }
    let mut checks: Vec<&String> = Vec::new();
    for check in columns.iter().flat_map(|run| run.passed.iter().chain(&run.failed)) {
        if !checks.contains(&check) {
            checks.push(check);
        }
    }
    let mut row = |first: &str, cell: &dyn Fn(&Run) -> String| -> Result<()> {
        let cells: Vec<String> = columns.iter().map(|run| cell(run)).collect();
        writeln!(lists, "| {first} | {} |", cells.join(" | "))?;
        Ok(())
    };
    row("", &|run| match run.protocol == Protocol::Openai.word() {
        true => run.host.clone(),
        false => format!("{}, Responses", run.host),
    })?;
    row("---", &|_| "---".to_owned())?;
    row("version", &|run| run.version.clone())?;
    row("date", &|run| run.date.clone())?;
    for check in checks {
        row(check, &|run| {
            let came = (run.passed.contains(check), run.failed.contains(check));
            match came {
                (_, true) => "**failed**".to_owned(),
                (true, false) => "passed".to_owned(),
                (false, false) => "not run".to_owned(),
            }
        })?;
    }
    Ok(())
}

/// The part of `docs/clients.md` before it is written by hand.
const MARK: &str = "<!-- From here on, made by `cargo xtask clients --table`: see xtask/src/clients/table.rs -->\n";

const INTRODUCTION: &str = "# Runs of clients

Real programs that speak the Messages API, run headless in front of Creole, with the [demo model](demo-model.md) as the
model. `cargo xtask clients --table` makes this page, and [the table](../clients.md#what-was-run), from the last run of each
client on each host (`harness/clients/runs.jsonl`). Do not edit it.

```sh
cargo xtask clients                                  # the default tier, in Envoy
cargo xtask clients claude-code --on gateway         # one client, another host
cargo xtask clients all --on envoy --on worker       # everything, in two hosts
cargo xtask clients second --protocol responses      # in front of a demo model that speaks Responses
cargo xtask clients --table                          # takes the results over, and writes the pages
```

Lock files install the programs into `.creole/clients`. The folder of a client in `harness/clients` has its checks.
A column is one run: the host, and what the demo model speaks if it is not Chat Completions.
";

const HEAD: &str = "| client | version | `cargo xtask clients …` | over Chat Completions | over Responses | what it needs |
|---|---|---|---|---|---|
";
