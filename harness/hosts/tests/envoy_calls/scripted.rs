//! Scripted HTTP/1 server, for models and services behind a real Envoy.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Request that a scripted server got.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "not each test program looks at all")]
pub(crate) struct Asked {
    /// First line and headers, in lower case.
    pub(crate) head: String,
    pub(crate) path: String,
    pub(crate) body: String,
}

/// Answer of a scripted server.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    /// Pieces of the body, with a short pause before each.
    pub(crate) pieces: Vec<String>,
    /// Wait before the head.
    pub(crate) delay: Duration,
    /// Wait before each piece.
    pub(crate) pause: Duration,
}

impl Told {
    pub(crate) fn json(body: impl ToString) -> Self {
        let pieces = vec![body.to_string()];
        let (delay, pause) = (Duration::ZERO, Duration::from_millis(5));
        Self { status: 200, kind: "application/json", pieces, delay, pause }
    }

    pub(crate) fn events(pieces: Vec<String>) -> Self {
        Self { pieces, kind: "text/event-stream", ..Self::json("") }
    }

    pub(crate) fn late(self, ms: u64) -> Self {
        Self { delay: Duration::from_millis(ms), ..self }
    }
}

/// Server that answers as its script says.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    open: Arc<AtomicUsize>,
}

impl Scripted {
    pub(crate) fn start(script: impl Fn(&Asked) -> Told + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (all, script) = (Arc::clone(&asked), Arc::new(script));
        let open = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&open);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (all, script) = (Arc::clone(&all), Arc::clone(&script));
                let count = Arc::clone(&count);
                std::thread::spawn(move || serve(stream, &all, &count, &*script));
            }
        });
        Self { address, asked, open }
    }

    /// Returns the number of answers that are being given.
    #[allow(dead_code, reason = "not each test program counts them")]
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Returns the requests since the last call.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

/// Answers the requests of one connection.
fn serve(
    stream: TcpStream,
    all: &Mutex<Vec<Asked>>,
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
        let written = write(reader.get_mut(), &script(&asked));
        open.fetch_sub(1, Ordering::Relaxed);
        if written.is_err() {
            return;
        }
    }
}

fn write(stream: &mut TcpStream, told: &Told) -> std::io::Result<()> {
    std::thread::sleep(told.delay);
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
