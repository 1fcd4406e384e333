//! Costs of server tools: what they add to requests, chunks and rounds, and what the answers of the
//! services cost that Creole asks.

use std::sync::Arc;

use creole::{Call, CallId, Config, End, Exchange, To};
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

use crate::agents::{self, Says, tools};
use crate::meter::{assert_ratio, held_now, most_held_by, processor_time_of};

/// Largest answer that is read of a service, in bytes.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// Maximum memory for each byte of an answer, with the answer itself.
const MEMORY_MAX: usize = 8;

/// Maximum processor time for an answer, in milliseconds. Code for tests is not optimized.
const MS_MAX: u64 = if cfg!(debug_assertions) { 2500 } else { 500 };

/// Exchange with a host that can do all that server tools need.
struct Loop {
    exchange: Exchange,
    out: Vec<u8>,
}

impl Loop {
    fn new(config: &str) -> Self {
        Self::of(&Arc::new(Config::from_json(config, |_| None).unwrap()))
    }

    fn of(config: &Arc<Config>) -> Self {
        Self { exchange: crate::exchange::exchange(config), out: Vec::new() }
    }

    fn ask(&mut self, body: String) -> Call {
        self.exchange.handle_request_body(body.into_bytes(), 0);
        self.call()
    }

    #[track_caller]
    fn call(&mut self) -> Call {
        self.exchange.poll_call(0).expect("a call is due")
    }

    fn head(&mut self, id: CallId, content_type: &str) {
        let headers = [("content-type".to_owned(), content_type.to_owned())];
        self.exchange.handle_call_head(id, 200, &headers, 0);
    }

    fn feed(&mut self, id: CallId, piece: &[u8]) {
        self.exchange.handle_call_body(id, piece, 0);
        self.exchange.poll_body(&mut self.out);
        self.out.clear();
    }

    fn end(&mut self, id: CallId) {
        self.exchange.handle_call_end(id, End::Complete, 0);
        self.exchange.poll_body(&mut self.out);
        self.out.clear();
    }

    /// Gives an answer in pieces, as it comes from a socket.
    fn answer(&mut self, id: CallId, content_type: &str, body: &str) {
        self.head(id, content_type);
        body.as_bytes().chunks(16 << 10).for_each(|piece| self.feed(id, piece));
        self.end(id);
    }

    /// Gives a round of the upstream, in which the model calls a tool.
    fn model_calls(&mut self, id: CallId, tool: &str, input: &str) {
        self.head(id, "text/event-stream");
        tools::calling(tool, input).iter().for_each(|event| self.feed(id, event.as_bytes()));
        self.end(id);
    }
}

/// Maximum ratio of two costs that are equal in instructions: the clock is not exact.
const EQUAL: f64 = 1.02;

/// Returns the nanoseconds for the translation of a request that offers no server tool.
fn request(config: &Arc<Config>, body: &str) -> f64 {
    let mut loops: Vec<(Loop, String)> =
        (0..20).map(|_| (Loop::of(config), body.to_owned())).collect();
    processor_time_of(|| {
        for (exchange, body) in &mut loops {
            assert!(exchange.ask(std::mem::take(body)).body.len() > 50_000);
        }
    }) as f64
}

#[test]
fn a_request_without_server_tools_costs_the_same_where_they_are_configured() {
    let config = |json| Arc::new(Config::from_json(json, |_| None).unwrap());
    let (plain, with_tools) = (config(tools::PLAIN), config(tools::WITH_TOOLS));
    let body = agents::request(100_000, 0);
    let of = |config| request(config, &body);
    assert_ratio("a request where tools are configured", EQUAL, || of(&plain), || of(&with_tools));
}

/// Returns the nanoseconds for the chunks of a text of the model.
fn chunks(body: String) -> f64 {
    let mut exchange = Loop::new(tools::WITH_TOOLS);
    let id = exchange.ask(body).id;
    exchange.head(id, "text/event-stream");
    let chunks = agents::chunks(Says::Text);
    let events: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    let (first, rest) = events.split_at(10);
    first.iter().for_each(|event| exchange.feed(id, event.as_bytes()));
    processor_time_of(|| {
        for _ in 0..10 {
            rest.iter().take(980).for_each(|event| exchange.feed(id, event.as_bytes()));
        }
    }) as f64
}

#[test]
fn a_chunk_of_text_costs_little_more_where_the_request_has_server_tools() {
    let plain = || chunks(agents::request(10_000, 0));
    let gated = || chunks(tools::request_with_tools(10_000));
    // Code for tests is not optimized over the borders of functions.
    let ratio_max = if cfg!(debug_assertions) { 1.25 } else { 1.1 };
    assert_ratio("a chunk through the gate", ratio_max, plain, gated);
}

/// Returns the nanoseconds from the results of a search to the request of the next round, or those
/// for the request of the first round.
fn round(is_later: bool) -> f64 {
    let mut exchange = Loop::new(tools::WITH_TOOLS);
    let body = tools::request_with_tools(100_000);
    let mut call = None;
    let first = processor_time_of(|| call = Some(exchange.ask(body)));
    let first = (first, call.unwrap());
    if !is_later {
        return first.0 as f64;
    }
    exchange.model_calls(first.1.id, "web_search", r#"{"query":"q"}"#);
    let search = exchange.call();
    exchange.answer(search.id, "application/json", &tools::found(8, 500));
    let mut second = None;
    let time = processor_time_of(|| second = Some(exchange.call()));
    assert!(second.unwrap().body.len() > first.1.body.len());
    time as f64
}

#[test]
fn a_further_round_costs_little_more_than_the_first() {
    let times = |is_later| (0..20).map(|_| round(is_later)).sum::<f64>();
    assert_ratio("a further round", LATER_MAX, || times(false), || times(true));
}

/// Maximum ratio of the costs of a further round and the first. A further round also reads the
/// results, sealed and as text.
const LATER_MAX: f64 = if cfg!(debug_assertions) { 1.7 } else { 1.3 };

/// Returns the nanoseconds for the tokens of a page, and nothing else.
fn tokens(page: &str) -> f64 {
    let mut bytes = 0;
    let time = processor_time_of(|| {
        let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| {
            if let CallbackEvent::String { value } = event {
                bytes += value.len();
            }
            None::<()>
        });
        emitter.naively_switch_states(true);
        assert!(Tokenizer::new_with_emitter(page, emitter).next().is_none());
    });
    assert!(bytes > page.len() / 2);
    time as f64
}

/// Returns an exchange whose model fetches a page, and the call for the page.
fn fetching() -> (Loop, CallId) {
    let mut exchange = Loop::new(tools::WITH_TOOLS);
    let id = exchange.ask(tools::request_with_tools(10_000)).id;
    exchange.model_calls(id, "web_fetch", &format!("{{\"url\":\"{}\"}}", tools::PAGE_URL));
    let page = exchange.call();
    assert!(matches!(page.to, To::Web(_)));
    (exchange, page.id)
}

#[test]
fn a_page_as_text_costs_little_more_than_its_tokens() {
    let page = tools::page(100_000);
    let text = || {
        let (mut exchange, id) = fetching();
        processor_time_of(|| exchange.answer(id, "text/html", &page)) as f64
    };
    // Code for tests is less optimized than the tokenizer.
    let ratio_max = if cfg!(debug_assertions) { 2.5 } else { 1.5 };
    assert_ratio("a page as text", ratio_max, || tokens(&page), text);
}

/// Function that makes content of about so many bytes.
type Content = fn(usize) -> String;

/// Contents that a service may send to do harm.
const CONTENTS: &[(&str, Content)] = &[
    ("deep arrays", |bytes| "[".repeat(bytes)),
    ("deep objects", |bytes| "{\"a\":".repeat(bytes / 5)),
    ("elements that begin", |bytes| "<".repeat(bytes)),
    ("elements that are not closed", |bytes| "<div><a href=/x>".repeat(bytes / 16)),
    ("elements with endless names", |bytes| format!("<{}", "a".repeat(bytes - 1))),
    ("attributes", |bytes| format!("<p {}>", "a=b ".repeat(bytes / 4 - 1))),
    ("hidden elements", |bytes| "<p hidden>".repeat(bytes / 10)),
    ("tables", |bytes| "<table><tr><td>".repeat(bytes / 15)),
    ("links of one letter", |bytes| "<a href=/>x</a>".repeat(bytes / 15)),
    ("references", |bytes| "&".repeat(bytes)),
    ("references without an end", |bytes| "&amp&notin".repeat(bytes / 10)),
    ("comments", |bytes| "<!--".repeat(bytes / 4)),
    ("empty events", |bytes| "data:\n\n".repeat(bytes / 7)),
    ("lines", |bytes| "\n".repeat(bytes)),
    ("text", |bytes| "Alpha is 1. ".repeat(bytes / 12)),
    ("marks of citations", |bytes| "[[1]]".repeat(bytes / 5)),
    ("characters of four bytes", |bytes| "\u{1f600}".repeat(bytes / 4)),
    ("control characters", |bytes| "\u{1}".repeat(bytes)),
];

/// Gives an answer, and goes on to the next call. Neither may cost much.
#[track_caller]
fn take(what: &str, mut exchange: Loop, id: CallId, content_type: &str, body: &str) {
    assert!(body.len() <= ANSWER_BYTES_MAX, "{what}: {} bytes", body.len());
    let mut time = 0;
    let held = most_held_by(|| {
        time = processor_time_of(|| {
            exchange.answer(id, content_type, body);
            drop(exchange.exchange.poll_call(0));
        });
    });
    let (held, ms) = (held as f64 / body.len() as f64, time / 1_000_000);
    println!("{what}: {} bytes, {held:.1} bytes of memory a byte, {ms} ms", body.len());
    assert!(held <= MEMORY_MAX as f64, "{what}: {held} bytes of memory a byte");
    assert!(ms <= MS_MAX, "{what}: {ms} ms");
}

#[test]
fn no_page_costs_much_memory_or_time() {
    for (what, content) in CONTENTS {
        for content_type in ["text/html", "text/plain", "application/json"] {
            let (exchange, id) = fetching();
            let body = content(ANSWER_BYTES_MAX);
            take(&format!("{content_type}: {what}"), exchange, id, content_type, &body);
        }
    }
}

/// Returns an exchange whose model searches, and the call for the search.
fn searching() -> (Loop, CallId) {
    let mut exchange = Loop::new(tools::WITH_TOOLS);
    let id = exchange.ask(tools::request_with_tools(10_000)).id;
    exchange.model_calls(id, "web_search", r#"{"query":"q"}"#);
    let id = exchange.call().id;
    (exchange, id)
}

#[test]
fn no_answer_of_a_search_costs_much_memory_or_time() {
    let json = "application/json";
    for (what, content) in CONTENTS {
        let (exchange, id) = searching();
        take(&format!("search: {what}"), exchange, id, json, &content(ANSWER_BYTES_MAX));
        // Letters become as many as six in JSON.
        let text = content(ANSWER_BYTES_MAX / 6 - 200);
        let result = serde_json::json!({"url": "https://a.test/", "title": text, "content": "a"});
        let body = serde_json::json!({"results": [result]}).to_string();
        let (exchange, id) = searching();
        take(&format!("title of a result: {what}"), exchange, id, json, &body);
        let result = serde_json::json!({"url": "https://a.test/", "title": "a", "content": text});
        let body = serde_json::json!({"results": [result]}).to_string();
        let (exchange, id) = searching();
        take(&format!("content of a result: {what}"), exchange, id, json, &body);
    }
    let many = "{\"url\":\"https://a.test/\"},".repeat(ANSWER_BYTES_MAX / 26 - 2);
    let body = format!("{{\"results\":[{}{{}}]}}", many);
    let (exchange, id) = searching();
    take("search: many results", exchange, id, json, &body);
}

/// Returns an exchange that asks an MCP server for its tools, the call, and the id of the question.
fn listing() -> (Loop, CallId, String) {
    let mut exchange = Loop::new(tools::WITH_TOOLS);
    let call = exchange.ask(MCP_REQUEST.to_owned());
    let rpc = rpc_id(&call);
    (exchange, call.id, rpc)
}

const MCP_REQUEST: &str = r#"{"model":"m","max_tokens":1000,"stream":true,"mcp_servers":[{"type":"url","url":"mcp:notes","name":"notes"}],"tools":[{"type":"mcp_toolset","mcp_server_name":"notes"}],"messages":[{"role":"user","content":"a"}]}"#;

/// Returns the id of a question to an MCP server, as JSON.
#[track_caller]
fn rpc_id(call: &Call) -> String {
    assert!(matches!(call.to, To::Service(_)), "{:?}", call.to);
    let asked: serde_json::Value = serde_json::from_slice(&call.body).unwrap();
    asked["id"].to_string()
}

/// Returns an exchange whose model calls a tool of an MCP server, the call, and the id of the
/// question.
fn calling() -> (Loop, CallId, String) {
    let (mut exchange, id, rpc) = listing();
    let list = r#"{"tools":[{"name":"add","inputSchema":{"type":"object"}}]}"#;
    exchange.answer(id, "application/json", &answered(&rpc, list));
    let model = exchange.call();
    assert!(matches!(model.to, To::Upstream(_)), "{:?}", model.to);
    exchange.model_calls(model.id, "mcp__notes__add", "{}");
    let call = exchange.call();
    let rpc = rpc_id(&call);
    (exchange, call.id, rpc)
}

fn answered(rpc: &str, result: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{rpc},\"result\":{result}}}")
}

#[test]
fn no_answer_of_an_mcp_server_costs_much_memory_or_time() {
    let (json, events) = ("application/json", "text/event-stream");
    for (what, content) in CONTENTS {
        let raw = content(ANSWER_BYTES_MAX);
        for content_type in [json, events] {
            let (exchange, id, _) = listing();
            take(&format!("list, {content_type}: {what}"), exchange, id, content_type, &raw);
            let (exchange, id, _) = calling();
            take(&format!("call, {content_type}: {what}"), exchange, id, content_type, &raw);
        }
        let text = serde_json::json!(content(ANSWER_BYTES_MAX / 6 - 200));
        let result = format!("{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}]}}");
        let (exchange, id, rpc) = calling();
        let body = answered(&rpc, &result);
        take(&format!("text of a result: {what}"), exchange, id, json, &body);
        let event = format!("data: {body}\n\n");
        let (exchange, id, _) = calling();
        take(&format!("event of a result: {what}"), exchange, id, events, &event);
        let tool = format!("{{\"name\":\"a\",\"description\":{text},\"inputSchema\":{{}}}}");
        let (exchange, id, rpc) = listing();
        let body = answered(&rpc, &format!("{{\"tools\":[{tool}]}}"));
        take(&format!("description of a tool: {what}"), exchange, id, json, &body);
    }
    let tool = |at: usize| {
        let about = "x".repeat(300);
        format!(
            "{{\"name\":\"tool{at}\",\"description\":\"{about}\",\"inputSchema\":{{\"type\":\"object\"}}}}"
        )
    };
    let all: Vec<String> = (0..10_000).map(tool).collect();
    let (exchange, id, rpc) = listing();
    let body = answered(&rpc, &format!("{{\"tools\":[{}]}}", all.join(",")));
    take("list of 10,000 tools", exchange, id, json, &body);
    let parts = "{\"type\":\"text\",\"text\":\"a\"},".repeat(ANSWER_BYTES_MAX / 27 - 10);
    let (exchange, id, rpc) = calling();
    let body = answered(&rpc, &format!("{{\"content\":[{parts}{{}}]}}"));
    take("result of many parts", exchange, id, json, &body);
}

/// Compares what an exchange says that it holds with what it holds. `before`: the bytes that the
/// thread held without the exchange.
#[track_caller]
fn assert_told(what: &str, exchange: &Loop, before: usize) {
    let held = (held_now() - before) as f64;
    let told = exchange.exchange.held_bytes() as f64;
    println!("{what}: {held} bytes are held, and {told} are told");
    assert!((told - held).abs() <= held * 0.1, "{what}: {told} bytes are told, and {held} held");
}

#[test]
fn an_exchange_tells_what_it_holds_at_its_peak() {
    const LARGE: usize = 2 << 20;
    let config = Arc::new(Config::from_json(LARGE_RESULTS, |_| None).unwrap());
    // Schemas of tools are kept beside the body, to mend inputs, and are not told.
    let said = format!("Read {} {}", tools::PAGE_URL, "Alpha is 1. ".repeat(LARGE / 12));
    let body = tools::request_with_tools(10_000);
    let body = body.replacen(&format!("Read {}", tools::PAGE_URL), &said, 1);
    let body = body.into_boxed_str().into_string();
    let found = {
        let result = serde_json::json!({"url": "https://a.test/", "title": "A", "content": "Alpha is 1. ".repeat(LARGE / 12)});
        serde_json::json!({"results": [result]}).to_string()
    };
    let before = held_now() - body.capacity();
    let mut exchange = Loop::of(&config);
    exchange.out.reserve(64 << 10);
    let id = exchange.ask(body).id;
    assert_told("a request", &exchange, before);
    exchange.model_calls(id, "web_search", r#"{"query":"q"}"#);
    let search = exchange.call();
    exchange.head(search.id, "application/json");
    exchange.exchange.handle_call_body(search.id, found.as_bytes(), 0);
    assert_told("an open answer of a search", &exchange, before);
    exchange.exchange.handle_call_end(search.id, End::Complete, 0);
    exchange.exchange.poll_body(&mut exchange.out);
    exchange.out = Vec::new();
    assert_told("results that the client has", &exchange, before);
    let next = exchange.call();
    let id = next.id;
    drop(next);
    assert_told("a further round", &exchange, before);
    exchange.model_calls(id, "web_fetch", &format!("{{\"url\":\"{}\"}}", tools::PAGE_URL));
    let page = exchange.call();
    assert_told("a fetch", &exchange, before);
    exchange.head(page.id, "text/plain");
    exchange.exchange.handle_call_body(page.id, found.as_bytes(), 0);
    assert_told("an open page", &exchange, before);
}

/// Configuration in which results may be as large as the answers of services.
const LARGE_RESULTS: &str = r#"{"upstreams":{"u":{"url":"https://u.test","key":"none"}},"server_tools":{"web_search":{"kind":"searxng","url":"http://search.test","snippet_bytes_max":1048576},"web_fetch":{"content_tokens_max":300000}}}"#;
