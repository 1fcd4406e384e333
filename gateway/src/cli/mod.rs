//! Command line: parses the arguments, runs a command, and prints the reason of a failure.

mod check_config;
mod demo;
mod envoy_config;
mod manual;
mod serve;
mod translate;

use std::io;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::CommandFailed;
use crate::check::{self, Check};
use crate::documents::{self, ReadDocument};
use crate::launch::{self, ConfigureClient, Launch, StatusLine, UnconfigureClient};
use crate::terminal;
use check_config::CheckConfig;
use demo::Demo;
use envoy_config::EnvoyConfig;
use manual::{Completions, Manual};
use serve::Serve;
use translate::Translate;

/// Anthropic Messages clients on any model of Chat Completions, Responses or Messages.
#[derive(Debug, Parser)]
#[command(
    name = "creole",
    version,
    after_help = "To begin: `creole demo` needs no model server; `creole launch claude` starts Claude Code."
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the Messages API in front of an upstream
    Serve(Box<Serve>),
    /// Start a client such as Claude Code, behind a gateway that ends with it
    Launch(Launch),
    /// Write what a client needs for a running gateway into the client's own settings
    Configure(ConfigureClient),
    /// Take back what `configure` wrote
    Unconfigure(UnconfigureClient),
    /// Open the page of a gateway that runs, also of one that `launch` started
    Page,
    /// Print the status line for Claude Code, reading what it knows from standard input
    #[command(hide = true)]
    StatusLine(StatusLine),
    /// Serve the Messages API in front of a scripted model, to try Creole without a model server
    Demo(Demo),
    /// Ask an upstream for all that agents need, and say what works
    Check(Check),
    /// Print what would be sent, reading from standard input
    #[command(subcommand)]
    Translate(Translate),
    /// Check a configuration file
    CheckConfig(CheckConfig),
    /// Print the completions of this command line for a shell
    Completions(Completions),
    /// Write the manual pages into a folder
    #[command(hide = true)]
    Manual(Manual),
    /// Print a finished configuration for an Envoy with Creole's filter
    EnvoyConfig(Box<EnvoyConfig>),
    /// Read one PDF from standard input, and print its text: what the gateway runs for each
    /// document
    #[command(hide = true)]
    ReadDocument(ReadDocument),
}

/// Runs the command that the command-line arguments name. Returns the exit code.
pub(crate) fn run() -> ExitCode {
    let Some(command) = Cli::parse().command else {
        // An error is ignored, because standard output may be closed.
        let _ = Cli::command().print_help();
        return ExitCode::SUCCESS;
    };
    let done = match command {
        Command::Serve(options) => serve::run(&options).map(|()| true),
        Command::Launch(options) => match launch::run(&options) {
            // The exit code of `creole launch` is the exit code of the client.
            Ok(code) => return ExitCode::from(code),
            Err(failed) => Err(failed),
        },
        Command::Configure(options) => launch::configure(&options).map(|()| true),
        Command::Unconfigure(options) => launch::unconfigure(&options).map(|()| true),
        Command::Page => launch::open_page().map(|()| true),
        Command::StatusLine(options) => launch::status_line(&options).map(|()| true),
        Command::Demo(options) => demo::run(&options).map(|()| true),
        Command::Check(options) => check::run(&options),
        // The exit code is the result of reading the document.
        Command::ReadDocument(options) => return documents::run(&options),
        Command::Translate(options) => translate::run(&options),
        Command::CheckConfig(options) => check_config::run(&options),
        Command::Completions(options) => manual::complete(&options, Cli::command()).map(|()| true),
        Command::Manual(options) => manual::write(&options, Cli::command()).map(|()| true),
        Command::EnvoyConfig(options) => envoy_config::run(&options).map(|()| true),
    };
    let (reason, code) = match done {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => return ExitCode::from(1),
        Err(CommandFailed::Usage(reason)) => (reason, 2),
        Err(CommandFailed::Run(reason)) => (reason, 1),
    };
    // If standard error is closed, the exit code still tells the failure.
    let _ = terminal::say(io::stderr(), &format!("creole: {reason}"));
    ExitCode::from(code)
}
