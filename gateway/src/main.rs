//! `creole`: a gateway that lets clients of the Anthropic Messages API use models of other APIs, on
//! a laptop or a single machine.
//!
//! `creole serve` is the server: it moves bytes between its clients, [`creole::Exchange`] and the
//! upstreams, and translates nothing itself. `creole launch` runs a client together with a gateway,
//! and `creole demo` runs a gateway with a scripted model. The other commands drive the same
//! exchange without a network, for bug reports and for checking a configuration.
//!
//! Exit codes: 0, success; 1, the result is an error, or the server could not run; 2, the flags, a
//! file or the configuration cannot be used. `creole launch` returns the exit code of its client.
#![forbid(unsafe_code)]
// The print macros panic if the output is closed.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod check;
mod cli;
mod clock;
mod configure;
mod documents;
mod fair_semaphore;
mod file_state;
mod headers;
mod hints;
mod launch;
mod log;
mod metrics;
mod page;
mod private_files;
mod probe;
mod server;
mod telemetry;
mod terminal;
mod thread_pool;
mod upstream;

use std::process::ExitCode;

use tokio::runtime::{Builder, Runtime};

/// Reason for which a command failed, in one line.
#[derive(Debug)]
pub(crate) enum CommandFailed {
    /// The command failed because flags, files or the configuration cannot be used.
    Usage(String),
    /// The command failed because the server could not run, or the result could not be written.
    Run(String),
}

impl CommandFailed {
    fn reason(self) -> String {
        match self {
            Self::Usage(reason) | Self::Run(reason) => reason,
        }
    }
}

/// Returns the runtime of a command, on one thread.
///
/// # Errors
/// The system lacks what a runtime needs.
fn runtime() -> Result<Runtime, CommandFailed> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| CommandFailed::Run(format!("cannot start: {error}")))
}

fn main() -> ExitCode {
    cli::run()
}
