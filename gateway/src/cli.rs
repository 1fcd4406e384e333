//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use creole::dialect::presets::PRESETS;

/// Anthropic Messages clients on any Chat Completions model.
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
    /// Print what would be sent, reading from standard input
    #[command(subcommand)]
    Translate(Translate),
    /// Check a configuration file
    CheckConfig {
        /// The configuration, one JSON document
        #[arg(required_unless_present = "schema")]
        file: Option<PathBuf>,
        /// Print the JSON Schema of the configuration instead
        #[arg(long, conflicts_with = "file")]
        schema: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where the model is: http://localhost:11434/v1
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// Address and port to listen on; port 0 takes any free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8787", value_parser = address)]
    pub(crate) listen: String,
    /// Environment variable with the upstream's key; without it, the client's own key is sent on
    #[arg(long, value_name = "NAME")]
    pub(crate) key_env: Option<String>,
    #[command(flatten)]
    pub(crate) chosen: Chosen,
    /// Address and port for /metrics alone; without it, /metrics is answered on the address of --listen
    /// where that is a loopback address
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) metrics: Option<String>,
    /// Host name that requests, and web pages, may have besides localhost and IP addresses; may be repeated.
    /// Also turns the check of Host on where --listen is not a loopback address
    #[arg(long, value_name = "NAME", value_parser = host)]
    pub(crate) allow_host: Vec<String>,
    /// Environment variable with a key that clients may have; may be repeated. Other requests get 401
    #[arg(long, value_name = "NAME")]
    pub(crate) client_key_env: Vec<String>,
    /// Serve everyone who can reach an address that is not a loopback one, though upstreams get keys of the gateway's
    /// and clients have none
    #[arg(long)]
    pub(crate) allow_anyone: bool,
    /// How long streams may go on after SIGINT or SIGTERM, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) shutdown_timeout: u64,
    /// Gives every exchange this seed, so that ids repeat: for tests that compare bytes
    #[arg(long, value_name = "NUMBER", hide = true)]
    pub(crate) seed: Option<u128>,
}

/// What can be listened on, if the host has that address.
fn address(text: &str) -> Result<String, &'static str> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
            Ok(text.to_owned())
        }
        _ => Err("expected an address and a port, such as 127.0.0.1:8787"),
    }
}

/// A name as `Host` has it before its port. Another text would fit no request, and nobody would be told.
fn host(text: &str) -> Result<String, &'static str> {
    let is_letter =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    match text {
        "" => Err("expected a host name"),
        text if text.chars().all(is_letter) => Ok(text.to_owned()),
        _ => Err("expected a host name, without scheme and port"),
    }
}

/// What all commands that translate take.
#[derive(Debug, Args)]
pub(crate) struct Chosen {
    // The names are those that the configuration takes.
    #[arg(long, value_name = "NAME", help = ["What kind of server the upstream is: ", &PRESETS.join(", ")].concat())]
    pub(crate) profile: Option<String>,
    /// Configuration, one JSON document
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Translate {
    /// A Messages request from standard input: prints the upstream's request
    Request {
        #[command(flatten)]
        chosen: Chosen,
        #[command(flatten)]
        seed: Seed,
    },
    /// An upstream's whole answer from standard input: prints the client's
    Response {
        #[command(flatten)]
        answer: Answer,
        /// The upstream's content type
        #[arg(long, value_name = "TYPE", default_value = "application/json")]
        content_type: String,
    },
    /// An upstream's event stream from standard input: prints what the client gets
    Stream {
        #[command(flatten)]
        answer: Answer,
        /// The upstream's content type
        #[arg(long, value_name = "TYPE", default_value = "text/event-stream")]
        content_type: String,
        /// Hands over the stream in pieces of this size; 0 is all at once
        #[arg(long, value_name = "BYTES", default_value_t = 0)]
        piece: usize,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Answer {
    /// The Messages request that is answered
    #[arg(long, value_name = "FILE")]
    pub(crate) request: PathBuf,
    /// The upstream's status
    #[arg(long, value_name = "STATUS", default_value_t = 200, value_parser = clap::value_parser!(u16).range(200..=599))]
    pub(crate) status: u16,
    #[command(flatten)]
    pub(crate) chosen: Chosen,
    #[command(flatten)]
    pub(crate) seed: Seed,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Seed {
    /// Ids are made of this number: the same number gives the same bytes
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) seed: u128,
}
