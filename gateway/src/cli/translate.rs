//! `creole translate`: runs one exchange as `serve` does, but without a network.
//!
//! Standard output gets exactly the bytes that would be sent; the head and the warnings go to
//! standard error. The seed and the clock stand still, so the same input gives the same bytes
//! everywhere.

use std::fs;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use creole::headers::CREDENTIALS;
use creole::observe::report::{Outcome, Report};
use creole::text::harmless;
use creole::{Call, Config, End, Exchange, Header, HostCan, Pings, Reply, RequestHead};

use crate::CommandFailed;
use crate::configure::{self, Chosen};

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
        answer: AnswerFlags,
        /// The upstream's content type
        #[arg(long, value_name = "TYPE", default_value = "application/json")]
        content_type: String,
    },
    /// An upstream's event stream from standard input: prints what the client gets
    Stream {
        #[command(flatten)]
        answer: AnswerFlags,
        /// The upstream's content type
        #[arg(long, value_name = "TYPE", default_value = "text/event-stream")]
        content_type: String,
        /// Hands over the stream in pieces of this size; 0 is all at once
        #[arg(long, value_name = "BYTES", default_value_t = 0)]
        piece: usize,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AnswerFlags {
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

pub(crate) fn run(what: &Translate) -> Result<bool, CommandFailed> {
    match what {
        Translate::Request { chosen, seed } => {
            let config = configure::for_translating(chosen)?;
            request(config, *seed, read_stdin()?)
        }
        Translate::Response { answer, content_type } => respond(answer, content_type, 0),
        Translate::Stream { answer, content_type, piece } => respond(answer, content_type, *piece),
    }
}

fn request(config: Config, seed: Seed, body: Vec<u8>) -> Result<bool, CommandFailed> {
    let (mut exchange, call) = begin(config, seed, body);
    let Some(request) = call else { return finish(&mut exchange) };
    let mut shown = format!("POST {}\n", request.path);
    for (name, value) in &request.headers {
        let secret = CREDENTIALS.contains(&name.as_str());
        shown.push_str(&format!("{name}: {}\n", if secret { "(the key)" } else { value }));
    }
    show(&shown, &exchange.report())?;
    print(&request.body)?;
    Ok(true)
}

fn respond(answer: &AnswerFlags, content_type: &str, piece: usize) -> Result<bool, CommandFailed> {
    let config = configure::for_translating(&answer.chosen)?;
    let (mut exchange, call) = begin(config, answer.seed, read_file(&answer.request)?);
    let Some(Call { id, .. }) = call else { return finish(&mut exchange) };
    let body = read_stdin()?;
    let headers = [("content-type".to_owned(), content_type.to_owned())];
    exchange.handle_call_head(id, answer.status, &headers, 0);
    let size = if piece == 0 { body.len() } else { piece };
    for piece in body.chunks(size.max(1)) {
        exchange.handle_call_body(id, piece, 0);
    }
    exchange.handle_call_end(id, End::Complete, 0);
    finish(&mut exchange)
}

/// Starts an exchange with the request. Returns the exchange and its upstream call.
fn begin(config: Config, seed: Seed, body: Vec<u8>) -> (Exchange, Option<Call>) {
    let can = HostCan { ping: Pings::Sent, ..HostCan::default() };
    let mut exchange = Exchange::new(Arc::new(config), seed.seed, can);
    let headers: Vec<Header> = [
        ("content-type", "application/json"),
        ("anthropic-version", "2023-06-01"),
        // Some upstreams get the client's key; this command has no client.
        ("x-api-key", "unused"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    if exchange.handle_request_head("POST", "/v1/messages", &headers) != RequestHead::Answered {
        exchange.handle_request_body(body, 0);
    }
    let call = exchange.poll_call(0);
    (exchange, call)
}

/// Prints the response for the client.
fn finish(exchange: &mut Exchange) -> Result<bool, CommandFailed> {
    let Reply { head, body } = exchange.poll_reply().unwrap_or_default();
    let mut shown = format!("HTTP {}\n", head.status);
    for (name, value) in &head.headers {
        shown.push_str(&format!("{name}: {value}\n"));
    }
    let report = exchange.report();
    show(&shown, &report)?;
    print(&body)?;
    Ok(report.outcome == Outcome::Answered)
}

/// Prints the response's head and all warnings with their counts. The header `x-creole-warnings`
/// has only the warnings known when the head was sent.
fn show(head: &str, report: &Report) -> Result<(), CommandFailed> {
    let mut shown = head.to_owned();
    for warning in report.warnings.iter() {
        shown.push_str(&format!("warning: {} ({}x)\n", warning.text(), warning.count));
    }
    let written = io::stderr().write_all(harmless::lines(&shown).as_bytes());
    written.map_err(|error| CommandFailed::Run(format!("standard error: {error}")))
}

fn print(bytes: &[u8]) -> Result<(), CommandFailed> {
    let mut stdout = io::stdout();
    let written = stdout.write_all(bytes).and_then(|()| {
        // A shell's prompt should not follow the body on its line; a file gets only the bytes.
        if stdout.is_terminal() && !bytes.ends_with(b"\n") {
            stdout.write_all(b"\n")?;
        }
        stdout.flush()
    });
    written.map_err(|error| CommandFailed::Run(format!("standard output: {error}")))
}

fn read_stdin() -> Result<Vec<u8>, CommandFailed> {
    let mut bytes = Vec::new();
    match io::stdin().read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(CommandFailed::Usage(format!("standard input: {error}"))),
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, CommandFailed> {
    fs::read(path).map_err(|error| CommandFailed::Usage(format!("{}: {error}", path.display())))
}
