//! A gateway's program with a real Claude Code: `creole launch`, and auto mode with a judge.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::{Client, claude_code, install};
use crate::catalog;

/// Runs the script of `creole launch` with this gateway, by `each`.
pub(crate) fn test(gateway: &Path, each: impl FnOnce(&mut Command) -> Result<()>) -> Result<()> {
    run("launch.py", gateway, each)
}

/// Runs the script of auto mode.
pub(crate) fn auto_mode(
    gateway: &Path,
    each: impl FnOnce(&mut Command) -> Result<()>,
) -> Result<()> {
    run("auto_mode.py", gateway, each)
}

fn run(script: &str, gateway: &Path, each: impl FnOnce(&mut Command) -> Result<()>) -> Result<()> {
    let program = claude_code()?;
    let client = catalog::read::<Client>("claude-code")?;
    let mut command = Command::new(install::program(&client));
    command.arg(client.sources().join(script)).arg(gateway);
    each(command.arg(program))
}
