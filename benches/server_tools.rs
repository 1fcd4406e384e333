//! What server tools cost, for a profiler that counts instructions; docs/dev/performance.md has the
//! commands. Without an argument the names of the cases are printed.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs
)]

#[allow(dead_code, reason = "the other benchmarks need the rest")]
mod bodies;
#[path = "bodies/exchange.rs"]
mod exchange;

use std::ops::ControlFlow;
use std::sync::Arc;

use bodies::{Says, tools};
use creole::{CallId, Config, End, Exchange, To};
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

/// Marker between preparing and measuring, for counters of instructions.
#[inline(never)]
fn measured<T>(work: impl FnOnce() -> T) -> T {
    work()
}

fn main() {
    let which = std::env::args().nth(1).unwrap_or_default();
    let case = CASES.iter().find(|(name, _)| *name == which);
    let Some((_, run)) = case else {
        return CASES.iter().for_each(|(name, _)| println!("{name}"));
    };
    run();
}

/// Names of the cases, and what each of them does.
const CASES: &[(&str, fn())] = &[
    ("request-plain", || request(tools::PLAIN)),
    ("request-with-tools", || request(tools::WITH_TOOLS)),
    ("chunks-plain", || chunks(bodies::request(10_000, 0), "")),
    ("chunks-gate", || chunks(tools::request_with_tools(10_000), "")),
    ("chunks-cited", || chunks(tools::request_with_tools(10_000), "web_search")),
    ("round-first", || round(Round::First)),
    ("round-later", || round(Round::Later)),
    ("page-tokens", tokens),
    ("page-text", page),
];

fn exchange(config: &str) -> Exchange {
    exchange::exchange(&Arc::new(Config::from_json(config, |_| None).unwrap()))
}

/// Translates a request that offers no server tool.
fn request(config: &str) {
    let (mut exchange, body) = (exchange(config), bodies::request(100_000, 0).into_bytes());
    let call = measured(|| {
        exchange.handle_request_body(body, 0);
        exchange.poll_call(0)
    });
    assert!(call.unwrap().body.len() > 50_000);
}

/// Feeds the events of a round, and ends the round.
fn feed(exchange: &mut Exchange, id: CallId, events: &[String], out: &mut Vec<u8>) {
    let headers = [("content-type".to_owned(), "text/event-stream".to_owned())];
    exchange.handle_call_head(id, 200, &headers, 0);
    for event in events {
        exchange.handle_call_body(id, event.as_bytes(), 0);
        exchange.poll_body(out);
    }
    exchange.handle_call_end(id, End::Complete, 0);
    exchange.poll_body(out);
}

fn answer(exchange: &mut Exchange, id: CallId, content_type: &str, body: &str) {
    let headers = [("content-type".to_owned(), content_type.to_owned())];
    exchange.handle_call_head(id, 200, &headers, 0);
    exchange.handle_call_body(id, body.as_bytes(), 0);
    exchange.handle_call_end(id, End::Complete, 0);
}

/// Translates the chunks of a text, after a call of the tool if one is named.
fn chunks(body: String, tool: &str) {
    let (mut exchange, mut out) = (exchange(tools::WITH_TOOLS), Vec::with_capacity(1 << 20));
    exchange.handle_request_body(body.into_bytes(), 0);
    let mut id = exchange.poll_call(0).unwrap().id;
    if !tool.is_empty() {
        feed(&mut exchange, id, &tools::calling(tool, r#"{"query":"q"}"#), &mut out);
        let asked = exchange.poll_call(0).unwrap().id;
        answer(&mut exchange, asked, "application/json", &tools::found(8, 2000));
        id = exchange.poll_call(0).unwrap().id;
    }
    let chunks = bodies::chunks(Says::Text);
    let events: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    let headers = [("content-type".to_owned(), "text/event-stream".to_owned())];
    exchange.handle_call_head(id, 200, &headers, 0);
    let (first, rest) = events.split_at(10);
    let mut take = |event: &String| {
        exchange.handle_call_body(id, event.as_bytes(), 0);
        exchange.poll_body(&mut out);
        out.clear();
    };
    first.iter().for_each(&mut take);
    measured(|| rest.iter().take(980).for_each(&mut take));
}

#[derive(PartialEq, Eq)]
enum Round {
    First,
    Later,
}

/// Asks the upstream for a round of an answer to a request of 100 kB.
fn round(which: Round) {
    let (mut exchange, mut out) = (exchange(tools::WITH_TOOLS), Vec::new());
    let body = tools::request_with_tools(100_000).into_bytes();
    let ask = || {
        exchange.handle_request_body(body, 0);
        exchange.poll_call(0).unwrap()
    };
    if which == Round::First {
        assert!(measured(ask).body.len() > 50_000);
        return;
    }
    let first = ask();
    let events = tools::calling("web_search", r#"{"query":"q"}"#);
    let headers = [("content-type".to_owned(), "text/event-stream".to_owned())];
    exchange.handle_call_head(first.id, 200, &headers, 0);
    let found = tools::found(8, 500);
    let second = measured(|| {
        for event in &events {
            exchange.handle_call_body(first.id, event.as_bytes(), 0);
            exchange.poll_body(&mut out);
        }
        exchange.handle_call_end(first.id, End::Complete, 0);
        let search = exchange.poll_call(0).unwrap();
        answer(&mut exchange, search.id, "application/json", &found);
        exchange.poll_call(0).unwrap()
    });
    assert!(second.body.len() > first.body.len());
}

/// Reads the tokens of a page, and nothing else.
fn tokens() {
    let page = tools::page(100_000);
    let mut count = 0_usize;
    measured(|| {
        let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| {
            if let CallbackEvent::String { value } = event {
                count += value.len();
            }
            ControlFlow::<()>::Continue(()).is_break().then_some(())
        });
        emitter.naively_switch_states(true);
        let _ = Tokenizer::new_with_emitter(&page, emitter).next();
    });
    assert!(count > 40_000);
}

/// Reads a page that the model fetches, as text.
fn page() {
    let (mut exchange, mut out) = (exchange(tools::WITH_TOOLS), Vec::new());
    exchange.handle_request_body(tools::request_with_tools(10_000).into_bytes(), 0);
    let id = exchange.poll_call(0).unwrap().id;
    let input = format!("{{\"url\":\"{}\"}}", tools::PAGE_URL);
    feed(&mut exchange, id, &tools::calling("web_fetch", &input), &mut out);
    let asked = exchange.poll_call(0).unwrap();
    assert!(matches!(asked.to, To::Web(_)));
    let page = tools::page(100_000);
    measured(|| answer(&mut exchange, asked.id, "text/html", &page));
    exchange.poll_call(0).unwrap();
    out.clear();
    exchange.poll_body(&mut out);
}
