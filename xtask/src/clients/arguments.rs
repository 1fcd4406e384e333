//! Test of a real Claude Code with bad tool arguments: its reactions with and without Creole's
//! repair of arguments.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::{Client, claude_code, install};
use crate::catalog;

/// Runs the test script with the binary `gateway`. `each` runs the command and counts its tests.
pub(crate) fn test(gateway: &Path, each: impl FnOnce(&mut Command) -> Result<()>) -> Result<()> {
    let client = catalog::read::<Client>("claude-code")?;
    let program = claude_code()?;
    let mut command = Command::new(install::program(&client));
    each(command.arg(client.sources().join("arguments.py")).arg(gateway).arg(program))
}
