//! Command-line program with the project's own commands, which CI and the README use.
//!
//! Each command has a file of its own; each host that `run` can start is one file in `hosts`.
#![forbid(unsafe_code)]

mod build;
mod catalog;
mod children;
mod clients;
mod compiled;
mod component;
mod dist;
mod fixture;
mod hosts;
mod http;
mod load;
mod operate;
mod packages;
mod run;
mod services;
mod setup;
mod site;
mod size;
mod templates;
mod test;
mod worker;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the Messages API in front of the demo model, or of `--upstream`, until Ctrl-C.
    Run(run::RunOptions),
    /// Run every test of the project.
    Test(test::TestOptions),
    /// Run real clients of the Messages API, headless, in front of a host and the demo model, or an
    /// official SDK in front of real model servers.
    Clients(clients::ClientsOptions),
    /// Mixed load with faults on a real host, where every response is classified; or attacks.
    Chaos {
        /// Where the translator runs.
        #[arg(long = "on", alias = "host", value_name = "HOST", value_enum, default_value_t = hosts::Host::Envoy)]
        host: hosts::Host,
        /// How long.
        #[arg(long, default_value_t = 1800)]
        seconds: u64,
        /// Instead of load, large attacks of clients and upstreams, which take gigabytes; on envoy
        /// or gateway.
        #[arg(long, conflicts_with = "seconds")]
        hostile: bool,
    },
    /// Measure what Creole costs under load, beside other proxies; writes docs/speed.md.
    Load(load::LoadOptions),
    /// Make a fixture of a body that an upstream sent: see tests/fixtures/README.md.
    Fixture(fixture::FixtureOptions),
    /// Leave the artefacts in `dist/`, and print how large they are, beside their budgets.
    Build {
        /// Only these; all of them, with their sizes, if none is named.
        #[arg(value_enum, value_name = "PART")]
        parts: Vec<build::BuildPart>,
        /// Instead of artefacts, draw the pictures of the gateway's page in docs/page, with a real
        /// Chromium.
        #[arg(long, conflicts_with = "parts")]
        pictures: bool,
    },
    /// Make `dist/` complete: artefacts, binaries, packages, images, bill of materials, checksums.
    Dist(dist::DistOptions),
    /// Leave the pages of `docs/` as a site in `dist/site`, with all links checked.
    Site,
    /// Install the programs that other commands run into `.creole/`, and the Rust targets; tests of
    /// clients and chat templates install their packages themselves.
    Setup,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Command::Run(options) => {
            run::run(&options, clients::local_model, services::start).map(|()| true)
        }
        Command::Test(options) => test::test(&options),
        Command::Clients(options) => clients::clients(&options),
        Command::Chaos { host, hostile: true, .. } => {
            operate::attacks(host, operate::Size::Large, setup::run).map(|()| true)
        }
        Command::Chaos { host, seconds, .. } => {
            operate::chaos(host, seconds, setup::run).map(|()| true)
        }
        Command::Load(options) => load::load(&options).map(|()| true),
        Command::Fixture(options) => fixture::fixture(&options).map(|()| true),
        Command::Build { pictures: true, .. } => operate::page_pictures().map(|()| true),
        Command::Build { parts, .. } if parts.is_empty() => size::print().map(|()| true),
        Command::Build { parts, .. } => build::parts(&parts).map(|()| true),
        Command::Dist(options) => dist::dist(&options).map(|()| true),
        Command::Site => site::build().map(|()| true),
        Command::Setup => setup::all(&build::targets()).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
