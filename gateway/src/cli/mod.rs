//! The command line: a file for each command.

pub(crate) mod check;
pub(crate) mod check_config;
pub(crate) mod demo;
pub(crate) mod launch;
pub(crate) mod offline;
pub(crate) mod read_document;
pub(crate) mod serve;
pub(crate) mod translate;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use creole::profile::presets::PRESETS;

use check::Check;
use check_config::CheckConfig;
use demo::Demo;
use launch::Launch;
use read_document::ReadDocument;
use serve::Serve;
use translate::Translate;

/// Anthropic Messages clients on any model of Chat Completions, Responses or Messages.
#[derive(Debug, Parser)]
#[command(name = "creole", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the Messages API in front of an upstream
    Serve(Serve),
    /// Start a client such as Claude Code, behind a gateway that ends with it
    Launch(Launch),
    /// Serve the Messages API in front of a scripted model, to try Creole without a model server
    Demo(Demo),
    /// Ask an upstream for all that agents need, and say what works
    Check(Check),
    /// Print what would be sent, reading from standard input
    #[command(subcommand)]
    Translate(Translate),
    /// Check a configuration file
    CheckConfig(CheckConfig),
    /// Read one PDF from standard input, and print its text: what the gateway runs for each document
    #[command(hide = true)]
    ReadDocument(ReadDocument),
}

/// What all commands that translate take.
#[derive(Clone, Debug, Args)]
pub(crate) struct Chosen {
    // The names are those that the configuration takes.
    #[arg(long, value_name = "NAME", help = ["What kind of server the upstream is: ", &PRESETS.join(", ")].concat())]
    pub(crate) profile: Option<String>,
    /// Configuration, one JSON document
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl Chosen {
    /// Whether nothing says what kind of server the upstream is, so that it may be guessed.
    pub(crate) fn is_open(&self) -> bool {
        self.profile.is_none() && self.config.is_none()
    }
}
