//! Process of `wasmtime serve` with the component, and a client that notes when each byte arrives.
#![allow(unreachable_pub, missing_docs)] // no library: tests alone use it

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Timeout longer than any step takes, even on a busy machine; a test that waits this long has
/// failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until `condition` returns true, and panics after a timeout.
pub fn until(what: &str, condition: impl Fn() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < PATIENCE, "waited too long: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn file_of(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable).map(PathBuf::from).unwrap_or_default();
    assert!(
        path.is_file(),
        "{variable} names no file; `cargo xtask test wasi:http` builds and installs what is needed"
    );
    path
}

/// Running `wasmtime serve`, killed when this value is dropped.
pub struct Server {
    pub address: SocketAddr,
    child: Child,
    log: Arc<Mutex<String>>,
}

impl Server {
    /// Starts the component with these environment variables.
    pub fn start(variables: &[(&str, &str)]) -> Self {
        let (wasmtime, component) = (file_of("CREOLE_WASMTIME"), file_of("CREOLE_WASI_HTTP"));
        let mut command = Command::new(wasmtime);
        command.args(["serve", "-Scli", "-Opooling-allocator=n", "--addr", "127.0.0.1:0"]);
        for (name, value) in variables {
            command.args(["--env", name]).env(name, value);
        }
        let command = command.arg(component).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut before = String::new();
        let address = loop {
            let Some(Ok(line)) = lines.next() else { panic!("did not start: {before}") };
            if let Some(address) = line.strip_prefix("Serving HTTP on http://") {
                break address.trim_end_matches('/').parse().unwrap();
            }
            before += &line;
        };
        let log = Arc::new(Mutex::new(String::new()));
        let written = Arc::clone(&log);
        std::thread::spawn(move || {
            while let Some(Ok(line)) = lines.next() {
                written.lock().unwrap().push_str(&(line + "\n"));
            }
        });
        Self { address, child, log }
    }

    /// Waits until the server's log contains a text, and returns the log.
    pub fn log_with(&self, text: &str) -> String {
        until(text, || self.log.lock().unwrap().contains(text));
        self.log.lock().unwrap().clone()
    }

    /// Returns the processor time of the server's process; `None` on a system without `/proc`.
    pub fn cpu(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
        // Linux counts processor time in hundredths of a second.
        Some(Duration::from_millis((ticks(11)? + ticks(12)?) * 10))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a request body of the Messages API with this prompt.
pub fn messages(stream: bool, prompt: &str) -> String {
    format!(
        r#"{{"model":"demo","max_tokens":100,"stream":{stream},"messages":[{{"role":"user","content":"{prompt}"}}]}}"#
    )
}

/// Connects to the server and sends a request. Returns the connection, to read the response.
pub fn connect(server: &Server, method: &str, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\nx-api-key: demo\r\n"
    )
    .unwrap();
    if !body.is_empty() {
        write!(stream, "content-type: application/json\r\ncontent-length: {}\r\n", body.len())
            .unwrap();
    }
    write!(stream, "\r\n").unwrap();
    // A server may not read a refused body to its end, so an error is ignored.
    let _ = stream.write_all(body.as_bytes());
    stream
}

pub fn send(server: &Server, method: &str, path: &str, body: &str) -> Got {
    read(connect(server, method, path, body))
}

/// Sends a request with a chunked body, without a `content-length`, and returns the response.
pub fn send_chunked(server: &Server, path: &str, body: &str) -> Got {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = "host: h\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    write!(stream, "POST {path} HTTP/1.1\r\n{head}").unwrap();
    for piece in body.as_bytes().chunks(16 << 10) {
        let sent = write!(stream, "{:x}\r\n", piece.len())
            .and_then(|()| stream.write_all(piece))
            .and_then(|()| stream.write_all(b"\r\n"));
        if sent.is_err() {
            break;
        }
    }
    let _ = stream.write_all(b"0\r\n\r\n");
    read(stream)
}

/// Reads from a connection until a text has arrived.
pub fn read_until(stream: &mut TcpStream, text: &str) {
    let mut seen = Vec::new();
    let mut piece = [0; 4096];
    while !String::from_utf8_lossy(&seen).contains(text) {
        let length = stream.read(&mut piece).unwrap();
        assert!(length > 0, "ended before {text:?}: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&piece[..length]);
    }
}

/// Reads a response to its end.
pub fn read(mut stream: TcpStream) -> Got {
    let mut raw = Vec::new();
    let mut times = Vec::new();
    let mut piece = [0; 65536];
    // A read error means that the connection was cut.
    while let Ok(length @ 1..) = stream.read(&mut piece) {
        raw.extend_from_slice(&piece[..length]);
        times.push((raw.len(), Instant::now()));
    }
    let raw = String::from_utf8(raw).unwrap();
    let (head, rest) = raw.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {raw:?}"));
    let (status, headers) = head.split_once("\r\n").unwrap_or((head, ""));
    let status = status.split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<(String, String)> = headers
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut got =
        Got { status, headers, body: String::new(), complete: true, raw: raw.clone(), times };
    if got.header("transfer-encoding") != "chunked" {
        rest.clone_into(&mut got.body);
        let length = got.header("content-length").parse();
        got.complete = length.is_ok_and(|length: usize| length == rest.len());
        return got;
    }
    let mut rest = rest;
    loop {
        let Some((size, after)) = rest.split_once("\r\n") else {
            got.complete = false;
            return got;
        };
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return got;
        }
        got.body += &after[..size.min(after.len())];
        rest = after.get(size + 2..).unwrap_or_default();
    }
}

/// Response that the client got.
#[derive(Debug)]
pub struct Got {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: String,
    /// True if the body of the response ended as HTTP requires.
    pub complete: bool,
    raw: String,
    /// Numbers of bytes received, each with the time at which so many bytes had arrived.
    times: Vec<(usize, Instant)>,
}

impl Got {
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the time at which a text in the response had arrived.
    pub fn came(&self, text: &str) -> Instant {
        let end = self.raw.find(text).unwrap_or_else(|| panic!("no {text}: {self:?}")) + text.len();
        self.times.iter().find(|(bytes, _)| *bytes >= end).unwrap().1
    }

    #[track_caller]
    pub fn assert_error(&self, status: u16, kind: &str, message: &str) {
        assert_eq!(self.status, status, "{self:?}");
        let json = self.json();
        assert_eq!(json["type"], "error", "{self:?}");
        assert_eq!(json["error"]["type"], kind, "{self:?}");
        let said = json["error"]["message"].as_str().unwrap();
        assert!(said.contains(message), "{said}");
        assert_eq!(json["request_id"], self.header("request-id"), "{self:?}");
    }
}
