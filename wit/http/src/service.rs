//! Handling of one request: the body is collected, translated and sent on, and the answer is
//! translated on the way back.

use std::sync::Arc;

use creole::callers::Callers;
use creole::json::Writer;
use creole::observe::log::LoggedRequest;
use creole::{Config, Exchange, Failure, Header, HostCan, Pace, Pings, Reply, RequestHead};
use wasip2::http::types::{IncomingRequest, Method, ResponseOutparam};
use wasip2::io::poll;
use wasip2::io::streams::InputStream;
use wasip2::random::random;

use crate::answer;
use crate::calls;
use crate::clock::Clock;
use crate::headers;
use crate::live::Live;
use crate::pass::{self, Rest};
use crate::upstream::{self, Piece};

/// Maximum number of calls of one exchange that are open at the same time.
const CALLS_AT_ONCE: u8 = 4;

/// Time for which the body of a refused request is still read, in milliseconds.
const DISCARD_MS: u64 = 2000;

pub(crate) fn handle(request: &IncomingRequest, out: ResponseOutparam) {
    let clock = Clock::start();
    let seed = (u128::from(random::get_random_u64()) << 64) | u128::from(random::get_random_u64());
    let read = Config::from_variables(|name| std::env::var(name).ok());
    let checked = read.and_then(|config| config.check_no_public_calls().map(|()| config));
    let config = match checked {
        Ok(config) => Arc::new(config),
        Err(reason) => return misconfigured(&reason, seed, out),
    };
    let method = method_text(&request.method());
    let path = request.path_with_query().unwrap_or_else(|| "/".to_owned());
    let can = HostCan {
        ping: Pings::Sent,
        ask_again: true,
        list_models: true,
        call_services: true,
        calls_at_once: CALLS_AT_ONCE,
        ..HostCan::default()
    };
    let exchange = Exchange::new(config, seed, can);
    let began = clock.now();
    let known = LoggedRequest { method, path, began, ..LoggedRequest::default() };
    let mut live = Live::new(exchange, clock, known, out);
    let head = headers::list(&request.headers());
    // Declared in this order: the host wants a body's stream to be dropped before the body.
    let Ok(body) = request.consume() else { return };
    let Ok(stream) = body.stream() else { return };
    let path = creole::with_version(&live.request.path);
    // A client that waits for `100 Continue` sends no body once the request is refused.
    let waits = head.iter().any(|(name, _)| name == "expect");
    let rest = if let Some(reason) = foreign(&live, request, &head) {
        live.fail(Failure::Forbidden(reason));
        Rest::Unread
    } else {
        match live.exchange.handle_request_head(&live.request.method, &path, &head) {
            RequestHead::PassThrough => pass::pass(&mut live, &request.method(), head, &stream),
            RequestHead::Translate => translate(&mut live, &stream),
            RequestHead::Answered => Rest::Unread,
        }
    };
    live.finish();
    live.exchange.handle_client_gone(live.clock.now());
    live.log();
    if rest == Rest::Unread && !waits {
        discard(&live, &stream);
    }
}

/// Returns the reason to refuse a request that a web page of another host may have sent, or `None`.
/// Without client keys the host may be a developer's machine, whose address the component does not
/// know.
fn foreign(live: &Live, request: &IncomingRequest, head: &[Header]) -> Option<&'static str> {
    if !live.exchange.config().client_keys.is_empty() {
        return None;
    }
    let callers = Callers::of_variable(std::env::var("ALLOWED_HOSTS").ok().as_deref());
    let head = headers::pairs(head).map(|(name, value)| (name, Some(value)));
    callers.refuse(request.authority().as_deref(), head)
}

/// Answers a request when the configuration cannot be read. The log gets the reason; the client
/// only learns that the configuration is invalid.
fn misconfigured(reason: &str, seed: u128, out: ResponseOutparam) {
    let mut line = Vec::new();
    let mut json = Writer::new(&mut line);
    json.begin_object().key("level").text("error").key("message").text(reason).end_object();
    eprintln!("{}", String::from_utf8_lossy(&line));
    let reply = Reply::not_configured(seed);
    answer::whole(out, &reply.head, &reply.body);
}

/// Collects the request's body, and makes the calls of the exchange.
fn translate(live: &mut Live, body: &InputStream) -> Rest {
    let collected = match collect(live, body) {
        Ok(collected) => collected,
        Err(failure) => {
            live.fail(failure);
            return Rest::Unread;
        }
    };
    live.exchange.handle_request_body(collected, live.clock.now());
    calls::run(live);
    Rest::Nothing
}

fn collect(live: &Live, stream: &InputStream) -> Result<Vec<u8>, Failure> {
    let settings = &live.exchange.config().settings;
    let mut collected = Vec::new();
    let mut pace = Pace::start(settings, live.clock.now());
    loop {
        match upstream::read(stream) {
            Piece::Bytes(piece) => {
                let length = collected.len().saturating_add(piece.len());
                if length > settings.request_bytes_max {
                    return Err(Failure::RequestTooLarge);
                }
                if length > settings.buffered_bytes_max {
                    return Err(Failure::Overloaded);
                }
                collected.extend_from_slice(&piece);
                if !pace.goes_on(piece.len(), collected.len(), live.clock.now()) {
                    return Err(Failure::RequestTooSlow);
                }
            }
            Piece::NotYet => {
                let end = live.clock.timer(pace.end(collected.len()));
                if !poll::poll(&[&stream.subscribe(), &end]).contains(&0) {
                    return Err(Failure::RequestTooSlow);
                }
            }
            Piece::End(creole::End::Complete) => return Ok(collected),
            Piece::End(creole::End::Aborted) => return Err(Failure::RequestIncomplete),
        }
    }
}

/// Reads and discards the rest of a request body whose client already has its answer. A server that
/// closes the connection meanwhile can destroy that answer.
fn discard(live: &Live, stream: &InputStream) {
    let mut left = live.exchange.config().settings.discarded_bytes_max();
    let until = live.clock.timer(live.clock.now().saturating_add(DISCARD_MS));
    while left > 0 {
        match upstream::read(stream) {
            Piece::Bytes(piece) => left = left.saturating_sub(piece.len()),
            Piece::NotYet => {
                if !poll::poll(&[&stream.subscribe(), &until]).contains(&0) {
                    return;
                }
            }
            Piece::End(_) => return,
        }
    }
}

fn method_text(method: &Method) -> String {
    match method {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Delete => "DELETE",
        Method::Connect => "CONNECT",
        Method::Options => "OPTIONS",
        Method::Trace => "TRACE",
        Method::Patch => "PATCH",
        Method::Other(other) => other,
    }
    .to_owned()
}
