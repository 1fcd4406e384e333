//! `creole completions` and `creole manual`: completions for shells, and manual pages, from the
//! definitions of the command line.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::CommandFailed;

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Manual {
    /// The folder, which must exist
    folder: PathBuf,
}

/// Prints the completions for a shell.
pub(super) fn complete(options: &Completions, mut command: Command) -> Result<(), CommandFailed> {
    let (name, mut script) = (command.get_name().to_owned(), Vec::new());
    clap_complete::generate(options.shell, &mut command, name, &mut script);
    let failed = |error| CommandFailed::Run(format!("cannot write: {error}"));
    io::stdout().write_all(&script).map_err(failed)
}

/// Writes a manual page for the program, and one for each of its commands.
pub(super) fn write(options: &Manual, command: Command) -> Result<(), CommandFailed> {
    let written = clap_mangen::generate_to(command, &options.folder);
    let failed = |error| CommandFailed::Usage(format!("{}: {error}", options.folder.display()));
    written.map_err(failed)
}
