//! `creole launch` with a real Claude Code and a scripted Ollama at its usual port.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::{Client, install};
use crate::catalog;

/// The client that is launched.
const CLIENT: &str = "claude-code";

/// Runs the script with this gateway, by `each`.
pub(crate) fn test(gateway: &Path, each: impl FnOnce(&mut Command) -> Result<()>) -> Result<()> {
    let client = catalog::read::<Client>(CLIENT)?;
    install::install(&client)?;
    let packages = client.installed().join("node_modules/@anthropic-ai");
    let platform = match std::env::consts::ARCH {
        "aarch64" => "claude-code-linux-arm64",
        _ => "claude-code-linux-x64",
    };
    let mut command = Command::new(install::program(&client));
    command.arg(client.sources().join("launch.py")).arg(gateway);
    each(command.arg(packages.join(platform).join("claude")))
}
