//! Tests of the gateway with real clients: `creole launch`, and auto mode with a judge.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::{Client, claude_code, install};
use crate::catalog;

/// Folders of the clients that `creole launch` knows beside Claude Code.
const OTHERS: [&str; 3] = ["opencode", "pi", "qwen-code"];

/// Runs the script for `creole launch` with this gateway. `each` runs the command and counts its
/// tests.
pub(crate) fn test(gateway: &Path, each: impl FnOnce(&mut Command) -> Result<()>) -> Result<()> {
    let others = OTHERS.iter().map(|folder| {
        let client = catalog::read::<Client>(folder)?;
        install::install(&client)?;
        Ok(format!("{folder}={}", client.installed().display()))
    });
    run("launch.py", gateway, &others.collect::<Result<Vec<_>>>()?, each)
}

/// Runs the script for Claude Code's auto mode.
pub(crate) fn auto_mode(
    gateway: &Path,
    each: impl FnOnce(&mut Command) -> Result<()>,
) -> Result<()> {
    run("auto_mode.py", gateway, &[], each)
}

fn run(
    script: &str,
    gateway: &Path,
    others: &[String],
    each: impl FnOnce(&mut Command) -> Result<()>,
) -> Result<()> {
    let program = claude_code()?;
    let client = catalog::read::<Client>("claude-code")?;
    let mut command = Command::new(install::program(&client));
    command.arg(client.sources().join(script)).arg(gateway);
    each(command.arg(program).args(others))
}
