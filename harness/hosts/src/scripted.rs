//! Scripted HTTP/1 server, for models and services behind a real host.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::process::{EnvoyOptions, Process};
use crate::{End, Got};

/// Request that a scripted server got.
#[derive(Clone, Debug)]
pub struct Asked {
    /// First line and headers, in lower case.
    pub head: String,
    /// Path of the request, with its query.
    pub path: String,
    /// Body of the request.
    pub body: String,
}

/// Answer of a scripted server.
#[derive(Clone, Debug)]
pub struct Told {
    /// Status of the answer.
    pub status: u16,
    /// Value of `content-type`.
    pub kind: &'static str,
    /// Pieces of the body.
    pub pieces: Vec<String>,
    /// Wait before the head.
    pub delay: Duration,
    /// Wait before each piece.
    pub pause: Duration,
}

impl Told {
    /// Returns an answer 200 with JSON.
    pub fn json(body: impl ToString) -> Self {
        let pieces = vec![body.to_string()];
        let (delay, pause) = (Duration::ZERO, Duration::from_millis(5));
        Self { status: 200, kind: "application/json", pieces, delay, pause }
    }

    /// Returns an answer 200 with these pieces of events.
    pub fn events(pieces: Vec<String>) -> Self {
        Self { pieces, kind: "text/event-stream", ..Self::json("") }
    }

    /// Returns the answer after a wait.
    #[must_use]
    pub fn late(self, ms: u64) -> Self {
        Self { delay: Duration::from_millis(ms), ..self }
    }
}

/// Returns the answer of a model of Chat Completions with a text and calls of functions, each with
/// its arguments.
pub fn says(stream: bool, text: &str, calls: &[(&str, Value)]) -> Told {
    let call = |(at, (name, input)): (usize, &(&str, Value))| {
        let function = json!({"name": name, "arguments": input.to_string()});
        json!({"index": at, "id": format!("call_{at}"), "type": "function", "function": function})
    };
    let calls: Vec<Value> = calls.iter().enumerate().map(call).collect();
    let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
    if !stream {
        let calls = if calls.is_empty() { Value::Null } else { calls.into() };
        let message = json!({"role": "assistant", "content": text, "tool_calls": calls});
        let choice = json!({"index": 0, "message": message, "finish_reason": reason});
        return Told::json(json!({"id": "c", "choices": [choice]}));
    }
    let event = |delta: Value, reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        format!("data: {}\n\n", json!({"id": "c", "choices": [choice]}))
    };
    let mut events = vec![event(json!({"content": text}), Value::Null)];
    events.extend(calls.iter().map(|call| event(json!({"tool_calls": [call]}), Value::Null)));
    events.push(event(json!({}), reason.into()));
    events.push("data: [DONE]\n\n".to_owned());
    Told::events(events)
}

/// Starts an Envoy whose upstreams with the cluster `model` are at the first server, and whose
/// further clusters are named.
pub fn envoy(
    config: &Value,
    model: &Scripted,
    services: &[(&str, &Scripted)],
    change: &dyn Fn(String) -> String,
) -> Process {
    let cluster = |(name, server): &(&str, &Scripted)| {
        let address = json!({"address": "127.0.0.1", "port_value": server.address.port()});
        let endpoint = json!({"endpoint": {"address": {"socket_address": address}}});
        let cluster = json!({"name": name, "type": "STATIC", "load_assignment":
            {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]}});
        format!("  - {cluster}\n")
    };
    let clusters: String = [("model", model)].iter().chain(services).map(cluster).collect();
    let route = "              - match: {prefix: /}\n";
    let own = "              - match: {prefix: /, headers: [{name: x-creole-upstream, string_match: {exact: model}}]}\n                route: {cluster: model, timeout: 0s, idle_timeout: 600s}\n";
    let changed = |yaml: String| {
        assert!(yaml.contains(route) && yaml.contains("  clusters:\n"));
        change(
            yaml.replace(route, &format!("{own}{route}"))
                .replace("  clusters:\n", &format!("  clusters:\n{clusters}")),
        )
    };
    Process::envoy_with(config, &EnvoyOptions::default(), &changed)
        .unwrap_or_else(|reason| panic!("{reason}"))
}

/// Returns the message of an answer, folded from events or whole.
#[track_caller]
pub fn message(got: &Got) -> Value {
    let text = got.text();
    assert_eq!((got.status, got.end), (200, End::Complete), "{text}");
    if !got.header("content-type").unwrap().starts_with("text/event-stream") {
        return got.json();
    }
    let (mut message, mut content) = (Value::Null, Vec::new());
    for line in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let mut event: Value = serde_json::from_str(line).unwrap();
        match event["type"].as_str().unwrap() {
            "message_start" => message = event["message"].take(),
            "content_block_start" => content.push(event["content_block"].take()),
            "message_delta" => message["stop_reason"] = event["delta"]["stop_reason"].take(),
            _ => {}
        }
    }
    assert!(text.ends_with("data: {\"type\":\"message_stop\"}\n\n"), "{text}");
    message["content"] = content.into();
    message
}

/// Returns the types of a message's blocks.
pub fn kinds(message: &Value) -> Vec<&str> {
    message["content"].as_array().unwrap().iter().map(|it| it["type"].as_str().unwrap()).collect()
}

/// Server that answers as its script says.
#[derive(Debug)]
pub struct Scripted {
    /// Address of the server.
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// Requests in the order of their answers, each with the time of the answer.
    answered: Arc<Mutex<Vec<(Instant, Asked)>>>,
    open: Arc<AtomicUsize>,
}

impl Scripted {
    /// Starts the server on a free port.
    pub fn start(script: impl Fn(&Asked) -> Told + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, answered) = (Arc::default(), Arc::default());
        let (all, done) = (Arc::clone(&asked), Arc::clone(&answered));
        let open: Arc<AtomicUsize> = Arc::default();
        let (script, count) = (Arc::new(script), Arc::clone(&open));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (all, done) = (Arc::clone(&all), Arc::clone(&done));
                let (script, count) = (Arc::clone(&script), Arc::clone(&count));
                std::thread::spawn(move || serve(stream, (&all, &done), &count, &*script));
            }
        });
        Self { address, asked, answered, open }
    }

    /// Returns the number of answers that are being given.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Returns the requests since the last call.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    /// Returns the requests that were answered since the last call, in the order of the answers,
    /// each with the time of its answer.
    pub fn answered(&self) -> Vec<(Instant, Asked)> {
        std::mem::take(&mut *self.answered.lock().unwrap())
    }
}

/// Requests that were answered, each with the time of its answer.
type Answered = Mutex<Vec<(Instant, Asked)>>;

/// Answers the requests of one connection.
fn serve(
    stream: TcpStream,
    (all, done): (&Mutex<Vec<Asked>>, &Answered),
    open: &AtomicUsize,
    script: &dyn Fn(&Asked) -> Told,
) {
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let head = head.to_ascii_lowercase();
        let length = head.split_once("\r\ncontent-length: ").map_or("0", |(_, rest)| rest);
        let length: usize = length.split("\r\n").next().unwrap().trim().parse().unwrap();
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let asked = Asked { head, path, body: String::from_utf8(body).unwrap() };
        all.lock().unwrap().push(asked.clone());
        open.fetch_add(1, Ordering::Relaxed);
        let told = script(&asked);
        std::thread::sleep(told.delay);
        // A client may act on the answer before this thread goes on.
        done.lock().unwrap().push((Instant::now(), asked));
        let written = write(reader.get_mut(), &told);
        open.fetch_sub(1, Ordering::Relaxed);
        if written.is_err() {
            return;
        }
    }
}

fn write(stream: &mut TcpStream, told: &Told) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {} Scripted\r\ncontent-type: {}\r\ntransfer-encoding: chunked\r\n\r\n",
        told.status, told.kind
    );
    stream.write_all(head.as_bytes())?;
    for piece in told.pieces.iter().filter(|piece| !piece.is_empty()) {
        std::thread::sleep(told.pause);
        write!(stream, "{:x}\r\n{piece}\r\n", piece.len())?;
    }
    stream.write_all(b"0\r\n\r\n")
}
