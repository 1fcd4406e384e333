//! `creole`: clients of the Anthropic Messages API on models of other APIs, on a laptop or a single machine.
//!
//! `creole serve` is the host: it moves bytes between its clients, [`creole::Exchange`] and the
//! upstreams, and translates nothing itself. `creole launch` runs a client behind it, `creole demo` puts
//! it in front of a scripted model. The other commands drive the same exchange without a network, for
//! bug reports and for checking a configuration.
//!
//! Exit codes, but for `creole launch`, which has its client's: 0, done; 1, the result is an error (or
//! the server could not run); 2, the flags, a file or the configuration cannot be used.
#![forbid(unsafe_code)]
// They panic where nothing can be written.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod check;
mod cli;
mod clock;
mod configure;
mod demo;
mod documents;
mod fair_semaphore;
mod headers;
mod launch;
mod log;
mod metrics;
mod page;
mod probe;
mod ready;
mod server;
mod thread_pool;
mod upstream;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command, offline};
use server::listen;

/// Reason for which a command ended without its result, in one line.
#[derive(Debug)]
pub(crate) enum Failed {
    /// Flags, files or the configuration cannot be used.
    Usage(String),
    /// The server could not run, or the result could not be written.
    Run(String),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Serve(options) => listen::run(&options).map(|()| true),
        Command::Launch(options) => match launch::run(&options) {
            // The client's own code.
            Ok(code) => return ExitCode::from(code),
            Err(failed) => Err(failed),
        },
        Command::Demo(options) => demo::run(&options).map(|()| true),
        Command::Check(options) => check::run(&options),
        // Its code says what came of the document.
        Command::ReadDocument(options) => return documents::run(&options),
        Command::Translate(translate) => offline::translate(&translate),
        Command::CheckConfig(options) => match options.file {
            Some(file) => configure::check(&file),
            None => configure::print_schema(),
        },
    };
    let (reason, code) = match done {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => return ExitCode::from(1),
        Err(Failed::Usage(reason)) => (reason, 2),
        Err(Failed::Run(reason)) => (reason, 1),
    };
    // Where nobody can read it, the code still says it.
    let _ = configure::say(io::stderr(), &format!("creole: {reason}"));
    ExitCode::from(code)
}
