//! The example host of the crate's front page, between a client and a scripted upstream.
#![cfg(not(target_family = "wasm"))]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

#[allow(dead_code)]
#[path = "../examples/host.rs"]
mod host;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use creole::Config;

/// Sends a request for a stream to the example, with this upstream. Returns the client's side.
fn ask(url: &str) -> TcpStream {
    let config = format!(r#"{{"upstreams": {{"local": {{"url": "{url}"}}}}}}"#);
    let config = Arc::new(Config::from_json(&config, |_| None).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (served, _) = listener.accept().unwrap();
    thread::spawn(move || host::serve(&config, served));
    let body = r#"{"model": "m", "max_tokens": 9, "stream": true, "messages": [{"role": "user", "content": "Hi"}]}"#;
    let head = "POST /v1/messages HTTP/1.1\r\ncontent-type: application/json\r\nx-api-key: k";
    write!(client, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    client
}

/// Returns what the client reads until it has these words.
fn read_until(client: &mut TcpStream, words: &str) -> String {
    let mut text = Vec::new();
    while !String::from_utf8_lossy(&text).contains(words) {
        let mut piece = [0; 4096];
        let count = client.read(&mut piece).unwrap();
        assert!(count > 0, "{words} in {}", String::from_utf8_lossy(&text));
        text.extend_from_slice(&piece[..count]);
    }
    String::from_utf8(text).unwrap()
}

/// Starts an upstream for one request, which sends its second word when it is told to.
fn upstream() -> (String, Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, told) = channel();
    thread::spawn(move || {
        let (mut host, _) = listener.accept().unwrap();
        let asked = read_until(&mut host, "Hi");
        assert!(asked.starts_with("POST /v1/chat/completions HTTP/1.0\r\n"), "{asked}");
        let chunk = |delta: &str| format!("data: {{\"choices\": [{{\"delta\": {delta}}}]}}\n\n");
        let head = "HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        host.write_all((head.to_owned() + &chunk(r#"{"content": "One"}"#)).as_bytes()).unwrap();
        told.recv().unwrap();
        let end = "data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"stop\"}]}\n\ndata: [DONE]\n\n";
        host.write_all((chunk(r#"{"content": "Two"}"#) + end).as_bytes()).unwrap();
    });
    (url, sender)
}

#[test]
fn the_example_sends_each_word_when_it_comes() {
    let (url, more) = upstream();
    let mut client = ask(&url);
    let first = read_until(&mut client, r#""text":"One""#);
    assert!(first.starts_with("HTTP/1.1 200 ") && !first.contains("Two"), "{first}");
    more.send(()).unwrap();
    let rest = read_until(&mut client, "event: message_stop");
    assert!(rest.contains(r#""text":"Two""#), "{rest}");
}

#[test]
fn an_upstream_that_is_gone_becomes_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let answer = read_until(&mut ask(&url), "could not be reached");
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
}
