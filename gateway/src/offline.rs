//! `creole translate`: the same exchange as in `serve`, without a network.
//!
//! Standard output gets exactly the bytes that would be sent; the head and the warnings go to standard
//! error. The seed and the clock stand still, so the same input gives the same bytes everywhere.

use std::fs;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use creole::headers::CREDENTIALS;
use creole::observe::report::{Outcome, Report};
use creole::{Config, End, Exchange, Head, Header, Pings, RequestHead, UpstreamRequest};

use crate::Failed;
use crate::cli::{Answer, Seed, Translate};
use crate::configure;

pub(crate) fn translate(what: &Translate) -> Result<bool, Failed> {
    match what {
        Translate::Request { chosen, seed } => {
            let config = configure::for_translating(chosen)?;
            request(config, *seed, &read_stdin()?)
        }
        Translate::Response { answer, content_type } => respond(answer, content_type, 0),
        Translate::Stream { answer, content_type, piece } => respond(answer, content_type, *piece),
    }
}

fn request(config: Config, seed: Seed, body: &[u8]) -> Result<bool, Failed> {
    let mut exchange = Exchange::new(Arc::new(config), seed.seed, Pings::Sent);
    let Some(request) = ask(&mut exchange, body)? else { return Ok(is_answered(&exchange)) };
    let mut shown = format!("POST {}\n", request.path);
    for (name, value) in &request.headers {
        let secret = CREDENTIALS.contains(&name.as_str());
        shown.push_str(&format!("{name}: {}\n", if secret { "(the key)" } else { value }));
    }
    show(&shown, &exchange.report())?;
    print(&request.body)?;
    Ok(true)
}

fn respond(answer: &Answer, content_type: &str, piece: usize) -> Result<bool, Failed> {
    let config = configure::for_translating(&answer.chosen)?;
    let asked = read_file(&answer.request)?;
    let body = read_stdin()?;
    let mut exchange = Exchange::new(Arc::new(config), answer.seed.seed, Pings::Sent);
    if ask(&mut exchange, &asked)?.is_none() {
        return Ok(is_answered(&exchange));
    }
    let headers = [("content-type".to_owned(), content_type.to_owned())];
    exchange.handle_response_head(answer.status, &headers, 0);
    let mut out = Vec::new();
    let mut head = None;
    let size = if piece == 0 { body.len() } else { piece };
    for piece in body.chunks(size.max(1)) {
        let given = exchange.handle_response_body(piece, 0, &mut out);
        head = head.or(given);
    }
    head = exchange.handle_response_end(End::Complete, 0, &mut out).or(head);
    show(&shown_head(&head.unwrap_or_default()), &exchange.report())?;
    print(&out)?;
    Ok(is_answered(&exchange))
}

/// Gives the request to the exchange. `None`: it was answered at once, and that was printed.
fn ask(exchange: &mut Exchange, body: &[u8]) -> Result<Option<UpstreamRequest>, Failed> {
    let headers: Vec<Header> = [
        ("content-type", "application/json"),
        ("anthropic-version", "2023-06-01"),
        // Some upstreams get the client's key; this run has none.
        ("x-api-key", "unused"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    let reply = match exchange.handle_request_head("POST", "/v1/messages", &headers) {
        RequestHead::Reply(reply) => reply,
        RequestHead::Translate | RequestHead::PassThrough => {
            match exchange.handle_request(body, 0) {
                Ok(request) => return Ok(Some(request)),
                Err(reply) => *reply,
            }
        }
    };
    show(&shown_head(&reply.head), &exchange.report())?;
    print(&reply.body)?;
    Ok(None)
}

fn is_answered(exchange: &Exchange) -> bool {
    exchange.report().outcome == Outcome::Answered
}

fn shown_head(head: &Head) -> String {
    let mut shown = format!("HTTP {}\n", head.status);
    for (name, value) in &head.headers {
        shown.push_str(&format!("{name}: {value}\n"));
    }
    shown
}

/// The header `x-creole-warnings` names only what was known when the head was sent, and not how often.
fn show(head: &str, report: &Report) -> Result<(), Failed> {
    let mut shown = head.to_owned();
    for warning in report.warnings.iter() {
        shown.push_str(&format!("warning: {} ({}x)\n", warning.text(), warning.count));
    }
    let written = io::stderr().write_all(shown.as_bytes());
    written.map_err(|error| Failed::Run(format!("standard error: {error}")))
}

fn print(bytes: &[u8]) -> Result<(), Failed> {
    let mut stdout = io::stdout();
    let written = stdout.write_all(bytes).and_then(|()| {
        // A prompt should not follow a body on its line; a file gets the bytes alone.
        if stdout.is_terminal() && !bytes.ends_with(b"\n") {
            stdout.write_all(b"\n")?;
        }
        stdout.flush()
    });
    written.map_err(|error| Failed::Run(format!("standard output: {error}")))
}

fn read_stdin() -> Result<Vec<u8>, Failed> {
    let mut bytes = Vec::new();
    match io::stdin().read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(Failed::Usage(format!("standard input: {error}"))),
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, Failed> {
    fs::read(path).map_err(|error| Failed::Usage(format!("{}: {error}", path.display())))
}
