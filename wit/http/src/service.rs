//! One request: collected, translated, sent on, and its answer translated on the way back.

use std::sync::Arc;

use creole::json::Writer;
use creole::observe::log::Request;
use creole::{Config, Exchange, Failure, Header, HostCan, Pings, Reply, RequestHead, Unreachable};
use wasip2::http::types::{IncomingRequest, IncomingResponse, Method, ResponseOutparam};
use wasip2::io::streams::InputStream;
use wasip2::random::random;

use crate::answer::{self, Answer};
use crate::clock::Clock;
use crate::live::{Live, Woken};
use crate::upstream::{self, Asked, Body, Piece};
use crate::{headers, pass};

/// How long a refused body is still read.
const DISCARD_MS: u64 = 2000;

pub(crate) fn handle(request: &IncomingRequest, out: ResponseOutparam) {
    let clock = Clock::start();
    let seed = (u128::from(random::get_random_u64()) << 64) | u128::from(random::get_random_u64());
    let config = match Config::from_variables(|name| std::env::var(name).ok()) {
        Ok(config) => Arc::new(config),
        Err(reason) => return misconfigured(&reason, seed, out),
    };
    let method = method_text(&request.method());
    let path = request.path_with_query().unwrap_or_else(|| "/".to_owned());
    let can = HostCan { ping: Pings::Sent, list_models: true, ..HostCan::default() };
    let exchange = Exchange::new(config, seed, can);
    let began = clock.now();
    let known = Request { method, path, began, ..Request::default() };
    let mut live = Live { exchange, clock, request: known };
    let head = headers::list(&request.headers());
    // Declared in this order: the host wants a body's stream to be dropped before the body.
    let Ok(body) = request.consume() else { return };
    let Ok(stream) = body.stream() else { return };
    let path = creole::with_version(&live.request.path);
    match live.exchange.handle_request_head(&live.request.method, &path, &head) {
        RequestHead::PassThrough => pass::pass(&mut live, &request.method(), head, &stream, out),
        RequestHead::Translate => translate(&mut live, &stream, out),
        RequestHead::Answered => {
            discard_sent(&live, &head, &stream);
            live.reply(out);
        }
    }
    live.exchange.handle_client_gone(live.clock.now());
    live.log();
}

/// The operator reads the reason in the log; a client only that there is one.
fn misconfigured(reason: &str, seed: u128, out: ResponseOutparam) {
    let mut line = Vec::new();
    let mut json = Writer::new(&mut line);
    json.begin_object().key("level").text("error").key("message").text(reason).end_object();
    eprintln!("{}", String::from_utf8_lossy(&line));
    let reply = Reply::not_configured(seed);
    answer::whole(out, &reply.head, &reply.body);
}

fn translate(live: &mut Live, body: &InputStream, out: ResponseOutparam) {
    let collected = match collect(live, body) {
        Ok(collected) => collected,
        Err(failure) => {
            discard(live, body);
            return live.fail(failure, out);
        }
    };
    let now = live.clock.now();
    live.exchange.handle_request_body(collected, now);
    let Some(call) = live.exchange.poll_call(now) else { return live.reply(out) };
    let Some(target) = live.exchange.config().upstreams.get(&call.upstream).cloned() else {
        return live.fail(Failure::NoRoute, out);
    };
    let mut list = call.headers;
    let (method, body) = match call.body.as_slice() {
        [] => (Method::Get, Body::None),
        body => {
            // Some model servers read no chunked requests.
            list.push(("content-length".to_owned(), body.len().to_string()));
            (Method::Post, Body::Bytes(body))
        }
    };
    let asked = upstream::ask(live, &target, &method, &call.path, &list, &body);
    drop(call.body);
    match asked {
        Asked::Answered(response) => respond(live, &response, out),
        Asked::Failed(failure) => live.fail(failure, out),
        Asked::GivenUp => live.reply(out),
    }
}

fn collect(live: &Live, stream: &InputStream) -> Result<Vec<u8>, Failure> {
    let settings = &live.exchange.config().settings;
    let mut collected = Vec::new();
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
            }
            Piece::NotYet => stream.subscribe().block(),
            Piece::End(creole::End::Complete) => return Ok(collected),
            Piece::End(creole::End::Aborted) => return Err(Failure::RequestIncomplete),
        }
    }
}

/// A client that waits for `100 Continue` sends nothing once it is refused.
pub(crate) fn discard_sent(live: &Live, head: &[Header], stream: &InputStream) {
    if !head.iter().any(|(name, _)| name == "expect") {
        discard(live, stream);
    }
}

fn discard(live: &Live, stream: &InputStream) {
    let mut left = live.exchange.config().settings.discarded_bytes_max();
    let until = live.clock.timer(live.clock.now().saturating_add(DISCARD_MS));
    while left > 0 {
        match upstream::read(stream) {
            Piece::Bytes(piece) => left = left.saturating_sub(piece.len()),
            Piece::NotYet => {
                if !wasip2::io::poll::poll(&[&stream.subscribe(), &until]).contains(&0) {
                    return;
                }
            }
            Piece::End(_) => return,
        }
    }
}

/// Translates an answer as it comes.
fn respond(live: &mut Live, response: &IncomingResponse, out: ResponseOutparam) {
    let list = headers::list(&response.headers());
    let now = live.clock.now();
    live.exchange.handle_call_head(response.status(), &list, now);
    let body = response.consume();
    let stream = body.as_ref().ok().and_then(|body| body.stream().ok());
    let Some(stream) = stream else {
        return live.fail(Failure::Unreachable(Unreachable::NoBody), out);
    };
    // The head is held until the exchange gives it.
    let mut held = Some(out);
    let mut started = None;
    while !live.exchange.is_ended() {
        next(live, &stream);
        if live.exchange.is_ended() && held.is_some() {
            break;
        }
        if let Some(head) = live.exchange.poll_head()
            && let Some(out) = held.take()
        {
            let Ok(answer) = Answer::start(out, &head) else { return };
            started = Some(answer);
        }
        if let Some(answer) = &started {
            let mut bytes = Vec::new();
            live.exchange.poll_body(&mut bytes);
            if answer.write(&bytes).is_err() {
                return;
            }
        }
    }
    // The upstream goes first, so that nothing of it is kept while a slow client reads the end.
    drop(stream);
    drop(body);
    match (held, started) {
        (Some(out), _) => live.reply(out),
        (None, Some(answer)) => answer.finish(),
        (None, None) => {}
    }
}

/// One thing happens: a piece of the upstream, its end, or a timeout.
fn next(live: &mut Live, stream: &InputStream) {
    loop {
        let now = live.clock.now();
        match upstream::read(stream) {
            Piece::Bytes(piece) => return live.exchange.handle_call_body(&piece, now),
            Piece::End(end) => return live.exchange.handle_call_end(end, now),
            Piece::NotYet => {}
        }
        if live.wait(&stream.subscribe()) == Woken::Timeout {
            return live.handle_timeout();
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
