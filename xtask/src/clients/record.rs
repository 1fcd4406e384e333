//! Record of the test runs of clients. `harness/clients/runs.jsonl` has a line for the last run of
//! each client, on each host, with each protocol of the demo model.
//!
//! Each run stores its result in `.creole/clients/results`; `cargo xtask clients --table` moves the
//! results into the record. No line is written by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::{Client, Protocol, ScriptOutcome};
use crate::hosts::Host;
use crate::workspace;

/// Result of one run of a client on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Run {
    /// Name of the client's folder.
    pub(super) client: String,
    pub(super) host: String,
    pub(super) protocol: String,
    pub(super) version: String,
    /// Date of the run in UTC, such as `2026-11-27`.
    pub(super) date: String,
    /// Names of the passed checks, in the order in which they ran.
    pub(super) passed: Vec<String>,
    pub(super) failed: Vec<String>,
}

/// Name of the failed check that stands for all checks that a script did not reach.
const BROKEN_OFF: &str = "the script runs to its end";

impl Run {
    fn new(
        client: &Client,
        host: Host,
        protocol: Protocol,
        outcome: &ScriptOutcome,
    ) -> Result<Self> {
        let mut failed = outcome.failures.clone();
        if outcome.failed > failed.len() as u64 {
            failed.push(BROKEN_OFF.to_owned());
        }
        Ok(Self {
            client: client.folder.clone(),
            host: host.name().to_owned(),
            protocol: protocol.word().to_owned(),
            version: outcome.version.clone(),
            date: today()?,
            passed: outcome.checks.clone(),
            failed,
        })
    }

    /// Returns the client, protocol and host. The record keeps only the last run of each such
    /// triple.
    fn key(&self) -> (&str, &str, &str) {
        (&self.client, &self.protocol, &self.host)
    }

    /// Returns the file name of this run's result.
    fn file(&self) -> String {
        format!("{}.{}.{}.json", self.client, self.host, self.protocol)
    }
}

/// Stores the outcome of one client on one host, with the protocol of the demo model.
pub(super) fn keep(
    client: &Client,
    host: Host,
    protocol: Protocol,
    outcome: &ScriptOutcome,
) -> Result<()> {
    let run = Run::new(client, host, protocol, outcome)?;
    let folder = results();
    fs::create_dir_all(&folder)?;
    let file = folder.join(run.file());
    let text = serde_json::to_string_pretty(&run)?;
    fs::write(&file, text + "\n").with_context(|| file.display().to_string())
}

/// Merges stored results into the record, and returns all runs.
pub(super) fn update() -> Result<Vec<Run>> {
    let mut kept = Vec::new();
    for file in fs::read_dir(results()).into_iter().flatten() {
        let text = fs::read_to_string(file?.path())?;
        // A result file of an older form has no date.
        kept.extend(serde_json::from_str::<Run>(&text).ok());
    }
    let runs = merged(all()?, kept);
    let mut text = String::new();
    for run in &runs {
        text.push_str(&serde_json::to_string(run)?);
        text.push('\n');
    }
    fs::write(path(), text)?;
    Ok(runs)
}

/// Reads all runs in the record.
pub(super) fn all() -> Result<Vec<Run>> {
    read(&path())
}

fn read(path: &Path) -> Result<Vec<Run>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let run = |line| serde_json::from_str(line).with_context(|| path.display().to_string());
    text.lines().map(run).collect()
}

/// Merges two lists of runs, and keeps the later run of each client, protocol and host. The merged
/// list is sorted by client, protocol and host.
pub(super) fn merged(known: Vec<Run>, kept: Vec<Run>) -> Vec<Run> {
    let mut runs = known;
    for run in kept {
        match runs.iter_mut().find(|it| it.key() == run.key()) {
            Some(older) if older.date <= run.date => *older = run,
            Some(_) => {}
            None => runs.push(run),
        }
    }
    runs.sort_by(|one, other| one.key().cmp(&other.key()));
    runs
}

fn path() -> PathBuf {
    workspace::root().join("harness/clients/runs.jsonl")
}

fn results() -> PathBuf {
    workspace::own().join("clients/results")
}

fn today() -> Result<String> {
    let output = Command::new("date").args(["-u", "+%Y-%m-%d"]).output().context("date")?;
    ensure!(output.status.success(), "date: {}", output.status);
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
