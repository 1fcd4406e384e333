//! Table of client tests in `docs/clients.md`, generated from the record of runs.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::record::{self, Run};
use super::{Client, Protocol};
use crate::catalog;
use crate::hosts::Host;
use crate::workspace;

/// Hosts in the table. The component appears only where it was tested, since its clients are those
/// of the gateway.
const HOSTS: [Host; 4] = [Host::Envoy, Host::Gateway, Host::Worker, Host::Component];
const PROTOCOLS: [Protocol; 2] = [Protocol::Openai, Protocol::Responses];

/// Merges the results of recent runs into the record, and writes the page `docs/clients.md`.
pub(super) fn write() -> Result<()> {
    let (path, text) = page(&record::update()?)?;
    fs::write(&path, text).with_context(|| path.display().to_string())?;
    eprintln!("written: {}", path.display());
    Ok(())
}

/// Returns the path of `docs/clients.md`, and the page's text with the table.
pub(super) fn page(runs: &[Run]) -> Result<(PathBuf, String)> {
    let mut clients = catalog::all::<Client>()?;
    clients.sort_by_key(|client| client.tier);
    let mut rows = String::new();
    for client in &clients {
        let own: Vec<&Run> = runs.iter().filter(|run| run.client == client.folder).collect();
        write_row(&mut rows, client, &own)?;
    }
    let table = workspace::root().join("docs/clients.md");
    let page = fs::read_to_string(&table).with_context(|| table.display().to_string())?;
    let (by_hand, _) = page.split_once(MARK).context("docs/clients.md has no mark")?;
    Ok((table, format!("{by_hand}{MARK}\n{HEAD}{rows}")))
}

/// Writes the row of one client in the table.
fn write_row(rows: &mut String, client: &Client, runs: &[&Run]) -> Result<()> {
    let version = newest(runs).map_or("not run", |run| run.version.as_str());
    let cells = PROTOCOLS.map(|protocol| cell(runs, protocol, version));
    let Client { name, folder, needs, .. } = client;
    writeln!(rows, "| {name} | {version} | `{folder}` | {} | {needs} |", cells.join(" | "))?;
    Ok(())
}

/// Returns the latest run, whose client version the table shows.
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

/// Mark in `docs/clients.md` that ends the part written by hand.
const MARK: &str = "<!-- From here on, made by `cargo xtask clients --table`: see xtask/src/clients/table.rs -->\n";

const HEAD: &str = "| client | version | `cargo xtask clients …` | over Chat Completions | over Responses | what it needs |
|---|---|---|---|---|---|
";
