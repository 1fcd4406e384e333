//! Tests of the component as other programs embed it: the example in `docs/component.md` is run.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

const REQUEST: &str = r#"{"model": "m", "max_tokens": 9, "stream": true,
    "messages": [{"role": "user", "content": "Hi"}]}"#;

fn file_of(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable).map(PathBuf::from).unwrap_or_default();
    assert!(
        path.is_file(),
        "{variable} names no file; `cargo xtask test embedding` builds and installs what is needed"
    );
    path
}

// docs: begin
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Store};

mod bindings {
    #![allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::use_self)]
    wasmtime::component::bindgen!({ world: "translator", path: "creole.wit" });
}

use bindings::Translator;
use bindings::exports::creole::translate::exchanges::{End, HostCan, RequestHead};

const CONFIG: &str =
    r#"{"upstreams": {"local": {"url": "http://localhost:11434", "profile": "ollama"}}}"#;

/// One request, and an upstream that answers with `pieces`: what goes to the upstream, and what the
/// client gets.
fn exchange(
    component: &Component,
    body: &[u8],
    pieces: &[&[u8]],
) -> wasmtime::Result<(Vec<u8>, Vec<u8>)> {
    let engine = component.engine();
    let mut store = Store::new(engine, ());
    // It asks for nothing, so the linker stays empty.
    let creole = Translator::instantiate(&mut store, component, &Linker::new(engine))?;
    let exchanges = creole.creole_translate_exchanges();
    let config = exchanges.config().call_parse(&mut store, CONFIG, &[])?;
    let config = config.map_err(wasmtime::Error::msg)?;

    let calls = exchanges.exchange();
    let now = 1_790_000_000_000; // your clock
    let seed = (17, 4); // 128 random bits
    let exchange = calls.call_constructor(&mut store, config, seed, HostCan::PING)?;
    let headers = [("x-api-key".to_owned(), "local".to_owned())];
    let head =
        calls.call_handle_request_head(&mut store, exchange, "POST", "/v1/messages", &headers)?;
    assert!(matches!(head, RequestHead::Translate));
    calls.call_handle_request_body(&mut store, exchange, body, now)?;
    let Some(sent) = calls.call_poll_call(&mut store, exchange, now)? else {
        let out = calls.call_poll_output(&mut store, exchange)?;
        return Ok((Vec::new(), out.body));
    };
    // POST sent.body to sent.url + sent.path with sent.headers
    let answered = [("content-type".to_owned(), "text/event-stream".to_owned())];
    calls.call_handle_call_head(&mut store, exchange, sent.id, 200, &answered, now)?;
    let mut client = Vec::new();
    for piece in pieces {
        calls.call_handle_call_body(&mut store, exchange, sent.id, piece, now)?;
        let out = calls.call_poll_output(&mut store, exchange)?;
        // out.head is there once: send it before out.body
        client.extend(out.body);
    }
    if !calls.call_is_ended(&mut store, exchange)? {
        calls.call_handle_call_end(&mut store, exchange, sent.id, End::Complete, now)?;
        client.extend(calls.call_poll_output(&mut store, exchange)?.body);
    }
    exchange.resource_drop(&mut store)?;
    Ok((sent.body, client))
}
// docs: end

fn component() -> Component {
    let path = file_of("CREOLE_COMPONENT_COMPILED");
    // SAFETY: `cargo xtask test` has just had Wasmtime write the file, and nobody changes it.
    unsafe { Component::deserialize_file(&Engine::default(), path) }.unwrap()
}

#[test]
fn the_report_says_what_the_upstream_said_of_our_key() {
    const OWN_KEY: &str = r#"{"upstreams": {"a": {"url": "http://a", "key": {"secret": "K"}}}}"#;
    const SAID: &[u8] = br#"{"error": {"message": "The project is disabled"}}"#;
    let component = component();
    let mut store = Store::new(component.engine(), ());
    let linker = Linker::new(component.engine());
    let creole = Translator::instantiate(&mut store, &component, &linker).unwrap();
    let exchanges = creole.creole_translate_exchanges();
    let secrets = [("K".to_owned(), "sk-own".to_owned())];
    let config = exchanges.config().call_parse(&mut store, OWN_KEY, &secrets).unwrap().unwrap();
    let calls = exchanges.exchange();
    let exchange = calls.call_constructor(&mut store, config, (17, 4), HostCan::PING).unwrap();
    calls.call_handle_request_head(&mut store, exchange, "POST", "/v1/messages", &[]).unwrap();
    calls.call_handle_request_body(&mut store, exchange, REQUEST.as_bytes(), 1).unwrap();
    let sent = calls.call_poll_call(&mut store, exchange, 1).unwrap().unwrap();
    let headers = [("x-request-id".to_owned(), "up_1".to_owned())];
    calls.call_handle_call_head(&mut store, exchange, sent.id, 401, &headers, 2).unwrap();
    calls.call_handle_call_body(&mut store, exchange, sent.id, SAID, 3).unwrap();
    calls.call_handle_call_end(&mut store, exchange, sent.id, End::Complete, 4).unwrap();
    let report = calls.call_report(&mut store, exchange).unwrap();
    assert_eq!(report.upstream_message.as_deref(), Some("The project is disabled"));
    assert_eq!(report.cause, "upstream_refused");
    assert_eq!(report.upstream_status, Some(401));
    assert_eq!(report.upstream_request_id.as_deref(), Some("up_1"));
}

#[test]
fn an_embedder_that_can_call_services_runs_searches_between_two_rounds() {
    const SEARCH: &str = r#"{"upstreams": {"a": {"url": "http://a", "key": "none"}},
        "server_tools": {"web_search": {"kind": "searxng", "url": "http://search"}}}"#;
    const ASKS: &str = r#"{"model": "m", "max_tokens": 500,
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        "messages": [{"role": "user", "content": "Q"}]}"#;
    const CALLS: &str = r#"{"choices": [{"finish_reason": "tool_calls", "message": {"content": "",
        "tool_calls": [{"id": "1", "type": "function",
            "function": {"name": "web_search", "arguments": "{\"query\":\"one\"}"}},
            {"id": "2", "type": "function",
            "function": {"name": "web_search", "arguments": "{\"query\":\"two\"}"}}]}}]}"#;
    const SAYS: &str =
        r#"{"choices": [{"finish_reason": "stop", "message": {"content": "Done"}}]}"#;
    let component = component();
    let mut store = Store::new(component.engine(), ());
    let linker = Linker::new(component.engine());
    let creole = Translator::instantiate(&mut store, &component, &linker).unwrap();
    let exchanges = creole.creole_translate_exchanges();
    let (configs, calls) = (exchanges.config(), exchanges.exchange());
    let config = configs.call_parse(&mut store, SEARCH, &[]).unwrap().unwrap();
    let refused = configs.call_check(&mut store, config, HostCan::PING).unwrap().unwrap_err();
    assert!(refused.contains("server_tools: this host cannot call services"), "{refused}");
    let can = HostCan::ASK_AGAIN | HostCan::CALL_SERVICES | HostCan::SEVERAL_CALLS;
    assert_eq!(configs.call_check(&mut store, config, can).unwrap(), Ok(()));

    let it = calls.call_constructor(&mut store, config, (17, 4), can).unwrap();
    calls.call_handle_request_head(&mut store, it, "POST", "/v1/messages", &[]).unwrap();
    calls.call_handle_request_body(&mut store, it, ASKS.as_bytes(), 1).unwrap();
    let answer = |store: &mut Store<()>, id: u32, body: &str| {
        calls.call_handle_call_head(&mut *store, it, id, 200, &[], 2).unwrap();
        calls.call_handle_call_body(&mut *store, it, id, body.as_bytes(), 2).unwrap();
        calls.call_handle_call_end(&mut *store, it, id, End::Complete, 2).unwrap();
    };
    let first = calls.call_poll_call(&mut store, it, 1).unwrap().unwrap();
    assert_eq!((first.upstream.as_str(), first.public_only), ("a", false));
    answer(&mut store, first.id, CALLS);
    let mut searches = Vec::new();
    while let Some(search) = calls.call_poll_call(&mut store, it, 2).unwrap() {
        assert_eq!((search.method.as_str(), search.upstream.as_str()), ("GET", ""));
        assert!(search.url.starts_with("http://search/search?q="), "{}", search.url);
        assert!(search.path.is_empty() && !search.public_only);
        searches.push(search);
    }
    assert_eq!(searches.len(), 2);
    for (search, word) in searches.iter().zip(["one", "two"]).rev() {
        let found = format!(
            r#"{{"results": [{{"url": "http://{word}", "title": "{word}", "content": "c"}}]}}"#
        );
        answer(&mut store, search.id, &found);
    }
    let second = calls.call_poll_call(&mut store, it, 3).unwrap().unwrap();
    answer(&mut store, second.id, SAYS);
    assert!(calls.call_is_ended(&mut store, it).unwrap());
    let out = String::from_utf8(calls.call_poll_output(&mut store, it).unwrap().body).unwrap();
    let (one, two) = (out.find("http://one").unwrap(), out.find("http://two").unwrap());
    assert!(one < two && out.contains("\"text\":\"Done\""), "{out}");
}

#[test]
fn a_rust_program_translates_a_stream() {
    let pieces: [&[u8]; 3] = [
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel",
        b"lo\"},\"finish_reason\":\"stop\"}]}\n\n",
        b"data: [DONE]\n\n",
    ];
    let component = component();
    let (sent, got) = exchange(&component, REQUEST.as_bytes(), &pieces).unwrap();
    let (sent, got) = (String::from_utf8(sent).unwrap(), String::from_utf8(got).unwrap());
    assert!(sent.starts_with("{\"model\":\"m\",\"messages\":[{\"role\":\"user\""), "{sent}");
    assert!(got.starts_with("event: message_start\n"), "{got}");
    assert!(got.contains("\"text\":\"Hello\"") && got.contains("event: message_stop\n"), "{got}");
    let (sent, got) = exchange(&component, b"{", &[]).unwrap();
    assert!(sent.is_empty() && got.starts_with(b"{\"type\":\"error\""));
}

#[test]
fn a_python_program_translates_a_stream() {
    let output = Command::new(file_of("CREOLE_PYTHON"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/embed.py"))
        .arg(file_of("CREOLE_COMPONENT"))
        .output()
        .unwrap();
    let (got, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    assert!(got.contains("POST http://localhost:11434/v1/chat/completions"), "{got}");
    assert!(got.contains("event: message_start") && got.contains("event: message_stop"), "{got}");
}

#[test]
fn what_the_document_shows_is_what_is_tested() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let document = read("../docs/component.md");
    for shown in ["tests/embed.rs", "examples/embed.py", "examples/embed.mjs"] {
        let text = read(shown);
        let (_, text) = text.split_once("docs: begin\n").unwrap();
        let (text, _) = text.split_once("docs: end").unwrap();
        let text = text.trim_end().trim_end_matches(['/', '#']).trim_end();
        assert!(document.contains(text), "docs/component.md shows another {shown}:\n{text}");
    }
}
